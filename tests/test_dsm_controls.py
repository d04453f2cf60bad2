"""What each triplet loss pulls and pushes, and a loss that stands in another."""

from __future__ import annotations

import numpy as np
import pytest

from lib import parts
from lib.losses import cdf
from lib.recipes import find, part
from lib.theory import loss_shapes


def test_a_loss_in_a_loss_is_built_and_known_to_the_digest() -> None:
    dsm = find("dsm_aug")
    unmixed = part("unmixed", loss=dsm.loss, distance=dsm.distance)
    assert isinstance(parts.build("loss", unmixed).loss, cdf.Histogram)
    modules = {"lib.losses.unmixed", "lib.losses.cdf", f"lib.distances.{dsm.distance.name}"}
    assert {*parts.modules_of("loss", unmixed)} == modules


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
