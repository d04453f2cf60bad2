"""The losses that take DSM's margin apart, and what each triplet loss pulls and pushes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from lib import parts
from lib.descriptions import drawn
from lib.losses import cdf, even_weights, soft_margin, softplus
from lib.recipes import find, part
from lib.theory import loss_shapes


def distances(n: int = 50) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    each = [0.1 + 1.5 * torch.rand(n, generator=generator, dtype=torch.float64) for _ in range(2)]
    return [of.requires_grad_() for of in each]


def test_a_soft_margin_s_slope_is_the_cdf_of_its_distribution() -> None:
    positive, negative = distances()
    losses = soft_margin.build(margin=0.4, deviation=0.2)(drawn(positive, negative))
    slopes = torch.autograd.grad(losses.sum(), [positive, negative])
    logistic = stats.logistic(-0.4, 0.2 * math.sqrt(3) / math.pi)
    assert logistic.std() == pytest.approx(0.2)
    expected = logistic.cdf((positive - negative).detach().numpy())
    assert slopes[0].numpy() == pytest.approx(expected)
    assert slopes[1].numpy() == pytest.approx(-expected)


def test_a_soft_margin_of_nothing_is_softplus() -> None:
    triplets = drawn(*distances())
    plain = soft_margin.build(margin=0.0, deviation=math.pi / math.sqrt(3) / 5)
    torch.testing.assert_close(plain(triplets), softplus.build(5.0)(triplets))


def test_a_soft_margin_that_is_very_narrow_is_a_hinge() -> None:
    triplets = drawn(*distances())
    hinge = (0.4 + triplets.positive - triplets.negative).clamp(min=0)
    torch.testing.assert_close(soft_margin.build(0.4, 1e-5)(triplets), hinge, atol=1e-5, rtol=0)
    assert torch.autograd.gradcheck(lambda p, n: soft_margin.build(0.4, 0.2)(drawn(p, n)), distances(5))


@pytest.mark.parametrize("deviation", [0.0, -1.0, math.inf, math.nan])
def test_a_deviation_that_is_none_is_refused(deviation: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        soft_margin.build(0.4, deviation)


def test_even_weights_give_each_triplet_the_mean_of_the_weights() -> None:
    even, uneven = even_weights.build(cdf.build()), cdf.build()
    for _ in range(3):
        positive, negative = distances()
        slopes = torch.autograd.grad(even(drawn(positive, negative)).sum(), [positive, negative])
        weights = torch.autograd.grad(uneven(drawn(positive, negative)).sum(), positive)[0]
        assert slopes[0].numpy() == pytest.approx(float(weights.mean()), rel=1e-5)
        assert slopes[1].numpy() == pytest.approx(-float(weights.mean()), rel=1e-5)
        assert weights.std() > 0.2
    assert even.seen == uneven.seen
    assert "loss.histogram" in even.state_dict(), "kept where training is cut off"


def test_a_loss_in_a_loss_is_built_and_known_to_the_digest() -> None:
    of = part("even_weights", loss=find("dsm_aug").loss)
    assert isinstance(parts.build("loss", of).loss, cdf.Histogram)
    assert {*parts.modules_of("loss", of)} == {"lib.losses.even_weights", "lib.losses.cdf"}


@pytest.fixture(scope="module")
def shapes() -> tuple[dict, dict]:
    return loss_shapes.compute(points=21, triplets=511)


def plane(arrays: dict) -> tuple[np.ndarray, np.ndarray]:
    """d_pos along the columns, d_neg along the rows."""
    return np.meshgrid(arrays["distance"].astype(float), arrays["distance"].astype(float))


def test_a_hinge_pulls_and_pushes_with_one_up_to_its_margin(shapes: tuple) -> None:
    _, arrays = shapes
    d_pos, d_neg = plane(arrays)
    for margin in (1.0, 0.375):
        expected = (margin + d_pos - d_neg > 0).astype(float)
        # On the margin itself either is right.
        off = np.abs(margin + d_pos - d_neg) > 1e-6
        for side in ("pull", "push"):
            assert (arrays[f"{side}_hinge_{margin:g}"] == expected)[off].all()


def test_softplus_pulls_with_its_sigmoid(shapes: tuple) -> None:
    _, arrays = shapes
    d_pos, d_neg = plane(arrays)
    expected = 1 / (1 + np.exp(d_neg - d_pos))
    assert arrays["pull_softplus"] == pytest.approx(expected, rel=1e-5)
    assert arrays["push_softplus"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("key", "of"), [("dsm", "difference"), ("dsm_positive", "positive")])
def test_dsm_pulls_with_the_cdf_of_the_state(shapes: tuple, key: str, of: str) -> None:
    _, arrays = shapes
    d_pos, d_neg = plane(arrays)
    x = d_pos - d_neg if of == "difference" else d_pos
    state = arrays["positive"] - (arrays["negative"] if of == "difference" else 0)
    expected = (state <= x[..., None]).mean(axis=-1)
    # Within a bin's triplets, and what the points that are asked about move.
    assert np.abs(arrays[f"pull_{key}"] - expected).max() < 0.03
    assert (arrays[f"pull_{key}"] == arrays[f"push_{key}"]).all()


def test_the_hardest_eighth_pulls_with_eight_and_leaves_the_rest(shapes: tuple) -> None:
    numbers, arrays = shapes
    assert set(np.unique(arrays["state_hardest_eighth"]).round(1)) == {0, 8.0}
    row = next(case for case in numbers["cases"] if case["key"] == "hardest_eighth")
    assert row["none"] == pytest.approx(7 / 8, abs=0.002)
    assert (row["hardest"], row["pull"]) == (pytest.approx(1), pytest.approx(1))


def test_squares_and_angles_come_by_the_chain_rule(shapes: tuple) -> None:
    """HT: ∂d²/∂d = 2d. AHT: ∂θ²/∂d = 2θ / cos(θ/2), of θ = 2 arcsin(d/2)."""
    _, arrays = shapes
    d_pos, d_neg = plane(arrays)
    angle = {name: 2 * np.arcsin(of / 2) for name, of in (("pos", d_pos), ("neg", d_neg))}
    state = arrays["positive"].astype(float)
    cases = {
        "ht": (d_pos, d_neg, lambda d: 2 * d, state),
        "aht": (
            angle["pos"],
            angle["neg"],
            lambda theta: 2 * theta / np.cos(theta / 2),
            2 * np.arcsin(state / 2),
        ),
    }
    for key, (positive, negative, slope, drawn_by) in cases.items():
        weight = 1 / positive / (1 / drawn_by).mean()
        above = 1 + positive**2 - negative**2 > 1e-6
        below = 1 + positive**2 - negative**2 < -1e-6
        pull, push = arrays[f"pull_{key}"], arrays[f"push_{key}"]
        assert pull[above] == pytest.approx((weight * slope(positive))[above], rel=1e-4)
        assert push[above] == pytest.approx((weight * slope(negative))[above], rel=1e-4)
        assert (pull[below] == 0).all()
        assert (push[below] == 0).all()


def test_the_mean_weight_is_that_of_the_state(shapes: tuple) -> None:
    numbers, arrays = shapes
    for case in numbers["cases"]:
        assert case["pull"] == pytest.approx(float(arrays[f"state_{case['key']}"].mean()), rel=1e-5)
    assert numbers["state"][0] == pytest.approx(-0.4, abs=0.05)
