"""AdaSample (Zhang et al.): its Tables 1 and 2, and its Figures 1 and 2.

Table 3 is in `lib.reporting.papers.adasample_significance`, Figure 3 in
`lib.reporting.papers.adasample_gradients`. Runs are frames of `lib.reporting.frames.wide`.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.experiments.adasample import LAMBDAS, TRIPLET_LOSSES, lambda_name
from lib.reporting import frames, hpatches, phototour, plots
from lib.reporting.claims import Claim
from lib.reporting.hpatches import TASKS
from lib.reporting.printed import printed
from lib.reporting.style import DOUBLE_WIDTH, GREY, PALETTE, look, marker_legend, panels
from lib.study.open import Found

PAPER_BEST = 10.0


def table1(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 1 beside ours: `lib.reporting.phototour.paper_beside_ours` of the runs of `by_column`."""
    return phototour.paper_beside_ours(printed("adasample", "table1"), runs)


def table1_figure(runs: pd.DataFrame, where: str) -> Figure:
    """The mean FPR95 of each row of Table 1, the paper's and ours.

    Args:
        runs: of `lib.reporting.phototour.by_column`.
        where: profile and data of ours.
    """
    quantity = "mean FPR95 (%), lower is better"
    paper = phototour.printed_by_column(printed("adasample", "table1"))
    labels = dict(paper.index)
    both = {"paper (UBC)": paper["Mean"], f"ours ({where})": runs["Mean"]}
    rows = [
        {"label": labels.get(index[0], index[1]), "whose": whose, quantity: value}
        for whose, of in both.items()
        for index, value in of.items()
    ]
    return plots.beside(pd.DataFrame(rows), quantity, "label", "whose")


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
    both = {"paper": paper, "ours": frames.means(runs).droplevel("label")}
    if runs.index.droplevel("seed").has_duplicates:
        both["sd"] = frames.deviations(runs).droplevel("label")
    columns = {}
    for task in TASKS:
        for loss in TRIPLET_LOSSES:
            keys = [_key(lam, loss) for lam in LAMBDAS]
            for whose, of in both.items():
                columns[f"{task} {loss}", whose] = of[task].reindex(keys).to_numpy()
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
        ("DSM, Table 3", "dsm", "table3", "dsm"),
        ("TCDesc, Table IV", "tcdesc", "table4", "tcdesc"),
    ):
        of = printed(paper, table)
        of = of[(of["key"] == key) & (of["statistic"] == "map")]
        pools = set(of.get("protocol", ())) - {""}
        stated = {"retrieval over": ", ".join(pools) or "not stated"}
        rows[name] = {**of.set_index("task")["value"][list(TASKS)], **stated}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("printed")


def table2_figure(table: pd.DataFrame, note: str) -> Figure:
    """Table 2 as curves: mAP against λ, a panel a task, ours above and the paper's below.

    The levels of the two differ, so that each panel has an axis of its own. λ is spaced evenly; the
    best of a line is ringed, all of them where several share the top; bars are the standard deviation
    over seeds.

    Args:
        table: of `table2`.
        note: profile, data and seeds of ours.
    """
    with panels(DOUBLE_WIDTH, 3.9, len(TASKS), 2, note=note, grid="y", sharex=True) as (figure, grid):
        for whose, row in zip(("ours", "paper"), grid, strict=True):
            for axes, task in zip(row, TASKS, strict=True):
                for place, loss in enumerate(TRIPLET_LOSSES):
                    _against_lambda(axes, table[f"{task} {loss}"], whose, place)
                axes.margins(y=0.15)
                axes.set(
                    xticks=range(len(table)), xticklabels=table.index, xlim=(-0.4, len(table) - 0.6)
                )
            row[0].set_ylabel(f"{whose}: mAP (%)")
        for above, below, task in zip(*grid, TASKS, strict=True):
            above.set_title(task)
            below.set_xlabel("λ")
        figure.align_ylabels(grid[:, 0])
        entries = {
            loss: {**look(place), "marker": "o^"[place]} for place, loss in enumerate(TRIPLET_LOSSES)
        }
        entries["best of its line"] = {"marker": "o", "color": "black", "mfc": "none", "ms": 9}
        marker_legend(figure, entries, ncols=3)
    return figure


def _against_lambda(axes: Axes, of: pd.DataFrame, whose: str, place: int) -> None:
    spread = of["sd"] if whose == "ours" and "sd" in of else None
    # Side by side, so that no bar covers another.
    at = np.arange(len(of)) + (0.0 if spread is None else 0.12 * (place - 0.5))
    looks = {**look(place), "marker": "o^"[place], "ms": 4, "capsize": 2, "elinewidth": 0.9}
    axes.errorbar(at, of[whose], yerr=spread, **looks)
    best = (of[whose] == of[whose].max()).to_numpy()
    axes.plot(at[best], of[whose][best], "o", mfc="none", mec=PALETTE[place], mew=1, ms=10)


def table2_values(runs: pd.DataFrame) -> dict[str, np.ndarray]:
    """The values of the claims on Table 2, under its keys.

    Args:
        runs: of `table2_runs`.

    Returns:
        (seeds, 3 tasks) of every λ and loss there are runs of, λ = 0 too; by "aht" and "ht" (seeds, 18),
        the paper's λ by task, where there are runs of all of them.
    """
    values = frames.values(runs, TASKS)
    for loss in TRIPLET_LOSSES:
        keys = [_key(lam, loss) for lam in LAMBDAS if lam > 0]
        if all(key in values for key in keys):
            values[loss.lower()] = np.concatenate([values[key] for key in keys], axis=1)
    return values


def _key(lam: float, loss: str) -> str:
    """The key of a λ and a loss in the printed table and in the claims, e.g. "lambda_10_aht"."""
    return f"lambda_{lam:g}_{loss.lower()}"


def figure2_intervals(runs: pd.DataFrame, task: str) -> pd.DataFrame:
    """Of each method the interval of its mean over sequences, and that of its gain over HardNet+*."""
    interval, gain = (
        hpatches.sequence_intervals(runs, task, against=key) for key in (None, "hardnet_aug_gen")
    )
    ends = ["mean", "from", "to"]
    return interval[ends].join(gain[ends].add_prefix("gain: ")).join(interval["things"])


def figure2_values(runs: pd.DataFrame) -> Callable[[Claim], Mapping[str, np.ndarray]]:
    """The values of a claim on Figure 2: of the one task that its id ends with."""
    return lambda claim: frames.values(runs, [claim.id.rpartition("-")[2]])


def figure1(probe: Mapping[str, np.ndarray]) -> Figure:
    """Figure 1 from data: what may be drawn of real classes, and what was drawn.

    Each class's anchor, its candidates with p_i at three moments, and the negative. Candidates stand in
    the order of their distance to the anchor at the last moment, the nearest first. A triangle over a
    bar marks the positive drawn at that moment; the negative is the last moment's.

    Args:
        probe: `lib.evaluation.drawn_pairs` of one run.
    """
    classes = len(probe["images"])
    heights = {"height_ratios": [1, 0.75] * classes, "hspace": 0.02}
    size = (DOUBLE_WIDTH, 0.88 * classes + 0.5)
    with panels(*size, 1, 2 * classes, gridspec_kw=heights) as (figure, rows):
        for number in range(classes):
            _drawn_class(probe, number, *rows[2 * number : 2 * number + 2, 0])
        top = rows[0, 0]
        top.set_title("anchor", loc="left", fontsize=8)
        top.set_title("its candidates, nearest first; below: p of each", loc="center", fontsize=8)
        top.set_title("negative", loc="right", fontsize=8)
        moments = zip(probe["stage"], probe["exponent"], PALETTE, strict=False)
        entries = {
            f"{stage:.0%} of training, exponent {exponent:.1f}": {"marker": "s", "color": colour}
            for stage, exponent, colour in moments
        }
        marker_legend(figure, entries, ncols=3)
    return figure


def _drawn_class(probe: Mapping[str, np.ndarray], number: int, above: Axes, below: Axes) -> None:
    distance, images = probe["distance"][-1, number], probe["images"][number]
    order = np.argsort(distance)[: np.isfinite(distance).sum()]
    gap = 0.6
    first, end = 1 + gap, len(images) + 2 * gap
    candidates = [(first + place, images[candidate]) for place, candidate in enumerate(order)]
    anchor, negative = images[probe["anchor"][number]], probe["negative"][-1, number]
    for left, image in ((0.0, anchor), *candidates, (end, negative)):
        extent = (left, left + 0.96, 0.02, 0.98)
        above.imshow(image, cmap="gray", vmin=0, vmax=255, extent=extent, aspect="auto")
    for moment, colour in zip(range(len(probe["stage"])), PALETTE, strict=False):
        heights = probe["probability"][moment, number, order]
        at = first + np.arange(len(order)) + 0.2 + 0.28 * moment
        below.bar(at, heights, width=0.26, color=colour, lw=0)
        drawn = order == probe["positive"][moment, number]
        below.plot(at[drawn], heights[drawn] + 0.05, "v", ms=3.5, color=colour)
    for axes in (above, below):
        axes.set_xlim(0, end + 1)
        axes.set_axis_off()
    above.set_ylim(0, 1)
    below.set_ylim(0, max(0.3, 1.3 * float(np.nanmax(probe["probability"][:, number]))))
    below.axhline(0, color=GREY, lw=0.5)


def figure1_pace(found: Sequence[Found], note: str) -> Figure:
    """λ / L_avg through training, and the share of classes that leave nothing to choose.

    Args:
        found: records; the exponent is that of those that have one, and the share that of all: of drawn
            classes with one candidate besides the anchor.
        note: stands above.
    """
    names = {"exponent": "exponent λ / L_avg", "two_share": "classes of two patches (%)"}
    curves = frames.steps(found).rename(columns=names)
    curves[names["two_share"]] *= 100
    with panels(DOUBLE_WIDTH * 0.8, 2.3, 2, note=note) as (figure, [[left, right]]):
        known = curves.dropna(subset=names["exponent"])
        plots.curves(left, known, "step", names["exponent"], "label")
        plots.curves(right, curves, "step", names["two_share"], "label")
        left.set_ylim(bottom=0)
        right.set_ylim(-2, 100)
        right.legend(loc="upper right")
    return figure
