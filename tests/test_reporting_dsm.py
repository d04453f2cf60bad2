"""DSM: what its notebooks compute from made-up records, and the verdicts on its claims."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lib.statistics.intervals import Measured
from lib.study.artefacts import dsm as artefacts
from lib.study.jobs import Job
from lib.study.open import Record, Study, open_study
from lib.study.report import frames
from lib.study.report.frames import COLUMN_NAMES, TASKS, printed_by_column
from paper_records import records
from reporting_records import claims_on, outcomes, verdict, verdicts

from lib.analysis import narrow_weights
from lib.benchmarks.hpatches import LEVELS
from lib.recipes import RECIPES
from lib.study.claims import NOT_JUDGED, Claim, read_claims
from lib.study.claims.measured import values_of
from lib.study.printed import printed

SEEDS = (0, 1, 2)


def claim_values(runs: list[Record], study: Study, **arrays: object) -> partial:
    all_runs = [*runs, *frames.by_sign(runs)]
    return partial(values_of, runs=all_runs, sets=study.source.sets, arrays=arrays)


def level(job) -> float:
    """Return a run's FPR95: 5 for DSM, 40 for ORB, else 20, plus a tenth of the seed."""
    base = {"dsm_aug": 5.0, "dsm_binary_aug": 5.0, "orb": 40.0}.get(job.name, 20.0)
    return base + (job.seed or 0) / 10


def number(job) -> float:
    """Return a run's number in HPatches' tasks: 60 for DSM, else 50, plus a tenth of the seed."""
    return (60.0 if job.name in artefacts.DSM.values() else 50.0) + (job.seed or 0) / 10


def test_a_claim_on_table_1_covers_all_columns_that_its_methods_have(study: Study) -> None:
    values = claim_values(records(artefacts.table1(study), level), study)
    claims = {claim.id: claim for claim in read_claims("dsm", "Table 1")}
    measured = values(claims["dsm-t1-hardnet-mean"])
    assert measured["hardnet_aug"].cells == COLUMN_NAMES
    assert measured["hardnet_aug"].values.shape == (3, 6)
    binary = values(claims["dsm-t1-binary-others"])
    assert set(binary) == {"dsm_binary_aug", "orb", "l2net_aug_signs", "cs_l2net_aug_signs"}
    assert binary["l2net_aug_signs"].cells == ("Lib>Ntr", "Lib>Yos")
    result = verdicts("dsm", "Table 1", values)["t1-hardnet-mean"]
    assert (result.outcome, result.points) == ("held", pytest.approx(-15))
    assert 7.09 / 9.11 - 0.01 < result.printed < 7.09 / 9.11 + 0.01, "means by column, not of columns"
    assert outcomes("dsm", "Sec. 5.1", values) == {"s51-loss-alone": "held", "s51-major-factor": "held"}


def test_every_claim_with_a_rule_has_a_verdict_where_all_has_three_seeds(seeded: Study) -> None:
    jobs_by_artefact = {
        "Table 1": artefacts.table1(seeded),
        "Sec. 5.1": artefacts.table1(seeded),
        "Table 3": artefacts.table3(seeded),
        "Table 4": artefacts.table4(seeded),
    }
    for artefact, jobs in jobs_by_artefact.items():
        values = claim_values(records(jobs, level, number), seeded)
        judged = outcomes("dsm", artefact, values)
        assert judged
        assert NOT_JUDGED not in judged.values(), artefact


def test_table_3_lists_the_paper_s_rows_first_and_our_own_last(study: Study) -> None:
    runs = records(artefacts.table3(study), level, number)
    fpr95 = frames.by_column(runs, study.source.sets)["Mean"]
    table = frames.tasks_beside(printed("dsm", "table3"), runs, fpr95)
    assert list(table.index[:8]) == list(printed("dsm", "table3")["label"].unique())
    assert list(table.index[8:]) == ["DSM+: hardest 1/4", "DSM+ binary: hardest 1/8", "ORB"]
    row = table.loc["DSM+"]
    assert row["FPR95"].tolist() == pytest.approx([0.95, 5.6, 0.1])
    assert row["matching"].tolist() == pytest.approx([53.25, 60.1, 0.1])
    assert table.loc["Wang", [("FPR95", "ours"), ("matching", "ours")]].isna().all()
    assert table.loc["Wang", ("matching", "paper")] == 52.63
    assert table.loc["ORB", ("FPR95", "ours")] == 40.5
    assert np.isnan(table.loc["ORB", ("matching", "ours")])
    assert table["", "n"].fillna(0).tolist()[:4] == [3, 0, 3, 3]


def test_a_claim_on_table_3_covers_only_its_own_task(study: Study) -> None:
    values = claim_values(records(artefacts.table3(study), level, number), study)
    results = verdicts("dsm", "Table 3", values)
    matching = results["t3-real-matching"]
    assert (matching.outcome, matching.observed, matching.part) == ("held", pytest.approx(10), "")
    assert matching.printed == pytest.approx(53.25 - 52.84)
    assert results["t3-binary-fpr95"].printed == pytest.approx(2.31 / 2.73)
    assert results["t3-eighth"].outcome == "did not hold"
    assert results["t3-quarter"].outcome == "held"
    assert "was not available" in results["t3-wang"].why


def test_the_tables_as_printed_against_the_claims_on_them() -> None:
    def values(table: str):
        rows = printed("dsm", table)

        def by_method(claim: Claim):
            if table == "table1":
                by_column = printed_by_column(rows).droplevel("label")[list(COLUMN_NAMES)]
                names = COLUMN_NAMES
                return {k: Measured(row.to_numpy(), cells=names) for k, row in by_column.iterrows()}
            cells = {"fpr95": [""], "map": list(TASKS)}.get(claim.metric, [claim.metric])
            chosen = rows[rows["task"].isin(cells)]
            return {
                key: Measured(group["value"].to_numpy(), cells=tuple(group["task"]))
                for key, group in chosen.groupby("key")
            }

        return by_method

    def not_reproduced(artefact: str, table: str) -> set[str]:
        results = {
            claim.id.removeprefix("dsm-"): verdict(
                claim, values(table)(claim), SEEDS, "paper", claim.own_data
            )
            for claim in claims_on("dsm", artefact)
            if claim.printed
        }
        # Their printed values are those observed in the printed table.
        assert [v.printed for v in results.values()] == pytest.approx(
            [v.observed for v in results.values()]
        )
        return {key for key, result in results.items() if result.outcome != "reproduced"}

    assert not_reproduced("Table 1", "table1") == {"t1-doap-each"}
    assert not_reproduced("Table 3", "table3") == set()
    assert not_reproduced("Table 4", "table4") == {
        "t4-real-negative-map",
        "t4-real-gaussian-small-fpr95",
    }, "13.7 percent, within a hundredth of the margin"


def test_margins_of_equality_are_half_of_the_worst_pdf_s_printed_loss() -> None:
    rows = printed("dsm", "table4")
    fpr95 = rows[rows["statistic"] == "fpr95_mean"].set_index("key")["value"]
    tasks = rows[rows["statistic"] == "map"].groupby("key")["value"].mean()
    margins = {claim.id: claim.margin for claim in read_claims("dsm", "Table 4")}
    for kind, key in artefacts.DSM.items():
        worst = f"{kind}_pdf_negative"
        ratio = 1 + (fpr95[worst] / fpr95[key] - 1) / 2
        assert margins[f"dsm-t4-{kind}-positive-fpr95"] == pytest.approx(ratio, abs=0.005)
        assert margins[f"dsm-t4-{kind}-gaussian-small-fpr95"] == pytest.approx(ratio, abs=0.005)
        difference = (tasks[key] - tasks[worst]) / 2
        assert margins[f"dsm-t4-{kind}-positive-map"] == pytest.approx(difference, abs=0.005)
        assert margins[f"dsm-t4-{kind}-gaussian-small-map"] == pytest.approx(difference, abs=0.005)


def test_rows_by_sign_hold_only_what_was_measured_of_the_signs(study: Study) -> None:
    runs = records(artefacts.table1(study), level)
    signs = frames.by_sign(runs)
    assert {record.job.name for record in signs} == {
        f"{name}_signs" for name in ("l2net_aug", "cs_l2net_aug", "hardnet_aug")
    }
    first = next(record for record in signs if record.job.name == "l2net_aug_signs")
    assert first.fpr95("mini-c") == 30
    assert first.content["probes"] == {}
    assert frames.by_sign(signs) == []


def numbers(level: float) -> dict[str, float]:
    """Return HPatches' numbers, 20 lower per level of noise, of two sequences that show two things."""
    values = {}
    for index, noise in enumerate(LEVELS):
        value = level - 20 * index
        values |= {f"verification.{noise}.{kind}.ap": value + 10 for kind in ("intra", "inter")}
        values |= {f"matching.{noise}.{kind}": value - 10 for kind in ("viewpoint", "illumination")}
        values |= {f"matching.{noise}.{name}": value - 10 for name in ("v_one", "i_two")}
        values |= {f"retrieval.{noise}.{name}": value for name in ("v_one", "i_two")}
        values[f"retrieval.{noise}.all"] = value
    means = {"verification": 10.0, "matching": -10.0, "retrieval": 0.0}
    return values | {task: level - 20 + gap for task, gap in means.items()} | {"retrieval.pools": level}


FIGURE4 = {
    **{"sift": 50.0, "orb": 40.0, "hardnet_aug": 60.0, "real_margin_1": 61.0, "doap_aug": 62.0},
    **{"dsm_aug": 66.0, "l2net_aug": 55.0, "doap_binary_aug": 52.0, "dsm_binary_aug": 54.0},
}


def figure4_records() -> list[Record]:
    test_set = open_study().source.homographies.test_set("full")
    runs = []
    for name, level in FIGURE4.items():
        recipe = RECIPES.get(name) or artefacts.VARIANTS.get(name)
        for seed in range(3) if recipe else (None,):
            measured = {"hpatches": numbers(level + (seed or 0) / 10)}
            if name in artefacts.FIGURE4_SIGNS:
                measured["hpatches_of_signs"] = numbers(level - 12 + seed / 10)
            label = recipe.label if recipe else name.upper()
            trained = {"recipe": recipe, "train_set": "a"} if recipe else {}
            job = Job(name, label, seed=seed, measures=(("hpatches", test_set),), **trained)
            content = {"metrics": {test_set: measured}, "probes": {}}
            runs.append(Record(job, Path("record.json"), content))
    return runs


def figure4_runs() -> dict[str, pd.DataFrame]:
    runs = figure4_records()
    table = frames.hpatches_numbers([*runs, *frames.by_sign(runs)])
    signs = [f"{name}_signs" for name in artefacts.FIGURE4_SIGNS]
    keys = {"real": ["sift", *artefacts.FIGURE4_REAL]}
    keys["binary"] = ["orb", *signs, *artefacts.FIGURE4_BINARY]
    return {kind: table.loc[names] for kind, names in keys.items()}


def test_figure_4_has_real_rows_and_binary_ones_with_signs() -> None:
    runs = figure4_runs()
    real, binary = runs["real"], runs["binary"]
    assert list(real.index.unique("key")) == ["sift", *artefacts.FIGURE4_REAL]
    assert list(binary.index.unique("key")) == [
        *("orb", "l2net_aug_signs", "hardnet_aug_signs", "doap_binary_aug", "dsm_binary_aug")
    ]
    assert real.xs("dsm_aug", level="key")["matching"].tolist() == pytest.approx([36, 36.1, 36.2])
    assert binary.xs("hardnet_aug_signs", level="key")["matching"].tolist() == pytest.approx(
        [18, 18.1, 18.2]
    )


def test_weights_at_a_small_variance_are_alike_between_two_nodes_and_not_over_a_bin() -> None:
    _, weights = narrow_weights.compute(
        deviations=(0.01, 1.0), positions=(0.2, 0.6), pairs=100, batches=2
    )
    assert weights["mean_floor"][0].tolist() == pytest.approx([0.8, 0.4], abs=0.01)
    narrow, wide = 100 * weights["spread_floor"]
    assert narrow.max() < 10 < wide.max()
