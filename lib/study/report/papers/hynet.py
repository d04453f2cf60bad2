"""HyNet (Tian et al.): its Tables 1, 3 and 5, Figures 4, 5 and 6, and what choosing the epoch is worth.

FPR95 is in percent, HPatches' numbers likewise. What HyNet's ladder shows is in
`lib.study.report.ladder`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured
from lib.study.artefacts.hynet import GRID, MARGINS, SHOWN, best_margin, searched_fpr95
from lib.study.artefacts.rows import tested_on
from lib.study.claims import Claim
from lib.study.claims.measured import OfClaim, fpr95_by_column, hpatches_by_task, of_claims
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import changes, frames, hpatches, phototour, plots
from lib.study.report.papers.hynet_gradients import hybrid_values
from lib.study.report.style import DOUBLE_WIDTH, panels

FPR95, MATCHING = "FPR95 (%)", "matching mAP (%)"
# How an epoch is chosen: not at all; by the mean of the very test sets, as HyNet's code does; or of each
# test set by the other.
CHOICES = ("last", "on the tests", "on the other test")


def by_similarity(found: Sequence[Found]) -> list[Found]:
    """The runs of each similarity at its best margin, as rows of Table 3: "hynet_h", "hynet_d" and
    "hynet_s"."""
    row = {best_margin(similarity): f"hynet_{similarity}" for similarity in MARGINS}
    return [
        replace(run, job=replace(run.job, name=row[run.job.name]))
        for run in found
        if run.job.name in row
    ]


def claim_values(found: Sequence[Found], study: Study) -> OfClaim:
    """The values of a claim on Tables 1, 3 and 5 and Figures 4 to 6, those of `by_similarity` among
    them, as `lib.study.claims.measured.of_claims`; on HPatches those of the runs tested there."""
    every, sets = [*found, *by_similarity(found)], study.place.source.sets
    of_all, of_tested = (of_claims(of, sets, tested_on(study)) for of in (every, _on_hpatches(every)))
    return lambda claim: (of_tested if claim.on_hpatches else of_all)(claim)


def _on_hpatches(found: Sequence[Found]) -> list[Found]:
    return [run for run in found if run.job.sets_of("hpatches")]


def margins() -> pd.DataFrame:
    """By what Table 3's margins were chosen: a row a similarity and margin, the mean FPR95 on the
    reserve at its best "rate", and whether it is "taken"."""
    rows = []
    for similarity, keys in MARGINS.items():
        for margin, key in keys.items():
            by_rate = searched_fpr95(key)
            rate, taken = min(by_rate, key=by_rate.get), key == best_margin(similarity)
            of = {"similarity": SHOWN[similarity], "margin": margin, "rate": rate}
            rows.append({**of, FPR95: by_rate[rate], "taken": "yes" if taken else ""})
    return pd.DataFrame(rows)


def zero_shares(found: Sequence[Found]) -> pd.DataFrame:
    """Whether margins bind: a row a method, its "margin" and, in percent, the largest share of triplets
    beyond it, those without loss, in any stretch of any seed's training.

    Args:
        found: runs whose loss is a hinge or its square.
    """
    margins = {run.job.label: run.job.recipe.loss.options["margin"] for run in found}
    largest = 100 * frames.steps(found).groupby("label")["zero_share"].max()
    table = pd.DataFrame({"margin": pd.Series(margins), "largest share": largest})
    return table.reindex(list(margins)).rename_axis("method")


def table3(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Table 3 as `lib.study.report.hpatches.paper_beside_ours`, a similarity's row at its best
    margin; the head over matching says of how many seeds ours is, `n` of how many FPR95."""
    rows, ours = printed("hynet", "table3"), by_similarity(found)
    besides = {best_margin(similarity) for similarity in MARGINS} - {"hynet_aug"}
    every = [*(run for run in found if run.job.name not in besides), *ours]
    fpr95 = phototour.by_column(every, study.place.source.sets)["Mean"]
    of_map = rows[rows["statistic"] == "map"]
    # Rows that other tables share have HPatches of more seeds.
    tested = [run for run in every if run.job.seed in study.grid_seeds]
    table = hpatches.paper_beside_ours(of_map, tested, fpr95, ("matching",))
    head = f"matching, seeds: {len(study.grid_seeds)}"
    return table.rename(columns={"matching": head}, level=0).dropna(axis=1, how="all")


# By loss, its runs with FRN and with BN.
FRN: Mapping[str, tuple[str, str]] = {
    "s_H and R_L2": ("hynet_aug", "hynet_bn"),
    "HardNet's": ("hard_frn", "hard_bn"),
    "SOSNet's": ("sos_frn", "sos_bn"),
}
# What Sec. 4.2 counts in Figure 4.
AHEAD = {
    "SOSNet+ of HardNet+": ("sosnet_aug", "hardnet_aug"),
    "HyNet+ of SOSNet+": ("hynet_aug", "sosnet_aug"),
}


def frn(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """What FRN in place of BN changes: a row a loss, under matching mAP and FPR95 the changes in
    points of `lib.study.report.changes`, paired by seed, of the runs of
    `lib.study.artefacts.hynet.table3`; of one seed without an interval."""
    return _changes(_matching_and_fpr95(found, study), FRN).rename_axis("loss")


def figure4_gains(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """How far SOSNet+ is ahead of HardNet+, and HyNet+ of SOSNet+, under each task, as `frn`."""
    runs = hpatches.numbers(found, tested_on(study))
    by_task = {task: hpatches_by_task(runs, [task]) for task in hpatches.TASKS}
    return _changes(by_task, AHEAD).rename_axis("ahead")


def _changes(
    of: Mapping[str, Mapping[str, Measured]], pairs: Mapping[str, tuple[str, str]]
) -> pd.DataFrame:
    tables = {name: changes.changes(each, pairs) for name, each in of.items()}
    return pd.concat(tables, axis=1).replace([-np.inf, np.inf], np.nan)


def _matching_and_fpr95(found: Sequence[Found], study: Study) -> dict[str, dict[str, Measured]]:
    runs = hpatches.numbers(_on_hpatches(found), tested_on(study))
    return {
        MATCHING: hpatches_by_task(runs, ["matching"]),
        FPR95: fpr95_by_column(found, study.place.source.sets),
    }


def _of_grid(found: Sequence[Found]) -> list[Found]:
    return [run for run in _on_hpatches(found) if run.job.name in GRID]


def _of_losses(found: Sequence[Found]) -> list[Found]:
    others = GRID.keys() - {"hynet_aug"}
    return [run for run in found if run.job.recipe and run.job.name not in others]


def grid(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Figure 5(a): a row a cell, its `α` as text, its `margin`, FPR95, matching mAP and, as
    `zero_shares` has it, the largest share of triplets "beyond the margin (%)".

    Args:
        found: of `lib.study.artefacts.hynet.figure5`.
        study: that they are of.
    """
    runs = _of_grid(found)
    of, labels = _matching_and_fpr95(runs, study), {run.job.name: run.job.label for run in runs}
    beyond = zero_shares(runs)["largest share"]
    rows = [
        {"α": f"{alpha:g}".replace("inf", "∞"), "margin": margin}
        | {name: values[key].values.mean() for name, values in of.items()}
        | {"beyond the margin (%)": beyond[labels[key]]}
        for key, (alpha, margin) in sorted(GRID.items(), key=lambda item: item[1])
    ]
    return pd.DataFrame(rows)


def grid_figure(table: pd.DataFrame, note: str = "") -> Figure:
    """FPR95 and matching mAP against α and against the margin, the other one the paper's best; dotted
    lines mark these two.

    Args:
        table: of `grid`.
        note: stands above.
    """
    best = {"α": "2", "margin": 1.2}
    layout = {"note": note, "sharex": "col", "sharey": "row"}
    with panels(0.8 * DOUBLE_WIDTH, 4, 2, 2, **layout) as (figure, rows):
        for column, (x, other) in zip(rows.T, (("α", "margin"), ("margin", "α")), strict=True):
            for axes, name in zip(column, (FPR95, MATCHING), strict=True):
                plots.curves(axes, table[table[other] == best[other]], x, name, other, marker="o")
                axes.axvline(best[x], color="black", lw=0.8, ls=":")
                axes.label_outer()
            column[0].set_title(f"{other} = {best[other]}")
    return figure


def other_losses(found: Sequence[Found]) -> pd.DataFrame:
    """Figure 5(c) at the end of training: by "loss" the learning "rate", the mean FPR95 and, under
    "change from HyNet+", points with their intervals, paired by seed."""
    groups = frames.by_label(_of_losses(found))
    of = changes.fpr95_of(groups)
    first, *others = of
    parts = {
        "FPR95": changes.with_rates(changes.levels(of), groups),
        f"change from {first}": changes.changes(of, {name: (name, first) for name in others}),
    }
    return pd.concat(parts, axis=1).reindex(list(of)).rename_axis("loss")


def other_losses_figure(found: Sequence[Found], note: str) -> Figure:
    """Figure 5(c): FPR95 on few pairs, a line a loss, as `by_epoch_figure`."""
    return by_epoch_figure(frames.epochs(_of_losses(found)), note)


def by_epoch_figure(frame: pd.DataFrame, note: str) -> Figure:
    """FPR95 by epoch, the mean over the test sets, a line a method in the band of its seeds.

    Args:
        frame: as of `lib.study.report.frames.epochs`.
        note: stands above.
    """
    return plots.curves_figure(_over_sets(frame), "epoch", FPR95, "label", note=note)


def _over_sets(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby(["key", "label", "seed", "epoch"], sort=False)[FPR95].mean().reset_index()


def figure5_values(found: Sequence[Found], study: Study) -> OfClaim:
    """The values of a claim on Figure 5: of one on the grid the grid's runs; for the metric "gap" those
    of `hybrid_values`, for "fpr95_by_epoch" FPR95 on few pairs, (seeds, epochs), by key; else as
    `claim_values`."""
    curves = {
        key: Measured(of.pivot(index="seed", columns="epoch", values=FPR95).to_numpy(), label=label)
        for (key, label), of in _over_sets(frames.epochs(_of_losses(found))).groupby(["key", "label"])
    }
    special = {"fpr95_by_epoch": curves, "gap": hybrid_values(found[0])}

    def values(claim: Claim) -> Mapping[str, Measured | np.ndarray]:
        if claim.metric in special:
            return special[claim.metric]
        on_grid = {*claim.a, *claim.b} <= set(GRID)
        return claim_values((_of_grid if on_grid else _of_losses)(found), study)(claim)

    return values


def by_stage(found: Sequence[Found]) -> pd.DataFrame:
    """FPR95 on all pairs at the end of each epoch, from 1: a row a run, test set and epoch.

    Args:
        found: of `lib.study.artefacts.hynet.epochs`.

    Returns:
        As of `lib.study.report.frames.epochs`.
    """
    frame = frames.tidy(found, "fpr95_by_stage").rename(columns={"value": FPR95})
    return frame.assign(epoch=frame.groupby(["key", "seed", "test_set"]).cumcount() + 1)


def _chosen(of: pd.DataFrame) -> dict[str, np.ndarray]:
    """By choice (seeds, 1) mean FPR95 over two test sets."""
    table = of.pivot(index=["seed", "test_set"], columns="epoch", values=FPR95)
    values = table.to_numpy().reshape(of["seed"].nunique(), 2, -1)
    of_mean = values.mean(axis=1, keepdims=True).argmin(axis=2, keepdims=True).repeat(2, axis=1)
    of_other = values.argmin(axis=2, keepdims=True)[:, ::-1]
    at = dict(zip(CHOICES, (np.full_like(of_other, -1), of_mean, of_other), strict=True))
    return {name: np.take_along_axis(values, of, axis=2).mean(axis=1) for name, of in at.items()}


def epochs_table(found: Sequence[Found]) -> pd.DataFrame:
    """What choosing the epoch does to FPR95, a row a method: the mean of the last epoch; and under
    either choice its "change" from the last in points with the interval "from" and "to" over seeds.

    Args:
        found: of `lib.study.artefacts.hynet.epochs`.
    """
    (last, *others), rows = CHOICES, {}
    for label, of in by_stage(found).groupby("label", sort=False):
        values = {name: Measured(each) for name, each in _chosen(of).items()}
        changed = changes.changes(values, {f"chosen {of}": (of, last) for of in others})
        rows[label] = {("FPR95", last): values[last].values.mean(), **changed.T.unstack().to_dict()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def epochs_values(found: Sequence[Found]) -> dict[str, np.ndarray]:
    """The values of the claims on it, (seeds, 1), by method and choice, e.g. "hynet_aug_last",
    "…_on_the_tests" and "…_on_the_other_test"."""
    return {
        f"{key}_{choice}".replace(" ", "_"): of
        for key, runs in by_stage(found).groupby("key", sort=False)
        for choice, of in _chosen(runs).items()
    }
