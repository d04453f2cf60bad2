"""How a notebook shows searches of learning rates."""

from __future__ import annotations

import pandas as pd
import pytest

from lib.study.report import training
from lib.study.report.training import FPR95

WAYS = ("reserve-a", "reserve-b")


def searched(means: dict[float, float], recipe: str = "A", gap: float = 2.0) -> pd.DataFrame:
    """Two training sets, `gap` apart, and two seeds, one point apart, for each rate."""
    rows = [
        {
            **{"recipe": recipe, "rate": rate, "train_set": train_set, "seed": seed},
            FPR95: mean + gap * (index - 0.5) + seed - 0.5,
        }
        for rate, mean in means.items()
        for index, train_set in enumerate(WAYS)
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


def test_two_recipes_are_compared_at_shared_rates_and_each_at_its_own():
    runs = pd.concat([searched({0.1: 20.0, 1.0: 30.0}, "A"), searched({0.1: 21.0, 1.0: 19.0}, "B")])
    runs = pd.concat([runs, searched({2.0: 5.0}, "C")])
    table = training.at_each_rate(runs, "A", "B")
    assert table.index.tolist() == ["0.1", "1", "own"]
    assert table["difference"].tolist() == pytest.approx([-1, 11, 1])
    assert table["is lower"].tolist() == ["4 of 4", "0 of 4", "0 of 4"]
