"""Figures of HPatches (Balntas et al., CVPR 2017): its three tasks, and how two sets order descriptors.

`runs` are those of `lib.study.report.hpatches.numbers`, in percent.
"""

import itertools

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.study.claims.measured import hpatches_by_task
from lib.study.report import frames, plots
from lib.study.report.changes import levels
from lib.study.report.hpatches import LEVELS, TASKS
from lib.study.report.style import DOUBLE_WIDTH, look, marker_legend, panels

QUANTITIES = {
    "verification": "mean AP at 1 to 5 (%)",
    "matching": "mAP (%)",
    "retrieval": "mAP, whole pool (%)",
}
# Light, middle and dark, so that grey prints keep the order.
LEVEL_COLOURS = dict(zip(LEVELS, ("#56B4E9", "#D55E00", "#000000"), strict=True))
# By task: what a marker stands for, the end of its key, and its shape.
SETUPS = {
    "verification": (("intra", "intra.ap", "o"), ("inter", "inter.ap", "s")),
    "matching": (("viewpoint", "viewpoint", "^"), ("illumination", "illumination", "v")),
    "retrieval": (("retrieval", "all", "D"),),
}
BAR = "#E4E4E4"


def tasks_figure(runs: pd.DataFrame, note: str) -> Figure:
    """The three tasks, a panel each, a row a method; bars are the task's number.

    Markers are its parts, coloured by level and shaped by setup; a part that no run has, as where all
    sequences are of one kind, is left out. A line sets methods trained on HPatches apart. All are means
    over seeds, whose spread is in `lib.study.report.hpatches.by_task`.

    Args:
        runs: methods stand in its order, the first on top.
        note: profile, data and seeds.
    """
    mean = frames.means(runs)
    rows = np.arange(len(mean))[::-1]
    own = mean.index.get_level_values("key").str.endswith("_hp")
    size = (DOUBLE_WIDTH, 1.15 + 0.27 * len(mean), len(TASKS))
    with panels(*size, note=note, sharey=True) as (figure, [all_axes]):
        for axes, (task, setups) in zip(all_axes, SETUPS.items(), strict=True):
            axes.barh(rows, mean[task], height=0.74, color=BAR)
            for row, value in zip(rows, mean[task], strict=True):
                if np.isfinite(value):
                    axes.text(102, row, f"{value:.1f}", va="center")
            for place, (_, end, marker) in enumerate(setups):
                # Setups a little above and below the row's middle; the light level is drawn last.
                shift = 0.17 * (len(setups) - 1 - 2 * place)
                for level in reversed(LEVELS):
                    looks = {"color": LEVEL_COLOURS[level], "mec": "white", "mew": 0.4, "ms": 4.6}
                    if (part := f"{task}.{level}.{end}") in mean:
                        axes.plot(mean[part], rows + shift, marker, zorder=3, clip_on=False, **looks)
            for above in np.flatnonzero(own[1:] != own[:-1]):
                axes.axhline(rows[above] - 0.5, color="black", lw=0.6)
            plots.name_rows(axes, mean.index.get_level_values("label"))
            axes.grid(visible=False)
            axes.set(title=task, xlabel=QUANTITIES[task], xlim=(0, 100))
        entries = {"mean": {"marker": "s", "color": BAR}}
        entries |= {level: {"marker": "o", "color": c} for level, c in LEVEL_COLOURS.items()}
        for label, _, marker in itertools.chain(*SETUPS.values()):
            entries[label] = {"marker": marker, "color": "black", "mfc": "none", "mew": 0.8}
        marker_legend(figure, entries, ncols=9, handletextpad=0.2, columnspacing=0.9)
    return figure


def ranking_figure(
    left: pd.DataFrame, right: pd.DataFrame | None, names: tuple[str, str] | tuple[str]
) -> Figure:
    """How two sets of sequences order descriptors: ranks joined by lines, a panel a task.

    The best is on top, its mean over seeds beside it. Titles have Spearman's ρ and Kendall's τ (b) of
    the means; of n descriptors that say little where n is small.

    Args:
        left: runs on one set.
        right: likewise on another, or None: then a plot of the left alone, with intervals.
        names: of the sets, one for each.

    Raises:
        ValueError: fewer than two methods are on both sides.
    """
    if right is None:
        return _alone(left, names[0])
    on_left, on_right = frames.means(left), frames.means(right)
    common = [method for method in on_left.index if method in on_right.index]
    if len(common) < 2:
        raise ValueError(f"{len(common)} methods on both sides; an order needs two or more")
    note = (
        f"means of {len(common)} descriptors, the best on top; verification: mean AP at 1 to 5, "
        "matching: mAP, retrieval: mAP over the whole pool (%)"
    )
    size = (DOUBLE_WIDTH, 0.95 + 0.24 * len(common), len(TASKS))
    with panels(*size, note=note) as (figure, [all_axes]):
        for axes, task in zip(all_axes, TASKS, strict=True):
            pair = pd.DataFrame({"left": on_left[task], "right": on_right[task]}).loc[common].dropna()
            places = pair.rank(method="first")
            for method, ranks in zip(pair.index, places.to_numpy(), strict=True):
                place = common.index(method)
                looks = {**look(place, marker=True), **look(place)}
                axes.plot([0, 1], ranks, ms=5, clip_on=False, **looks)
            labels = pair.index.get_level_values("label") + pair["left"].map("  {:.1f}".format)
            axes.set_yticks(places["left"], labels)
            other = axes.twinx()
            other.set_yticks(places["right"], pair["right"].map("{:.1f}".format))
            for each in (axes, other):
                each.set_ylim(0.6, len(common) + 0.4)
                each.tick_params(axis="y", length=0, pad=7)
                each.spines[:].set_visible(False)
            axes.set_xticks([0, 1], names)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(0, 1)
            axes.set_title(f"{task}\n{_agreement(pair)}", loc="center", fontsize=8)
    return figure


def _alone(runs: pd.DataFrame, name: str) -> Figure:
    values = hpatches_by_task(runs)
    note = f"{name}; bars: 95% over seeds and what sequences show, in verification over seeds alone"
    size = (DOUBLE_WIDTH, 0.95 + 0.24 * len(values), len(TASKS))
    with panels(*size, note=note) as (figure, [all_axes]):
        for place, (axes, task) in enumerate(zip(all_axes, TASKS, strict=True)):
            table = levels({of.label: of.one(place) for of in values.values()})
            table["method"] = pd.Categorical(table.index, table.index)
            best_first = table.sort_values("mean", kind="stable", ascending=False)
            plots.intervals(axes, best_first, "mean", "method")
            axes.set(title=task, xlabel=QUANTITIES[task])
    return figure


def _agreement(pair: pd.DataFrame) -> str:
    # Of values that are all equal there is no order to agree with.
    if len(pair) < 2 or pair.nunique().min() < 2:
        return "ρ and τ undefined"
    rho, tau = (pair["left"].corr(pair["right"], method=of) for of in ("spearman", "kendall"))
    return f"ρ = {rho:.2f}, τ = {tau:.2f}"
