"""The study's TCDesc against the literal float64 transcription of it.

`literal_tcdesc` was written from the paper alone, by an author who had not seen the library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import literal_tcdesc as literal
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib import objective
from lib.losses.descriptions import Descriptions
from lib.recipes import TCDESC_DSM, TCDESC_HN, Recipe, replace_options

PAIRS, LENGTH, NEIGHBOURS, BINS = 10, 12, 4, 32
# HN's ε, and DSM's, under the root.
HN = {"k": NEIGHBOURS}
DSM = {"k": NEIGHBOURS, "bins": BINS, "eps": literal.DSM_EPSILON}
# Case -> options of our positive, and options of the transcription.
CASES: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "as the paper": ({}, {}),
    "γ = 0.5": ({"gamma": 0.5}, {"gamma": 0.5}),
    "γ = 2": ({"gamma": 2.0}, {"gamma": 2.0}),
    "fixed λ": ({"lam": 0.3}, {"lam": 0.3}),
    "mean λ": ({"per": "batch"}, {"lam": "batch_mean"}),
    "mutual matches": ({"mutual": True}, {"matches": "mutual"}),
    "neighbours detached": ({"detached": True}, {"detached": True}),
    "sum to one": ({"sum_to_one": True}, {"weights": "lle"}),
    "ridge": ({"ridge": 0.1}, {"ridge": 0.1}),
    "heat kernel": ({"weights": "heat", "t": 0.5}, {"weights": "heat", "t": 0.5, "kernel_eps": 1e-6}),
    "heat kernel on d²": (
        {"weights": "heat", "t": 0.5, "squared": True},
        {"weights": "heat", "t": 0.5, "kernel_on": "d2"},
    ),
    "hard weight": (
        {"weights": "heat", "t": 1000.0},
        {"weights": "hard", "kernel_eps": 1e-6},
    ),
    "no topology": ({"weights": "none"}, {"weights": "none"}),
}


def unit_pairs() -> torch.Tensor:
    """Return (2, n, d) unit descriptors, float64; pairs are closer than others."""
    random = torch.Generator().manual_seed(8)
    point = torch.randn((PAIRS, LENGTH), generator=random, dtype=torch.float64)
    noise = torch.randn((2, PAIRS, LENGTH), generator=random, dtype=torch.float64)
    return F.normalize(point + 0.6 * noise, dim=2)


def compare(recipe: Recipe, options: literal.Options, loss: Callable) -> None:
    """Compare d⁺ of the pairs, the loss that a step minimises, and its slope along the sphere."""
    leaf, built = unit_pairs().requires_grad_(), objective.build(recipe)
    if isinstance(built.loss, torch.nn.Module):
        built.loss.double()
    triplets = built.triplets(Descriptions(leaf, leaf))
    total = built.total(built.loss(triplets), triplets.descriptions)
    total.backward()
    x = unit_pairs().numpy()
    expected = literal.positive_distances(x, options)
    np.testing.assert_allclose(triplets.positive.detach(), expected, rtol=0, atol=1e-9)
    assert total.item() == pytest.approx(loss(x, options), rel=0, abs=1e-9)
    for direction in np.random.default_rng(0).normal(size=(2, *x.shape)):
        tangent = direction - (direction * x).sum(axis=2, keepdims=True) * x
        slope = literal.slope_along(loss, x, tangent, options)
        assert (leaf.grad.numpy() * tangent).sum() == pytest.approx(slope, rel=0, abs=1e-7)


def with_positive(base: Recipe, **options: object) -> Recipe:
    positive = replace_options(base.positive, neighbours=NEIGHBOURS, **options)
    return replace(base, positive=positive)


@pytest.mark.parametrize("case", CASES)
def test_hardnets_loss_and_slope_match_the_literal_ones(case: str) -> None:
    options, literal_options = CASES[case]
    compare(
        with_positive(TCDESC_HN, **options),
        literal.Options(**{**HN, **literal_options}),
        literal.loss_hn,
    )


def test_dsms_loss_and_slope_match_the_literal_ones() -> None:
    recipe = with_positive(TCDESC_DSM)
    recipe = replace(recipe, loss=replace_options(recipe.loss, bins=BINS))
    compare(recipe, literal.Options(**DSM), literal.loss_dsm)


def test_small_errors_change_no_choice_in_the_batch() -> None:
    """No two neighbours, and no value and histogram node, are so near that rounding swaps them."""
    x = unit_pairs().numpy()
    assert min(literal.neighbour_gaps(side, NEIGHBOURS).min() for side in x) > 1e-6
    hardness = literal.dsm_hardness(x, literal.Options(**DSM))
    assert literal.node_gap(hardness, BINS) > 1e-6
