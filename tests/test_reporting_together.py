"""Methods on equal footing, with made-up numbers: their order, its certainty, the cost of a step."""

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
    """FPR95 of a run: 15 except for `LEVELS`, plus a tenth of the seed."""
    return LEVELS.get(job.name, 15.0) + job.seed / 10


@pytest.fixture
def evening(study: Study) -> Study:
    seeds = {name: getattr(EVENING, name) for name in SEEDS}
    return replace(study, profile=EVENING, **seeds)


def timed_records(jobs) -> list[Record]:
    """Records of 100 steps that take a second more with each seed, and twice as long for HyNet."""
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


def drawn_method(
    seed: int, mean: float, seeds: int = 5, spread: float = 1.0, draws: int = 0
) -> Measured:
    """Draw a method's FPR95 on two sets, and on `draws` resamples of its own."""
    random = np.random.default_rng(seed)
    values = random.normal(mean, spread, (seeds, 2))
    shifts = random.normal(0, 0.5, (1, 1, 1, draws)) if draws else None
    return Measured(values, None if shifts is None else values[None, ..., None] + shifts)


def test_every_measure_has_every_method(study: Study):
    methods = together.by_measure(timed_records(experiments.equal_footing(study)), study)
    assert list(methods) == ["FPR95", "verification", "matching", "retrieval"]
    for measure, cells in {"FPR95": 2, "matching": 1}.items():
        assert {method.values.shape for method in methods[measure].values()} == {(3, cells)}
    assert list(methods["FPR95"]) == [experiments.EQUAL[key].label for key in experiments.METHODS]
    # One of the two test sets is a point harder.
    assert methods["FPR95"]["HyNet+"].values.mean() == pytest.approx(8.0 + 0.1 + 0.5)
    assert methods["matching"]["HyNet+"].values.mean() == pytest.approx(100 - 8.1)


def test_orders_cover_each_synthetic_set_at_quick_and_the_first_at_longer_profiles(
    study: Study, evening: Study
):
    assert {job.train_set for job in experiments.orders(study)} == {*study.source.sets}
    assert experiments.orders(evening) == experiments.equal_footing(evening)


def test_each_optimiser_has_every_method_and_the_change_is_from_sgd_to_adam(evening: Study):
    def better_with_adam(job) -> float:
        # HyNet's own optimiser is Adam.
        return level(job) - 3 * (job.recipe.optimizer.name == "adam")

    runs = records(experiments.equal_footing(evening), better_with_adam, lambda job: 100 - level(job))
    by_optimiser = together.by_optimiser(runs, evening)
    labels = [experiments.EQUAL[key].label for key in experiments.SWAPPED_KEYS.values()]
    assert [list(by_optimiser[name]["matching"]) for name in ("SGD", "Adam")] == [labels, labels]
    table = together.optimisers(by_optimiser)
    rates = {name: methods["FPR95"] for name, methods in by_optimiser.items()}
    logs = [np.log(rates[name][label].values).mean(axis=1) for name in rates for label in labels]
    residuals = logs - np.mean(logs, axis=0) - np.mean(logs, axis=1, keepdims=True) + np.mean(logs)
    half = stats.t.ppf(0.975, 15 * 4) * np.sqrt(2 / 5 * (residuals**2).sum() / (15 * 4))
    for label in ("DSM+", "HyNet+"):
        change = np.log(rates["Adam"][label].values / rates["SGD"][label].values).mean()
        expected = np.exp(change + np.array([0, -half, half]))
        assert table.loc[label, "FPR95"][["ratio", "from", "to"]].tolist() == pytest.approx(expected)
    matching = table["matching"]
    adam = (matching["SGD"] + matching["change"]).to_numpy()
    assert adam == pytest.approx(matching["Adam"].to_numpy())


def test_a_pair_has_the_better_method_first_for_any_measure():
    methods = {"a": drawn_method(0, 20.0), "b": drawn_method(1, 10.0)}
    [low], [high] = (together.pairs(measure, methods).index for measure in ("FPR95", "matching"))
    assert (low, high) == (("b", "a"), ("a", "b"))
    row, points = (together.pairs(measure, methods).iloc[0] for measure in ("FPR95", "matching"))
    logs = contrast([(1, methods["a"].logarithm()), (-1, methods["b"].logarithm())])
    assert row[["ratio", "from", "to"]].tolist() == pytest.approx(np.exp([logs.value, *logs.limits()]))
    expected = contrast([(1, methods["a"]), (-1, methods["b"])])
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
def test_all_pairs_have_the_better_first_and_p_fits_the_interval(means, seed, measure):
    methods = {str(index): drawn_method(seed + index, mean, seeds=3) for index, mean in enumerate(means)}
    table = together.pairs(measure, methods)
    assert len(table) == math.comb(len(means), 2)
    name, equal = ("ratio", 1) if measure == "FPR95" else ("ahead", 0)
    assert (table[name] >= equal).all()
    assert ((table["p"] <= 0.05) == (table["from"] >= equal)).all()
    assert table["Holm"].to_numpy() == pytest.approx(holm(table["p"]))
    assert ((table["low"] <= table["improvement"]) & (table["improvement"] <= table["high"])).all()


@pytest.mark.parametrize(("seeds", "draws"), [(3, 0), (5, 0), (5, 400)])
def test_draws_of_two_methods_differ_as_far_as_their_interval(seeds, draws):
    methods = {
        "a": drawn_method(0, 12.0, seeds, draws=draws),
        "b": drawn_method(1, 11.0, seeds, draws=draws),
    }
    joint = significance.draws(list(methods.values()))
    measured = np.quantile(joint[:, 0] - joint[:, 1], [0.025, 0.975])
    expected = contrast([(1.0, methods["a"]), (-1.0, methods["b"])]).limits()
    assert measured == pytest.approx(expected, abs=0.08 * (expected[1] - expected[0]))


def test_intervals_of_many_methods_use_the_residual_of_all():
    methods = {name: drawn_method(index, 10.0 + index, seeds=3) for index, name in enumerate("abcdefgh")}
    runs = np.stack([method.values.mean(axis=1) for method in methods.values()])
    residuals = runs - runs.mean(axis=0) - runs.mean(axis=1, keepdims=True) + runs.mean()
    assert residual(methods.values()) == (pytest.approx(np.sqrt((residuals**2).sum() / 14)), 14)
    table, joint = together.pairs("matching", methods), significance.draws(list(methods.values()))
    half = stats.t.ppf(0.975, 14) * np.sqrt(2 / 3 * (residuals**2).sum() / 14)
    assert (table["to"] - table["from"]).to_numpy() == pytest.approx(2 * half)
    measured = np.quantile(joint[:, 0] - joint[:, 7], [0.025, 0.975])
    ahead = table.loc[("h", "a")]
    assert measured == pytest.approx([-ahead["to"], -ahead["from"]], abs=0.1 * half)


def test_three_seeds_can_order_well_separated_methods():
    """Neighbours are nine standard errors apart; a pair alone would need 24 after Holm's."""
    methods = {name: drawn_method(index, 5.0 * index, seeds=3) for index, name in enumerate("abcdefgh")}
    assert (together.pairs("matching", methods)["Holm"] <= together.LEVEL).all()


def test_pairs_of_equal_methods_are_significant_in_few_studies():
    significant = 0
    for study in range(100):
        methods = {str(index): drawn_method(100 * study + index, 10.0, seeds=3) for index in range(5)}
        significant += (together.pairs("FPR95", methods)["Holm"] <= 0.05).any()
    assert significant <= 12


def test_shared_variation_does_not_change_ranks():
    common = 10 * np.arange(5.0)[:, None] + np.zeros((5, 2))
    shifts = 5 * np.random.default_rng(0).normal(size=(1, 1, 1, 300))
    methods = {}
    for index, name in enumerate("abc"):
        values = index + common + 0.01 * np.random.default_rng(index).normal(size=(5, 2))
        methods[name] = Measured(values, values[None, ..., None] + shifts)
    table = together.ranks("matching", methods)
    assert table["rank"].tolist() == table["from"].tolist() == table["to"].tolist() == [3, 2, 1]
    assert table["first"].tolist() == pytest.approx([0, 0, 1], abs=0.01)
    rates = {
        name: Measured(np.exp(method.values / 50), np.exp(method.resampled / 50))
        for name, method in methods.items()
    }
    assert together.ranks("FPR95", rates)["rank"].tolist() == [1, 2, 3]


def test_ranks_of_indistinguishable_methods_are_open():
    methods = {name: drawn_method(index, 10.0, spread=3.0) for index, name in enumerate("abcd")}
    table = together.ranks("FPR95", methods)
    assert (table["to"] - table["from"] >= 2).all()
    assert table["first"].sum() == pytest.approx(1)


def test_the_cost_of_a_step_is_the_fastest_runs(study: Study):
    runs = timed_records(experiments.equal_footing(study))
    methods = together.by_measure(runs, study)["FPR95"]
    table = together.cost(runs, methods)
    assert table.loc["HardNet+", ["ms", "times"]].tolist() == [100, 1]
    logarithms = (methods[label].logarithm() for label in ("HyNet+", "HardNet+"))
    ratio = math.exp(intervals.difference(*logarithms).value)
    assert table.loc["HyNet+", ["ms", "times", "ratio"]].tolist() == pytest.approx([200, 2, ratio])
    assert table.loc["HardNet+", "ratio"] == 1


def fixed_means(means: list[float], spread: float, seed: int = 0) -> tuple[str, dict[str, Measured]]:
    """Return methods whose FPR95 has logarithms with exactly these means and a spread over 5 seeds."""
    noise = np.random.default_rng(seed).normal(size=(len(means), 5, 1))
    noise -= noise.mean(axis=1, keepdims=True)
    values = np.exp(np.array(means)[:, None, None] + spread * noise)
    return "FPR95", {name: Measured(rates) for name, rates in zip("abcdefgh", values, strict=False)}


def test_equal_reversed_and_random_orders_have_the_expected_tau():
    means = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    sharp, reverse = fixed_means(means, 1e-3), fixed_means(means[::-1], 1e-3)
    expected = {"methods": 6, "tau": 1, "from": 1, "to": 1}
    assert together.agreement(sharp, sharp) == pytest.approx(expected)
    assert together.agreement(sharp, reverse)["tau"] == pytest.approx(-1)
    assert together.agreement(sharp, fixed_means(means[:3], 1e-3))["methods"] == 3
    # Under noise alone, τ of n methods has variance 2 (2n + 5) / 9n(n − 1).
    noise = together.agreement(fixed_means([0.0] * 6, 1.0), fixed_means([0.0] * 6, 1.0, seed=1))
    half = 1.96 * math.sqrt(2 * (2 * 6 + 5) / (9 * 6 * 5))
    # For six, it is a multiple of 2 / 15.
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


def test_real_places_compare_methods_by_random_and_wide_pairs_and_by_matching(places: Study):
    jobs = experiments.equal_footing(places)
    measures = {(measure, name) for job in jobs if job.recipe for measure, name in job.measures}
    patches = {("fpr95", name + kind) for name in "bcd" for kind in ("", "-wide")}
    assert measures == patches | {("image_pairs", f"{name}-images") for name in "bcd"}
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
