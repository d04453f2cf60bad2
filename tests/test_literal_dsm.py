"""DSM's oracle checked by hand, so that it and the library cannot share a misreading."""

import math

import literal_dsm as dsm
import numpy as np
import pytest


def near(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


# Bits in which the anchors (down) differ from the positives (across):
#
#                p_0 + + + −   p_1 − − + +   p_2 − + + −
# a_0 + + + +        1             2             2
# a_1 − − + +        3             0             2
# a_2 + − + −        1             2             2
SIGNS = np.array(
    [
        [[1, 1, 1, 1], [-1, -1, 1, 1], [1, -1, 1, -1]],
        [[1, 1, 1, -1], [-1, -1, 1, 1], [-1, 1, 1, -1]],
    ]
)


def test_histogram_of_two_batches_by_hand():
    # 5 nodes: −2 −1 0 1 2. Batch 1: −0.5 is halfway between −1 and 0, 0.25 a quarter of the way from 0
    # to 1: (0, ½, ½, 0, 0) and (0, 0, ¾, ¼, 0), mean (0, 0.25, 0.625, 0.125, 0);
    # cumulative 0, 0.25, 0.875, 1, 1.
    moving = dsm.MovingHistogram(bins=5, momentum=0.1)
    moving.update([-0.5, 0.25])
    assert moving.state() == near([0, 0.25, 0.625, 0.125, 0])
    assert [moving.cdf(-0.5), moving.cdf(0.25)] == near([0.25, 0.875])
    moving.lookup = "interpolated"
    # ½ · 0.25 + ½ · 0.875 and ¾ · 0.875 + ¼ · 1.
    assert [moving.cdf(-0.5), moving.cdf(0.25)] == near([0.5625, 0.90625])

    # Batch 2: −1.5 gives (½, ½, 0, 0, 0), 3 is clamped to 2: (0, 0, 0, 0, 1); mean (¼, ¼, 0, 0, ½).
    # 0.9 · first + 0.1 · second: (0.025, 0.25, 0.5625, 0.1125, 0.05);
    # cumulative 0.025, 0.275, 0.8375, 0.95, 1.
    moving.update([-1.5, 3.0])
    assert moving.state() == near([0.025, 0.25, 0.5625, 0.1125, 0.05])
    assert [moving.cdf(-1.5), moving.cdf(3.0), moving.cdf(-7.0)] == near([0.15, 1.0, 0.025])
    moving.lookup = "floor"
    assert [moving.cdf(-1.5), moving.cdf(3.0), moving.cdf(-7.0)] == near([0.025, 1.0, 0.025])
    assert moving.cdf(1.999) == near(0.95)  # just below the last node: less than 1


@pytest.mark.parametrize(
    ("pdf_of", "variable", "expected"),
    [
        # 5 nodes. Differences −0.5 and 0.25: as above, after this batch's update.
        ("difference", [-0.5, 0.25], [0.25, 0.875]),
        # d_pos 0.5 is halfway from 0 to 1, 1.25 a quarter of the way from 1 to 2: nodes 0, 1, 2 get ½/2,
        # (½ + ¾)/2, ¼/2; cumulative 0.25, 0.875, 1.
        ("positive", [0.5, 1.25], [0.25, 0.875]),
        # d_neg 1 and 1 both at node 1: the sum there is 1, and 1 − 1 = 0.
        ("negative", [1.0, 1.0], [0.0, 0.0]),
    ],
)
def test_weights_by_hand(pdf_of, variable, expected):
    d_pos, d_neg = [0.5, 1.25], [1.0, 1.0]
    assert dsm.hardness([0.5, 1.25], [1.0, 1.0], "difference") == [-0.5, 0.25]
    assert dsm.hardness(d_pos, d_neg, pdf_of) == variable
    assert dsm.weights(d_pos, d_neg, dsm.MovingHistogram(bins=5), pdf_of) == near(expected)


def test_real_loss_and_gradient_by_hand():
    # a_0 = (1, 0), p_0 = (0.8, 0.6), a_1 = (0, 1), p_1 = (−0.28, 0.96). Squared distances 2 − 2 x·y:
    # (a_0, p_0) 0.4, (a_1, p_1) 0.08, (a_0, p_1) 2.56, (a_1, p_0) 0.8.
    # The negative of both is (a_1, p_0): the column of pair 0, the row of pair 1.
    # v_0 = √0.4 − √0.8 = −0.262 and v_1 = √0.08 − √0.8 = −0.612 lie between −1 and 0. Node −1 gets
    # c = (−v_0 − v_1)/2 and node 0 the rest, so both weigh c at the floor bin.
    # The loss is ½ c (v_0 + v_1) = −c².
    a_0, p_0, a_1, p_1 = (np.array(v) for v in ([1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.28, 0.96]))
    values = np.array([[a_0, a_1], [p_0, p_1]])
    c = (2 * math.sqrt(0.8) - math.sqrt(0.4) - math.sqrt(0.08)) / 2
    (result,) = dsm.dsm_loss([values], "real", dsm.MovingHistogram(bins=5), epsilon=0.0)
    assert result.hardest == [("column", 1), ("row", 0)]
    assert result.variable == near([math.sqrt(0.4) - math.sqrt(0.8), math.sqrt(0.08) - math.sqrt(0.8)])
    assert result.state == near([0, c, 1 - c, 0, 0])
    assert result.weights == near([c, c])
    assert result.loss == near(-(c**2))
    # The loss is ½ c (d(a_0, p_0) + d(a_1, p_1) − 2 d(a_1, p_0)), and each d(x, y) gives −y/d to x and
    # −x/d to y.
    assert result.gradient[0][0] == near(c / 2 * -p_0 / math.sqrt(0.4))
    assert result.gradient[0][1] == near(c / 2 * (-p_1 / math.sqrt(0.08) + 2 * p_0 / math.sqrt(0.8)))
    assert result.gradient[1][0] == near(c / 2 * (-a_0 / math.sqrt(0.4) + 2 * a_1 / math.sqrt(0.8)))
    assert result.gradient[1][1] == near(c / 2 * -a_1 / math.sqrt(0.08))


def test_binary_loss_and_gradient_of_two_batches_by_hand():
    # The values are half the signs. Mined from 2 bits: (a_0, p_1), (a_1, p_2), (a_2, p_1), all 2 bits.
    # Signs, 2D/k = D/2: d_pos ½, 0, 1 and d_neg 1, 1, 1; v = −½, −1, 0.
    # Node −1 gets (½ + 1 + 0)/3 and node 0 (½ + 0 + 1)/3; cumulative ½ and 1; weights ½, ½, 1.
    # Values, 1 − x·y/4, x·y a quarter of the signs' 4 − 2D: d_pos 1 − ½/4, 1 − 1/4, 1 and d_neg 1, 1, 1.
    # The loss is (½ · −0.125 + ½ · −0.25 + 1 · 0)/3 = −0.1875/3 = −0.0625.
    first, second = dsm.dsm_loss([0.5 * SIGNS] * 2, "binary", dsm.MovingHistogram(bins=5))
    assert first.hardest == [("row", 1), ("row", 2), ("row", 1)]
    assert list(first.variable) == [-0.5, -1.0, 0.0]
    assert first.state == near([0, 0.5, 0.5, 0, 0])
    assert first.weights == near([0.5, 0.5, 1.0])
    assert list(first.d_pos) == [0.875, 0.75, 1.0]
    assert list(first.d_neg) == [1.0, 1.0, 1.0]
    assert first.loss == near(-0.0625)
    # a_0: ½ (−p_0 + p_1)/(3 · 4), the values being half the signs: (−1, −1, 0, 1)/24.
    assert first.gradient[0][0] == near(np.array([-1, -1, 0, 1]) / 24)
    # p_1: (½ a_0 − ½ a_1 + a_2)/12 = ((1, 1, 0, 0) + (1, −1, 1, −1))/24.
    assert first.gradient[1][1] == near(np.array([2, 0, 1, -1]) / 24)
    # The same batch again changes nothing.
    assert second.state == near(first.state)
    assert second.loss == near(first.loss)
