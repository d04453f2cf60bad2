"""Figures of HPatches (Balntas et al., CVPR 2017): AdaSample's Figure 2, its Table 2 over λ, and how two
sets of sequences order descriptors.

Frames are those of `lib.reporting.hpatches_tables.numbers`, in percent. matplotlib is imported when a
figure is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from lib.recipes import TRIPLET_LOSSES
from lib.reporting.figures import DOUBLE_WIDTH, GREY, LINES, PALETTE, new_figure, style
from lib.reporting.hpatches_tables import LEVELS, TASKS, deviations, lambda_head, means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
METHOD_MARKERS = "os^Dv<>PX"


def tasks_figure(frame: pd.DataFrame, note: str) -> Figure:
    """AdaSample's Figure 2: a panel a task, a row a method; bars are the task's number.

    Markers are its parts, coloured by level and shaped by setup; a part that no run has, as where all
    sequences are of one kind, is left out. A line sets methods trained on HPatches apart. All are means
    over seeds, whose spread is in `lib.reporting.hpatches_tables.by_task`.

    Args:
        frame: of `numbers`; methods stand in its order, the first on top.
        note: profile, data and seeds.
    """
    mean = means(frame)
    rows = np.arange(len(mean))[::-1]
    with style():
        figure, all_axes = new_figure(DOUBLE_WIDTH, 1.15 + 0.27 * len(mean), len(TASKS), share_y=True)
        for axes, (task, setups) in zip(all_axes, SETUPS.items(), strict=True):
            axes.barh(rows, mean[task], height=0.74, color=BAR)
            _parts(axes, mean, rows, task, setups)
            for row, value in zip(rows, mean[task], strict=True):
                if np.isfinite(value):
                    axes.annotate(
                        f"{value:.1f}", (1, row), (3, 0), axes.get_yaxis_transform(), "offset points",
                        va="center", annotation_clip=False,
                    )  # fmt: skip
            for above, below in _borders(mean):
                axes.axhline((rows[above] + rows[below]) / 2, color="black", lw=0.6)
            axes.set_xlim(0, 100)
            axes.set_ylim(-0.6, len(mean) - 0.4)
            axes.set_yticks(rows, mean["label"])
            axes.tick_params(axis="y", length=0)
            axes.set_title(task, loc="left")
            axes.set_xlabel(QUANTITIES[task])
        figure.legend(
            handles=_legend(), loc="outside upper center", ncols=9, handletextpad=0.2, columnspacing=0.9
        )
        _note(figure, note)
    return figure


def lambda_figure(table: pd.DataFrame, note: str) -> Figure:
    """AdaSample's Table 2 as curves: mAP against λ, a panel a task, ours above and the paper's below.

    The levels of the two differ, so that each panel has an axis of its own. λ is spaced evenly; the
    best of a line is ringed, all of them where several share the top; bars are the standard deviation
    over seeds.

    Args:
        table: of `lib.reporting.hpatches_tables.by_lambda`.
        note: profile, data and seeds of ours.
    """
    places = np.arange(len(table))
    with style():
        figure, _ = new_figure(DOUBLE_WIDTH, 3.9)
        figure.clear()
        all_axes = figure.subplots(2, len(TASKS), squeeze=False, sharex=True)
        for whose, row in zip(("ours", "paper"), all_axes, strict=True):
            for axes, task in zip(row, TASKS, strict=True):
                for place, loss in enumerate(TRIPLET_LOSSES):
                    of = table[lambda_head(task, loss)]
                    spread = of["sd"] if whose == "ours" and "sd" in of else None
                    # Side by side, so that no bar covers another.
                    shift = 0.0 if spread is None else 0.12 * (place - 0.5)
                    _curve(axes, places + shift, of[whose], spread, place, loss)
                axes.grid(axis="y")
                axes.margins(y=0.15)
                axes.set_xticks(places, table.index)
                axes.set_xlim(-0.4, len(table) - 0.6)
            row[0].set_ylabel(f"{whose}: mAP (%)")
        for axes, task in zip(all_axes[0], TASKS, strict=True):
            axes.set_title(task, loc="left")
        for axes in all_axes[-1]:
            axes.set_xlabel("λ")
        figure.align_ylabels(all_axes[:, 0])
        handles, names = all_axes[0, 0].get_legend_handles_labels()
        figure.legend(
            [*handles, _ring()], [*names, "best of its line"], loc="outside upper center", ncols=3
        )
        _note(figure, note)
    return figure


def ranking_figure(
    left: pd.DataFrame, right: pd.DataFrame | None, names: tuple[str, str] | tuple[str]
) -> Figure:
    """How two sets of sequences order descriptors: ranks joined by lines, a panel a task.

    The best is on top, its mean over seeds beside it. Titles have Spearman's ρ and Kendall's τ (b) of
    the means; of n descriptors that say little where n is small.

    Args:
        left: of `numbers`, on one set.
        right: likewise on another, or None: then a plot of the left alone, with the standard deviation
            over seeds where there are several.
        names: of the sets, one for each.

    Raises:
        ValueError: fewer than two methods are on both sides.
    """
    on_left = means(left)
    if right is None:
        return _dots(on_left, deviations(left), names[0])
    on_right = means(right)
    common = [key for key in on_left.index if key in on_right.index]
    if len(common) < 2:
        raise ValueError(f"{len(common)} methods on both sides; an order needs two or more")
    with style():
        figure, all_axes = new_figure(DOUBLE_WIDTH, 0.95 + 0.24 * len(common), len(TASKS))
        for axes, task in zip(all_axes, TASKS, strict=True):
            pair = pd.DataFrame({"left": on_left[task], "right": on_right[task]}).loc[common].dropna()
            places = pair.rank(method="first")
            for key, (start, end) in zip(pair.index, places.to_numpy(), strict=True):
                axes.plot([0, 1], [start, end], clip_on=False, **_look(common.index(key)), ms=5)
            labels = on_left.loc[pair.index, "label"] + pair["left"].map("  {:.1f}".format)
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
            axes.set_title(f"{task}\n{_agreement(pair)}", fontsize=8)
        _note(
            figure,
            f"means of {len(common)} descriptors, the best on top; verification: mean AP at 1 to 5, "
            "matching: mAP, retrieval: mAP over the whole pool (%)",
        )
    return figure


def _parts(axes: Axes, mean: pd.DataFrame, rows: np.ndarray, task: str, setups: tuple) -> None:
    """Setups a little above and below the row's middle; the light level is drawn last."""
    for place, (_, end, marker) in enumerate(setups):
        shift = 0.17 * (len(setups) - 1 - 2 * place)
        for level in reversed(LEVELS):
            key = f"{task}.{level}.{end}"
            if key in mean:
                axes.plot(
                    mean[key], rows + shift, marker,
                    color=LEVEL_COLOURS[level], mec="white", mew=0.4, ms=4.6, zorder=3, clip_on=False,
                )  # fmt: skip


def _borders(mean: pd.DataFrame) -> list[tuple[int, int]]:
    """Places of neighbouring rows of which one is trained on HPatches."""
    own = [key.endswith("_hp") for key in mean.index]
    return [(place, place + 1) for place in range(len(own) - 1) if own[place] != own[place + 1]]


def _legend() -> list:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    levels = [
        Line2D([], [], ls="", marker="o", color=colour, ms=5, mew=0, label=level)
        for level, colour in LEVEL_COLOURS.items()
    ]
    setups = [
        Line2D([], [], ls="", marker=marker, mec="black", mfc="none", mew=0.8, ms=5, label=label)
        for of_task in SETUPS.values()
        for label, _, marker in of_task
    ]
    return [Patch(color=BAR, label="mean"), *levels, *setups]


def _curve(
    axes: Axes, places: np.ndarray, values: pd.Series, spread: pd.Series | None, place: int, loss: str
) -> None:
    known = values.notna().to_numpy()
    shown = values.to_numpy(dtype=float)
    axes.errorbar(
        places[known],
        shown[known],
        yerr=None if spread is None else spread.to_numpy(dtype=float)[known],
        color=PALETTE[place],
        ls=LINES[place],
        marker="o^"[place],
        ms=4,
        capsize=2,
        elinewidth=0.9,
        label=loss,
    )
    best = known & (shown == np.nanmax(shown)) if known.any() else known
    axes.plot(places[best], shown[best], "o", mfc="none", mec=PALETTE[place], mew=1, ms=10)


def _ring() -> object:
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker="o", mfc="none", mec="black", ms=9)


def _agreement(pair: pd.DataFrame) -> str:
    # Of values that are all equal there is no order to agree with.
    if len(pair) < 2 or pair.nunique().min() < 2:
        return "ρ and τ undefined"
    rho, tau = (of(pair["left"], pair["right"]).statistic for of in (stats.spearmanr, stats.kendalltau))
    return f"ρ = {rho:.2f}, τ = {tau:.2f}"


def _look(place: int) -> dict:
    """Of a method, the same in every panel."""
    return {
        "color": PALETTE[place % len(PALETTE)],
        "ls": LINES[place % len(LINES)],
        "marker": METHOD_MARKERS[place % len(METHOD_MARKERS)],
    }


def _dots(mean: pd.DataFrame, deviation: pd.DataFrame, name: str) -> Figure:
    with style():
        figure, all_axes = new_figure(DOUBLE_WIDTH, 0.95 + 0.24 * len(mean), len(TASKS))
        for axes, task in zip(all_axes, TASKS, strict=True):
            order = mean[task].sort_values(kind="stable").index
            rows = np.arange(len(order))
            for row, key in zip(rows, order, strict=True):
                spread = deviation.loc[key, task]
                axes.errorbar(
                    mean.loc[key, task],
                    row,
                    xerr=spread if np.isfinite(spread) else None,
                    capsize=2,
                    **_look(mean.index.get_loc(key)),
                )
            axes.set_yticks(rows, mean.loc[order, "label"])
            axes.set_ylim(-0.6, len(order) - 0.4)
            axes.tick_params(axis="y", length=0)
            axes.margins(x=0.1)
            axes.grid()
            axes.set_title(task, loc="left")
            axes.set_xlabel(QUANTITIES[task])
        _note(figure, f"{name}; bar: standard deviation over seeds, where there are several")
    return figure


def _note(figure: Figure, note: str) -> None:
    if note:
        figure.supxlabel(note, fontsize=8, color=GREY, x=0.01, ha="left")
