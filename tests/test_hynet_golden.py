"""The study's HyNet and SOSNet against their literal float64 transcription.

`literal_hynet` was written from the paper alone, by somebody who had not seen the library.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import literal_hynet
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib import objective
from lib.losses.descriptions import Descriptions
from lib.recipes import HYNET, SOSNET, Recipe, hybrid, part, replace_options

PAIRS, LENGTH, NEIGHBOURS = 12, 16, 3
# The network normalises x + 1e-10; the transcription divides x by √(‖x‖² + ε).
UNIT = {"eps_unit": 0.0}
LITERAL = {"eps_root": 1e-6, "k": NEIGHBOURS, **UNIT}
EUCLIDEAN = replace(SOSNET, regularizers=())


def raw_pairs(seed: int = 5) -> torch.Tensor:
    """Return (2, n, k) raw descriptors of any length; pairs are closer than others."""
    random = torch.Generator().manual_seed(seed)
    point = torch.randn((PAIRS, LENGTH), generator=random, dtype=torch.float64)
    noise = torch.randn((2, PAIRS, LENGTH), generator=random, dtype=torch.float64)
    return 3 * (point + 0.7 * noise)


def ours(recipe: Recipe) -> tuple[float, np.ndarray]:
    """Return the loss that a step minimises, and its gradient by the raw descriptors."""
    leaf, built = raw_pairs().requires_grad_(), objective.build(recipe)
    descriptors = Descriptions(leaf, F.normalize(leaf, dim=2))
    total = built.total(built.loss(built.triplets(descriptors)), descriptors)
    total.backward()
    return total.item(), leaf.grad.numpy()


def regularised(recipe: Recipe, reduction: str) -> Recipe:
    """Return the recipe with its loss and its regularisers summed or averaged."""
    reduced = tuple(replace_options(term, reduction=reduction) for term in recipe.regularizers)
    return replace(recipe, reduction=reduction, regularizers=reduced)


SOSR = {
    f"SOSNet, {reduction}, {symmetric=}, {cross=}": (
        regularised(
            replace(
                SOSNET,
                regularizers=(
                    part("sosr", weight=1.0, neighbours=NEIGHBOURS, symmetric=symmetric, across=cross),
                ),
            ),
            reduction,
        ),
        literal_hynet.sosnet_loss,
        {"reduction": reduction, "symmetric": symmetric, "cross": cross, **LITERAL},
    )
    for reduction, symmetric, cross in itertools.product(("mean", "sum"), (False, True), (False, True))
}
HYBRID = {
    f"HyNet, α = {alpha}, {divided=}, {reduction}": (
        regularised(
            hybrid(HYNET, alpha, 1.2, None if divided else 1.0),
            reduction,
        ),
        literal_hynet.hynet_loss,
        {"alpha": alpha, "z": None if divided else 1.0, "reduction": reduction, **UNIT},
    )
    for alpha, divided, reduction in itertools.product(
        (0.0, 0.5, 2.0, math.inf), (True, False), ("mean", "sum")
    )
}
OTHERS = {
    "L_A": (
        replace(EUCLIDEAN, loss=part("mixed_hinge", margin=1.0)),
        literal_hynet.loss_a,
        UNIT,
    ),
    "L_B": (replace(EUCLIDEAN, loss=part("stacked_hinge")), literal_hynet.loss_b, UNIT),
    "squared hinge": (EUCLIDEAN, literal_hynet.squared_hinge, UNIT),
    "HyNet+SOSR": (
        replace(HYNET, regularizers=(*HYNET.regularizers, *SOSNET.regularizers)),
        literal_hynet.hynet_sosr_loss,
        {**LITERAL, "k": 8},
    ),
}
CASES = {**SOSR, **HYBRID, **OTHERS}


@pytest.mark.parametrize("case", CASES)
def test_the_loss_and_its_slope_equal_the_literal_ones(case: str) -> None:
    recipe, literal, options = CASES[case]
    loss, gradient = ours(recipe)
    raw = raw_pairs().numpy()
    # L_A takes 1 − s as d²/2, which has half of the ε under d's root.
    tolerance = 6e-7 if case == "L_A" else 1e-10
    assert loss == pytest.approx(literal(raw, **options), rel=0, abs=tolerance)
    for direction in np.random.default_rng(0).normal(size=(2, *raw.shape)):
        slope = literal_hynet.slope_along(literal, raw, direction, **options)
        assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-8)
