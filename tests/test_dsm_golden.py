"""The study's DSM against its literal float64 transcription, over several batches.

`literal_dsm` was written from the paper alone, by somebody who had not seen the library.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import literal_dsm
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib import objective, parts
from lib.losses.descriptions import Descriptions
from lib.recipes import DSM, DSM_BINARY, Recipe, part, replace_options

PAIRS, BATCHES, BINS = 9, 4, 64
LENGTH = {"real": 16, "binary": 32}
PDFS = ("difference", "positive", "negative")


def batches(kind: str) -> list[torch.Tensor]:
    """Batches of values (2, n, k) float64: unit vectors, or tanh; matches are closer than others."""
    random = torch.Generator().manual_seed(3)
    shape = (PAIRS, LENGTH[kind])
    drawn = []
    for _ in range(BATCHES):
        point = torch.randn(shape, generator=random, dtype=torch.float64)
        noise = torch.randn((2, *shape), generator=random, dtype=torch.float64)
        raw = point + 0.7 * noise
        drawn.append(F.normalize(raw, dim=2) if kind == "real" else raw.tanh())
    return drawn


def recipe_of(kind: str, **loss: object) -> Recipe:
    """Return DSM's recipe with another loss and, if binary, with short codes."""
    if kind == "real":
        return replace(DSM, loss=part("cdf", **loss))
    bits = part("hamming", scale="2D/k", length=LENGTH[kind])
    # Two bits, on the scale of the distance.
    negatives = replace_options(DSM_BINARY.negatives, floor=2 * 2 / LENGTH[kind])
    loss_part = part("cdf", distance=bits, **loss)
    return replace(DSM_BINARY, distance=bits, negatives=negatives, loss=loss_part)


def ours(kind: str, recipe: Recipe) -> list[dict[str, np.ndarray]]:
    built = objective.build(recipe)
    built.loss.double()
    outcomes = []
    for values in batches(kind):
        leaf = values.clone().requires_grad_()
        code = torch.where(values > 0, 1.0, -1.0).double() if kind == "binary" else None
        descriptions = Descriptions(leaf, leaf, code)
        losses = built.loss(built.triplets(descriptions))
        total = built.total(losses, descriptions)
        total.backward()
        state = {name: value.numpy().copy() for name, value in built.loss.named_buffers()}
        outcomes.append({"loss": total.detach().numpy(), "gradient": leaf.grad.numpy(), **state})
    return outcomes


def compare(kind: str, recipe: Recipe, moving: object, pdf_of: str) -> None:
    expected = literal_dsm.dsm_loss([b.numpy() for b in batches(kind)], kind, moving, pdf_of)
    for actual, literal in zip(ours(kind, recipe), expected, strict=True):
        tolerance = {"rtol": 0, "atol": 1e-12}
        np.testing.assert_allclose(actual["loss"], literal.loss, **tolerance)
        np.testing.assert_allclose(actual["gradient"], literal.gradient, **tolerance)
        if "histogram" in actual:
            np.testing.assert_allclose(actual["histogram"], literal.state, **tolerance)
        else:
            np.testing.assert_allclose([actual["mean"], actual["variance"]], literal.state, **tolerance)


@pytest.mark.parametrize(
    ("kind", "of", "lookup"), [*itertools.product(LENGTH, PDFS, ("floor", "interpolated"))]
)
def test_loss_histogram_and_gradient_are_the_literal_ones(kind: str, of: str, lookup: str) -> None:
    recipe = recipe_of(kind, of=of, bins=BINS, lookup=lookup)
    compare(kind, recipe, literal_dsm.MovingHistogram(BINS, 0.1, lookup), of)


@pytest.mark.parametrize("kind", LENGTH)
def test_loss_moments_and_gradient_of_the_gaussian_are_the_literal_ones(kind: str) -> None:
    compare(kind, recipe_of(kind, form="gaussian"), literal_dsm.MovingGaussian(0.1), "difference")


def test_the_transcription_has_the_defaults_of_the_recipes() -> None:
    """Transcription and recipes have the defaults of the paper and of CHOICES."""
    loss = parts.build("loss", DSM.loss)
    literal = literal_dsm.MovingHistogram()
    assert (len(loss.histogram), loss.momentum, loss.lookup) == (512, 0.1, "floor")
    assert (literal.bins, literal.momentum, literal.lookup) == (512, 0.1, "floor")
    assert DSM_BINARY.loss == DSM.loss
    assert DSM.distance.options["epsilon"] == literal_dsm.EPSILON
    assert DSM.negatives.options["floor"] == literal_dsm.CLOSEST_REAL
    assert DSM_BINARY.negatives.options["floor"] == 2 * literal_dsm.CLOSEST_BITS / 256
