"""The ladder of choices: paired changes, their shares of the whole, and the paper's gain beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from lib.recipes import RECIPES, Recipe, at_rate
from lib.study.artefacts.adasample import LADDER, SEARCHED
from lib.study.jobs import Job
from lib.study.open import Record
from lib.study.report.changes import WHOLE, fpr95_of, levels, rungs_table, significantly_changed

SETS = ("b", "c")
EVERY: Mapping[str, Recipe] = {**RECIPES, **SEARCHED}
STEPS = np.array([0.0, -1.0, -0.5, 0.25, -0.75, -2.0])
SEEDS = np.array([0.0, 0.9, -0.4, 0.3, -0.8])


@dataclass(frozen=True)
class Run(Record):
    """A run whose probe's 400 resamples scatter around its FPR95, the same for every method."""

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
    return Run(job, Path("record.json"), content, scatter=scatter)


def rungs(steps: np.ndarray = STEPS, noise: float = 0.05, scatter: float = 0.0) -> list[Run]:
    """Return runs of all rungs, which a seed shifts equally, with little noise."""
    random = np.random.default_rng(0)
    return [
        run(name, at_rate(EVERY[name], 0.5), seed, height + shift + noise * random.normal(), scatter)
        for name, height in zip(LADDER, 20 + np.cumsum(steps), strict=True)
        for seed, shift in enumerate(SEEDS)
    ]


def test_a_change_is_paired_by_seed_and_its_interval_is_student_s():
    runs = rungs()
    table = rungs_table(runs)
    assert table.index.tolist() == [*(EVERY[name].label for name in LADDER), WHOLE]
    below, above = np.array([record.fpr95("b") for record in runs]).reshape(len(LADDER), 5)[:2]
    half = stats.t.ppf(0.975, 4) * (above - below).std(ddof=1) / np.sqrt(5)
    first = table.loc["… squared distance", "change"]
    assert first["points"] == pytest.approx((above - below).mean())
    assert first["to"] - first["points"] == pytest.approx(half)
    # Unpaired, the shifts that seeds share would hide a change of a point.
    assert first["to"] < 0 < table.loc["HardNet+*", ("FPR95", "to")] - 20.5


def test_changes_add_up_to_the_whole_and_shares_to_a_hundred():
    table = rungs_table(rungs())
    changes, shares = table["change"]["points"], table["share (%)"]["share"]
    assert changes.iloc[1:-1].sum() == pytest.approx(changes[WHOLE])
    assert shares.sum() == pytest.approx(100)
    assert np.isnan(changes["HardNet+*"])
    assert np.isnan(shares[WHOLE])


def test_a_share_s_interval_is_that_of_the_ratio_by_the_delta_method():
    runs = rungs()
    values = np.array([record.fpr95("b") for record in runs]).reshape(len(LADDER), 5)
    part, whole = values[-1] - values[-2], values[-1] - values[0]
    ratio = part.mean() / whole.mean()
    error = ((part - ratio * whole) / whole.mean()).std(ddof=1) / np.sqrt(5)
    last = rungs_table(runs).loc["AdaSample+*", "share (%)"]
    assert last["share"] == pytest.approx(100 * ratio)
    assert last["to"] - last["share"] == pytest.approx(100 * stats.t.ppf(0.975, 4) * error)


@pytest.mark.parametrize("last", [0.0, 2.0])
def test_a_gain_that_may_be_nothing_or_is_a_loss_has_no_shares(last: float):
    table = rungs_table(rungs(np.array([0.0, -1.0, 1.0, 0.5, -0.5, last]), noise=0.3))
    assert table["change"].loc[WHOLE, "to"] > 0
    assert table["share (%)"].isna().all().all()


def test_significant_changes_are_those_whose_intervals_leave_out_zero():
    """Steps of -1, -0.5, 0.25, -0.75 and -2 points, with so little noise that all are sure."""
    lower, higher = significantly_changed(rungs_table(rungs())).split("\n")
    names = [EVERY[name].label for name in LADDER[1:]]
    assert [name for name in names if name in lower] == [*names[:2], *names[3:]]
    assert lower.startswith(f"FPR95 is significantly lowered by: {names[0]} (−")
    assert f"{WHOLE} (−" in lower
    assert higher.startswith(f"FPR95 is significantly raised by: {names[2]} (+0.")
    noisy = significantly_changed(rungs_table(rungs(noise=50.0)))
    assert noisy == "FPR95 is significantly lowered by: none\nFPR95 is significantly raised by: none"


def test_test_points_widen_a_level_and_hardly_a_paired_change():
    tables = [rungs_table(rungs(scatter=scatter)) for scatter in (0.0, 0.2)]
    rows = [table.loc["AdaSample+*"] for table in tables]
    level = [row["FPR95", "to"] - row["FPR95", "mean"] for row in rows]
    change = [row["change", "to"] - row["change", "points"] for row in rows]
    assert level[1] > 3 * level[0]
    # Points move both methods, so that the change has only its part of the level's error: 2 of 16.
    assert change[0] < change[1] < level[1] / 6


def test_groups_of_runs_are_methods_with_the_given_names():
    first, second = rungs()[:5], rungs()[5:10]
    values = fpr95_of({"first": first, "second": second})
    expected = np.array([[record.fpr95("b"), record.fpr95("c")] for record in second])
    assert values["second"].values == pytest.approx(expected)
    table = levels({**values, "alone": values["first"].runs()[0]})
    assert table["seeds"].tolist() == [5, 5, 1]
