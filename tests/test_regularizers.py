"""GOR, SOSNet's SOSR and HyNet's R_L2 against their definitions and on degenerate batches."""

from __future__ import annotations

import math
import warnings

import literal_hynet
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from lib.losses.descriptions import Descriptions
from lib.losses.regularizers import Gor, Norm, Sosr, is_nearest

seeds = st.integers(0, 2**31)


def raw_pairs(n: int, k: int, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(2, n, k, generator=draw, dtype=torch.float64)


def penalty(regularizer: type[nn.Module], raw: Tensor, **options: object) -> Tensor:
    """Return the penalty of raw descriptors (2, n, k) and their unit vectors."""
    return regularizer(**options)(Descriptions(raw, F.normalize(raw, dim=-1)))


@pytest.mark.parametrize("pairs", ["all", "one"])
@pytest.mark.parametrize(("n", "k"), [(2, 3), (5, 4), (9, 16)])
@pytest.mark.parametrize("offset", [0.0, 9.0])
def test_gor_depends_on_the_moments_of_non_matching_inner_products(
    n: int, k: int, pairs: str, offset: float
) -> None:
    raw = offset + raw_pairs(n, k)
    anchors, positives = F.normalize(raw, dim=-1).tolist()
    # With one negative each, it is the next class's.
    indices = [
        (i, j) for i in range(n) for j in range(n) if i != j and (pairs == "all" or j == (i - 1) % n)
    ]
    products = [sum(x * y for x, y in zip(anchors[i], positives[j], strict=True)) for i, j in indices]
    first = sum(products) / len(products)
    second = sum(product**2 for product in products) / len(products)
    expected = first**2 + max(0.0, second - 1 / k)
    assert not offset or second > 1 / k, "points all over the sphere have less"
    assert float(penalty(Gor, raw, pairs=pairs)) == pytest.approx(expected, rel=1e-12)
    assert float(penalty(Gor, raw, pairs=pairs, weight=3.0)) == pytest.approx(3 * expected, rel=1e-12)


def test_a_collapsed_batch_has_the_largest_gor() -> None:
    same = raw_pairs(1, 8)[0].expand(2, 5, 8)
    assert float(penalty(Gor, same)) == pytest.approx(1 + (1 - 1 / 8))


@given(seed=seeds, n=st.integers(1, 6), k=st.integers(1, 9))
def test_r_l2_is_the_mean_squared_difference_of_lengths(seed: int, n: int, k: int) -> None:
    raw = raw_pairs(n, k, seed)
    lengths = [[math.hypot(*x) for x in side] for side in raw.tolist()]
    expected = sum((x - y) ** 2 for x, y in zip(*lengths, strict=True)) / n
    measured = penalty(Norm, raw, weight=1.0).item()
    assert measured == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert penalty(Norm, raw).item() == pytest.approx(0.1 * measured)
    assert penalty(Norm, raw, weight=1.0, reduction="sum").item() == pytest.approx(n * measured)


def test_r_l2_reports_a_raw_descriptor_of_zero_length() -> None:
    raw = raw_pairs(4, 8)
    raw[1, 2] = 0
    with pytest.raises(FloatingPointError, match="1 raw descriptors are zero"):
        penalty(Norm, raw)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("across", [False, True])
@given(seed=seeds, n=st.integers(2, 9), k=st.integers(1, 8))
def test_sosr_is_the_mean_over_the_neighbours_of_both_sets(symmetric, across, seed, n, k) -> None:
    raw, k = raw_pairs(n, 5, seed), min(k, n - 1)
    options = {"neighbours": k, "symmetric": symmetric, "across": across}
    measured = penalty(Sosr, raw, **options).item()
    expected = literal_hynet.sosr(
        raw.numpy(), k, symmetric=symmetric, cross=across, eps_root=1e-6, eps_unit=0.0
    )
    assert measured == pytest.approx(expected, abs=1e-9)
    assert penalty(Sosr, raw, weight=3.0, **options).item() == pytest.approx(3 * measured)
    assert penalty(Sosr, raw, reduction="sum", **options).item() == pytest.approx(n * measured)


def test_no_descriptor_is_its_own_neighbour_and_ties_take_the_first() -> None:
    rows = [[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 1.0], [0.0] * 4]
    distances = torch.tensor(rows)
    near = [row.nonzero().flatten().tolist() for row in is_nearest(distances, 2)]
    assert near == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert torch.equal(distances, torch.tensor(rows)), "what is looked at is left as it was"


def test_sosr_refuses_a_batch_with_too_few_neighbours() -> None:
    with pytest.raises(ValueError, match="a batch of 8 pairs has no 8 neighbours"):
        penalty(Sosr, raw_pairs(8, 4))


GRADIENTS = [
    (Gor, {}),
    (Gor, {"pairs": "one"}),
    (Norm, {}),
    (Norm, {"reduction": "sum"}),
    (Sosr, {"neighbours": 1}),
    (Sosr, {"neighbours": 1, "symmetric": True, "across": True}),
]


@pytest.mark.parametrize(("regularizer", "options"), GRADIENTS)
@pytest.mark.parametrize("n", [2, 5])
def test_the_gradient_matches_finite_differences_even_for_two_pairs(
    regularizer, options, n: int
) -> None:
    raw = raw_pairs(n, 4, n).requires_grad_()
    assert torch.autograd.gradcheck(lambda raw: penalty(regularizer, raw, **options), raw)


@pytest.mark.parametrize("regularizer", [Gor, Norm, Sosr])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_identical_descriptors_have_finite_penalties_and_gradients(regularizer, dtype) -> None:
    """All descriptors equal; and two equal sets, whose differences are zero."""
    constant, paired = torch.ones(2, 10, 16), raw_pairs(10, 16).float()
    paired[1] = paired[0]
    for raw in (constant, paired):
        leaf = raw.to(dtype).requires_grad_()
        loss = penalty(regularizer, leaf)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(leaf.grad).all()
        assert regularizer is not Norm or (loss.item(), leaf.grad.abs().max().item()) == (0, 0)


def test_r_l2_warns_once_of_descriptors_that_were_normalised_already() -> None:
    raw = raw_pairs(4, 8)
    unit = F.normalize(raw, dim=-1)
    regulariser = Norm()
    with pytest.warns(UserWarning, match="network.raw"):
        assert float(regulariser(Descriptions(unit, unit))) == pytest.approx(0, abs=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regulariser(Descriptions(unit, unit))
        assert float(Norm()(Descriptions(raw, unit))) > 0
