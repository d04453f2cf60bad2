"""Photographs and patches in figures: grey, no larger than they are seen, and side by side."""

from collections.abc import Collection, Sequence

import numpy as np
from matplotlib.axes import Axes

from lib.data.images import reduced

# Light enough to be told apart on grey photographs.
ON_GREY = ("#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#009E73", "#D55E00")
# Pixels an inch of photographs, as a notebook shows them: with more, files would be large for nothing.
DENSITY = 100
# Between the patches of a mosaic, px.
GAP = 4


def show(
    axes: Axes, grey: np.ndarray, width: float | None = None, first: tuple[int, int] = (0, 0)
) -> None:
    """Draw a grey picture, without axes around it; they get its pixels' coordinates, and keep them.

    Args:
        axes: to draw on.
        grey: (H, W), 0 to 255.
        width: inches that it is drawn in; it is reduced to `DENSITY`. None draws it as it is.
        first: x and y of its first pixel, where it is a part of a larger one.
    """
    (x, y), (high, wide) = first, grey.shape
    edges = (x - 0.5, x + wide - 0.5, y + high - 0.5, y - 0.5)
    # As long as it is where it has the width that it is drawn in.
    seen = grey if width is None else reduced(grey, round(DENSITY * width * max(high, wide) / wide))
    axes.imshow(seen, cmap="gray", vmin=0, vmax=255, interpolation="nearest", extent=edges)
    axes.autoscale(False)
    axes.set_axis_off()


def outline(axes: Axes, region: np.ndarray, colour: str) -> None:
    """Draw what an affine map (2, 3) makes of the unit circle, and of its hand along x.

    A dark rim keeps light lines visible on light ground. Smooth edges would double the file's size.
    """
    angle = np.linspace(0, 2 * np.pi, 97)
    circle = region @ np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)])
    # The circle starts where the hand ends.
    line = np.column_stack([region[:, 2], circle])
    for shade, thickness in (("black", 2.2), (colour, 1.2)):
        axes.plot(*line, color=shade, lw=thickness, antialiased=False)


def beside(
    axes: Axes, text: str, at: tuple[float, float], points: tuple[float, float], **how: object
) -> None:
    """Write at a position in the axes, in shares of their width and height, moved by some points."""
    axes.annotate(text, at, points, "axes fraction", "offset points", **how)


def evenly(items: Sequence[int], most: int) -> list[int]:
    """At most so many of them, evenly spaced."""
    chosen = np.linspace(0, len(items) - 1, min(most, len(items))).round().astype(int)
    return [items[index] for index in chosen]


def mosaic(
    axes: Axes, patches: np.ndarray, labels: Sequence[object], breaks: Collection[int] = ()
) -> np.ndarray:
    """Draw patches (rows, columns, s, s) on white, each row with a label before it.

    Args:
        axes: to draw on, in pixels of the mosaic.
        patches: grey values.
        labels: of the rows.
        breaks: columns that stand farther from the one before.

    Returns:
        (columns,) left edges of the columns, px.
    """
    rows, columns, side = patches.shape[:3]
    steps = [side + GAP * (3 if column in breaks else 1) for column in range(1, columns)]
    lefts = np.cumsum([0, *steps])
    tops = np.arange(rows) * (side + GAP)
    canvas = np.full((tops[-1] + side, lefts[-1] + side), 255, np.uint8)
    for top, row in zip(tops, patches, strict=True):
        for left, patch in zip(lefts, row, strict=True):
            canvas[top : top + side, left : left + side] = patch
    show(axes, canvas)
    axes.set_axis_on()
    axes.set_yticks(tops + side / 2, [str(label) for label in labels])
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=7, labelcolor="0.4", pad=2)
    axes.spines[:].set_visible(False)
    return lefts
