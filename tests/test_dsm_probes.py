"""Probes of DSM's Figures 1 and 3 on a network trained for a few steps, against plain loops."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import torch

from lib import parts, profiles, recipes
from lib.analysis import moving_histogram, triplets_in_batch
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.profiles import Profile
from lib.recipes import Budget, Recipe
from lib.training import Trained, part_state, train

TINY = replace(
    profiles.find("quick"),
    width=1 / 16,
    budget=Budget(batch_pairs=16, epoch_pairs=16 * 8, epochs=1),
    stages=(0.0, 0.5, 1.0),
)
NAMES = ("hardnet_aug", "dsm_aug", "dsm_binary_aug")


def subject_of(recipe: Recipe, trained: Trained, profile: Profile = TINY) -> Subject:
    stages = {}
    for stage, weights in trained.stages.items():
        model = parts.build("model", recipe.model, width=profile.width)
        model.load_state_dict(part_state(weights))
        stages[stage] = model.eval()
    pairs = profile.budget.batch_pairs
    return Subject(lambda patches: patches, recipe, stages, pairs, trained.curve)


@pytest.fixture(scope="module")
def subjects(small_set: PatchSet) -> dict[str, Subject]:
    by_name = {name: recipes.at_rate(recipes.find(name), 0.05) for name in NAMES}
    return {
        name: subject_of(recipe, train(recipe, TINY, small_set, 0)) for name, recipe in by_name.items()
    }


def size(arrays: dict[str, np.ndarray]) -> int:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.tell()


def plain_loop(
    anchors: np.ndarray, positives: np.ndarray, floor: float, scale: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return d_pos and the hardest d_neg of rows and columns; Euclidean, or Hamming times the scale."""

    def distance(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.linalg.norm(x - y)) if scale is None else scale * float((x != y).sum())

    n = len(anchors)
    d_pos = np.array([distance(a, p) for a, p in zip(anchors, positives, strict=True)])
    d_neg = np.full(n, np.inf)
    for i in range(n):
        for j in range(n):
            for x, y in ((anchors[i], positives[j]), (anchors[j], positives[i])):
                if i != j and floor <= distance(x, y) < d_neg[i]:
                    d_neg[i] = distance(x, y)
    return d_pos, d_neg


@pytest.mark.parametrize(
    ("name", "floor", "scale"), [(NAMES[0], 0.008, None), (NAMES[2], 4 / 256, 1 / 128)]
)
def test_a_batch_s_triplets_are_those_of_a_plain_loop(
    subjects: dict[str, Subject], small_set: PatchSet, name: str, floor: float, scale: float | None
) -> None:
    subject = subjects[name]
    arrays = triplets_in_batch.probe(subject, small_set)
    # 40 classes are two batches of 16.
    [images] = triplets_in_batch.draw_images(subject, small_set, [32])
    with torch.no_grad():
        output = subject.stages["1.0"].raw(images)
        descriptors = subject.stages["1.0"].normalise(output)
    descriptors = (descriptors if scale is None else descriptors.sign()).double().numpy()
    anchors, positives = descriptors[:32], descriptors[32:]
    batches = (slice(0, 16), slice(16, 32))
    halves = [plain_loop(anchors[rows], positives[rows], floor, scale) for rows in batches]
    expected = dict(zip(("positive", "negative"), np.hstack(halves), strict=True))
    _, expected["negative_of_all"] = plain_loop(anchors, positives, floor, scale)
    for key, distances in expected.items():
        assert arrays[key].shape == (3, 32)
        assert arrays[key][-1].astype(float) == pytest.approx(distances, abs=2e-3)


def test_a_drawn_pair_shows_one_class_and_no_class_comes_twice(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    subject = subjects["hardnet_aug"]
    unaugmented = replace(subject, recipe=replace(subject.recipe, augment=None))
    [images] = triplets_in_batch.draw_images(unaugmented, small_set, [40])
    patches = torch.from_numpy(small_set.patches).float().view(-1, 1, 64, 64)
    halved = torch.nn.functional.avg_pool2d(patches, 2).flatten(1)
    nearest = torch.cdist(images.flatten(1), halved).argmin(dim=1).numpy()
    first, second = small_set.point_ids[nearest[:40]], small_set.point_ids[nearest[40:]]
    assert first.tolist() == second.tolist()
    assert len(set(first)) == 40
    assert (nearest[:40] != nearest[40:]).all()


def test_the_histogram_is_a_distribution_and_gives_the_batch_its_weights(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    arrays = moving_histogram.probe(subjects["dsm_aug"], small_set)
    edges, cdf = arrays["edges"].astype(float), arrays["cdf"].astype(float)
    assert cdf.shape == (3, 513)
    assert (cdf[:, 0] == 0).all()
    assert cdf[:, -1] == pytest.approx(1, abs=1e-5)
    assert (np.diff(cdf, axis=1) >= 0).all()
    nodes, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    assert nodes[[0, -1]] == pytest.approx([-2, 2], abs=1e-5)
    assert arrays["values"].shape == arrays["weights"].shape == (3, 16)
    for stage in range(3):
        mass = np.diff(cdf[stage])
        assert arrays["mean"][stage] == pytest.approx(mass @ nodes, abs=1e-4)
        spread = np.sqrt(mass @ (nodes - mass @ nodes) ** 2)
        assert arrays["deviation"][stage] == pytest.approx(spread, abs=1e-4)
        # The floor bin's weight; values are rounded to half precision and may lie in the next bin.
        values, weights = (arrays[key][stage].astype(float) for key in ("values", "weights"))
        low, high = (np.interp(values + offset * width, edges, cdf[stage]) for offset in (-0.8, 0.8))
        assert (low - 1e-3 <= weights).all()
        assert (weights <= high + 1e-3).all()
        order = np.argsort(values)
        assert (np.diff(weights[order]) >= 0).all(), "the harder, the heavier"
    assert (arrays["easiest"] < 0.2).all()
    assert (arrays["hardest"] > 0.8).all()
    assert ((arrays["p"] > 0) & (arrays["p"] <= 1)).all()
    assert size(arrays) < 60_000


def test_probes_leave_networks_and_random_numbers_unchanged(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    subject = subjects["dsm_aug"]
    before = {name: value.clone() for name, value in subject.stages["0.5"].state_dict().items()}
    state = torch.get_rng_state()
    moving_histogram.probe(subject, small_set)
    triplets_in_batch.probe(subject, small_set)
    assert torch.equal(torch.get_rng_state(), state)
    assert not subject.stages["0.5"].training
    after = subject.stages["0.5"].state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
