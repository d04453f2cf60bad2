"""HyNet (Tian et al.): its Tables 1, 3 and 5, Figures 4, 5 and 6, and what choosing the epoch is worth.

FPR95 is in percent, HPatches' numbers likewise. What HyNet's ladder shows is in
`lib.reporting.papers.adasample_ladder`, which knows no paper's rungs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.experiments.hynet import (
    GRID,
    MARGINS,
    SHOWN,
    best_margin,
    searched_fpr95,
    tested_on,
)
from lib.intervals import Measured, contrast
from lib.reporting import changes, frames, hpatches, phototour, plots
from lib.reporting.changes import with_interval
from lib.reporting.claims import Claim
from lib.reporting.claims.measured import fpr95_by_column, hpatches_by_task, of_claims
from lib.reporting.phototour_figures import common_figure, common_rows
from lib.reporting.printed import printed
from lib.reporting.style import DOUBLE_WIDTH, look, panels
from lib.study.open import Found, Study

FPR95, MATCHING = "FPR95 (%)", "matching mAP (%)"


def by_similarity(found: Sequence[Found]) -> list[Found]:
    """The runs of each similarity at its best margin, as rows of Table 3: "hynet_h", "hynet_d" and
    "hynet_s"."""
    row = {best_margin(similarity): f"hynet_{similarity}" for similarity in MARGINS}
    return [
        replace(run, job=replace(run.job, name=row[run.job.name]))
        for run in found
        if run.job.name in row
    ]


def claim_values(found: Sequence[Found], study: Study) -> Callable[[Claim], Mapping[str, Measured]]:
    """The values of a claim on Tables 1, 3 and 5 and Figures 4 to 6, those of `by_similarity` among
    them, as `lib.reporting.claims.measured.of_claims`."""
    every = [*found, *by_similarity(found)]
    return of_claims(every, study.place.source.sets, tested_on(study))


def verification(table: str, found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Table 1 or 5 ("table1", "table5") as `lib.reporting.phototour.paper_beside_ours`."""
    runs = phototour.by_column(found, study.place.source.sets)
    return phototour.paper_beside_ours(printed("hynet", table), runs)


def verification_figure(table: str, found: Sequence[Found], study: Study) -> Figure:
    """The mean FPR95 of the table's rows over the columns that all of ours have, the paper's and ours
    side by side."""
    values = fpr95_by_column(found, study.place.source.sets)
    return common_figure(common_rows(printed("hynet", table), values), values, study.where)


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


def table3(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Table 3 as `lib.reporting.hpatches.paper_beside_ours`, a similarity's row at its best margin."""
    rows, ours = printed("hynet", "table3"), by_similarity(found)
    besides = {best_margin(similarity) for similarity in MARGINS} - {"hynet_aug"}
    every = [*(run for run in found if run.job.name not in besides), *ours]
    fpr95 = phototour.by_column(every, study.place.source.sets)["Mean"]
    of_map = rows[rows["statistic"] == "map"]
    return hpatches.paper_beside_ours(of_map, every, tested_on(study), fpr95, ("matching",))


# By loss, its runs with FRN and with BN.
FRN: Mapping[str, tuple[str, str]] = {
    "s_H and R_L2": ("hynet_aug", "hynet_bn"),
    "HardNet's": ("hard_frn", "hard_bn"),
    "SOSNet's": ("sos_frn", "sos_bn"),
}


def frn(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """What FRN in place of BN changes, by loss, and how much more it does for HyNet's than for others.

    Args:
        found: of `lib.experiments.hynet.table3`.
        study: that they are of.

    Returns:
        By "loss", under matching mAP and FPR95, the "change" in points with its interval "from" and
        "to", paired by seed; under ("printed", "change") that of mAP in the paper.
    """
    first, *others = FRN
    rows = printed("hynet", "table3")
    gains = rows[rows["statistic"] == "frn_gain"].set_index("key")["value"]
    told = {loss: gains[with_frn] for loss, (with_frn, _) in FRN.items()}
    tables = {("printed", "change"): told | {_more(of): told[first] - told[of] for of in others}}
    for name, of in _matching_and_fpr95(found, study).items():
        table = changes.changes(of, FRN)
        for other in others:
            keys = (*FRN[first], *FRN[other])
            terms = list(zip((1.0, -1.0, -1.0, 1.0), (of[key] for key in keys), strict=True))
            table.loc[_more(other)] = with_interval("change", contrast(terms))
        tables |= {(name, column): table[column] for column in table}
    return pd.DataFrame(tables).reindex([*FRN, *map(_more, others)]).rename_axis("loss")


def _more(other: str) -> str:
    return f"s_H and R_L2 − {other}"


def _matching_and_fpr95(found: Sequence[Found], study: Study) -> dict[str, dict[str, Measured]]:
    runs = hpatches.numbers(found, tested_on(study))
    return {
        MATCHING: hpatches_by_task(runs, ["matching"]),
        FPR95: fpr95_by_column(found, study.place.source.sets),
    }


def figure4_gains(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """What Sec. 4.2 counts in Figure 4: how far SOSNet+ is ahead of HardNet+, and HyNet+ of SOSNet+.

    Returns:
        By "ahead", under each task the points "printed" and "ours" with the interval "from" and "to".
    """
    ahead = {
        "SOSNet+ of HardNet+": ("sosnet_aug", "hardnet_aug"),
        "HyNet+ of SOSNet+": ("hynet_aug", "sosnet_aug"),
    }
    told = printed("hynet", "figure4").set_index(["key", "task"])["value"]
    named = [run for run in found if run.job.name in {*sum(ahead.values(), ())}]
    of, parts = hpatches_by_task(hpatches.numbers(named, tested_on(study))), {}
    for cell, task in enumerate(hpatches.TASKS):
        table = changes.changes({key: each.one(cell) for key, each in of.items()}, ahead)
        parts[task] = table.rename(columns={"change": "ours"})
        parts[task].insert(0, "printed", [told[key, task] for key, _ in ahead.values()])
    return pd.concat(parts, axis=1).rename_axis("ahead")


def _of_grid(found: Sequence[Found]) -> list[Found]:
    return [run for run in found if run.job.name in GRID and run.job.sets_of("hpatches")]


def _of_losses(found: Sequence[Found]) -> list[Found]:
    return [run for run in found if run.job.name == "hynet_aug" or run.job.name not in GRID]


def grid(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Figure 5(a): a row a cell of the grid, its `α` as text, its `margin`, FPR95 and matching mAP.

    Args:
        found: of `lib.experiments.hynet.figure5`.
        study: that they are of.
    """
    of = _matching_and_fpr95(_of_grid(found), study)
    rows = [
        {
            "α": f"{alpha:g}".replace("inf", "∞"),
            "margin": margin,
            **{name: values[key].values.mean() for name, values in of.items()},
        }
        for key, (alpha, margin) in sorted(GRID.items(), key=lambda item: item[1])
    ]
    return pd.DataFrame(rows)


def grid_figure(table: pd.DataFrame, note: str = "") -> Figure:
    """FPR95 and matching mAP against α, a line a margin; the best is ringed, and a dotted line marks
    the paper's best α.

    Args:
        table: of `grid`.
        note: stands above.
    """
    alphas = list(table["α"].unique())
    with panels(DOUBLE_WIDTH, 2.8, 2, note=note, legend=6, grid="y") as (figure, [row]):
        for axes, name, best in zip(row, (FPR95, MATCHING), ("idxmin", "idxmax"), strict=True):
            for place, (margin, of) in enumerate(table.groupby("margin")):
                line = {**look(place), "marker": "osD^"[place], "ms": 4, "label": f"margin {margin:g}"}
                axes.plot(of["α"].map(alphas.index), of[name], **line)
            ring = {"ls": "none", "marker": "o", "ms": 11, "mfc": "none", "mec": "black", "mew": 1}
            at = table.loc[getattr(table[name], best)()]
            axes.plot(alphas.index(at["α"]), at[name], label="the best of these", **ring)
            axes.axvline(alphas.index("2"), color="black", lw=0.8, ls=":", label="the paper's α")
            ends = {"0": "0\n(d)", "∞": "∞\n(s)"}
            axes.set_xticks(range(len(alphas)), [ends.get(alpha, alpha) for alpha in alphas])
            axes.set(xlabel="α", ylabel=name)
            axes.margins(y=0.12)
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
    """Figure 5(c): FPR95 on few pairs by epoch, the mean over the test sets, a line a loss in the band
    of its seeds."""
    with panels(0.8 * DOUBLE_WIDTH, 2.8, note=note) as (figure, [[axes]]):
        plots.curves(axes, _over_sets(frames.epochs(_of_losses(found))), "epoch", FPR95, "label")
        axes.xaxis.get_major_locator().set_params(integer=True)
        plots.log_axis(axes, "y", [line for of in axes.lines for line in of.get_ydata()])
        plots.label_ends(axes)
    return figure


def _over_sets(frame: pd.DataFrame) -> pd.DataFrame:
    by = [name for name in frame if name not in ("test_set", FPR95)]
    return frame.groupby(by, sort=False, dropna=False)[FPR95].mean().reset_index()


def figure5_values(
    found: Sequence[Found], study: Study
) -> Callable[[Claim], Mapping[str, Measured | np.ndarray]]:
    """The values of a claim on Figure 5: of one on the grid the grid's runs; for the metric
    "fpr95_by_epoch" FPR95 on few pairs, (seeds, epochs), by key; else as `claim_values`."""
    curves = {
        key: of.pivot(index="seed", columns="epoch", values=FPR95).to_numpy()
        for key, of in _over_sets(frames.epochs(_of_losses(found))).groupby("key")
    }

    def values(claim: Claim) -> Mapping[str, Measured | np.ndarray]:
        if claim.metric == "fpr95_by_epoch":
            return curves
        on_grid = {*claim.a, *claim.b} <= set(GRID)
        return claim_values((_of_grid if on_grid else _of_losses)(found), study)(claim)

    return values


# How an epoch is chosen: not at all; by the mean of the very test sets, as HyNet's code does; or of each
# test set by the other.
CHOICES = ("last", "on the tests", "on the other test")


def by_stage(found: Sequence[Found]) -> pd.DataFrame:
    """FPR95 on all pairs at the end of each epoch, from 1: a row a run, test set and epoch.

    Args:
        found: of `lib.experiments.hynet.epochs`.

    Returns:
        Columns `key`, `label`, `schedule`, `seed`, `test_set`, `epoch` and `FPR95 (%)`.
    """
    return pd.DataFrame(
        {
            **{"key": run.job.name, "label": run.job.label, "schedule": run.job.recipe.schedule.name},
            **{"seed": run.job.seed, "test_set": test_set, "epoch": epoch, FPR95: value},
        }
        for run in found
        for test_set in run.job.sets_of("fpr95_by_stage")
        for epoch, value in enumerate(run.content["metrics"][test_set]["fpr95_by_stage"].values(), 1)
    )


def _chosen(of: pd.DataFrame) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """By choice (seeds, 1) mean FPR95 over two test sets, and (seeds,) the epoch chosen on both."""
    table = of.pivot(index=["seed", "test_set"], columns="epoch", values=FPR95)
    values = table.to_numpy().reshape(of["seed"].nunique(), 2, -1)
    best = values.mean(axis=1).argmin(axis=1)
    at_other = np.take_along_axis(values, values.argmin(axis=2)[:, ::-1, None], axis=2)
    both = (
        values[..., -1],
        np.take_along_axis(values, best[:, None, None], axis=2)[..., 0],
        at_other[..., 0],
    )
    means = (each.mean(axis=1, keepdims=True) for each in both)
    return dict(zip(CHOICES, means, strict=True)), best + 1


def epochs_table(found: Sequence[Found]) -> pd.DataFrame:
    """What choosing the epoch does to FPR95, a row a method and schedule.

    Args:
        found: of `lib.experiments.hynet.epochs`.

    Returns:
        The mean FPR95 of the last epoch; under either choice its "change" from the last in points with
        the interval "from" and "to" over seeds; and the mean epoch that is best on the tests.
    """
    rows = {}
    for (label, schedule), of in by_stage(found).groupby(["label", "schedule"], sort=False):
        values, best = _chosen(of)
        last, *chosen = CHOICES
        pairs = {choice: (choice, last) for choice in chosen}
        changed = changes.changes({name: Measured(each) for name, each in values.items()}, pairs)
        rows[label, schedule] = pd.concat(
            [
                pd.Series({("FPR95", last): values[last].mean(), ("epoch", "best"): best.mean()}),
                changed.stack().rename(lambda name: f"chosen {name}", level=0),
            ]
        )
    return pd.DataFrame(rows).T.rename_axis(["method", "rate"])


def epochs_values(found: Sequence[Found]) -> dict[str, np.ndarray]:
    """The values of the claims on it, (seeds, 1), by method, schedule and choice, e.g.
    "hynet_aug_constant_last", "…_on_the_tests" and "…_on_the_other_test"."""
    return {
        "_".join((key, schedule, choice)).replace(" ", "_"): of
        for (key, schedule), runs in by_stage(found).groupby(["key", "schedule"], sort=False)
        for choice, of in _chosen(runs)[0].items()
    }


def epochs_figure(found: Sequence[Found], note: str) -> Figure:
    """FPR95 on all pairs by epoch, the mean over the test sets, a panel a schedule, a line a method in
    the band of its seeds."""
    frame = _over_sets(by_stage(found))
    schedules = frame["schedule"].unique()
    with panels(DOUBLE_WIDTH, 2.6, len(schedules), note=note, sharey=True) as (figure, [row]):
        for axes, schedule in zip(row, schedules, strict=True):
            plots.curves(axes, frame[frame["schedule"] == schedule], "epoch", FPR95, "label")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title(f"{schedule} rate")
        row[1].set_ylabel("")
        for axes in row:
            plots.log_axis(axes, "y", frame[FPR95])
        plots.label_ends(row[-1])
    return figure
