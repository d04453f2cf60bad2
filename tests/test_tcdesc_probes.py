"""TCDesc's probes: neighbourhoods against the literal formulas, and matches between known images."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import cv2
import literal_tcdesc
import numpy as np
import pytest
import torch
from literal_tcdesc import Options
from test_dsm_probes import TINY, size, subject_of

from lib.analysis import matches_on_brisk, matches_on_dog, neighbourhoods
from lib.analysis.training_batch import draw_images, with_statistics
from lib.benchmarks.subject import Subject, describe
from lib.data.hpatches.homographies import MATCHED, HomographySequence
from lib.data.patchset import PatchSet
from lib.features.keypoints import Keypoints
from lib.losses.descriptions import descriptions
from lib.models.handcrafted import Sift
from lib.recipes import RECIPES, Budget, at_rate
from lib.training import train

PAIRS = 20
SIZE = replace(TINY, budget=Budget(PAIRS, PAIRS * 4, 1))


@pytest.fixture(scope="module")
def subject(small_set: PatchSet) -> Subject:
    recipe = at_rate(RECIPES["dsm_aug"], 0.05)
    return subject_of(recipe, train(recipe, SIZE, small_set, 0), SIZE)


@pytest.fixture(scope="module")
def arrays(subject: Subject, small_set: PatchSet) -> dict[str, np.ndarray]:
    return neighbourhoods.probe(subject, small_set)


def described(subject: Subject, small_set: PatchSet, stage: str = "1.0", batch: int = 0) -> np.ndarray:
    """Descriptors (2, n, d) of a batch at a stage of training, float64."""
    batches = draw_images(subject, small_set, [PAIRS] * neighbourhoods.BATCHES)
    model = with_statistics(subject.stages[stage], batches)
    with torch.no_grad():
        return descriptions(model, model.raw(batches[batch])).code.double().numpy()


@pytest.mark.parametrize(
    ("stage", "ridge"),
    # A few steps into training, descriptors nearly coincide, and the ridge alone sets the weights.
    [("0.0", 0.0), ("1.0", 0.01)],
)
def test_shares_and_distances_are_the_literal_ones(
    arrays: dict[str, np.ndarray], subject: Subject, small_set: PatchSet, stage: str, ridge: float
) -> None:
    x, options = described(subject, small_set, stage), Options(ridge=ridge)
    frozen = literal_tcdesc.freeze(x, options)
    matched = literal_tcdesc.matched_neighbours(x, frozen.neighbours, options)
    index = int(2 * float(stage))
    measured = {name: arrays[name][index, :PAIRS] for name in ("matched", "topology", "euclidean")}
    np.testing.assert_array_equal(measured["matched"], matched / 16)
    distances = literal_tcdesc.topology_distances(x, options, frozen)
    assert measured["topology"] == pytest.approx(distances, abs=1e-3)
    assert measured["euclidean"] == pytest.approx(np.linalg.norm(x[0] - x[1], axis=1), abs=2e-3)
    if stage == "1.0":
        np.testing.assert_array_equal(arrays["near"].transpose(1, 0, 2), frozen.neighbours[:, :3])


def test_the_topology_distance_is_at_most_that_without_shared_neighbours(
    arrays: dict[str, np.ndarray], subject: Subject, small_set: PatchSet
) -> None:
    options, sums = Options(ridge=0.01), []
    for batch in range(neighbourhoods.BATCHES):
        x = described(subject, small_set, batch=batch)
        near = literal_tcdesc.freeze(x, options).neighbours
        for side, hoods in zip(x, near, strict=True):
            sums.append(np.abs(literal_tcdesc.topology_vectors(side, hoods, options)).sum(1).mean())
    assert arrays["unshared"][-1] == pytest.approx(2 * np.mean(sums) / 16, rel=1e-3)
    assert (arrays["topology"].mean(1, dtype=float) < arrays["unshared"]).all()


def test_the_plane_is_that_of_the_pair_and_its_neighbours(
    arrays: dict[str, np.ndarray], subject: Subject, small_set: PatchSet
) -> None:
    x = described(subject, small_set)
    for pair, (near, plane) in enumerate(zip(arrays["near"], arrays["plane"], strict=True)):
        members = [(side, index) for side in (0, 1) for index in (pair, *near[side])]
        projected = np.array([plane[side, index] for side, index in members], float)
        descriptors = np.array([x[side, index] for side, index in members])
        centred = descriptors - descriptors.mean(0)
        # No other plane keeps as much of their variance, and none could keep more.
        variance = np.sort(np.linalg.eigvalsh(centred.T @ centred))[-2:].sum()
        assert np.square(projected).sum() == pytest.approx(variance, rel=1e-2)
        assert arrays["explained"][pair] == pytest.approx(variance / np.square(centred).sum(), abs=1e-2)
        assert np.abs(projected.mean(0)).max() < 1e-2


def test_networks_trained_on_other_pairs_use_the_same_batches(
    arrays: dict[str, np.ndarray], subject: Subject, small_set: PatchSet
) -> None:
    """Two methods are compared on the same pairs: a run's weights do not choose them."""
    assert arrays["stage"].tolist() == [0, 0.5, 1]
    assert arrays["matched"].shape == (3, neighbourhoods.BATCHES * PAIRS)
    again = neighbourhoods.probe(replace(subject, recipe=RECIPES["tcdesc_dsm_aug"]), small_set)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)


SHIFT = 40


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[HomographySequence]:
    """Sequences of one texture: the fourth image is the first moved to the right. The homography of
    "v_none" moves it to the left instead."""
    folder = tmp_path_factory.mktemp("images")
    texture = np.random.default_rng(0).normal(128, 60, (60, 80)).clip(0, 255).astype(np.uint8)
    texture = cv2.resize(texture, (320, 240), interpolation=cv2.INTER_CUBIC)
    files = []
    for index in range(6):
        moved = np.roll(texture, SHIFT if index == MATCHED[1] else 0, axis=1)
        files.append(folder / f"{index + 1}.png")
        cv2.imwrite(str(files[-1]), moved)

    def sequence(name: str, offset: int) -> HomographySequence:
        homography = np.array([[1.0, 0, offset], [0, 1, 0], [0, 0, 1]])
        return HomographySequence(name, tuple(files), np.repeat(homography[None], 5, axis=0))

    sequences = [sequence(name, SHIFT) for name in ("v_c", "i_b", "i_a", "i_c")]
    return [*sequences, sequence("v_none", -SHIFT)]


@pytest.mark.parametrize("module", [matches_on_brisk, matches_on_dog])
def test_matches_are_right_by_the_homography_and_wrong_by_another(
    module: object, images: list[HomographySequence]
) -> None:
    subject = Subject(partial(describe, Sift().eval()))
    arrays = module.probe(subject, images)
    assert arrays["name"].tolist() == ["i_a", "i_b", "i_c", "v_c", "v_none"]
    right, matches = arrays["right"], arrays["matches"]
    assert (matches > 30).all()
    assert (right[:4] > 0.85 * matches[:4]).all()
    assert right[4] < 0.05 * matches[4]
    # The first and the last of each kind are drawn.
    assert sorted(set(arrays["of"])) == [0, 2, 3, 4]
    for image in (0, 2, 3, 4):
        selected = arrays["of"] == image
        assert (selected.sum(), arrays["is_right"][selected].sum()) == (matches[image], right[image])
    first, second = arrays["places"][arrays["of"] == 0].reshape(-1, 2, 2).transpose(1, 0, 2)
    correct = arrays["is_right"][arrays["of"] == 0]
    assert np.linalg.norm(second - first - [SHIFT, 0], axis=1)[correct].max() <= matches_on_brisk.RIGHT
    assert size(arrays) < 50_000


def test_matches_are_each_others_nearest(images: list[HomographySequence]) -> None:
    """Keypoints with numbers as descriptors: 0.1 and 0.2 are nearest to 0, which takes one of them."""
    numbers = iter([np.array([[0.0], [5.0]]), np.array([[0.1], [0.2], [9.0]])])
    keypoints = Keypoints(
        np.array([[100.0, 50.0], [120.0, 60.0], [140.0, 70.0]]), np.full(3, 2.0), np.zeros(3)
    )
    counts = iter([2, 3])
    subject = Subject(lambda patches: next(numbers))
    sequence = images[:1]
    arrays = matches_on_brisk.image_matches(
        subject, sequence, lambda image, most: keypoints[: next(counts)]
    )
    assert arrays["matches"].tolist() == [2]
    assert arrays["places"].tolist() == [[100, 50, 100, 50], [120, 60, 140, 70]]
    assert arrays["right"].tolist() == [0]
