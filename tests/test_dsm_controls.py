"""The losses that take DSM's margin apart, and what each triplet loss pulls and pushes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from lib import parts
from lib.descriptions import drawn
from lib.losses import cdf, even_weights, soft_margin
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


def test_a_soft_margin_that_is_very_narrow_is_a_hinge() -> None:
    triplets = drawn(*distances())
    hinge = (0.4 + triplets.positive - triplets.negative).clamp(min=0)
    torch.testing.assert_close(soft_margin.build(0.4, 1e-5)(triplets), hinge, atol=1e-5, rtol=0)
    assert torch.autograd.gradcheck(lambda p, n: soft_margin.build(0.4, 0.2)(drawn(p, n)), distances(5))


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
