"""Tables and figures as notebooks show them, and the files that they are saved to."""

import io
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, Image, Markdown, display
from matplotlib.figure import Figure
from pandas.api.types import is_numeric_dtype
from PIL import Image as Picture

from lib.files import write_bytes

# What would mark up a line of Markdown besides HTML: emphasis, links, code and equations.
_MARKS = re.compile(r"[\\`*\[\]$]")


def use_style() -> None:
    """Draw all figures in the study's style, whatever the user's matplotlibrc says.

    The style is `study.mplstyle` beside this file. It is sized for a journal's column and uses Okabe and
    Ito's palette, which colour-blind readers can tell apart.
    """
    mpl.rcdefaults()
    plt.style.use(Path(__file__).with_name("study.mplstyle"))


def footer(text: str) -> None:
    """Show one line of plain text that says where numbers come from."""
    plain = _MARKS.sub(r"\\\g<0>", escape(text, quote=False))
    display(Markdown(f"*{plain}*"))


def table(
    frame: pd.DataFrame,
    path: Path | None = None,
    decimals: int | Mapping[str, int] = 2,
    caption: str = "",
) -> None:
    """Show a table, and save it as CSV with six digits.

    Args:
        frame: the table; its index becomes columns if it has a name.
        path: of the CSV, without its suffix; None saves nothing.
        decimals: digits after the decimal point, for all floats or by column name (last level).
        caption: shown above the table.
    """
    save_table(frame, path)
    display(HTML(as_html(frame, decimals, caption)))


def save_table(frame: pd.DataFrame, path: Path | None) -> None:
    """Save a table as `table` does, without showing it; a path of None saves nothing."""
    if path is None:
        return
    flat = _with_index(frame)
    if flat.columns.nlevels > 1:
        flat.columns = [" ".join(str(part) for part in head if part) for head in flat.columns]
    content = flat.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    write_bytes(path.with_name(f"{path.name}.csv"), content.encode())


def figure(
    drawn: Figure,
    alt: str,
    path: Path | None = None,
    frame: pd.DataFrame | None = None,
    frame_path: Path | None = None,
) -> None:
    """Show a figure at 100 px an inch, save it as PNG, and save its data as CSV.

    Args:
        drawn: the figure, which is closed here.
        alt: a description of the picture for readers who do not see it.
        path: of the PNG, without its suffix; None saves nothing.
        frame: the data drawn, or None.
        frame_path: of the CSV of the data, without its suffix; None saves nothing.
    """
    if frame is not None:
        save_table(frame, frame_path)
    content = png(drawn)
    plt.close(drawn)
    if path is not None:
        write_bytes(path.with_name(f"{path.name}.png"), content)
    width = round(drawn.get_figwidth() * 100)
    display(Image(content, format="png", width=width, alt=alt))


def png(drawn: Figure) -> bytes:
    """Return a figure as PNG at 200 dpi, without time or version, so that its bytes are reproducible.

    A palette of 128 colours is enough for lines and grey patches, and halves the size of committed
    files.
    """
    canvas = io.BytesIO()
    content = io.BytesIO()
    # Only what is returned is compressed.
    drawn.savefig(canvas, dpi=200, pil_kwargs={"compress_level": 0})
    Picture.open(canvas).convert("RGB").quantize(128).save(content, "png", optimize=True)
    return content.getvalue()


def as_html(frame: pd.DataFrame, decimals: int | Mapping[str, int] = 2, caption: str = "") -> str:
    """Return a rounded table as HTML, the same on every machine, with a dot for a missing value.

    Args:
        frame: any frame, with one or two levels of column heads; its index is shown if it has a name.
        decimals: digits after the decimal point of floats, for all or by (last level of) column name.
        caption: shown above the table.
    """
    shown = _with_index(frame)
    cells = {}
    heads = []
    for head, column in shown.items():
        parts = head if isinstance(head, tuple) else (head,)
        digits = decimals if isinstance(decimals, int) else decimals.get(parts[-1], 2)
        align = str if is_numeric_dtype(column) else _left
        cells[len(cells)] = [align(_cell(value, digits)) for value in column]
        heads.append(tuple(align(escape(str(part))) for part in parts))
    heads = pd.MultiIndex.from_tuples(heads) if shown.columns.nlevels > 1 else [h for [h] in heads]
    aligned = pd.DataFrame(cells).set_axis(heads, axis=1)
    html = aligned.to_html(index=False, border=0, justify="right", escape=False)
    above = f"\n  <caption>{escape(caption)}</caption>" if caption else ""
    return html.replace("\n  <thead>", f"{above}\n  <thead>", 1)


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its index as columns, if the index has a name."""
    return frame.reset_index(drop=not any(frame.index.names))


def _left(text: str) -> str:
    return f'<div style="text-align: left">{text}</div>' if text else ""


def _cell(value: object, digits: int) -> str:
    if pd.isna(value):
        return "·"
    if not isinstance(value, float):
        return escape(str(value))
    # A value that rounds to 0 has no sign.
    return f"{value:z.{digits}f}".replace("-", "−")
