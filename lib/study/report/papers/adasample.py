"""AdaSample (Zhang et al.): its Tables 1 and 2, and its Figure 2.

Figure 1 is in `lib.study.report.papers.adasample_triplets`, Table 3 in `…adasample_significance`, and
Figure 3 in `…adasample_gradients`. Runs are frames of `lib.study.report.frames.wide`.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured, side_by_side
from lib.study.artefacts.adasample import LAMBDAS, TRIPLET_LOSSES, lambda_name
from lib.study.artefacts.rows import HPATCHES_SPLIT, tested_on
from lib.study.claims.measured import OfClaim, fpr95_by_column, hpatches_by_task
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import frames, hpatches, phototour, plots
from lib.study.report.changes import changes, levels
from lib.study.report.hpatches import TASKS
from lib.study.report.phototour_figures import common_rows, seeds_shown
from lib.study.report.style import DOUBLE_WIDTH, look, panels

PAPER_BEST = 10.0


def table1_values(found: Sequence[Found], study: Study) -> dict[str, Measured]:
    """FPR95 of Table 1's methods by key, as `lib.study.claims.measured.fpr95_by_column`; of those
    that are trained on as many sets as any, where baselines are on fewer."""
    return fpr95_by_column(phototour.of_most_sets(found), study.place.source.sets)


def table1_common(values: Mapping[str, Measured]) -> pd.DataFrame:
    """Of `table1_values` the rows that the paper's table has too, as
    `lib.study.report.phototour_figures.common_rows`."""
    return common_rows(printed("adasample", "table1"), values)


def table1_distances(found: Sequence[Found], study: Study) -> Figure:
    """The distances of pairs by SIFT, HardNet* and AdaSample*, for one pair of scenes and one seed."""
    train_set, test_set, _ = study.place.source.sets
    probes = {
        record.job.label: record.probe("distance_histogram", test_set)
        for record in found
        if record.job.name in ("sift", "hardnet_gen", "adasample_gen")
        and record.job.train_set in (None, train_set)
        and record.job.seed in (None, study.table_seeds[0])
    }
    return plots.distance_histograms(probes, note=f"{study.where}, {train_set} to {test_set}, one seed")


def table1_training(found: Sequence[Found], study: Study) -> Figure:
    """FPR95 on a few pairs of the test scene by epoch, for one pair of scenes, without and with "+"; of
    the methods of `table1_values`."""
    train_set, test_set, _ = study.place.source.sets
    curves = frames.epochs(phototour.of_most_sets(found))
    curves = curves[(curves["train_set"] == train_set) & (curves["test_set"] == test_set)]
    note = f"{study.where}, {train_set} to {test_set}, {found[-1].followed_pairs} matching pairs"
    seeds = len(study.table_seeds)
    note += f", {seeds} seeds, band: their range" if seeds > 1 else ", one seed"
    with panels(DOUBLE_WIDTH, 2.4, 2, note=note, sharey=True) as (figure, [row]):
        groups = curves.groupby(curves["label"].str.contains("+", regex=False))
        for axes, (plus, of) in zip(row, groups, strict=True):
            plots.curves(axes, of, "epoch", "FPR95 (%)", "label")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title("flips and 90° rotations (+)" if plus else "without augmentation")
        row[1].set_ylabel("")
        for axes in row:
            plots.log_axis(axes, curves["FPR95 (%)"])
        for axes in row:
            plots.label_ends(axes)
    return figure


def table2_runs(found: Sequence[Found], test_set: str) -> pd.DataFrame:
    """HPatches' numbers of Table 2's runs, of any λ and loss, under the keys of the printed table.

    Args:
        found: records; those that are none of the table's are left out.
        test_set: the set they were measured on.

    Raises:
        ValueError: no run of the table is among those given, or one was not measured there.
    """
    keys = {lambda_name(lam, loss): _key(lam, loss) for loss in TRIPLET_LOSSES for lam in LAMBDAS}
    ours = [record for record in found if record.job.name in keys]
    return hpatches.numbers(ours, test_set).rename(index=keys, level="key")


def table2(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 2, the paper's values and ours side by side.

    Args:
        runs: of `table2_runs`.

    Returns:
        Index `λ` as text, 0 to ∞; the paper has no 0. Columns (task and loss, `paper` or `ours`) in
        percent, retrieval of ours over the whole pool, and `sd` over seeds where there are several.
    """
    paper = printed("adasample", "table2").pivot(index="key", columns="task", values="value")
    ours = frames.summary(runs, "ours").items()
    both = {"paper": paper} | {name: of.droplevel("label") for name, of in ours}
    columns = {
        (f"{task} {loss}", whose): of[task].reindex([_key(lam, loss) for lam in LAMBDAS]).to_numpy()
        for task, loss, (whose, of) in itertools.product(TASKS, TRIPLET_LOSSES, both.items())
    }
    shown = ["∞" if math.isinf(lam) else f"{lam:g}" for lam in LAMBDAS]
    return pd.DataFrame(columns, index=pd.Index(shown, name="λ"))


def table2_best(table: pd.DataFrame) -> pd.DataFrame:
    """Where the highest mAP lies, and how far the next is from it.

    Args:
        table: of `table2`.

    Returns:
        Index `mAP of` (task and loss); columns (`paper` or `ours`, `best λ`), several where they share
        the top and nothing where no value is known, and (…, `gap`) to the second in points, 0 where the
        top is shared. Ours may be at λ = 0, which the paper does not have.
    """
    rows: dict[str, dict] = {}
    for head, whose in table.columns:
        if whose != "sd":
            known = table[head, whose].dropna().sort_values(ascending=False)
            best = ", ".join(lam for lam in table.index if known.get(lam) == known.max()) or None
            gap = known.iloc[0] - known.iloc[1] if len(known) > 1 else np.nan
            rows.setdefault(head, {}).update({(whose, "best λ"): best, (whose, "gap"): gap})
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("mAP of")


def table2_printed() -> pd.DataFrame:
    """Count in the paper's own table what its two sentences on it say (Sec. 5.4).

    Returns:
        Index `Sec. 5.4`: what is counted; columns `cells`, `yes`, `tied`, `no`, and `most`: whether
        more than half of the cells are a yes.
    """
    grid = printed("adasample", "table2").astype({"lambda": "float64"})
    grid = grid.pivot(index="lambda", columns=["loss", "task"], values="value")
    above_rest = grid.loc[PAPER_BEST] - grid.drop(index=PAPER_BEST).max()
    above_ht = grid["aht"] - grid["ht"]
    counted = {
        f"λ = {PAPER_BEST:g} is best": above_rest,
        **{f"… with {loss}": above_rest[loss.lower()] for loss in TRIPLET_LOSSES},
        "AHT is above HT": above_ht.stack(),
        **{f"… in {task}": above_ht[task] for task in TASKS},
    }
    rows = {
        name: (len(gaps), (gaps > 0).sum(), (gaps == 0).sum(), (gaps < 0).sum(), (gaps > 0).mean() > 0.5)
        for name, gaps in counted.items()
    }
    columns = ["cells", "yes", "tied", "no", "most"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("Sec. 5.4")


def table2_levels() -> pd.DataFrame:
    """What papers print for the three tasks, to see on what level each paper's numbers lie.

    Returns:
        Index `printed`; a column a task, mAP in percent, and the pool that retrieval is over, where the
        paper states it.
    """
    rows = {}
    for name, paper, table, key in (
        ("AdaSample, Table 2, λ = 10, AHT", "adasample", "table2", "lambda_10_aht"),
        ("DSM, Table 3", "dsm", "table3", "dsm_aug"),
        ("TCDesc, Table IV", "tcdesc", "table4", "tcdesc_dsm_aug"),
    ):
        of = printed(paper, table)
        of = of[(of["key"] == key) & (of["statistic"] == "map")]
        pools = set(of.get("protocol", ())) - {""}
        stated = {"retrieval over": ", ".join(pools) or "not stated"}
        rows[name] = {**of.set_index("task")["value"][list(TASKS)], **stated}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("printed")


def table2_figure(runs: pd.DataFrame, study: Study, sets: str) -> Figure:
    """Table 2 as curves: mAP against λ, a panel a task, ours above and the paper's below.

    The levels of the two differ, so that each panel has an axis of its own. λ is spaced evenly; bars
    are 95% intervals over seeds and what sequences show.

    Args:
        runs: of `table2_runs`.
        study: that ours is of.
        sets: what ours were trained and tested on.
    """
    table, values, seeds = table2(runs), hpatches_by_task(runs), len(study.grid_seeds)
    note = f"ours: {study.where}, {sets}, {seeds_shown([seeds])}"
    with panels(DOUBLE_WIDTH, 3.7, len(TASKS), 2, note=note, grid="y", sharex=True) as (figure, grid):
        for whose, row in zip(("ours", "paper"), grid, strict=True):
            for axes, (cell, task) in zip(row, enumerate(TASKS), strict=True):
                for place, loss in enumerate(TRIPLET_LOSSES):
                    line = {**look(place), "marker": "o^"[place], "ms": 4}
                    if whose == "paper":
                        printed_ones = table[f"{task} {loss}", "paper"].reset_index(drop=True).dropna()
                        axes.plot(printed_ones, label=loss, **line)
                    elif of := _by_lambda(values, loss):
                        ours = levels({at: each.one(cell) for at, each in of.items()})
                        # Side by side, so that no bar covers another.
                        at = ours.index + 0.12 * (place - 0.5)
                        axes.plot(at, ours["mean"], label=loss, **line)
                        ends = plots.bars(ours, "mean")
                        axes.errorbar(at, ours["mean"], ends, fmt="none", capsize=2, **look(place))
                axes.margins(y=0.15)
                axes.set(
                    xticks=range(len(table)), xticklabels=table.index, xlim=(-0.4, len(table) - 0.6)
                )
            row[0].set_ylabel(f"{whose}: mAP (%)")
            plots.label_ends(row[-1])
        for above, below, task in zip(*grid, TASKS, strict=True):
            above.set_title(task)
            below.set_xlabel("λ")
        figure.align_ylabels(grid[:, 0])
    return figure


def _by_lambda(values: Mapping[str, Measured], loss: str) -> dict[int, Measured]:
    """The values of a loss by place in `LAMBDAS`, of those that there are."""
    keys = enumerate(_key(lam, loss) for lam in LAMBDAS)
    return {place: values[key] for place, key in keys if key in values}


def table2_values(runs: pd.DataFrame) -> dict[str, Measured]:
    """The values of the claims on Table 2, under its keys.

    Args:
        runs: of `table2_runs`.

    Returns:
        Three cells, the tasks, of every λ and loss there are runs of, λ = 0 too; by "aht" and "ht" 18,
        the paper's λ by task, where there are runs of all of them.
    """
    values = hpatches_by_task(runs)
    for loss in TRIPLET_LOSSES:
        keys = [_key(lam, loss) for lam in LAMBDAS if lam > 0]
        if all(key in values for key in keys):
            values[loss.lower()] = side_by_side([values[key] for key in keys])
    return values


def _key(lam: float, loss: str) -> str:
    """The key of a λ and a loss in the printed table and in the claims, e.g. "lambda_10_aht"."""
    return f"lambda_{lam:g}_{loss.lower()}"


def figure2_runs(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """HPatches' numbers of Figure 2's runs, those trained on HPatches itself as methods of their own."""
    hp_train = study.place.source.homographies.train_set(HPATCHES_SPLIT)
    return hpatches.numbers(found, tested_on(study), hp_train)


def figure2_intervals(runs: pd.DataFrame, task: str) -> pd.DataFrame:
    """Each method's number in a task and its gain over HardNet+*, with intervals over seeds and over the
    subjects that sequences show; last how many of these there are."""
    values = hpatches_by_task(runs, [task])
    of = {each.label: each for each in values.values()}
    against = values["hardnet_aug_gen"]
    gains = changes(of, {label: (label, against.label) for label in of})
    gains = gains.set_axis(["gain", "gain from", "gain to"], axis=1)
    return levels(of).drop(columns="seeds").join(gains).assign(subjects=against.freedom + 1)


def figure2_values(runs: pd.DataFrame) -> OfClaim:
    """The values of a claim on Figure 2: of the one task that its id ends with."""
    return lambda claim: hpatches_by_task(runs, [claim.id.rpartition("-")[2]])
