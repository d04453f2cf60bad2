"""HyNet's gradients and norms in trained networks: orthogonality, magnitudes, exposure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_dsm_probes import TINY, size, subject_of
from torch import Tensor

from lib import recipes
from lib.analysis import gradient_magnitudes, orthogonality
from lib.analysis.loss_shapes import Case, slopes
from lib.analysis.training_batch import draw_images, with_statistics
from lib.benchmarks import intensity_changes
from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.subject import Subject, describe
from lib.data.patchset import PatchSet
from lib.losses.descriptions import descriptions
from lib.objective import build as build_objective
from lib.recipes import HYNET, RECIPES, Recipe, hybrid, part, replace_options
from lib.training import train

# HyNet's L_A and L_B (Eq. 9), on the Euclidean distance.
MIXED = replace(hybrid(HYNET, 0.0), loss=part("mixed_hinge", margin=1.0))
STACKED = replace(MIXED, loss=part("stacked_hinge"))
MAGNITUDES = (
    *("hardnet_aug", "dsm_aug", "adasample_aug_gen", "sosnet_aug"),
    *("hynet_aug", "hynet_mixed", "hynet_stacked"),
)
NORMS = ("frn", "instance", "batch")
PAIRS = TINY.budget.batch_pairs


def with_norm(norm: str, **changed: object) -> Recipe:
    return replace(HYNET, model=replace_options(HYNET.model, norm=norm), **changed)


@pytest.fixture(scope="module")
def subjects(small_set: PatchSet) -> dict[str, Subject]:
    known = {**RECIPES, "hynet_mixed": MIXED, "hynet_stacked": STACKED}
    rows = {name: recipes.at_rate(known[name], 0.05) for name in MAGNITUDES}
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
    assert arrays["map"][:, 2].tolist() == [32**2, 32**2, 16**2, 16**2, 8**2, 8**2]
    assert (arrays["channel"][:, 2] == 2 * PAIRS * arrays["map"][:, 2]).all()
    assert np.nanmax(arrays["map"][:, 0]) < 1e-3
    assert size(arrays) < 20_000


def test_batch_norm_makes_gradients_orthogonal_to_whole_channels_alone(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    arrays = orthogonality.probe(subjects["batch"], small_set)
    assert np.nanmax(arrays["channel"][:, :2]) < 1e-3
    assert np.nanmin(arrays["map"][:, 0]) > 1e-3


def test_the_gradient_of_triplets_is_orthogonal_to_descriptors_and_that_of_the_norm_regulariser_is_not(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    """Sec. 2.2 and 3.1: normalisation leaves Δ⊥ alone, R_L2 brings a Δ∥ back."""
    subject = subjects["frn"]
    objective, model = build_objective(subject.recipe), last(subject)
    [images] = draw_images(subject, small_set, [PAIRS])
    raw = model.raw(images).detach().requires_grad_()
    descriptors = descriptions(model, raw)
    losses = objective.loss(objective.triplets(descriptors))
    for total, low, high in ((losses.mean(), 0, 1e-5), (objective.total(losses, descriptors), 1e-3, 1)):
        (gradient,) = torch.autograd.grad(total, raw, retain_graph=True)
        assert low <= orthogonality.cosines(raw, gradient).quantile(0.9) <= high


def test_cosines_are_1_along_0_across_and_leave_out_zero_rows() -> None:
    descriptors = torch.tensor([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [0.0, 0.0]])
    gradient = torch.tensor([[-6.0, -8.0], [4.0, -3.0], [0.0, 0.0], [1.0, 1.0]])
    assert orthogonality.cosines(descriptors, gradient).tolist() == pytest.approx([1, 0], abs=1e-12)


def random_pairs(subject: Subject) -> Subject:
    return replace(subject, recipe=replace(subject.recipe, sampler=part("random_pair")))


def last(subject: Subject) -> torch.nn.Module:
    return subject.stages["1.0"]


def measure_batch(
    subject: Subject, small_set: PatchSet, stage: str, scale: float = 1.0
) -> tuple[Case, Tensor, Tensor]:
    """A recipe's loss after one batch, the batch's Euclidean d_pos and d_neg (n, 2), and autograd's
    magnitudes (2, n) for descriptors that are multiplied by `scale` before normalisation."""
    objective = build_objective(subject.recipe)
    [images] = draw_images(random_pairs(subject), small_set, [PAIRS])
    model = with_statistics(subject.stages[stage], [images])
    with torch.no_grad():
        raw = scale * model.raw(images)
        objective.loss(objective.triplets(descriptions(model, raw)))
    case = gradient_magnitudes.case_of(subject.recipe, objective)
    theta, measured = gradient_magnitudes.magnitudes(case, objective, model, raw)
    return case, 2 * (theta.T.double() / 2).sin(), measured


@pytest.mark.parametrize("name", MAGNITUDES)
@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_autograd_before_normalisation_gives_the_slope_by_the_angle_however_long_descriptors_are(
    subjects: dict[str, Subject], small_set: PatchSet, name: str, scale: float
) -> None:
    # Triplets differ most at the start of training.
    case, batch, measured = measure_batch(subjects[name], small_set, "0.0", scale)
    expected = slopes(case, batch, batch)
    assert batch.std(dim=0).min() > 0.02
    assert measured.max() > 0
    assert measured.numpy() == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-5)


def test_a_hinge_on_d_gives_the_closed_form(subjects: dict[str, Subject], small_set: PatchSet) -> None:
    """Eq. 4: g_d = cos(θ/2) of a triplet within the margin, 0 of one beyond."""
    _, batch, measured = measure_batch(subjects["hardnet_aug"], small_set, "1.0")
    within = (1 + batch[:, 0] - batch[:, 1] > 0).double()
    assert within.sum() > 0
    expected = within * (batch.T / 2).asin().cos()
    assert measured.numpy() == pytest.approx(expected.numpy(), abs=2e-3)


def test_adasamples_weights_are_in_its_magnitudes(
    subjects: dict[str, Subject], small_set: PatchSet
) -> None:
    """AHT's 2 θ times w = 1/θ over its mean is one number for all positives with a loss."""
    arrays = gradient_magnitudes.probe(subjects["adasample_aug_gen"], small_set)
    theta = (np.arange(gradient_magnitudes.POINTS) + 0.5) * math.pi / gradient_magnitudes.POINTS
    curve = arrays["curve_positive"][(theta > 0.2) & (theta < 1.0)]
    assert curve.min() > 0
    assert curve == pytest.approx(curve.mean(), rel=0.05)


def test_fpr95_without_a_change_is_that_of_the_network(
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
