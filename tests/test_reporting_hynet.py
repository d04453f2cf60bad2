"""HyNet's tables and figures of records made up, and the verdicts on its claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from paper_records import followed
from reporting_records import outcomes
from test_reporting_hynet_analysis import computed

from lib.statistics.intervals import Measured
from lib.study.artefacts import hynet as experiments
from lib.study.artefacts import rows
from lib.study.claims import Claim, read_claims, verdict
from lib.study.claims.verdicts import NOT_JUDGED
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import hpatches, phototour
from lib.study.report.hpatches import TASKS
from lib.study.report.ladder import WHOLE, rungs_table
from lib.study.report.papers import hynet
from lib.study.report.phototour import COLUMN_NAMES, printed_by_column
from lib.study.report.phototour_figures import verification_figure

SEEDS = (0, 1, 2)
LEVELS = {"sift": 40.0, "hynet_aug": 5.0, "hynet_sosr": 4.0, "sosnet_aug": 10.0}


def level(job) -> float:
    """FPR95 of a run: 20 but for `LEVELS`, and the seed's tenth."""
    return LEVELS.get(job.name, 20.0) + (job.seed or 0) / 10


def number(job) -> float:
    """In HPatches' tasks: 100 less FPR95, which goes down with it."""
    return 100.0 - level(job) - 0.2 * (job.seed or 0)


def of_figure5(study: Study) -> list[Found]:
    """Its runs after the record of the magnitudes, which is as computed."""
    _, *jobs = experiments.figure5(study)
    return [computed("similarity_gradients"), *followed(jobs, level, number)]


def staged(study: Study, lowest: dict[str, int]) -> list[Found]:
    """Runs of `epochs`, lowest at an epoch by test set, a point higher at each before and after."""
    found = []
    for job in experiments.epochs(study):
        metrics = {
            name: {
                "fpr95_by_stage": {
                    str(epoch / 5): 20.0 + job.seed + abs(epoch - lowest[name]) for epoch in range(1, 6)
                }
            }
            for name in job.sets_of("fpr95")
        }
        [base] = followed([job], level)
        found.append(replace(base, content={**base.content, "metrics": metrics}))
    return found


def test_table_1_has_every_printed_row_and_ours_on_the_columns_that_they_have(study: Study) -> None:
    found = followed(experiments.table1(study), level)
    table = phototour.verification("hynet", "table1", found, study)
    assert list(table.index) == list(printed("hynet", "table1")["label"].unique())
    ours = table.xs("ours", axis=1, level=1).drop(columns="ours", errors="ignore")
    assert ours.loc["HyNet+", "Mean"] == pytest.approx(5.1 + 1 / 3)
    assert np.isnan(ours.loc["TFeat-M+", "Mean"])
    assert table.loc["HyNet+", ("Mean", "paper")] == 0.84
    five = phototour.verification("hynet", "table5", followed(experiments.table5(study), level), study)
    assert list(five.index) == list(printed("hynet", "table5")["label"].unique())
    assert "rank correlation" in verification_figure("hynet", "table1", found, study).get_suptitle()


def test_every_claim_with_a_rule_has_a_verdict_where_all_has_three_seeds(seeded: Study) -> None:
    of = {
        "Table 1": experiments.table1(seeded),
        "Table 3": experiments.table3(seeded),
        "Table 5": experiments.table5(seeded),
        "Figure 4": experiments.figure4(seeded),
        "Figure 6": experiments.figure4(seeded),
        "Ladder": experiments.ladder(seeded),
    }
    better = {"t3-hard-more", "t3-sos-more"}
    for artefact, jobs in of.items():
        found = outcomes("hynet", artefact, hynet.claim_values(followed(jobs, level, number), seeded))
        assert found
        assert NOT_JUDGED not in found.values(), artefact
        better -= {key for key, outcome in found.items() if outcome == "held"}
    assert not better
    of_figure = outcomes("hynet", "Figure 5", hynet.figure5_values(of_figure5(seeded), seeded))
    # By Z, g_H lies above both g_s and g_d where these cross.
    assert of_figure.pop("f5b-between") == "did not hold"
    assert set(of_figure.values()) == {"held"}
    sets = seeded.place.source.sets
    values = hynet.epochs_values(staged(seeded, {sets[1]: 3, sets[2]: 4}))
    assert NOT_JUDGED not in outcomes("hynet", "Epochs", values).values()


def test_table_3_shows_each_similarity_at_its_best_margin_alone(study: Study) -> None:
    table = hynet.table3(followed(experiments.table3(study), level, number), study)
    assert list(table.index[:9]) == list(printed("hynet", "table3")["label"].unique())
    alone = ["HyNet+: BN, all else kept", "HyNet+: IN, all else kept"]
    assert list(table.index[9:]) == [*alone, "Hard+BN", "SOSNet+BN"]
    matching = "matching, seeds: 1"
    assert table.loc["s_H, best margin", (matching, "ours")] == pytest.approx(95)
    assert table.loc["HyNet+", (matching, "ours")] == pytest.approx(95)
    assert (matching, "sd") not in table
    assert table.loc["d, best margin", ("FPR95", "ours")] == pytest.approx(20.6)
    assert table.loc["d, best margin", (matching, "paper")] == 52.10
    assert ("FPR95", "paper") not in table
    assert set(table["", "n"]) == {3}


def test_table_3_has_matching_of_as_many_seeds_as_are_tested_on_hpatches(seeded: Study) -> None:
    found = followed(experiments.table3(seeded), level, number)
    table = hynet.table3(found, seeded)
    assert table.loc["HyNet+", ("matching, seeds: 3", "ours")] == pytest.approx(94.7)
    assert table.loc["HyNet+", ("matching, seeds: 3", "sd")] > 0


def test_the_margins_are_told_with_what_they_were_chosen_by(study: Study) -> None:
    table = hynet.margins()
    taken = table[table["taken"] == "yes"]
    assert dict(zip(taken["similarity"], taken["margin"], strict=True)) == {"s_H": 1.2, "d": 1.4, "s": 1}
    assert (taken["FPR95 (%)"] == table["FPR95 (%)"].min()).all()


def test_a_margin_binds_where_some_stretch_of_some_run_has_triplets_beyond_it(study: Study) -> None:
    found = followed(experiments.table3(study), level, number)
    for run in found:
        one_late = run.job.name == "hynet_s_1" and run.job.seed == 2
        run.content["curve"]["zero_share"] = [0.0] * 9 + [0.25 if one_late else 0.0]
    table = hynet.zero_shares(found)
    assert table.index.tolist() == list(dict.fromkeys(run.job.label for run in found))
    binding = table[table["largest share"] > 0]
    assert binding.to_dict("index") == {"HyNet+: s, margin 1": {"margin": 1.0, "largest share": 25.0}}
    assert table.loc["HyNet+: d, margin 1.4", "margin"] == 1.4


def test_frn_s_gain_is_that_of_each_loss_paired_by_seed(study: Study, seeded: Study) -> None:
    def by_norm(job) -> float:
        gains = {"hynet_bn": 3.0, "hard_bn": 2.0, "sos_bn": 0.5}
        return 10.0 + gains.get(job.name, 0.0) + (job.seed or 0)

    for of, intervals in ((study, 0), (seeded, 3)):
        runs = followed(experiments.table3(of), by_norm, lambda job: 100.0 - by_norm(job))
        table = hynet.frn(runs, of)
        assert table["FPR95 (%)", "change"].tolist() == pytest.approx([-3, -2, -0.5])
        assert table["matching mAP (%)", "change"].tolist() == pytest.approx([3, 2, 0.5])
        spread = (table["matching mAP (%)", "to"] - table["matching mAP (%)", "from"]).dropna()
        assert len(spread) == intervals, "one seed gives none"
        assert not (spread > 1e-9).any(), "paired by seed"


def test_figure_4_s_gains_are_those_of_the_two_steps_in_each_task(study: Study) -> None:
    table = hynet.figure4_gains(followed(experiments.figure4(study), level, number), study)
    assert table["retrieval", "change"].tolist() == pytest.approx([10, 5])
    assert table.index.tolist() == ["SOSNet+ of HardNet+", "HyNet+ of SOSNet+"]
    runs = hpatches.numbers(followed(experiments.figure4(study), level, number), rows.tested_on(study))
    assert "hynet_sosr" in runs.index.get_level_values("key")


def test_the_grid_varies_alpha_and_the_margin_through_the_paper_s_best(study: Study) -> None:
    table = hynet.grid(of_figure5(study), study)
    assert len(table) == 8
    assert (table["beyond the margin (%)"] == 30).all(), "of the stretch that has most"
    best = table.loc[table["FPR95 (%)"].idxmin()]
    assert (best["α"], best["margin"], best["FPR95 (%)"]) == ("2", 1.2, 5.5)
    of_alpha, of_margin = hynet.grid_figure(table).axes[:2]
    assert of_alpha.lines[0].get_xdata().tolist() == ["0", "1", "2", "3", "∞"]
    assert of_margin.lines[0].get_xdata().tolist() == [0.1, 0.4, 0.8, 1.2]
    for axes, place in ((of_alpha, 2), (of_margin, 3)):
        assert axes.lines[0].get_ydata()[place] == 5.5


def test_figure_5_s_curves_are_means_over_the_test_sets(study: Study) -> None:
    found = of_figure5(study)
    (axes,) = hynet.other_losses_figure(found, "note").axes
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([9.6, 8.6, 7.6, 6.6, 5.6])
    assert len(axes.lines) == 5
    table = hynet.other_losses(found)
    changed = table["change from HyNet+"]
    assert changed["change"].iloc[1:].to_numpy() == pytest.approx([15] * 4)
    assert np.isnan(changed["change"].iloc[0])
    claims = {claim.id: claim for claim in read_claims("hynet", "Figure 5")}
    curves = hynet.figure5_values(found, study)(claims["hynet-f5-curves"])
    assert curves["hynet_mixed"].values.shape == (3, 5)


def test_an_epoch_is_chosen_on_both_tests_or_on_the_other(study: Study) -> None:
    _, first, second = study.place.source.sets
    table = hynet.epochs_table(staged(study, {first: 2, second: 5}))
    names = ["HardNet+", "SOSNet+", "HyNet+"]
    assert list(table.index) == [*names, *(f"{name}, constant rate" for name in names)]
    row = table.loc["HyNet+, constant rate"]
    # The last is best on the second and 3 off on the first; every epoch between has the same mean.
    assert row["FPR95", "last"] == pytest.approx(21 + 1.5)
    assert row["chosen on the tests", "change"] == pytest.approx(0)
    # The first test at the second's epoch, 5, and the second at the first's, 2: both 3 off.
    assert row["chosen on the other test", "change"] == pytest.approx(1.5)
    agreed = hynet.epochs_table(staged(study, {first: 3, second: 3})).loc["HyNet+"]
    assert agreed["chosen on the tests", "change"] == pytest.approx(-2)
    assert agreed["chosen on the other test", "change"] == pytest.approx(-2)


def test_claims_on_epochs_get_each_choice_by_seed(study: Study) -> None:
    sets = study.place.source.sets
    found = staged(study, {sets[1]: 3, sets[2]: 3})
    values = hynet.epochs_values(found)
    assert values["hynet_aug_constant_last"][:, 0].tolist() == [22, 23, 24]
    assert values["hynet_aug_constant_on_the_tests"][:, 0].tolist() == [20, 21, 22]
    results = outcomes("hynet", "Epochs", values)
    assert results["epochs-hynet-constant"] == "held"
    assert results["epochs-optimism"] == "did not hold"
    [axes] = hynet.by_epoch_figure(hynet.by_stage(found), "note").axes
    assert [line.get_label() for line in axes.lines] == list(hynet.epochs_table(found).index)


def test_the_ladder_is_read_as_adasample_s_is(seeded: Study) -> None:
    found = followed(experiments.ladder(seeded), level)
    table = rungs_table(found)
    assert list(table.index[:2]) == ["SOSNet+", "… Adam"]
    assert table.index[-2:].tolist() == ["… summed", WHOLE]


def as_printed(table: str):
    rows = printed("hynet", table)

    def of(claim: Claim) -> dict[str, Measured]:
        if table in ("table1", "table5"):
            by_column = printed_by_column(rows).droplevel("label")[list(COLUMN_NAMES)]
            names = COLUMN_NAMES
            return {k: Measured(row.to_numpy(), cells=names) for k, row in by_column.iterrows()}
        chosen = rows[rows["statistic"] == "map"]
        return {
            row.key: Measured(np.array([row.value]), cells=(row.task,)) for row in chosen.itertuples()
        }

    return of


@pytest.mark.parametrize(
    ("artefact", "table", "contradicted"),
    [
        ("Table 1", "table1", {"t1-sosnet-each"}),
        ("Table 3", "table3", {"t3-similarity-order"}),
        ("Table 5", "table5", {"t5-each"}),
    ],
)
def test_the_tables_as_printed_against_the_claims_on_them(
    artefact: str, table: str, contradicted: set[str]
) -> None:
    found = {
        claim.id.removeprefix("hynet-"): verdict(
            claim, as_printed(table)(claim), SEEDS, "paper", claim.own_data
        )
        for claim in read_claims("hynet", artefact)
        if claim.printed
    }
    # What is printed of them is what they say themselves.
    assert [v.printed for v in found.values()] == pytest.approx([v.observed for v in found.values()])
    assert {key for key, result in found.items() if result.outcome != "reproduced"} == contradicted


def test_claims_name_keys_that_the_study_trains() -> None:
    known = {*experiments.VARIANTS, *experiments.LADDER, *experiments.CHOSEN, "hynet_h", "hynet_d"}
    known |= {"hynet_s", "sift", "tfeat_m_aug", "l2net_aug", "doap_aug"}
    known |= {
        f"{name}_{choice.replace(' ', '_')}"
        for name in (of + end for of in experiments.CHOSEN for end in ("", "_constant"))
        for choice in hynet.CHOICES
    }
    for claim in read_claims("hynet"):
        if claim.metric in ("fpr95", "fpr95_by_epoch", *TASKS):
            assert {*claim.a, *claim.b, *claim.given} <= known, claim.id
    of_grid = [claim for claim in read_claims("hynet", "Figure 5") if "grid" in claim.id]
    assert all({*claim.a, *claim.b} == set(experiments.GRID) for claim in of_grid)
    assert TASKS == ("verification", "matching", "retrieval")
