"""Figures of HPatches (Balntas et al., CVPR 2017): its three tasks, and how two sets order descriptors.

`runs` are those of `lib.study.report.hpatches.numbers`, in percent.
"""

import itertools

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.study.report import frames, plots
from lib.study.report.hpatches import LEVELS, TASKS
from lib.study.report.style import DOUBLE_WIDTH, marker_legend, panels

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
