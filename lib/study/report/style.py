"""How figures look: sized for a journal's column, colour-blind safe, and their PNGs.

The palette is Okabe and Ito's; methods differ in marker or line style as well, so that grey prints can
be read. Everything else is in `study.mplstyle` beside this file.
"""

import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

COLUMN_WIDTH = 3.5
DOUBLE_WIDTH = 7.2
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (6, 2)))
MARKERS = "os^Dv<>PX"
# The first methods have the first colours; "+" is augmentation, "*" generated positives.
METHODS = (
    *("HardNet", "AdaSample", "HardNet-GOR", "Hardpos", "DSM", "DOAP", "L2-Net"),
    *("TFeat-M", "CS-L2-Net", "SOSNet", "HyNet"),
)
DASHES = {"+*": LINES[0], "*": LINES[1], "+": LINES[2], "": LINES[3]}
GREY = "#777777"
BELOW = "outside lower center"


STYLE = Path(__file__).with_name("study.mplstyle")


def use() -> None:
    """Draw all figures in the study's style, whatever the user's matplotlibrc says."""
    mpl.rcdefaults()
    plt.style.use(STYLE)


def style() -> AbstractContextManager[None]:
    """Draw in the study's style inside a `with` block, whatever the user's matplotlibrc says."""
    return mpl.rc_context(fname=STYLE)


@contextmanager
def panels(
    width: float,
    height: float,
    columns: int = 1,
    rows: int = 1,
    *,
    note: str = "",
    grid: str = "",
    xlabel: str = "",
    ylabel: str = "",
    legend: int = 0,
    **layout: object,
) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure in the study's style, drawn inside a `with` block.

    It is bound to no window and to no global state, so nothing has to be closed.

    Args:
        width, height: inches.
        columns, rows: of axes.
        note: what the values are of; stands above, small and grey.
        grid: "x", "y" or "both", of all axes.
        xlabel: below the last row.
        ylabel: left of the first column.
        legend: its columns, below the panels; each label that is drawn stands in it once.
        layout: for `Figure.subplots`, e.g. `sharey=True`.

    Yields:
        The figure, and its axes, (rows, columns).
    """
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        all_axes = figure.subplots(rows, columns, squeeze=False, **layout)
        for axes in all_axes.flat if grid else ():
            axes.grid(axis=grid)
        for axes in all_axes[-1]:
            axes.set_xlabel(xlabel)
        for axes in all_axes[:, 0]:
            axes.set_ylabel(ylabel)
        yield figure, all_axes
        if legend:
            named = {}
            for axes in all_axes.flat:
                for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                    named.setdefault(name, handle)
            figure.legend(named.values(), named, loc=BELOW, ncols=legend, columnspacing=1.2)
        if note:
            figure.suptitle(note, fontsize=8, color=GREY, x=0.01, ha="left")


def look(place: int, *, marker: bool = False) -> dict[str, object]:
    """Colour and line, or marker, of the place-th method, the same wherever it is drawn."""
    # As many lines as colours: the second round of colours begins with another line.
    line = {"ls": LINES[(place + place // len(PALETTE)) % len(LINES)]}
    dot = {"ls": "none", "marker": MARKERS[place % len(MARKERS)]}
    return {"color": PALETTE[place % len(PALETTE)], **(dot if marker else line)}


def looks(labels: Sequence[str]) -> dict[str, dict[str, object]]:
    """Colour and line of each label, no two alike.

    Where methods are among the labels, colour tells the method and dash its marks, e.g. that of
    AdaSample+* is the same wherever it is drawn; otherwise both go by place. A binary descriptor has
    the colour of its method.
    """
    parted = [re.fullmatch(r"(.*?)(\+?\*?)(?: binary| by sign)?", of).groups() for of in labels]
    methods = list(dict.fromkeys([*METHODS, *(method for method, _ in parted)]))
    if not any(method in METHODS for method, _ in parted):
        return {label: look(place) for place, label in enumerate(labels)}
    taken: dict[str, tuple] = {}
    for label, (method, marks) in zip(labels, parted, strict=True):
        colour = PALETTE[methods.index(method) % len(PALETTE)]
        own = ((colour, line) for line in (DASHES[marks], *LINES))
        # Where a colour has no line left, another's.
        choices = itertools.chain(own, itertools.product(PALETTE, LINES))
        taken[label] = next(choice for choice in choices if choice not in taken.values())
    return {label: dict(zip(("color", "ls"), choice, strict=True)) for label, choice in taken.items()}


def marker_legend(figure: Figure, entries: Mapping[str, Mapping], **how: object) -> None:
    """A legend of markers below the panels, by label what `Line2D` takes."""
    handles = [Line2D([], [], label=label, **{"ls": "none", **of}) for label, of in entries.items()]
    figure.legend(handles=handles, loc=BELOW, **how)


def png(figure: Figure) -> bytes:
    """A figure's PNG at 200 dpi. It holds no time and no version: one figure, the same bytes.

    128 colours of the figure's own are enough for lines and grey patches, and halve what is committed.
    """
    drawn, buffer = io.BytesIO(), io.BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=200)
    Image.open(drawn).convert("RGB").quantize(128).save(buffer, format="png", optimize=True)
    return buffer.getvalue()
