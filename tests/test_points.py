"""Which points a batch is made of: all of them in an order, then in another."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_study import SMALL

from lib import recipes
from lib.data.patchset import PatchSet
from lib.points import shuffled
from lib.recipes import HARDNET, part
from lib.training import train


@given(st.integers(2, 40), st.data())
def test_every_point_is_used_once_before_any_is_used_again(count: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, count))
    points, random = shuffled.build(count), torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    for _ in range(3):
        order = torch.cat([points(n, random) for _ in range(count // n)])
        assert len(set(order.tolist())) == count // n * n
        assert 0 <= int(order.min()) <= int(order.max()) < count


def test_each_order_is_another() -> None:
    points, random = shuffled.build(50), torch.Generator().manual_seed(0)
    assert points(50, random).tolist() != points(50, random).tolist()


def test_a_run_that_was_cut_off_goes_on_in_the_same_order(
    small_set: PatchSet, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(HARDNET, points=part("shuffled"))
    recipe = recipes.at_rate(recipe, 0.1)
    whole = train(recipe, SMALL, small_set, 0)
    checkpoint = tmp_path / "run.pt"
    train(recipe, SMALL, small_set, 0, checkpoint=checkpoint, checkpoint_seconds=0, max_steps=3)
    resumed = train(recipe, SMALL, small_set, 0, checkpoint=checkpoint)
    assert resumed.curve == whole.curve
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name
