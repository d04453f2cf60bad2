"""HPatches' tables: each number under its own heading, intervals, and the cells of claims."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import reporting_records
from reporting_records import verdict
from scipy import stats

from lib.study.claims import read_claims
from lib.study.claims.measured import hpatches_by_task
from lib.study.open import Record
from lib.study.report import frames as tables
from lib.study.report.changes import changes, levels
from lib.study.report.frames import LEVELS

TEST, HP_TRAIN = "some-hp-a", "some-hp-a-train"
SEQUENCES = ("v_wall", "i_wall", "v_dome", "i_shop")


def metrics(level: float, sequences: tuple[str, ...] = SEQUENCES) -> dict[str, float]:
    """Return distinct numbers under the evaluation's keys: easy is 3 above hard, hard 3 above tough."""
    table = {}
    for position, name in enumerate(LEVELS):
        value = level + 3 * (1 - position)
        table |= {
            f"verification.{name}.intra.ap": value - 1,
            f"verification.{name}.inter.ap": value,
        }
        for number, sequence in enumerate(sequences):
            table[f"matching.{name}.{sequence}"] = value - 10 - number
            table[f"retrieval.{name}.{sequence}"] = value - 20 - 2 * number
        for kind in ("viewpoint", "illumination"):
            if any(sequence[0] == kind[0] for sequence in sequences):
                table[f"matching.{name}.{kind}"] = value - 10
                table[f"matching.success.{name}.{kind}"] = 99.0
        table |= {f"retrieval.{name}.{pool}": value - 20 for pool in ("100", "all", "pools")}
    means = {"verification": 0, "verification.auc": 5, "matching": -10, "retrieval": -20}
    return table | {key: level + shift for key, shift in means.items()} | {"retrieval.pools": level - 30}


def run(
    key: str, level: float, seed: int | None = 0, train_set: str | None = "some-a", **kind
) -> Record:
    return reporting_records.found(
        key, train_set, seed, metrics={TEST: {"hpatches": metrics(level, **kind)}}
    )


@pytest.fixture(scope="module")
def one_seed() -> pd.DataFrame:
    runs = [run("sift", 40, None, None), run("net", 60), run("net", 70, train_set=HP_TRAIN)]
    return tables.hpatches_numbers(runs, TEST, HP_TRAIN)


@pytest.fixture(scope="module")
def three_seeds() -> pd.DataFrame:
    runs = [run("sift", 40, None, None), *(run("net", 60 + 2 * seed, seed) for seed in range(3))]
    return tables.hpatches_numbers(runs, TEST)


def intervals(frame: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return levels and gains over HardNet+*, with the number of subjects of their intervals."""
    values = hpatches_by_task(frame, [task])
    methods, baseline = {method.label: method for method in values.values()}, values["hardnet_aug_gen"]
    gains = changes(methods, {label: (label, baseline.label) for label in methods})
    table = levels(methods).join(gains.add_suffix(" gain"))
    return table.assign(subjects=baseline.freedom + 1)


def test_both_halves_of_a_photograph_are_one_subject():
    halves = ("v_dome_left", "i_dome_right", "v_wall", "i_wall", "v_dome")
    frame = tables.hpatches_numbers([run("hardnet_aug_gen", 60, sequences=halves)], TEST)
    assert intervals(frame, "matching")["subjects"].tolist() == [2]


# Numbers


def test_a_method_trained_on_hpatches_is_a_separate_method(one_seed):
    index_levels = [one_seed.index.get_level_values(name).tolist() for name in ("key", "label", "seed")]
    assert index_levels[:2] == [["sift", "net", "net_hp"], ["SIFT", "NET", "NET-HP"]]
    assert index_levels[2][1:] == [0, 0]
    assert pd.isna(index_levels[2][0])
    assert one_seed["retrieval.hard.pools"].tolist() == [20, 40, 50]


def test_each_task_is_under_its_protocol_and_one_seed_has_no_deviation(one_seed):
    table = tables.by_task(one_seed)
    assert table.index.tolist() == ["SIFT", "NET", "NET-HP"]
    assert "sd" not in table.columns.get_level_values(1)
    row = table.loc["NET"]
    assert row["retrieval: mAP, whole pool", "mean"] == 40
    assert row["retrieval: mAP, pool sizes", "mean"] == 30
    assert row["verification: AP, 1 to 5", "mean"] == 60
    assert row["matching: mAP", "mean"] == 50


def test_several_seeds_give_mean_and_deviation_and_a_method_without_seeds_none(three_seeds):
    table = tables.by_task(three_seeds)
    assert table["matching: mAP", "mean"].tolist() == [30, 52]
    assert table["matching: mAP", "sd"].tolist() == pytest.approx([np.nan, 2], nan_ok=True)
    assert table["", "n"].tolist() == [1, 3]


# Intervals over seeds and sequences


def figure2_runs(seeds: int = 3) -> pd.DataFrame:
    """Return SIFT, 20 points below a network whose seeds are 2 apart."""
    network = [run("hardnet_aug_gen", 60 + 2 * seed, seed) for seed in range(seeds)]
    return tables.hpatches_numbers([run("sift", 40, None, None), *network], TEST)


def test_sequences_shift_both_methods_so_their_difference_varies_by_seeds_alone():
    table = intervals(figure2_runs(), "matching")
    assert table["mean"].tolist() == [30, 52]
    assert (table["to"] - table["from"] > 1).all()
    half_width = stats.t.ppf(0.975, 2) * 2 / 3**0.5
    gain = table.loc["SIFT", ["change gain", "from gain", "to gain"]].tolist()
    assert gain == pytest.approx([-22, -22 - half_width, -22 + half_width])
    assert table["subjects"].tolist() == [3, 3]


def test_verification_is_over_pairs_of_all_sequences_and_varies_by_seeds_alone():
    table = intervals(figure2_runs(), "verification")
    assert table.loc["SIFT", ["mean", "from", "to"]].tolist() == [40, 40, 40]


# Claims


def test_a_claim_on_figure_2_is_judged_on_its_task_alone():
    rivals = ("rootsift", "hardnet", "hardnet_aug", "hardnet_aug_gen")
    runs = [run("sift", 40, None, None)]
    runs += [run(key, 50 + seed, seed) for key in rivals for seed in range(5)]
    runs += [run("adasample_aug_gen", 53 + seed, seed) for seed in range(5)]
    frame = tables.hpatches_numbers(runs, TEST)
    frame.loc[frame.index.get_level_values("key") == "adasample_aug_gen", "matching"] -= 10
    observed = {}
    for claim in read_claims("adasample", "Figure 2"):
        values = hpatches_by_task(frame, [claim.metric])
        assert values["sift"].values.shape == (1,)
        judged = verdict(claim, values, range(5), "evening", "mini")
        observed[claim.id.rpartition("-")[2]] = judged.observed
    assert observed == pytest.approx({"verification": 3, "matching": -7, "retrieval": 3})
