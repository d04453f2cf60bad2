"""Methods on equal footing, of made-up numbers: who is ahead, how sure that is, what a step costs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_records import records
from scipy import stats

from lib.profiles import EVENING
from lib.statistics import intervals, significance
from lib.statistics.intervals import Measured, contrast, residual
from lib.statistics.significance import holm
from lib.study.artefacts import together as experiments
from lib.study.open import SEEDS, Record, Study, open_study
from lib.study.report import together

LEVELS = {"dsm_long": 12.0, "equal_hynet_aug": 8.0, "equal_adasample_aug_gen": 30.0}


def level(job) -> float:
    """FPR95 of a run: 15 but for `LEVELS`, and the seed's tenth."""
    return LEVELS.get(job.name, 15.0) + job.seed / 10


@pytest.fixture
def evening(study: Study) -> Study:
    seeds = {name: getattr(EVENING, name) for name in SEEDS}
    return replace(study, profile=EVENING, **seeds)


def made(jobs) -> list[Record]:
    """Records of 100 steps that take a second more with each seed, HyNet's twice as long."""
    return [
        replace(
            run,
            content={
                **run.content,
                "seconds": (10.0 + run.job.seed) * (1 + ("hynet" in run.job.name)),
                "curve": {"step": [50, 100]},
            },
        )
        for run in records(jobs, level, lambda job: 100 - level(job))
    ]


def drawn(seed: int, mean: float, seeds: int = 5, spread: float = 1.0, draws: int = 0) -> Measured:
    """A method's FPR95 on two sets, and on as many resamples of a method's own."""
    random = np.random.default_rng(seed)
    values = random.normal(mean, spread, (seeds, 2))
    moved = random.normal(0, 0.5, (1, 1, 1, draws)) if draws else None
    return Measured(values, None if moved is None else values[None, ..., None] + moved)


def test_every_measure_has_every_method(study: Study):
    methods = together.by_measure(made(experiments.equal_footing(study)), study)
    assert list(methods) == ["FPR95", "verification", "matching", "retrieval"]
    for measure, cells in {"FPR95": 2, "matching": 1}.items():
        assert {method.values.shape for method in methods[measure].values()} == {(3, cells)}
    assert list(methods["FPR95"]) == [experiments.EQUAL[key].label for key in experiments.METHODS]
    # One of the two test sets is a point harder.
    assert methods["FPR95"]["HyNet+"].values.mean() == pytest.approx(8.0 + 0.1 + 0.5)
    assert methods["matching"]["HyNet+"].values.mean() == pytest.approx(100 - 8.1)


def test_orders_are_of_each_synthetic_set_at_quick_and_of_the_first_at_longer_profiles(
    study: Study, evening: Study
):
    assert {job.train_set for job in experiments.orders(study)} == {*study.source.sets}
    assert experiments.orders(evening) == experiments.equal_footing(evening)


def test_either_optimiser_has_every_method_and_the_change_is_from_sgd_to_adam(evening: Study):
    def better_with_adam(job) -> float:
        # HyNet's own optimiser is Adam.
        return level(job) - 3 * (job.recipe.optimizer.name == "adam")

    runs = records(experiments.equal_footing(evening), better_with_adam, lambda job: 100 - level(job))
    of = together.by_optimiser(runs, evening)
    labels = [experiments.EQUAL[key].label for key in experiments.SWAPPED_KEYS.values()]
    assert [list(of[name]["matching"]) for name in ("SGD", "Adam")] == [labels, labels]
    table = together.optimisers(of)
    rates = {name: methods["FPR95"] for name, methods in of.items()}
    logs = [np.log(rates[name][label].values).mean(axis=1) for name in rates for label in labels]
    left = logs - np.mean(logs, axis=0) - np.mean(logs, axis=1, keepdims=True) + np.mean(logs)
    half = stats.t.ppf(0.975, 15 * 4) * np.sqrt(2 / 5 * (left**2).sum() / (15 * 4))
    for label in ("DSM+", "HyNet+"):
        change = np.log(rates["Adam"][label].values / rates["SGD"][label].values).mean()
        expected = np.exp(change + np.array([0, -half, half]))
        assert table.loc[label, "FPR95"][["ratio", "from", "to"]].tolist() == pytest.approx(expected)
    matching = table["matching"]
    adam = (matching["SGD"] + matching["change"]).to_numpy()
    assert adam == pytest.approx(matching["Adam"].to_numpy())


def test_a_pair_has_the_better_first_whichever_way_the_measure_goes():
    of = {"a": drawn(0, 20.0), "b": drawn(1, 10.0)}
    [low], [high] = (together.pairs(measure, of).index for measure in ("FPR95", "matching"))
    assert (low, high) == (("b", "a"), ("a", "b"))
    row, points = (together.pairs(measure, of).iloc[0] for measure in ("FPR95", "matching"))
    logs = contrast([(1, of["a"].logarithm()), (-1, of["b"].logarithm())])
    assert row[["ratio", "from", "to"]].tolist() == pytest.approx(np.exp([logs.value, *logs.limits()]))
    expected = contrast([(1, of["a"]), (-1, of["b"])])
    assert points[["ahead", "from", "to"]].tolist() == pytest.approx(
        [expected.value, *expected.limits()]
    )
    assert row["improvement"] == 1
    assert row["low"] < 1


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(8, 14), min_size=2, max_size=5),
    st.integers(0, 100),
    st.sampled_from(["FPR95", "matching"]),
)
def test_pairs_are_all_there_the_first_ahead_and_p_fits_its_interval(means, seed, measure):
    of = {str(place): drawn(seed + place, mean, seeds=3) for place, mean in enumerate(means)}
    table = together.pairs(measure, of)
    assert len(table) == math.comb(len(means), 2)
    name, equal = ("ratio", 1) if measure == "FPR95" else ("ahead", 0)
    assert (table[name] >= equal).all()
    assert ((table["p"] <= 0.05) == (table["from"] >= equal)).all()
    assert table["Holm"].to_numpy() == pytest.approx(holm(table["p"]))
    assert ((table["low"] <= table["improvement"]) & (table["improvement"] <= table["high"])).all()


@pytest.mark.parametrize(("seeds", "draws"), [(3, 0), (5, 0), (5, 400)])
def test_of_two_methods_the_draws_differ_as_far_as_their_interval_says(seeds, draws):
    of = {"a": drawn(0, 12.0, seeds, draws=draws), "b": drawn(1, 11.0, seeds, draws=draws)}
    joint = significance.draws(list(of.values()))
    found = np.quantile(joint[:, 0] - joint[:, 1], [0.025, 0.975])
    expected = contrast([(1.0, of["a"]), (-1.0, of["b"])]).limits()
    assert found == pytest.approx(expected, abs=0.08 * (expected[1] - expected[0]))


def test_of_many_methods_intervals_are_by_what_seeds_leave_open_of_all():
    of = {name: drawn(place, 10.0 + place, seeds=3) for place, name in enumerate("abcdefgh")}
    runs = np.stack([each.values.mean(axis=1) for each in of.values()])
    left = runs - runs.mean(axis=0) - runs.mean(axis=1, keepdims=True) + runs.mean()
    assert residual(of.values()) == (pytest.approx(np.sqrt((left**2).sum() / 14)), 14)
    table, joint = together.pairs("matching", of), significance.draws(list(of.values()))
    half = stats.t.ppf(0.975, 14) * np.sqrt(2 / 3 * (left**2).sum() / 14)
    assert (table["to"] - table["from"]).to_numpy() == pytest.approx(2 * half)
    found = np.quantile(joint[:, 0] - joint[:, 7], [0.025, 0.975])
    ahead = table.loc[("h", "a")]
    assert found == pytest.approx([-ahead["to"], -ahead["from"]], abs=0.1 * half)


def test_three_seeds_can_order_methods_that_are_well_apart():
    """Nine standard errors between neighbours; a pair by itself would need 24 after Holm's."""
    of = {name: drawn(place, 5.0 * place, seeds=3) for place, name in enumerate("abcdefgh")}
    assert (together.pairs("matching", of)["Holm"] <= together.LEVEL).all()


def test_where_methods_are_alike_a_pair_is_sure_in_few_studies():
    families = 0
    for study in range(100):
        of = {str(place): drawn(100 * study + place, 10.0, seeds=3) for place in range(5)}
        families += (together.pairs("FPR95", of)["Holm"] <= 0.05).any()
    assert families <= 12


def test_what_methods_share_leaves_their_ranks_alone():
    common = 10 * np.arange(5.0)[:, None] + np.zeros((5, 2))
    moved = 5 * np.random.default_rng(0).normal(size=(1, 1, 1, 300))
    of = {}
    for place, name in enumerate("abc"):
        values = place + common + 0.01 * np.random.default_rng(place).normal(size=(5, 2))
        of[name] = Measured(values, values[None, ..., None] + moved)
    table = together.ranks("matching", of)
    assert table["rank"].tolist() == table["from"].tolist() == table["to"].tolist() == [3, 2, 1]
    assert table["first"].tolist() == pytest.approx([0, 0, 1], abs=0.01)
    rates = {
        name: Measured(np.exp(method.values / 50), np.exp(method.resampled / 50))
        for name, method in of.items()
    }
    assert together.ranks("FPR95", rates)["rank"].tolist() == [1, 2, 3]


def test_ranks_of_methods_that_cannot_be_told_apart_are_open():
    of = {name: drawn(place, 10.0, spread=3.0) for place, name in enumerate("abcd")}
    table = together.ranks("FPR95", of)
    assert (table["to"] - table["from"] >= 2).all()
    assert table["first"].sum() == pytest.approx(1)


def test_a_step_costs_what_the_fastest_run_took(study: Study):
    runs = made(experiments.equal_footing(study))
    methods = together.by_measure(runs, study)["FPR95"]
    table = together.cost(runs, methods)
    assert table.loc["HardNet+", ["ms", "times"]].tolist() == [100, 1]
    logarithms = (methods[label].logarithm() for label in ("HyNet+", "HardNet+"))
    ratio = math.exp(intervals.difference(*logarithms).value)
    assert table.loc["HyNet+", ["ms", "times", "ratio"]].tolist() == pytest.approx([200, 2, ratio])
    assert math.isnan(table.loc["HardNet+", "ratio"])


def standing(means: list[float], spread: float, seed: int = 0) -> tuple[str, dict[str, Measured]]:
    """Methods by FPR95's logarithm with exactly these means, over five seeds that leave a spread."""
    left = np.random.default_rng(seed).normal(size=(len(means), 5, 1))
    left -= left.mean(axis=1, keepdims=True)
    values = np.exp(np.array(means)[:, None, None] + spread * left)
    return "FPR95", {name: Measured(own) for name, own in zip("abcdefgh", values, strict=False)}


def test_orders_agree_wholly_reversed_or_as_far_as_draws_leave_open():
    means = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    sharp, reverse = standing(means, 1e-3), standing(means[::-1], 1e-3)
    alike = {"methods": 6, "tau": 1, "from": 1, "to": 1}
    assert together.agreement(sharp, sharp) == pytest.approx(alike)
    assert together.agreement(sharp, reverse)["tau"] == pytest.approx(-1)
    assert together.agreement(sharp, standing(means[:3], 1e-3))["methods"] == 3
    # Of noise alone, τ of n methods has the variance 2 (2n + 5) / 9n(n − 1).
    noise = together.agreement(standing([0.0] * 6, 1.0), standing([0.0] * 6, 1.0, seed=1))
    half = 1.96 * math.sqrt(2 * (2 * 6 + 5) / (9 * 6 * 5))
    # Of six it is a multiple of 2 / 15.
    assert (noise["from"], noise["to"]) == pytest.approx((-half, half), abs=2 / 15)


@pytest.fixture
def places(tmp_path: Path) -> Study:
    """Four places of empty photographs: three that train and test, one that only tests."""
    for place in "abcd":
        (tmp_path / place / "images").mkdir(parents=True)
        for number in range(3):
            (tmp_path / place / "images" / f"{number}.jpg").touch()
    roles = {"places": {p: [p] for p in "abcd"}, "train_and_test": ["a", "b", "c"], "test": ["d"]}
    (tmp_path / "scenes.json").write_text(json.dumps(roles))
    return open_study("quick", f"scenes:{tmp_path}")


def test_on_real_places_methods_stand_by_random_and_wide_pairs_and_by_matching(places: Study):
    jobs = experiments.equal_footing(places)
    asked = {(measure, name) for job in jobs if job.recipe for measure, name in job.measures}
    patches = {("fpr95", name + kind) for name in "bcd" for kind in ("", "-wide")}
    assert asked == patches | {("image_pairs", f"{name}-images") for name in "bcd"}
    measured = {"expected": 2.0, "ap.3": 70.0, "ap.5": 60.0}
    runs = []
    for job in jobs:
        metrics: dict[str, dict] = {}
        for measure, name in job.measures:
            harder = 4 * name.startswith("d")
            metrics.setdefault(name, {})[measure] = {k: v + harder for k, v in measured.items()}
        runs.append(Record(job, Path("record.json"), {"metrics": metrics, "probes": {}}))
    methods = together.by_measure(runs, places)
    assert list(methods) == [together.FPR95, together.FPR95_WIDE, together.PHOTOGRAPHS]
    for measure, mean in zip(methods, (10 / 3, 10 / 3, 70 + 4 / 3), strict=True):
        assert {"SIFT", "RootSIFT", "HardNet+"} <= methods[measure].keys()
        # SIFT is compared on the places that the networks are tested on.
        assert {method.values.shape[-1] for method in methods[measure].values()} == {3}
        assert methods[measure]["SIFT"].values.mean() == pytest.approx(mean)
