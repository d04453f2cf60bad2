"""AdaSample's Figure 1 (Zhang et al.): how a triplet comes about, from data."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lib.study.open import Found
from lib.study.report import frames, plots
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, marker_legend, panels

OUTLINE = PALETTE[4]


def figure1(probe: Mapping[str, np.ndarray]) -> Figure:
    """Figure 1 from data: what may be drawn of real classes, and what was drawn.

    Each class's anchor, its candidates with p_i at three moments, and the negative. Candidates stand in
    the order of their distance to the anchor at the last moment, the nearest first; the class's real
    patches are outlined. All rows have one axis of p_i. A triangle over a bar marks the positive drawn
    at that moment; the negative is the last moment's.

    Args:
        probe: `lib.probes.drawn_pairs` of one run.
    """
    classes = len(probe["images"])
    size = (DOUBLE_WIDTH, 0.95 * classes + 0.6)
    with panels(*size, 1, 2 * classes) as (figure, rows):
        figure.get_layout_engine().set(h_pad=0.01, hspace=0)
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
        outlined = {"marker": "s", "mfc": "none", "mec": OUTLINE, "mew": 1.5, "ms": 7}
        entries["a real patch; the others are rotated copies"] = outlined
        entries["drawn"] = {"marker": "v", "color": GREY}
        marker_legend(figure, entries, ncols=3)
    return figure


def _drawn_class(probe: Mapping[str, np.ndarray], number: int, above: Axes, below: Axes) -> None:
    distance, images = probe["distance"][-1, number], probe["images"][number]
    order = np.argsort(distance)[: np.isfinite(distance).sum()]
    gap = 0.6
    first, end = 1 + gap, len(images) + 2 * gap
    anchor = probe["anchor"][number]
    for left, place in ((0.0, anchor), *zip(first + np.arange(len(order)), order, strict=True)):
        _patch(above, left, images[place], real=not probe["generated"][number, place])
    _patch(above, end, probe["negative"][-1, number], real=False)
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
    most = float(np.nanmax(probe["probability"]))
    below.set_ylim(-0.06, most + 0.15)
    for height in (tick for tick in (0, 0.25, 0.5, 0.75, 1) if tick <= most):
        below.axhline(height, color=GREY, lw=0.4, alpha=0.6, zorder=0)
        below.text(first - 0.15, height, f"{height:g}", ha="right", va="bottom", fontsize=6, color=GREY)


def _patch(axes: Axes, left: float, image: np.ndarray, *, real: bool) -> None:
    edges = (left + 0.01, left + 0.95, 0.02, 0.98)
    axes.imshow(image, cmap="gray", vmin=0, vmax=255, extent=edges, aspect="auto")
    if real:
        axes.add_patch(Rectangle((left + 0.02, 0.03), 0.92, 0.94, fill=False, ec=OUTLINE, lw=1.6))


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
    with panels(DOUBLE_WIDTH * 0.9, 2.2, 2, note=note) as (figure, [[left, right]]):
        known = curves.dropna(subset=names["exponent"])
        plots.curves(left, known, "step", names["exponent"], "label", ls="-")
        plots.curves(right, curves, "step", names["two_share"], "label", ls="-")
        left.set_ylim(bottom=0)
        right.set_ylim(-2, 100)
        for axes in (left, right):
            plots.label_ends(axes)
    return figure
