"""Tables as HTML, rounded, the same on every machine."""

from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

MISSING = "·"


def as_html(table: pd.DataFrame, decimals: int | Mapping[str, int] = 2, caption: str = "") -> str:
    """A table as HTML, a dot where a value is missing.

    Args:
        table: any frame, with one or two levels of heads; its index is shown if it has a name.
        decimals: digits after the point of floats, for all or by (last level of) column name.
        caption: stands above.
    """
    body = with_index(table)
    heads = [head if isinstance(head, tuple) else (head,) for head in body.columns]
    columns, names = {}, []
    for at, head in enumerate(heads):
        digits = decimals if isinstance(decimals, int) else decimals.get(head[-1], 2)
        cells = [_cell(value, digits) for value in body.iloc[:, at]]
        number = is_numeric_dtype(body.iloc[:, at])
        columns[at] = cells if number else [_left(cell) for cell in cells]
        names.append(tuple(escape(str(part)) if number else _left(escape(str(part))) for part in head))
    shown = pd.DataFrame(columns, dtype=object)
    shown.columns = (
        pd.MultiIndex.from_tuples(names) if body.columns.nlevels > 1 else [n[0] for n in names]
    )
    html = shown.to_html(index=False, border=0, justify="right", escape=False)
    above = f"\n  <caption>{escape(caption)}</caption>" if caption else ""
    return html.replace("\n  <thead>", f"{above}\n  <thead>", 1)


def of_verdicts(verdicts: pd.DataFrame) -> str:
    """Verdicts as one HTML table: the sentence, the printed value, ours with its interval, the verdict.

    A reason that all verdicts share stands once, below the table.

    Args:
        verdicts: of `lib.study.claims.judge`.
    """
    ours = [
        _estimate(*row)
        for row in verdicts[["observed", "low", "high", "unit"]].itertuples(index=False, name=None)
    ]
    shown = verdicts[["sentence", "printed", "rival", "verdict", "why"]].replace("", None)
    shown.insert(2, "ours (95%)", ours)
    shared = shown["why"].unique()
    note = shared[0] if len(shared) == 1 and len(shown) > 1 else None
    shown = shown.drop(columns="why" if note else []).dropna(axis=1, how="all")
    return as_html(shown, 3) + (f"<p>{escape(note)}</p>" if note else "")


def _estimate(observed: float, low: float, high: float, unit: str) -> str | None:
    if pd.isna(observed):
        return None
    text = f"{observed:.3g} {unit}".rstrip()
    return (text if pd.isna(low) else f"{text} ({low:.3g} to {high:.3g})").replace("-", "−")


def with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its index as columns, if it has a name."""
    return table.reset_index() if any(name is not None for name in table.index.names) else table.copy()


def _left(text: str) -> str:
    return f'<div style="text-align: left">{text}</div>' if text else ""


def _cell(value: object, digits: int) -> str:
    if pd.isna(value):
        return MISSING
    if isinstance(value, float | np.floating):
        text = f"{value:.{digits}f}"
        return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")
    return escape(str(value))
