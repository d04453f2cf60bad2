"""HyNet's oracle by hand, so that it and the library cannot share a misreading."""

import math

import literal_hynet as lit
import numpy as np
import pytest


def at_degrees(anchors, positives, lengths=1.0):
    """Return pairs in the plane, (2, n, 2)."""
    angles = np.radians([anchors, positives])
    return np.stack([np.cos(angles), np.sin(angles)], axis=2) * np.array(lengths)[..., None]


def test_losses_by_hand():
    """Two pairs in the plane: a_0 = p_0 = 0°, a_1 = 60°, p_1 = 90°."""
    raw = at_degrees([0, 60], [0, 90], [[2.0, 3.0], [2.5, 1.0]])
    plain = {"eps_d": 0.0, "eps_unit": 0.0}
    for i, (p, q) in enumerate(lit.select_negatives(raw)):  # d = 1, from a_0 or p_0 to a_1
        assert (p[1], q[1]) == (i, 1 - i)
        assert lit.pair_cosine(raw, p, q) == pytest.approx(0.5)
    # With t = sin(θ/2), the slope 2 sin θ + cos(θ/2) is stationary where 2 (1 − 2t²) = t/2.
    t = (-0.5 + math.sqrt(32.25)) / 8
    z = math.sqrt(1 - t * t) * (4 * t + 1)
    c, d = math.cos(math.pi / 6), 2 * math.sin(math.pi / 12)
    near, far = (2 * 0.5 + 1) / z, (2 * (1 - c) + d) / z
    expected = (max(0, 1.2 + 0 - near) + max(0, 1.2 + far - near)) / 2
    assert lit.triplet(raw, **plain) == pytest.approx(expected, abs=1e-9)
    assert lit.norm_regulariser(raw, eps_norm=0.0) == pytest.approx((0.5**2 + 2**2) / 2)
    total = lit.hynet_loss(raw, eps_norm=0.0, **plain)
    assert total == pytest.approx(expected + 0.1 * 4.25 / 2, abs=1e-9)
    assert lit.loss_a(raw, **plain) == pytest.approx((0 + (1 - c)) / 2)
    expected_b = (2 * (0.9 + 0.5 - 1) + 0.2 + 2 * (0.9 + 0.5 - c) + 1.2 + d - 1) / 2
    assert lit.loss_b(raw, **plain) == pytest.approx(expected_b)
    assert lit.squared_hinge(raw, **plain) == pytest.approx(d**2 / 2)
    assert lit.sosr(raw, **plain) == pytest.approx(math.sqrt(2) - 1)
    summed = lit.sosr(raw, reduction="sum", eps_root=0.5, **plain)
    assert summed == pytest.approx(2 * math.sqrt((math.sqrt(2) - 1) ** 2 + 0.5))
    assert lit.sosnet_loss(raw, **plain) == pytest.approx(d**2 / 2 + math.sqrt(2) - 1)
    assert lit.hynet_sosr_loss(raw, eps_norm=0.0, **plain) == pytest.approx(total + math.sqrt(2) - 1)


def test_neighbours_by_hand():
    """The nearest of a_0 to a_3 are a_1, a_0, a_1, a_2, and of the positives p_1, p_2, p_1, p_2.

    Between the sets, partners left out, they are p_1, p_0, p_1, p_2, and a_1, a_3, a_3, a_2.
    """
    raw = at_degrees([0, 30, 70, 120], [20, 100, 120, 170])
    assert lit.sos_neighbours(raw, 1) == [[1], [0, 2], [1], [2]]
    assert lit.sos_neighbours(raw, 1, symmetric=True) == [[1], [0, 2], [1, 3], [2]]
    assert lit.sos_neighbours(raw, 1, cross=True) == [[1], [0, 2, 3], [1, 3], [2]]
    both = lit.sos_neighbours(raw, 1, symmetric=True, cross=True)
    assert both == [[1], [0, 2, 3], [1, 3], [1, 2]]
