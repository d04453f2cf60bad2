"""A loss nested in another."""

from __future__ import annotations

from lib import parts
from lib.losses import cdf
from lib.recipes import find, part


def test_a_nested_loss_is_built() -> None:
    dsm = find("dsm_aug")
    unmixed = part("unmixed", loss=dsm.loss, distance=dsm.distance)
    assert isinstance(parts.build("loss", unmixed).loss, cdf.Histogram)
