"""HyNet's notebooks on made-up records, and the verdicts on its claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from paper_records import followed
from reporting_records import outcomes, verdict

from lib.statistics.intervals import Measured
from lib.study.artefacts import hynet as artefacts
from lib.study.claims import HELD, NOT_HELD, NOT_JUDGED, Claim, read_claims
from lib.study.claims.measured import values_of
from lib.study.jobs import Job
from lib.study.open import Record, Study
from lib.study.printed import printed
from lib.study.report import frames, training
from lib.study.report.changes import over_triplets
from lib.study.report.frames import COLUMN_NAMES, TASKS, printed_by_column

SEEDS = (0, 1, 2)
SETS = ("b", "c")
LEVELS = {"sift": 40.0, "hynet_aug": 5.0, "hynet_sosr": 4.0, "sosnet_aug": 10.0}


def level(job: Job) -> float:
    """A run's FPR95: 20 but for `LEVELS`, plus a tenth of the seed."""
    return LEVELS.get(job.name, 20.0) + (job.seed or 0) / 10


def number(job: Job) -> float:
    """A run's value in HPatches' tasks: 100 less FPR95 and a fifth of the seed."""
    return 100.0 - level(job) - 0.2 * (job.seed or 0)


def staged(study: Study, lowest: dict[str, int]) -> list[Record]:
    """Runs of `epochs`: FPR95 is lowest at an epoch by test set, and a point higher per epoch away."""
    runs = []
    for job in artefacts.epochs(study):
        metrics = {
            name: {
                "fpr95_by_stage": {
                    str(epoch / 5): 20.0 + job.seed + abs(epoch - lowest[name]) for epoch in range(1, 6)
                }
            }
            for name in job.sets_of("fpr95")
        }
        [base] = followed([job], level)
        runs.append(replace(base, content={**base.content, "metrics": metrics}))
    return runs


def test_every_claim_with_a_rule_has_a_verdict_where_all_has_three_seeds(seeded: Study) -> None:
    by_artefact = {
        "Table 1": artefacts.table1(seeded),
        "Table 3": artefacts.table3(seeded),
        "Table 5": artefacts.table5(seeded),
        "Figure 4": artefacts.figure4(seeded),
        "Figure 6": artefacts.figure4(seeded),
        "Ladder": artefacts.ladder(seeded),
    }
    sets, pending = seeded.source.sets, {"t3-hard-more", "t3-sos-more"}
    for artefact, jobs in by_artefact.items():
        runs = followed(jobs, level, number)
        runs += training.at_best_margin(runs)
        judged = outcomes("hynet", artefact, lambda claim, records=runs: values_of(claim, records, sets))
        assert judged
        assert NOT_JUDGED not in judged.values(), artefact
        pending -= {key for key, outcome in judged.items() if outcome == HELD}
    assert not pending


def test_a_row_of_table_3_is_a_similarity_at_its_best_margin(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "searched_fpr95", artefacts.searched_fpr95)
    runs = training.at_best_margin(followed(artefacts.table3(study), level, number))
    labels = {run.job.name: run.job.label for run in runs}
    expected = {"h": "HyNet+", "d": "HyNet+: d, margin 1.4", "s": "HyNet+: s, margin 1"}
    assert labels == {f"hynet_{similarity}": label for similarity, label in expected.items()}
    table = training.margins()
    taken = table[table["taken"] == "yes"]
    assert dict(zip(taken["similarity"], taken["margin"], strict=True)) == {"s_H": 1.2, "d": 1.4, "s": 1}
    assert (taken["FPR95 (%)"] == table["FPR95 (%)"].min()).all()


def test_a_margin_binds_if_any_stretch_of_any_run_has_triplets_beyond_it(study: Study) -> None:
    runs = followed(artefacts.table3(study), level, number)
    for trained in runs:
        one_late = trained.job.name == "hynet_s_1" and trained.job.seed == 2
        trained.content["curve"]["zero_share"] = [0.0] * 9 + [0.25 if one_late else 0.0]
    table = training.zero_shares(runs)
    assert table.index.tolist() == list(dict.fromkeys(trained.job.label for trained in runs))
    binding = table[table["largest share"] > 0]
    assert binding.to_dict("index") == {"HyNet+: s, margin 1": {"margin": 1.0, "largest share": 25.0}}
    assert table.loc["HyNet+: d, margin 1.4", "margin"] == 1.4


def test_an_epoch_is_chosen_on_both_tests_or_on_the_other(study: Study) -> None:
    _, first, second = study.source.sets

    def chosen(lowest: dict[str, int]) -> dict[str, list[float]]:
        epochs = frames.tidy(staged(study, lowest), "fpr95_by_stage")
        epochs = epochs.rename(columns={"value": training.FPR95})
        epochs["epoch"] = epochs.groupby(["key", "seed", "test_set"]).cumcount() + 1
        assert set(epochs["epoch"]) == set(range(1, 6))
        constant = epochs[epochs["key"] == "hynet_aug_constant"]
        return {
            name: values[:, 0].tolist() for name, values in training.at_chosen_epochs(constant).items()
        }

    # The last is best on the second test and 3 off on the first; every epoch between has the same mean.
    # The first test at the second's epoch, 5, and the second at the first's, 2, are both 3 off.
    apart = chosen({first: 2, second: 5})
    assert apart == {
        training.LAST: [21.5, 22.5, 23.5],
        training.ON_TESTS: [21.5, 22.5, 23.5],
        training.ON_OTHER: [23, 24, 25],
    }
    agreed = chosen({first: 3, second: 3})
    assert agreed[training.LAST] == [22, 23, 24]
    assert agreed[training.ON_TESTS] == agreed[training.ON_OTHER] == [20, 21, 22]


@pytest.mark.parametrize(("far", "outcome"), [(0.0, HELD), (0.25, NOT_HELD)])
def test_triplets_beyond_a_right_angle_are_counted_with_resamples(far: float, outcome: str) -> None:
    angles = np.full((3, 2, 256), 1.0)
    angles[:, 1, : int(256 * far)] = 1.6
    options = {"cells": ("positives", "negatives")}
    shares = {
        key: over_triplets(theta, lambda x: 100.0 * (x > np.pi / 2).mean(axis=-1), **options)
        for key, theta in (("sosnet_aug", angles), ("hardnet_aug", np.full((3, 2, 256), 1.0)))
    }
    sosnet = shares["sosnet_aug"]
    assert sosnet.values == pytest.approx(np.array([[0, 100 * far]] * 3))
    assert (sosnet.resampled[0, :, 1].std() > 0.5) == (far > 0)
    [claim] = [x for x in read_claims("hynet", "Figure 2") if x.id == "hynet-f2-range-sosnet"]
    values = {f"outside_{key}": share for key, share in shares.items()}
    assert verdict(claim, values, SEEDS, "evening", "mini").outcome == outcome


def as_printed(claim: Claim, table: str) -> dict[str, Measured]:
    rows = printed("hynet", table)
    if table in ("table1", "table5"):
        by_column = printed_by_column(rows).droplevel("label")[list(COLUMN_NAMES)]
        return {k: Measured(row.to_numpy(), cells=COLUMN_NAMES) for k, row in by_column.iterrows()}
    chosen = rows[rows["statistic"] == "map"]
    return {row.key: Measured(np.array([row.value]), cells=(row.task,)) for row in chosen.itertuples()}


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
    judged = {
        claim.id.removeprefix("hynet-"): verdict(
            claim, as_printed(claim, table), SEEDS, "paper", claim.own_data
        )
        for claim in read_claims("hynet", artefact)
        if claim.printed
    }
    # The printed and the observed statistics agree.
    assert [v.printed for v in judged.values()] == pytest.approx([v.observed for v in judged.values()])
    assert {key for key, result in judged.items() if result.outcome != "reproduced"} == contradicted


def test_claims_name_keys_that_the_study_trains() -> None:
    known = {*artefacts.VARIANTS, *artefacts.LADDER, *artefacts.CHOSEN, "hynet_h", "hynet_d"}
    known |= {"hynet_s", "sift", "tfeat_m_aug", "l2net_aug", "doap_aug"}
    known |= {
        f"{name}{schedule}_{choice.replace(' ', '_')}"
        for name in artefacts.CHOSEN
        for schedule in ("", "_constant")
        for choice in (training.LAST, training.ON_TESTS, training.ON_OTHER)
    }
    for claim in read_claims("hynet"):
        if claim.metric in ("fpr95", "fpr95_by_epoch", *TASKS):
            assert {*claim.a, *claim.b, *claim.given} <= known, claim.id
    grid_claims = [claim for claim in read_claims("hynet", "Figure 5") if "grid" in claim.id]
    assert grid_claims
    assert all({*claim.a, *claim.b} == set(artefacts.GRID) for claim in grid_claims)
