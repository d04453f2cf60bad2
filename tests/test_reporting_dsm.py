"""DSM's tables and Figure 2 of records made up, and the verdicts on its claims."""

from __future__ import annotations

import numpy as np
import pytest
from paper_records import records
from reporting_records import claims_on, outcomes, verdicts

from lib.statistics.intervals import Measured
from lib.study.artefacts import dsm as experiments
from lib.study.claims import Claim, read_claims, verdict
from lib.study.claims.verdicts import NOT_JUDGED
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import frames
from lib.study.report.hpatches import TASKS
from lib.study.report.papers import dsm, dsm_margins
from lib.study.report.phototour import COLUMN_NAMES, printed_by_column
from lib.theory import narrow_weights

SEEDS = (0, 1, 2)


def level(job) -> float:
    """FPR95 of a run: 20, DSM's 5, ORB's 40, and the seed's tenth."""
    base = {"dsm_aug": 5.0, "dsm_binary_aug": 5.0, "orb": 40.0}.get(job.name, 20.0)
    return base + (job.seed or 0) / 10


def number(job) -> float:
    """In HPatches' tasks: DSM's 60, others' 50, and the seed's tenth."""
    return (60.0 if job.name in experiments.DSM.values() else 50.0) + (job.seed or 0) / 10


def test_table_1_has_every_printed_row_and_ours_on_the_columns_that_they_have(study: Study) -> None:
    table = dsm.table1(records(experiments.table1(study), level), study)
    assert list(table.index[:20]) == list(printed("dsm", "table1")["label"].unique())
    assert list(table.index[20:]) == ["DSM+: hinge, margin 1", "HardNet+ by sign"]
    ours = table.xs("ours", axis=1, level=1).drop(columns="ours", errors="ignore")
    computed = ours["Lib>Ntr"].notna()
    assert set(table.index[~computed]) == {
        *("DeepDesc", "TL+GOR*", "PCW", "DOAP-ST+"),
        *("BinBoost", "LDAHash", "DeepBit", "DOAP-ST+ binary"),
    }
    assert ours.loc["DSM+", "Mean"] == pytest.approx(5.1 + 1 / 3)
    assert ours.loc["HardNet+ by sign", "Mean"] == pytest.approx(30.1 + 1 / 3)
    assert np.isnan(ours.loc["L2-Net+", "Mean"])
    assert ours.loc["L2-Net+ by sign", ["Lib>Ntr", "Lib>Yos"]].tolist() == [31, 30]
    assert table.loc["DSM+", ("Mean", "paper")] == 1.18


def test_table_1_is_drawn_over_the_columns_that_all_rows_have(study: Study) -> None:
    found = records(experiments.table1(study), level)
    common, values = dsm.table1_common(found, study)
    assert values["dsm_aug"].cells == ("Lib>Ntr", "Lib>Yos")
    assert len(common) == 12
    assert common.loc["dsm_binary_aug", "paper"].item() == pytest.approx((0.93 + 3.69) / 2)
    assert common[~common["trained"]].index.get_level_values("key").tolist() == ["orb", "sift"]
    figure = dsm.table1_figure(found, study)
    assert "12" in figure.get_suptitle()


def test_a_claim_on_table_1_is_about_all_columns_that_its_methods_have(study: Study) -> None:
    values = dsm.claim_values(records(experiments.table1(study), level), study)
    claims = {claim.id: claim for claim in read_claims("dsm", "Table 1")}
    seeds = values(claims["dsm-t1-hardnet-mean"])
    assert seeds["hardnet_aug"].cells == COLUMN_NAMES
    assert seeds["hardnet_aug"].values.shape == (3, 6)
    beside = values(claims["dsm-t1-binary-others"])
    assert set(beside) == {"dsm_binary_aug", "orb", "l2net_aug_signs", "cs_l2net_aug_signs"}
    assert beside["l2net_aug_signs"].cells == ("Lib>Ntr", "Lib>Yos")
    result = verdicts("dsm", "Table 1", values)["t1-hardnet-mean"]
    assert (result.outcome, result.observed) == ("held", pytest.approx(-15))
    assert result.printed == pytest.approx(7.09 / 6 - 9.11 / 6)
    assert outcomes("dsm", "Sec. 5.1", values) == {"s51-loss-alone": "held", "s51-major-factor": "held"}


def test_every_claim_with_a_rule_has_a_verdict_where_all_has_three_seeds(seeded: Study) -> None:
    of = {
        "Table 1": experiments.table1(seeded),
        "Sec. 5.1": experiments.table1(seeded),
        "Table 3": experiments.table3(seeded),
        "Table 4": experiments.table4(seeded),
    }
    for artefact, jobs in of.items():
        values = dsm.claim_values(records(jobs, level, number), seeded)
        found = outcomes("dsm", artefact, values)
        assert found
        assert NOT_JUDGED not in found.values(), artefact
    values = dsm_margins.figure2_values(records(experiments.figure2(seeded), level), seeded)
    for artefact in ("Figure 2", "Abstract"):
        assert NOT_JUDGED not in outcomes("dsm", artefact, values).values()


def test_one_seed_of_a_rival_leaves_a_claim_open(study: Study) -> None:
    values = dsm.claim_values(records(experiments.table1(study), level), study)
    assert outcomes("dsm", "Table 1", values)["t1-real-others"] == "open"


def test_loss_and_setting_add_up_to_the_whole_change(study: Study) -> None:
    table = dsm.loss_alone(records(experiments.table1(study), level), study)
    setting, loss, both = table["change"]
    assert (setting, loss, both) == pytest.approx((0, -15, -15))


def test_table_3_stands_beside_the_paper_with_rows_of_our_own_last(study: Study) -> None:
    table = dsm.ablation("table3", records(experiments.table3(study), level, number), study)
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


def test_a_claim_on_table_3_is_on_its_own_task_alone(study: Study) -> None:
    values = dsm.claim_values(records(experiments.table3(study), level, number), study)
    results = verdicts("dsm", "Table 3", values)
    matching = results["t3-real-matching"]
    assert (matching.outcome, matching.observed, matching.part) == ("held", pytest.approx(10), "")
    assert matching.printed == pytest.approx(53.25 - 52.84)
    assert results["t3-binary-fpr95"].printed == pytest.approx(2.31 - 2.73)
    assert results["t3-eighth"].outcome == "did not hold"
    assert results["t3-quarter"].outcome == "held"
    assert "could not be read" in results["t3-wang"].why


def test_real_valued_rows_alone_are_a_table_too(study: Study) -> None:
    real = [job for job in experiments.table3(study) if job.name in experiments.TABLE3["real"]]
    found = records(real, level, number)
    table = dsm.ablation("table3", found, study)
    assert table.loc["DSM+ binary", ("FPR95", "ours")] is not None
    assert np.isnan(table.loc["DSM+ binary", ("FPR95", "ours")])
    assert outcomes("dsm", "Table 3", dsm.claim_values(found, study))["t3-binary-fpr95"] == NOT_JUDGED


def test_table_4_with_one_seed_shows_no_spread(study: Study) -> None:
    table = dsm.ablation("table4", records(experiments.table4(study), level, number), study)
    assert list(table.index) == list(printed("dsm", "table4")["label"].unique())
    assert "sd" not in table.columns.get_level_values(1)
    assert table["", "n"].tolist() == [1] * 8


def test_the_tables_as_printed_against_the_claims_on_them() -> None:
    def values(table: str):
        rows = printed("dsm", table)

        def of(claim: Claim):
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

        return of

    def counted(artefact: str, table: str) -> set[str]:
        found = {
            claim.id.removeprefix("dsm-"): verdict(
                claim, values(table)(claim), SEEDS, "paper", claim.own_data
            )
            for claim in claims_on("dsm", artefact)
            if claim.printed
        }
        # What is printed of them is what they say themselves.
        assert [v.printed for v in found.values()] == pytest.approx([v.observed for v in found.values()])
        return {key for key, result in found.items() if result.outcome != "reproduced"}

    assert counted("Table 1", "table1") == {"t1-doap-each"}
    assert counted("Table 3", "table3") == set()
    assert counted("Table 4", "table4") == {"t4-real-negative-map"}


def test_what_is_as_good_is_within_half_of_what_the_worst_pdf_loses_as_printed() -> None:
    rows = printed("dsm", "table4")
    fpr95 = rows[rows["statistic"] == "fpr95_mean"].set_index("key")["value"]
    tasks = rows[rows["statistic"] == "map"].groupby("key")["value"].mean()
    margins = {claim.id: claim.margin for claim in read_claims("dsm", "Table 4")}
    for kind, key in experiments.DSM.items():
        worst = f"{kind}_pdf_negative"
        loss = 50 * (fpr95[worst] / fpr95[key] - 1)
        assert margins[f"dsm-t4-{kind}-positive-fpr95"] == pytest.approx(loss, abs=0.5)
        assert margins[f"dsm-t4-{kind}-gaussian-small-fpr95"] == pytest.approx(loss, abs=0.5)
        lost = (tasks[key] - tasks[worst]) / 2
        assert margins[f"dsm-t4-{kind}-positive-map"] == pytest.approx(lost, abs=0.005)
        assert margins[f"dsm-t4-{kind}-gaussian-small-map"] == pytest.approx(lost, abs=0.005)


def by_margin(job) -> float:
    """FPR95 lowest at margins of 0.5 and of 16 bits; DSM's is 5."""
    *_, last = job.name.split("_")
    if job.name in experiments.DSM.values():
        return 5.0 + (job.seed or 0) / 10
    best = {"real": 0.5, "binary": 16.0}[job.name.partition("_")[0]]
    return 10 + abs(float(last) - best) + (job.seed or 0) / 10


def test_figure_2_is_a_row_a_margin_and_dsm_below(study: Study) -> None:
    found = records(experiments.figure2(study), by_margin)
    table = dsm_margins.figure2_table(found, study)
    assert table["margin"].tolist()[:9] == [
        *("0.125", "0.25", "0.375", "0.5", "0.75", "1", "1.5", "2", "DSM")
    ]
    assert table["margin"].tolist()[9:] == [*("8", "16", "32", "48", "64", "128", "256", "DSM")]
    assert table["FPR95 (%)"][3] == pytest.approx(10.5)
    assert table["without loss (%)"].tolist()[:9] == pytest.approx([20] * 8 + [np.nan], nan_ok=True)


def test_claims_on_figure_2_get_margins_shares_and_best_margins(seeded: Study) -> None:
    values = dsm_margins.figure2_values(records(experiments.figure2(seeded), by_margin), seeded)
    claims = {claim.id: claim for claim in read_claims("dsm")}
    best = values(claims["dsm-f2-problem-dependent"])
    assert best["best_margin_real"].tolist() == [[0.5]] * 3
    assert best["best_margin_binary"].tolist() == [[16 * 2 / 256]] * 3
    assert values(claims["dsm-abs-part-of-batch"])["real_margin_1"] == pytest.approx(np.full((3, 1), 20))
    stops = values(claims["dsm-f2-stops"])
    assert stops["zero_share_real"] == pytest.approx(np.full((3, 1), 30))
    assert stops["zero_share_binary"].shape == (3, 1)
    found = outcomes("dsm", "Figure 2", values)
    assert found["f2-real"] == found["f2-binary"] == found["f2-problem-dependent"] == "held"
    assert found["f2-best-0375"] == found["f2-best-32"] == "did not hold"
    assert found["f2-stops"] == "held"


def test_weights_at_a_small_variance_are_judged_by_the_place_that_spreads_most() -> None:
    _, computed = narrow_weights.compute(
        deviations=(0.01, 1.0), positions=(0.2, 0.6), pairs=100, batches=2
    )

    class Computed(Found):
        arrays = computed

    [job] = experiments.small_variance(None)
    record = Computed(job, None, {}, False)
    table = dsm.small_variance(record)
    assert table["CDF"].tolist() == ["floor"] * 2 + ["interpolated"] * 2 + ["gaussian"] * 2
    assert table.loc[0, ["from", "to"]].tolist() == pytest.approx([0.4, 0.8], abs=0.01)
    values = dsm.small_variance_values(record)
    assert outcomes("dsm", "Sec. 4.2", lambda claim: values) == {
        "s42-small-variance": "did not hold",
        "s42-small-variance-limit": "held",
    }


def test_rows_by_sign_hold_what_was_measured_of_the_signs_alone(study: Study) -> None:
    found = records(experiments.table1(study), level)
    signs = frames.by_sign(found)
    assert {record.job.name for record in signs} == {f"{name}_signs" for name in experiments.BY_SIGN}
    first = next(record for record in signs if record.job.name == "l2net_aug_signs")
    assert first.fpr95("mini-c") == 30
    assert first.content["probes"] == {}
    assert frames.by_sign(signs) == []


def test_every_part_of_the_paper_that_makes_claims_has_some() -> None:
    claims = read_claims("dsm")
    assert {claim.artefact for claim in claims} == {
        *("Abstract", "Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5"),
        *("Table 1", "Table 2", "Table 3", "Table 3, binary", "Table 4"),
        *("Sec. 4.2", "Sec. 5.1", "Sec. 6", "Softness"),
    }
    later = [claim for claim in claims if claim.artefact in ("Figure 5", "Table 2")]
    assert all(claim.statistic != "none" for claim in later)
