"""TCDesc's oracle by hand, so that it and the library cannot share a misreading."""

from __future__ import annotations

import literal_tcdesc as literal
import numpy as np
import pytest
from literal_tcdesc import Options


def test_orthonormal_neighbours_give_the_inner_products():
    centre = np.array([0.1, -0.5, 0.2, 0.4, 0.3])
    hood = np.eye(5)[:, [4, 1, 3]]
    assert literal.least_squares(centre, hood) == pytest.approx([0.3, -0.5, 0.4])
    assert literal.least_squares(centre, hood, 1.0) == pytest.approx([0.15, -0.25, 0.2])
    # The least change that makes their sum one: a third of 1 − 0.2 more for each.
    assert literal.sum_to_one(centre, hood) == pytest.approx(np.array([0.3, -0.5, 0.4]) + 0.8 / 3)


def test_topology_vectors_without_a_shared_index_add_both_norms():
    first = literal.topology_vector(np.array([3, 0]), np.array([0.25, -2.0]), 5)
    assert first.tolist() == [-2.0, 0, 0, 0.25, 0]
    second = literal.topology_vector(np.array([1, 4]), np.array([0.5, 0.5]), 5)
    assert literal.topology_distance(first, second, 2) == (2.25 + 1) / 2


def test_mutual_matches_need_not_be_true_pairs():
    """On a line, positive 2 lies where anchor 1 does and positive 1 where anchor 2 does."""
    x = np.array([[0.0, 1.0, 1.5, 9.0], [0.0, 1.5, 1.0, 9.0]])[:, :, None]
    hoods = np.array([literal.neighbours(points, 1) for points in x])
    assert hoods[:, 0].tolist() == [[1], [2]]
    assert literal.shared_matches(hoods[0, 0], hoods[1, 0]) == 0
    assert literal.mutual_matches(x, hoods[0, 0], hoods[1, 0]) == 1


@pytest.mark.parametrize(("gamma", "first"), [(0.5, 4), (1.0, 8), (2.0, 12)])
def test_lambda_reaches_its_cap_at_the_stated_shares(gamma, first):
    """The shares of 16 are a quarter, half and √½."""
    values = literal.lambdas(np.arange(17), Options(k=16, gamma=gamma))
    assert (values == 0.5).tolist() == [m >= first for m in range(17)]
    assert values[3] == pytest.approx((3 / 16) ** gamma)


def test_hardnets_loss_on_orthogonal_pairs():
    """d⁺ = 0 and d⁻ = √2 but for ε: no loss with margin 1, margin − √2 with a larger one."""
    x = np.stack([np.eye(5), np.eye(5)])
    assert literal.hardest_negatives(x, Options(k=2))[:3] == [(0, 1), (1, 0), (2, 0)]
    assert literal.loss_hn(x, Options(k=2, lam=0.0)) == 0.0
    loss = literal.loss_hn(x, Options(k=2, lam=0.0, margin=2.0, eps=0.0))
    assert loss == pytest.approx(2 - 2**0.5)
