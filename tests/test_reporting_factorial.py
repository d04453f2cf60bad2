"""The factorial's tables, of effects made up: what least squares finds of them, and how sure it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_records import records, searched
from scipy import stats

from lib.statistics.intervals import Measured
from lib.study.artefacts import factorial as experiments
from lib.study.artefacts import searches, together
from lib.study.artefacts.factorial import CELLS, DESIGN, EVERY, PAPERS, SEARCHED_CELLS, TERMS, foreseen
from lib.study.jobs import Job
from lib.study.open import Record, Study, open_study
from lib.study.report import factorial


def made_of(**halves: float) -> pd.Series:
    """Halves of effects by name, "by" for " × ", all others zero."""
    named = {name.replace("_by_", " × "): half for name, half in halves.items()}
    return pd.Series(named, DESIGN.columns).fillna(0.0)


NONE = made_of()


def runs(halves, seeds: int = 3, noise: float = 0.0, seed: int = 0, moved: float = 0.0):
    """FPR95 of the combinations that effects make, each seed a point above the one before."""
    random, methods, fpr95 = np.random.default_rng(seed), {}, foreseen(halves)
    for key in CELLS:
        values = fpr95[key] + np.arange(seeds) + random.normal(0, noise, seeds)
        values = values[:, None]
        drawn = None
        if moved:
            # On other test points the loss is worth more or less.
            more = np.random.default_rng(1).normal(0, moved, 400) * DESIGN.loc[key, "loss"]
            drawn = values[None, ..., None] + more
        methods[key] = Measured(values, drawn)
    return methods


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=len(TERMS), max_size=len(TERMS)), st.integers(0, 99))
def test_effects_are_differences_of_means_whatever_the_seeds_have_in_common(effects, seed):
    methods = runs(pd.Series([20.0, *effects], DESIGN.columns), noise=0.5, seed=seed)
    table = factorial.effects(methods)
    means = pd.Series({key: method.values.mean() for key, method in methods.items()})
    for term in TERMS:
        on, off = (means[DESIGN.loc[means.index, term] == side].mean() for side in (1, -1))
        assert table.loc[term, "points"] == pytest.approx(on - off, abs=1e-9)


def test_without_noise_effects_are_found_exactly_and_all_others_are_zero():
    table = factorial.effects(runs(made_of(mean=20.0, loss=-1.5, distance_by_network=0.5)))
    points = table["points"]
    assert points["loss"] == pytest.approx(-3.0)
    assert points["distance × network"] == pytest.approx(1.0)
    assert points.drop(["loss", "distance × network"]).abs().max() < 1e-9
    assert table["of"].value_counts().to_dict() == {"one axis": 6, "two axes": 15}


def test_the_interval_is_that_of_the_residual_with_seeds_as_blocks():
    methods = runs(made_of(mean=20.0), noise=1.0)
    values = np.stack([method.values[:, 0] for method in methods.values()])
    # Ordinary least squares of effects and seeds together.
    signs = np.repeat(DESIGN.loc[list(methods), TERMS].to_numpy(), 3, axis=0)
    design = np.hstack([signs, np.tile(np.eye(3), (32, 1))])
    _, [left], rank, _ = np.linalg.lstsq(design, values.ravel())
    freedom = 96 - 3 - len(TERMS)
    assert rank == 96 - freedom
    table = factorial.effects(methods)
    half = stats.t.ppf(0.975, freedom) * 2 * np.sqrt(left / freedom / 96)
    assert (table["to"] - table["from"]).to_numpy() == pytest.approx(2 * half)
    assert ((table["p"] < 0.05) == (table["from"] * table["to"] > 0)).all()


def test_where_there_is_no_effect_an_interval_misses_it_one_time_in_twenty():
    missed = [
        (table["from"] * table["to"] > 0).mean()
        for table in (factorial.effects(runs(NONE, noise=1.0, seed=seed)) for seed in range(40))
    ]
    assert np.mean(missed) == pytest.approx(0.05, abs=0.02)


def test_what_other_test_points_would_change_widens_the_effect_that_they_change():
    plain, drawn = (factorial.effects(runs(NONE, noise=1.0, moved=by)) for by in (0.0, 1.0))
    width = {name: table["to"] - table["from"] for name, table in (("plain", plain), ("drawn", drawn))}
    assert width["drawn"]["loss"] > 3 * width["plain"]["loss"]
    others = [name for name in TERMS if name != "loss"]
    assert width["drawn"][others].to_numpy() == pytest.approx(width["plain"][others].to_numpy())
    assert drawn["points"].to_numpy() == pytest.approx(plain["points"].to_numpy())


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    means = {"metrics": {"mean_fpr95": {"0.001": 30.0, "0.002": 20.0}}, "best": 0.002}
    for module in (searches, factorial):
        monkeypatch.setattr(module, "read_search", lambda *_: means)
    return searched(monkeypatch)


def level(job: Job) -> float:
    return 20.0 - 3.0 * ("loss" in EVERY.get(job.name, ())) + job.seed


def test_runs_are_sorted_by_measure_and_combination(study: Study):
    made = records(experiments.factorial(study), level, lambda job: 100 - level(job))
    cells = factorial.by_cell(made, study)
    assert list(cells) == ["FPR95", "verification", "matching", "retrieval"]
    assert all(set(methods) == set(CELLS) for methods in cells.values())
    assert factorial.effects(cells["FPR95"]).loc["loss", "points"] == pytest.approx(-3.0)
    assert factorial.effects(cells["matching"]).loc["loss", "points"] == pytest.approx(3.0)
    assert experiments.halves_of(made)["loss"] == pytest.approx(-1.5)


def test_the_plan_says_what_can_be_found_before_it_is_looked_for(
    study: Study, monkeypatch: pytest.MonkeyPatch
):
    random = np.random.default_rng(0)
    asked: list[Job] = []

    def records_of(_: Study, jobs: list[Job]) -> list[Record]:
        asked.extend(jobs)
        # What a seed does to all methods alike is no part of what an effect is judged by.
        return records(jobs, lambda job: 100 * job.seed + random.normal(), level)

    monkeypatch.setattr(factorial, "records_of", records_of)
    [row] = factorial.plan(study).to_dict("records")
    assert {job.name for job in asked} == together.EQUAL.keys()
    assert (row["combinations"], row["seeds"], row["runs"]) == (32, 3, 96)
    assert row["sd"] == pytest.approx(1.0, rel=0.5)
    assert 0 < row["alone"] < row["of all"]
    # Power by the noncentral t, which the plan's formula comes near.
    freedom, error = 96 - 3 - 21, 2 / np.sqrt(96)
    power = stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, row["alone"] / error / row["sd"])
    assert power == pytest.approx(0.8, abs=0.01)
    assert row["core hours"] > 0


def test_where_runs_vary_twice_as_much_as_planned_an_effect_has_to_be_twice_as_large():
    planned = pd.DataFrame([{"runs": 96, **factorial.least_effects(1.0, 32, 3)}])
    methods = runs(made_of(mean=20.0, loss=-3.0), noise=2.0)
    table = factorial.achieved(planned, methods)
    assert table.loc["planned"].to_dict() == planned.drop(columns="runs").iloc[0].to_dict()
    # Seeds are blocks and effects are taken off; what is left is the noise.
    assert table.loc["achieved", "sd"] == pytest.approx(2.0, rel=0.2)
    times = table.loc["achieved"] / table.loc["planned"]
    assert times.to_numpy() == pytest.approx(times["sd"])
    # An effect of three axes, which the design does not tell from those of the other three.
    three = DESIGN[["loss", "distance", "network"]].prod(axis=1)
    methods = {key: Measured(method.values + three[key]) for key, method in methods.items()}
    more = factorial.achieved(planned, methods).loc["achieved", "sd"] ** 2
    assert more - table.loc["achieved", "sd"] ** 2 == pytest.approx(96 / 72, rel=0.5)


def test_what_a_shared_rate_loses_is_told_by_combination_and_by_axis(monkeypatch: pytest.MonkeyPatch):
    def search(_: str, key: str) -> dict:
        # Those with R_L2 would rather have 0.001; together with the others they take 0.002.
        norm = "regulariser" in EVERY[key]
        means = {"0.001": 18.0, "0.002": 19.0} if norm else {"0.001": 30.0, "0.002": 20.0}
        return {"metrics": {"mean_fpr95": means}, "best": 0.001 if norm else 0.002}

    for module in (searches, factorial):
        monkeypatch.setattr(module, "read_search", search)
    table = factorial.rates(open_study())
    assert (table["taken"].dropna() == 0.002).all()
    for key in SEARCHED_CELLS:
        assert table.loc[key, "lost"] == ("regulariser" in EVERY[key])
    by_axis = table["lost"].tail(6)
    assert by_axis.to_dict() == pytest.approx(
        {f"{axis}, with − without": float(axis == "regulariser") for axis in experiments.AXES}
    )


HALVES = made_of(mean=20.0, loss=-2.0, network=-1.0, distance_by_positive=-0.9)


def confirmed(study: Study, halves: pd.Series, truth: pd.Series) -> list[Record]:
    found = []
    for job in experiments.confirmation(study, halves):
        value = {"expected": foreseen(truth)[job.name] + job.seed}
        metrics = {name: {"fpr95": value} for name in job.sets_of("fpr95")}
        found.append(Record(job, Path("record.json"), {"metrics": metrics, "probes": {}}, False))
    return found


def test_the_confirmation_finds_what_is_there_beside_what_was_foreseen(study: Study):
    evening = open_study("evening", "photos")
    truth = made_of(mean=20.0, loss=-0.5, network=-1.0, distance_by_positive=0.25)
    table = factorial.confirmed(confirmed(evening, HALVES, truth), HALVES)
    assert table.index.tolist() == [
        *("loss", "network", "distance × positive"),
        *("best − papers' best", "best − HardNet"),
    ]
    assert table.loc["loss", ["foreseen", "points"]].tolist() == pytest.approx([-4.0, -1.0])
    assert table.loc["network", ["foreseen", "points"]].tolist() == pytest.approx([-2.0, -2.0])
    found = table.loc["distance × positive", ["foreseen", "points"]].tolist()
    assert found == pytest.approx([-1.8, 0.5])
    # What points the other way is not confirmed, however sure it is.
    assert table.loc[["network", "distance × positive"], "confirmed"].tolist() == ["yes", "no"]
    assert (table["Holm"] >= table["p"]).all()
    best = experiments.best(HALVES)
    fpr95s = [foreseen(halves) for halves in (HALVES, truth)]
    gains = [fpr95[best] - fpr95[PAPERS["HardNet"]] for fpr95 in fpr95s]
    against = table.loc["best − HardNet", ["foreseen", "points"]].tolist()
    assert against == pytest.approx(gains)


def test_where_a_paper_s_own_is_the_best_the_two_do_not_differ(study: Study):
    evening = open_study("evening", "photos")
    small = dict.fromkeys(("distance", "regulariser", "positive"), 0.1)
    of_dsm = made_of(mean=20.0, loss=-1.0, network=0.9, sampler=0.8, **small)
    assert experiments.best(of_dsm) == PAPERS["DSM"] == experiments.rival(of_dsm)
    table = factorial.confirmed(confirmed(evening, of_dsm, of_dsm), of_dsm)
    assert table.loc["best − papers' best", ["points", "from", "to"]].tolist() == [0, 0, 0]


def test_means_of_two_axes_are_those_of_the_combinations_and_share_one_interval() -> None:
    methods = {
        key: Measured(10.0 + 2 * ("loss" in EVERY[key]) + ("network" in EVERY[key]) + np.c_[[0, 1]])
        for key in CELLS
    }
    means, half = factorial.four_means(methods, "loss × network")
    assert (means.index.name, means.columns.name) == ("loss", "network")
    assert means.to_numpy().tolist() == [[10.5, 11.5], [12.5, 13.5]]
    # Once method and seed are taken off, nothing is left.
    assert half == pytest.approx(0)
