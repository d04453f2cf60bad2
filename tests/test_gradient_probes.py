"""Probes on a trained network: per-sample gradients and AdaSample's draws."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from looped_gradients import looped_gradient_norms
from test_dsm_probes import TINY, subject_of

from lib import recipes
from lib.analysis import drawn_pairs, gradient_norms, training_batch
from lib.analysis.gradient_norms import Samples, per_sample_gradient_norms
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.models import l2net
from lib.objective import build as build_objective
from lib.recipes import Budget
from lib.training import train

AHT, HT = (
    recipes.at_rate(recipes.find(name), 0.1) for name in ("adasample_aug_gen", "adasample_aug_gen_ht")
)


@pytest.fixture(scope="module", params=[AHT, HT], ids=["AHT", "HT"])
def subject(request: pytest.FixtureRequest, small_set: PatchSet) -> Subject:
    tiny = replace(TINY, budget=Budget(batch_pairs=8, epoch_pairs=8 * 10, epochs=1))
    return subject_of(request.param, train(request.param, tiny, small_set, 0), tiny)


@pytest.fixture(scope="module")
def arrays(subject: Subject, small_set: PatchSet) -> dict[str, np.ndarray]:
    return gradient_norms.probe(subject, small_set)


def samples(m: int) -> Samples:
    generator = torch.Generator().manual_seed(0)
    images = 255 * torch.rand(m, 3, 1, 32, 32, generator=generator, dtype=torch.float64)
    side = torch.rand(m, generator=generator) < 0.5
    return Samples(images, side, torch.ones(m, dtype=torch.bool))


@pytest.mark.parametrize("recipe", [AHT, HT], ids=["AHT", "HT"])
def test_batched_norms_equal_those_of_single_backward_passes(
    recipe: recipes.Recipe,
) -> None:
    torch.manual_seed(0)
    model = l2net.L2Net(width=1 / 16).double().eval()
    objective, batch = build_objective(recipe), samples(7)
    norms = per_sample_gradient_norms(model, objective, batch, chunk=3)
    torch.testing.assert_close(norms, looped_gradient_norms(model, objective, batch), rtol=1e-9, atol=0)
    assert not any(layer._forward_hooks for layer in model.modules()), "the network is left as it was"


def test_a_norm_is_that_of_the_plain_loss_over_all_parameters() -> None:
    torch.manual_seed(0)
    model, triplets = l2net.L2Net(width=1 / 16).double().eval(), samples(2)
    anchor, positive, negative = (model(triplets.images[0, i][None])[0] for i in range(3))
    nearer = anchor if bool(triplets.near_anchor[0]) else positive
    angles = [torch.arccos(a @ b) for a, b in ((anchor, positive), (nearer, negative))]
    (1 + angles[0] ** 2 - angles[1] ** 2).clamp(min=0).backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    norm = per_sample_gradient_norms(model, build_objective(AHT), triplets)[0]
    # The angle's ε changes its gradient by parts in a million.
    assert float(norm) == pytest.approx(float(expected), rel=1e-4)


def test_untrained_batch_norms_take_the_mean_statistics_of_the_batches() -> None:
    torch.manual_seed(0)
    model, batches = l2net.L2Net(width=1 / 16).eval(), 255 * torch.rand(3, 8, 1, 32, 32)
    fitted = training_batch.with_statistics(model, batches)
    standardised = [l2net.standardise(batch) for batch in batches]
    responses = [model.features[0](images) for images in standardised]
    means = torch.stack([response.mean((0, 2, 3)) for response in responses]).mean(0)
    variances = torch.stack([response.var((0, 2, 3)) for response in responses]).mean(0)
    torch.testing.assert_close(fitted.features[1].running_mean, means)
    torch.testing.assert_close(fitted.features[1].running_var, variances)
    descriptors = fitted.raw(batches.flatten(0, 1))
    spread = float(descriptors.detach().std(0).mean())
    assert spread == pytest.approx(1, abs=0.1), "the last batch norm's unit variance"
    assert not fitted.training
    assert model.features[1].num_batches_tracked == 0, "the network itself is left as it was"
    assert training_batch.with_statistics(fitted, batches) is fitted, "statistics of training are kept"


def test_the_gradient_probe_holds_each_candidate_once_and_repeatably(
    arrays: dict[str, np.ndarray], subject: Subject, small_set: PatchSet
) -> None:
    assert arrays["stage"].tolist() == [0, 0.5, 1]
    present = np.isfinite(arrays["distance"])
    assert present.shape == (3, 8, 15)
    assert (present.sum(axis=2) == 14).all(), "15 patches a class, one of them the anchor"
    _, sizes = np.unique(small_set.point_ids, return_counts=True)
    assert set(arrays["originals"]) <= set(sizes), "classes as large as the set's"
    for name in ("full", "loss", "output", "differences"):
        assert (np.isfinite(arrays[name]) == present).all()
    assert ((arrays["full"] > 0) == (arrays["loss"] > 0))[present].all(), "no loss, no gradient"
    repeated = gradient_norms.probe(subject, small_set)
    assert all(np.array_equal(arrays[n], repeated[n], equal_nan=True) for n in arrays)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    assert buffer.tell() < 200_000


def test_eq_24_holds_on_the_network_as_stated(arrays: dict[str, np.ndarray], subject: Subject) -> None:
    selected = (arrays["near_anchor"] == 1) & (arrays["loss"] > 0)
    selected &= arrays["distance"] > 0.05
    ratio = (arrays["differences"].astype(float) / (2 * arrays["distance"]))[selected]
    if subject.recipe == HT:
        assert ratio == pytest.approx(1, abs=5e-3), "through ‖x − y‖, negative on the anchor's side"
    along = (arrays["sphere"].astype(float) / (2 * arrays["distance"]))[selected]
    if subject.recipe == AHT:
        assert along == pytest.approx(1, abs=5e-3), "along the sphere it is the angle for which it holds"


def test_the_drawn_pairs_probe_draws_by_eq_13(subject: Subject, small_set: PatchSet) -> None:
    arrays = drawn_pairs.probe(subject, small_set)
    assert arrays["exponent"][0] == 0
    assert (arrays["exponent"][1:] > 1).all()
    for stage, exponent in enumerate(arrays["exponent"]):
        distance = arrays["distance"][stage].astype(float)
        powers = np.where(np.isfinite(distance), distance**exponent, np.nan)
        expected = powers / np.nansum(powers, axis=1, keepdims=True)
        assert arrays["probability"][stage] == pytest.approx(expected, rel=1e-3, nan_ok=True)
        positives = arrays["positive"][stage]
        assert (positives != arrays["anchor"]).all()
        assert np.isfinite(arrays["distance"][stage][np.arange(len(positives)), positives]).all()
