"""Methods' values and their resamples, assembled from records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import reporting_records
from reporting_records import verdict, with_fpr95

from lib.statistics.intervals import contrast
from lib.study.claims import read_claims
from lib.study.claims.measured import fpr95_by_column, hpatches_by_task, values_of
from lib.study.open import Record
from lib.study.report.frames import LEVELS, hpatches_numbers

SETS = ("fountain", "wall", "street")


@pytest.fixture
def probed(monkeypatch):
    """Build records whose probe depends on run and set: rates around FPR95, with 7 resamples."""

    def probe(self: Record, name: str, test_set: str) -> dict:
        assert name == "resampled_fpr95"
        rates = self.fpr95(test_set) + np.arange(7.0)
        return {"rates": rates, "pair_rates": rates / 2}

    monkeypatch.setattr(Record, "probe", probe)

    def record(*args, **rates) -> Record:
        result = with_fpr95(*args, **rates)
        result.content["probes"] = {f"resampled_fpr95.{name}": {} for name in rates}
        return result

    return record


def test_columns_are_those_of_all_methods_and_resamples_are_in_their_order(probed):
    runs = [probed("net", "fountain", seed, wall=10.0 + seed, street=20.0 + seed) for seed in (1, 0)]
    sift = probed("sift", None, None, fountain=1.0, wall=2.0, street=3.0)
    methods = fpr95_by_column([sift, *runs], SETS)
    assert methods["net"].cells == ("Lib>Ntr", "Lib>Yos")
    assert methods["net"].values.tolist() == [[10, 20], [11, 21]]
    assert methods["sift"].values.tolist() == [2, 3]
    assert methods["net"].label == "NET"
    assert methods["net"].resampled.shape == (2, 2, 2, 7)
    assert methods["sift"].resampled.shape == (2, 2, 7)
    for method in methods.values():
        assert method.resampled[0] == pytest.approx(method.values[..., None] + np.arange(7))
        assert method.resampled[1] == pytest.approx(method.resampled[0] / 2)


def test_no_method_has_resamples_if_one_record_has_no_probe(probed):
    run = probed("net", "fountain", 0, wall=10.0, street=20.0)
    sift = with_fpr95("sift", None, None, fountain=1.0, wall=2.0, street=3.0)
    sift.content["probes"] = {}
    assert all(method.resampled is None for method in fpr95_by_column([sift, run], SETS).values())


def test_non_matching_pairs_are_counted_if_any_run_has_their_distances(monkeypatch):
    counts = {"wall": [300, 200], "street": [40, 60]}
    monkeypatch.setattr(
        Record, "probe", lambda run, name, test_set: {"non_matching": np.array(counts[test_set])}
    )
    runs = [with_fpr95(key, "fountain", 0, wall=10.0, street=20.0) for key in ("net", "other")]
    assert all(method.pairs == () for method in fpr95_by_column(runs, SETS).values())
    runs[1].content["probes"] = {f"distance_histogram.{name}": "" for name in counts}
    methods = fpr95_by_column(runs, SETS)
    assert methods["net"].cells == ("Lib>Ntr", "Lib>Yos")
    assert methods["net"].pairs == methods["other"].pairs == (500, 100)
    assert methods["net"].one(1).pairs == (100,)


def test_methods_may_have_different_numbers_of_seeds(probed):
    runs = [probed("net", "fountain", seed, wall=10.0, street=20.0) for seed in range(3)]
    methods = fpr95_by_column([*runs, probed("other", "fountain", 0, wall=9.0, street=9.0)], SETS)
    assert [method.seeds for method in methods.values()] == [(0, 1, 2), (0,)]


def hpatches_runs(names: list[str], values: dict[tuple[str, int], np.ndarray]) -> pd.DataFrame:
    records = []
    for (key, seed), scores in values.items():
        cells = {
            f"{task}.{level}.{name}": value
            for task in ("matching", "retrieval")
            for level in LEVELS
            for name, value in zip(names, scores, strict=True)
        }
        cells |= {task: float(scores.mean()) for task in ("verification", "matching", "retrieval")}
        records.append(reporting_records.found(key, "a", seed, metrics={"hp": {"hpatches": cells}}))
    return hpatches_numbers(records, "hp")


def test_sequences_are_resampled_by_their_scene():
    names = [f"{kind}_{scene}" for scene in range(12) for kind in "vi"]
    values = 50 + 10 * np.random.default_rng(0).normal(size=24)
    runs = hpatches_runs(names, {("net", 0): values, ("net", 1): values})
    method = hpatches_by_task(runs)["net"]
    assert method.cells == ("verification", "matching", "retrieval")
    assert method.freedom == 11
    drawn = method.resampled[0, 0]
    assert (drawn[0] == values.mean()).all()
    # Each scene has two sequences, so its mean is what is drawn.
    scene_means = values.reshape(12, 2).mean(axis=1)
    assert drawn[1].std() == pytest.approx(scene_means.std(ddof=1) / 12**0.5, rel=0.1)
    # Both runs have equal sequences and so the same draws.
    assert (method.resampled[0, 0] == method.resampled[0, 1]).all()


def test_a_gain_of_every_sequence_is_sure_even_if_the_sequences_differ_much():
    names = [f"v_{scene}" for scene in range(10)]
    level = 50 + 20 * np.random.default_rng(0).normal(size=10)
    seeds = {("hardnet_aug_gen", s): level + 0.1 * s for s in range(3)}
    ours = {("adasample_aug_gen", s): level + 2 + 0.1 * s for s in range(3)}
    values = hpatches_by_task(hpatches_runs(names, seeds | ours), ["matching"])
    assert contrast([(1.0, values["adasample_aug_gen"])]).over_units > 3
    [claim] = [c for c in read_claims() if c.id == "adasample-s6-matching"]
    judged = verdict(claim, values, range(3), "evening", "mini")
    assert judged.outcome == "held"
    assert (judged.low, judged.high) == pytest.approx((2, 2), abs=0.05)


def test_a_claims_values_are_those_of_its_metric_and_its_methods(probed):
    runs = [probed(name, "fountain", 0, wall=10.0, street=20.0) for name in ("net", "other")]
    runs.append(probed("third", "fountain", 0, wall=1.0))
    claim = replace(read_claims()[0], metric="fpr95", a=("net",), b=("other",), given=())
    methods = values_of(claim, runs, SETS)
    assert {key: method.cells for key, method in methods.items()} == dict.fromkeys(
        ("net", "other"), ("Lib>Ntr", "Lib>Yos")
    )
    column = values_of(replace(claim, metric="Lib>Yos"), runs, SETS)
    assert column["net"].values.tolist() == [[20.0]]
    curve = {"net": np.zeros(1)}
    assert values_of(replace(claim, metric="curve"), runs, SETS, {"curve": curve}) is curve
    assert values_of(replace(claim, metric="map"), runs, SETS) == {}
    assert values_of(claim, runs[2:], SETS) == {}


def test_a_single_scene_leaves_no_spread_over_sequences():
    runs = hpatches_runs(["v_dome", "i_dome"], {("net", 0): np.array([1.0, 2.0])})
    assert hpatches_by_task(runs)["net"].resampled is None
