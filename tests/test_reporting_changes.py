"""Changes of FPR95 from one method to another: paired by seed, and jointly over test points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from lib.recipes import RECIPES, Recipe, at_rate
from lib.reporting.papers import adasample_changes
from lib.study.jobs import Job
from lib.study.open import Found

SETS = ("b", "c")
BOTH = ("hardnet_aug_gen", "adasample_aug_gen")
PAIR = {"method": ("AdaSample+*", "HardNet+*")}
SEEDS = np.array([0.0, 0.9, -0.4, 0.3, -0.8])


@dataclass(frozen=True)
class Run(Found):
    """A run whose probe's 400 resamples scatter around its FPR95, alike for every method."""

    scatter: float = 0.0

    def probe(self, name: str, test_set: str) -> dict[str, np.ndarray]:
        assert name == "resampled_fpr95"
        random = np.random.default_rng(len(test_set) + SETS.index(test_set))
        rates = random.normal(size=400)
        value = self.fpr95(test_set)
        return {"rates": value * (1 + self.scatter * rates), "pair_rates": np.full(400, value)}


def run(name: str, recipe: Recipe, seed: int, value: float, scatter: float = 0.0) -> Run:
    measures = tuple(("fpr95", test_set) for test_set in SETS)
    job = Job(name, recipe.label, recipe=recipe, train_set="a", seed=seed, measures=measures)
    metrics = {
        test_set: {"fpr95": {"expected": value + gap}}
        for test_set, gap in zip(SETS, (1, -1), strict=True)
    }
    content = {"metrics": metrics, "probes": {f"resampled_fpr95.{test_set}": "" for test_set in SETS}}
    return Run(job, Path("record.json"), content, False, scatter)


def runs_of_both(scatter: float = 0.0) -> list[Run]:
    """AdaSample+* is a point lower; seeds move both alike, and what is left over is small."""
    random = np.random.default_rng(0)
    return [
        run(name, at_rate(RECIPES[name], 0.5), seed, height + shift + 0.05 * random.normal(), scatter)
        for name, height in zip(BOTH, (20.0, 19.0), strict=True)
        for seed, shift in enumerate(SEEDS)
    ]


def test_a_change_is_paired_by_seed_and_its_interval_is_student_s():
    found = runs_of_both()
    change = adasample_changes.changes(found, PAIR).loc["method"]
    before, after = np.array([of.fpr95("b") for of in found]).reshape(2, 5)
    half = stats.t.ppf(0.975, 4) * (after - before).std(ddof=1) / np.sqrt(5)
    assert change["change"] == pytest.approx((after - before).mean())
    assert change["to"] - change["change"] == pytest.approx(half)
    # Unpaired, what the seeds share would hide a change of a point.
    level = adasample_changes.levels(found).loc["HardNet+*"]
    assert change["to"] < 0 < level["to"] - 20.5


def test_test_points_widen_a_level_and_hardly_a_paired_change():
    levels, changes = [], []
    for scatter in (0.0, 0.2):
        found = runs_of_both(scatter)
        level = adasample_changes.levels(found).loc["AdaSample+*"]
        change = adasample_changes.changes(found, PAIR).loc["method"]
        levels.append(level["to"] - level["mean"])
        changes.append(change["to"] - change["change"])
    assert levels[1] > 3 * levels[0]
    # Points move both methods, so that the change has only its part of the level's error: 1 of 20.
    assert changes[0] < changes[1] < levels[1] / 6


def test_own_rates_stand_beside_the_shared_one_on_its_train_set_alone():
    heights = {0.1: (20, 19), 1.0: (18, 21)}

    def runs(rates: tuple[float, float], train_set: str = "a") -> list[Run]:
        made = [
            run(name, at_rate(RECIPES[name], rate), seed, heights[rate][place] + SEEDS[seed])
            for place, (name, rate) in enumerate(zip(BOTH, rates, strict=True))
            for seed in range(5)
        ]
        return [replace(of, job=replace(of.job, train_set=train_set)) for of in made]

    elsewhere = runs((0.1, 0.1), train_set="z")
    table = adasample_changes.at_one_rate([*elsewhere, *runs((1.0, 0.1))], runs((1.0, 1.0)))
    assert table["HardNet+*", "rate"].tolist() == ["1", "1"]
    assert table["AdaSample+*", "rate"].tolist() == ["0.1", "1"]
    assert table["AdaSample+* − HardNet+*", "change"].tolist() == pytest.approx([1, 3])
