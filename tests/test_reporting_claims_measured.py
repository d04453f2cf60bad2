"""Methods' values with their resamples, put together from records."""

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
    """Records whose probe tells its own run and set: rates around FPR95, with 7 resamples."""

    def probe(self: Record, name: str, test_set: str) -> dict:
        assert name == "resampled_fpr95"
        rates = self.fpr95(test_set) + np.arange(7.0)
        return {"rates": rates, "pair_rates": rates / 2}

    monkeypatch.setattr(Record, "probe", probe)

    def record(*args, **rates) -> Record:
        found = with_fpr95(*args, **rates)
        found.content["probes"] = {f"resampled_fpr95.{name}": {} for name in rates}
        return found

    return record


def test_columns_are_those_that_all_methods_have_and_resamples_stand_in_their_places(probed):
    runs = [probed("net", "fountain", seed, wall=10.0 + seed, street=20.0 + seed) for seed in (1, 0)]
    sift = probed("sift", None, None, fountain=1.0, wall=2.0, street=3.0)
    found = fpr95_by_column([sift, *runs], SETS)
    assert found["net"].cells == ("Lib>Ntr", "Lib>Yos")
    assert found["net"].values.tolist() == [[10, 20], [11, 21]]
    assert found["sift"].values.tolist() == [2, 3]
    assert found["net"].label == "NET"
    assert found["net"].resampled.shape == (2, 2, 2, 7)
    assert found["sift"].resampled.shape == (2, 2, 7)
    for of in found.values():
        assert of.resampled[0] == pytest.approx(of.values[..., None] + np.arange(7))
        assert of.resampled[1] == pytest.approx(of.resampled[0] / 2)


def test_where_one_record_has_no_probe_no_method_has_resamples(probed):
    run = probed("net", "fountain", 0, wall=10.0, street=20.0)
    sift = with_fpr95("sift", None, None, fountain=1.0, wall=2.0, street=3.0)
    sift.content["probes"] = {}
    assert all(of.resampled is None for of in fpr95_by_column([sift, run], SETS).values())


def test_non_matching_pairs_are_counted_where_any_run_has_their_distances(monkeypatch):
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
    found = fpr95_by_column([*runs, probed("other", "fountain", 0, wall=9.0, street=9.0)], SETS)
    assert [of.seeds for of in found.values()] == [(0, 1, 2), (0,)]


def hpatches_runs(names: list[str], values: dict[tuple[str, int], np.ndarray]) -> pd.DataFrame:
    records = []
    for (key, seed), of in values.items():
        cells = {
            f"{task}.{level}.{name}": value
            for task in ("matching", "retrieval")
            for level in LEVELS
            for name, value in zip(names, of, strict=True)
        }
        cells |= {task: float(of.mean()) for task in ("verification", "matching", "retrieval")}
        records.append(reporting_records.found(key, "a", seed, metrics={"hp": {"hpatches": cells}}))
    return hpatches_numbers(records, "hp")


def test_sequences_are_drawn_by_what_they_show():
    names = [f"{kind}_{thing}" for thing in range(12) for kind in "vi"]
    values = 50 + 10 * np.random.default_rng(0).normal(size=24)
    runs = hpatches_runs(names, {("net", 0): values, ("net", 1): values})
    found = hpatches_by_task(runs)["net"]
    assert found.cells == ("verification", "matching", "retrieval")
    assert found.freedom == 11
    drawn = found.resampled[0, 0]
    assert (drawn[0] == values.mean()).all()
    # Each thing has two sequences, so that its own mean is what is drawn.
    of_things = values.reshape(12, 2).mean(axis=1)
    assert drawn[1].std() == pytest.approx(of_things.std(ddof=1) / 12**0.5, rel=0.1)
    # Both runs, of equal sequences, have the same draws.
    assert (found.resampled[0, 0] == found.resampled[0, 1]).all()


def test_a_gain_that_every_sequence_has_is_sure_however_much_the_sequences_differ():
    names = [f"v_{thing}" for thing in range(10)]
    level = 50 + 20 * np.random.default_rng(0).normal(size=10)
    seeds = {("hardnet_aug_gen", s): level + 0.1 * s for s in range(3)}
    ours = {("adasample_aug_gen", s): level + 2 + 0.1 * s for s in range(3)}
    values = hpatches_by_task(hpatches_runs(names, seeds | ours), ["matching"])
    assert contrast([(1.0, values["adasample_aug_gen"])]).over_units > 3
    [claim] = [c for c in read_claims() if c.id == "adasample-s6-matching"]
    judged = verdict(claim, values, range(3), "evening", "mini")
    assert judged.outcome == "held"
    assert (judged.low, judged.high) == pytest.approx((2, 2), abs=0.05) or judged.low is None


def test_a_claims_values_are_looked_up_by_its_metric_of_the_methods_that_it_names(probed):
    runs = [probed(name, "fountain", 0, wall=10.0, street=20.0) for name in ("net", "other")]
    runs.append(probed("third", "fountain", 0, wall=1.0))
    claim = replace(read_claims()[0], metric="fpr95", a=("net",), b=("other",), given=())
    found = values_of(claim, runs, SETS)
    assert {key: of.cells for key, of in found.items()} == dict.fromkeys(
        ("net", "other"), ("Lib>Ntr", "Lib>Yos")
    )
    column = values_of(replace(claim, metric="Lib>Yos"), runs, SETS)
    assert column["net"].values.tolist() == [[20.0]]
    curve = {"net": np.zeros(1)}
    assert values_of(replace(claim, metric="curve"), runs, SETS, {"curve": curve}) is curve
    assert values_of(replace(claim, metric="map"), runs, SETS) == {}
    assert values_of(claim, runs[2:], SETS) == {}


def test_one_thing_alone_leaves_no_spread_over_sequences():
    runs = hpatches_runs(["v_dome", "i_dome"], {("net", 0): np.array([1.0, 2.0])})
    assert hpatches_by_task(runs)["net"].resampled is None
