"""HyNet's gradients and norms as trained networks have them: orthogonality, magnitudes, exposure."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_dsm_probes import TINY, size, subject_of

from lib import recipes
from lib.data.patchset import PatchSet
from lib.descriptions import descriptions
from lib.evaluation import gradient_magnitudes, intensity_changes, orthogonality
from lib.evaluation.fpr95 import fpr95
from lib.evaluation.subject import Subject, describe
from lib.evaluation.training_batch import with_statistics
from lib.evaluation.triplets_in_batch import draw_images
from lib.objective import build as build_objective
from lib.recipes import HYNET, RECIPES, Recipe, part, replace_options
from lib.theory.loss_shapes import Case, pull_and_push
from lib.training import train

MAGNITUDES = ("hardnet_aug", "adasample_aug_gen", "dsm_aug", "sosnet_aug", "hynet_aug")
NORMS = ("frn", "instance", "batch")
PAIRS = TINY.budget.batch_pairs


def with_norm(norm: str, **changed: object) -> Recipe:
    return replace(HYNET, model=replace_options(HYNET.model, norm=norm), **changed)


@pytest.fixture(scope="module")
def subjects(small_set: PatchSet) -> dict[str, Subject]:
    rows = {name: recipes.at_rate(RECIPES[name], 0.05) for name in MAGNITUDES}
    rows |= {norm: recipes.at_rate(with_norm(norm), 0.005) for norm in NORMS}
    rows["hynet_aug"] = rows["frn"]
    rows["no_norm"] = recipes.at_rate(with_norm("frn", regularizers=()), 0.005)
    unique = {id(row): row for row in rows.values()}
    trained = {key: subject_of(row, train(row, TINY, small_set, 0)) for key, row in unique.items()}
    return {name: trained[id(row)] for name, row in rows.items()}


@pytest.mark.parametrize("norm", ["frn", "instance"])
def test_frn_and_instance_norm_make_gradients_orthogonal_to_each_map(
    subjects: dict[str, Subject], small_set: PatchSet, norm: str
) -> None:
    arrays = orthogonality.probe(subjects[norm], small_set)
    assert arrays["map"].shape == arrays["channel"].shape == (3, 6, 2)
    assert np.nanmax(arrays["map"][..., 0]) < 1e-3
    assert arrays["stage"].tolist() == [0, 0.5, 1]
    assert size(arrays) < 20_000


def test_batch_norm_makes_them_orthogonal_to_the_maps_of_the_batch_together_alone(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    arrays = orthogonality.probe(subjects["batch"], small_set)
    assert np.nanmax(arrays["channel"]) < 1e-3
    assert np.nanmin(arrays["map"][..., 0]) > 1e-3


def test_the_gradient_of_triplets_is_orthogonal_to_descriptors_and_that_of_the_norm_regulariser_is_not(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    """Sec. 2.2 and 3.1: normalisation leaves Δ⊥ alone, R_L2 brings a Δ∥ back."""
    with_it, without = (orthogonality.probe(subjects[of], small_set) for of in ("frn", "no_norm"))
    for arrays in (with_it, without):
        assert arrays["descriptor_of_triplets"].max() < 1e-5
    assert np.array_equal(without["descriptor"], without["descriptor_of_triplets"])
    assert with_it["descriptor"][:, 1].min() > 1e-3


def test_cosines_of_a_gradient_along_and_across_and_of_none() -> None:
    of = torch.tensor([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [0.0, 0.0]])
    gradient = torch.tensor([[-6.0, -8.0], [4.0, -3.0], [0.0, 0.0], [1.0, 1.0]])
    assert orthogonality.cosines(of, gradient).tolist() == pytest.approx([1, 0], abs=1e-12)


def random_pairs(subject: Subject) -> Subject:
    return replace(subject, recipe=replace(subject.recipe, sampler=part("random_pair")))


def last(subject: Subject) -> torch.nn.Module:
    return subject.stages["1.0"]


@pytest.mark.parametrize("name", MAGNITUDES)
def test_magnitudes_are_counted_small_and_repeat(
    subjects: dict[str, Subject], small_set: PatchSet, name: str
) -> None:
    arrays = gradient_magnitudes.probe(subjects[name], small_set)
    assert arrays["edges"][[0, -1]] == pytest.approx([0, math.pi])
    for kind in ("positive", "negative"):
        count, mean = arrays[f"count_{kind}"], arrays[f"mean_{kind}"]
        assert count.sum() == gradient_magnitudes.BATCHES * PAIRS
        assert (np.isfinite(mean) == (count > 0)).all()
        low, high = arrays[f"spread_{kind}"][count > 0].T
        assert (low <= high).all()
    assert size(arrays) < 20_000
    again = gradient_magnitudes.probe(subjects[name], small_set)
    assert all(np.array_equal(arrays[key], again[key], equal_nan=True) for key in arrays)


@pytest.mark.parametrize("name", MAGNITUDES)
def test_what_autograd_measures_before_normalisation_is_the_loss_s_derivative_by_the_angle(
    subjects: dict[str, Subject], small_set: PatchSet, name: str
) -> None:
    subject = subjects[name]
    objective = build_objective(subject.recipe)
    weighing = gradient_magnitudes.Weighing.of(subject.recipe)
    [images] = draw_images(random_pairs(subject), small_set, [PAIRS])
    # At the start of training triplets differ most.
    model = with_statistics(subject.stages["0.0"], [images])
    with torch.no_grad():
        of = descriptions(model, model.raw(images))
    triplets = objective.triplets(of)
    objective.loss(triplets)
    angles, values = gradient_magnitudes.measured(objective, weighing, model, of, triplets)
    case = Case("", "", lambda: objective.loss, objective.distance, weighing.drawn_by)
    batch = 2 * (angles.T / 2).sin()
    slopes = pull_and_push(case, copy.deepcopy(objective.loss), batch, batch).abs()
    expected = slopes * (angles / 2).cos()
    assert np.ptp(angles[0].numpy()) > 0.05
    assert values.max() > 0
    assert values.numpy() == pytest.approx(expected.numpy(), rel=0.02, abs=2e-3)


def test_a_hinge_on_d_gives_the_closed_form_whatever_the_length_of_the_descriptor(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    """Eq. 4: g_d = cos(θ/2) of a triplet within the margin, 0 of one beyond."""
    subject = subjects["hardnet_aug"]
    objective = build_objective(subject.recipe)
    [images] = draw_images(subject, small_set, [PAIRS])
    with torch.no_grad():
        of = descriptions(last(subject), last(subject).raw(images))
    triplets = objective.triplets(of)
    weighing = gradient_magnitudes.Weighing.of(subject.recipe)
    for longer in (1.0, 7.0):
        scaled = replace(of, raw=longer * of.raw)
        angles, values = gradient_magnitudes.measured(
            objective, weighing, last(subject), scaled, triplets
        )
        within = (1 + triplets.positive - triplets.negative > 0).double()
        assert within.sum() > 0
        assert values.numpy() == pytest.approx((within * (angles / 2).cos()).numpy(), abs=2e-3)


def test_adasamples_weights_are_in_its_magnitudes(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    """AHT's 2 θ times w = 1/θ over its mean is one number for all positives with a loss."""
    arrays = gradient_magnitudes.probe(subjects["adasample_aug_gen"], small_set)
    curve = arrays["curve_positive"][(arrays["theta"] > 0.2) & (arrays["theta"] < 1.0)]
    assert curve.min() > 0
    assert curve == pytest.approx(curve.mean(), rel=0.05)


def test_what_was_not_trained_is_refused(small_set: PatchSet) -> None:
    untrained = Subject(lambda patches: patches)
    for ask in (orthogonality.probe, gradient_magnitudes.probe, intensity_changes.measure):
        with pytest.raises(ValueError, match="not trained"):
            ask(untrained, small_set)


def test_changes_of_exposure_are_images_of_8_bits() -> None:
    of = intensity_changes.changes()
    assert of["none"].tolist() == list(range(256))
    assert of["gain_1.4"][[0, 100, 200]].tolist() == [0, 140, 255]
    assert of["gamma_0.5"][[0, 64, 255]].tolist() == [0, 128, 255]
    assert of["gamma_1.5"][64] < 64 < of["gamma_0.7"][64]
    assert len(of) == 1 + len(intensity_changes.GAINS) + len(intensity_changes.GAMMAS)


def test_fpr95_without_a_change_is_the_network_s_own(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    numbers = intensity_changes.measure(subjects["frn"], small_set)
    model, pairs = last(subjects["frn"]), small_set.pairs
    described = describe(model, small_set.patches).astype(np.float64)
    distances = np.linalg.norm(described[pairs.first] - described[pairs.second], axis=1)
    assert numbers["fpr95.none"] == pytest.approx(fpr95(distances, pairs.match).expected)
    assert numbers["norm_shift.none"] == 0
    assert len(numbers) == 3 * len(intensity_changes.changes())


def test_only_the_second_patch_of_a_pair_is_changed(
    subjects: dict[str, Subject], small_set: PatchSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    black = {"none": np.arange(256, dtype=np.uint8), "black": np.zeros(256, np.uint8)}
    monkeypatch.setattr(intensity_changes, "changes", lambda: black)
    numbers = intensity_changes.measure(subjects["frn"], small_set)
    images = torch.from_numpy(small_set.patches).float().view(-1, 1, 64, 64)
    with torch.no_grad():
        raw = last(subjects["frn"]).raw(F.avg_pool2d(images, 2))
        dark = last(subjects["frn"]).raw(torch.zeros(1, 1, 32, 32))
    first = raw[small_set.pairs.first[small_set.pairs.match]].norm(dim=1).log()
    assert numbers["ratio_spread.black"] == pytest.approx(float(first.std(correction=0)), rel=1e-3)
    second = raw[np.unique(small_set.pairs.second)].norm(dim=1)
    expected = (dark.norm() / second).log().abs().median()
    assert numbers["norm_shift.black"] == pytest.approx(float(expected), rel=1e-3)


@pytest.mark.parametrize("model", [part("hynet", norm="frn"), part("l2net")])
def test_a_gain_that_neither_rounds_nor_clips_changes_nothing_but_what_epsilon_does(
    subjects: dict[str, Subject], small_set: PatchSet, model: object
) -> None:
    """The input layer divides a patch by its root mean square, L2-Net's by its deviation."""
    subject = subjects["frn" if model.name == "hynet" else "hardnet_aug"]
    images = F.avg_pool2d(torch.from_numpy(small_set.patches).float().view(-1, 1, 64, 64), 2)
    with torch.no_grad():
        raw, scaled = (last(subject).raw(gain * images) for gain in (1.0, 0.3))
    assert (scaled - raw).norm(dim=1).max() < 1e-4 * raw.norm(dim=1).min()


def test_instance_norm_removes_an_offset_too_and_frn_does_not(subjects: dict[str, Subject]) -> None:
    images = 255 * torch.rand(8, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        far = {
            norm: (last(subjects[norm])(images + 100) - last(subjects[norm])(images)).norm(dim=1).mean()
            for norm in ("frn", "instance")
        }
    assert far["instance"] < 1e-3 < 1e-2 < far["frn"]
