"""What changing one option does to FPR95: differences from the default over seeds, and in the docs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.files import write_bytes
from lib.reporting import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT = "default"
_MARK = re.compile(r"<!-- effect: (?P<recipe>[\w+*-]+), (?P<option>[^>]+?) -->[^|\n]*")

_PROFILE = re.compile(r"\((\w+), ")


def effects(runs: Mapping[tuple[str, str], Sequence[float]]) -> pd.DataFrame:
    """Differences from the default.

    Args:
        runs: by (recipe, option) the FPR95 in percent of each seed, equally many everywhere; each
            recipe has the option "default".

    Returns:
        A row an option, in the order given: `recipe`, `option`, `FPR95` (mean, %), `sd` over seeds,
        `change` of the mean from the recipe's default in points, its Welch standard error `s.e.`, and
        `n`, the number of seeds. The default's own change is missing.

    Raises:
        ValueError: a recipe has no default.
    """
    rows = []
    for (recipe, option), values in runs.items():
        if (recipe, DEFAULT) not in runs:
            raise ValueError(f"{recipe} has no {DEFAULT!r} to compare with")
        value, base = np.asarray(values), np.asarray(runs[recipe, DEFAULT])
        change = error = np.nan
        if option != DEFAULT:
            change = value.mean() - base.mean()
            error = np.sqrt(value.var(ddof=1) / len(value) + base.var(ddof=1) / len(base))
        spread = value.std(ddof=1)
        rows.append((recipe, option, value.mean(), spread, change, error, len(value)))
    columns = ["recipe", "option", "FPR95", "sd", "change", "s.e.", "n"]
    return pd.DataFrame(rows, columns=columns)


def effects_figure(table: pd.DataFrame, note: str) -> Figure:
    """The changes with twice their standard error either way, a row an option.

    Args:
        table: from `effects`.
        note: profile, data and seeds.
    """
    shown = table.dropna(subset="change").iloc[::-1].reset_index(drop=True)
    with figures.style():
        figure, (axes,) = figures.new_figure(figures.DOUBLE_WIDTH * 0.8, 0.8 + 0.24 * len(shown))
        for place, (recipe, of) in enumerate(shown.groupby("recipe", sort=False)):
            axes.errorbar(
                of["change"],
                of.index,
                xerr=2 * of["s.e."],
                fmt="o",
                ms=4,
                lw=1.2,
                color=figures.PALETTE[place],
                label=recipe,
            )
        axes.axvline(0, color=figures.GREY, lw=1)
        axes.set_yticks(range(len(shown)), shown["option"])
        axes.grid(axis="x")
        axes.set_xlabel("change of mean FPR95 (points; right is worse), bar: ± 2 s.e.")
        axes.set_title(note, loc="left", fontsize=8, color=figures.GREY)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def filled_in(text: str, table: pd.DataFrame, where: str) -> str:
    """A document with its marked cells filled in.

    Args:
        text: Markdown whose cells hold ``<!-- effect: RECIPE, OPTION -->`` and what was last filled in.
        table: from `effects`.
        where: profile and data. What was last filled in of another profile stays as it is.

    Raises:
        ValueError: a mark names an option that is not in the table.
    """
    known = {(row.recipe, row.option): row for row in table.itertuples()}

    def cell(found: re.Match) -> str:
        of = _PROFILE.search(found[0].partition("-->")[2])
        if of is not None and of[1] != where.partition(",")[0]:
            return found[0]
        key = found["recipe"], found["option"]
        if key not in known:
            raise ValueError(f"the document asks for the effect of {key}, which was not computed")
        row = known[key]
        error = table.loc[row.Index, "s.e."]
        mark = found[0].partition("-->")[0] + "-->"
        return f"{mark} {row.change:+.2f} ± {error:.2f} ({where}, {row.n} seeds) "

    return _MARK.sub(cell, text)


def fill_in(path: Path, table: pd.DataFrame, where: str) -> None:
    """Fills in a document in place; see `filled_in`."""
    write_bytes(path, filled_in(path.read_text(encoding="utf-8"), table, where).encode())
