"""What changing one option does to FPR95: differences from the default over seeds, and in the docs."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.files import write_bytes
from lib.reporting import plots
from lib.reporting.style import DOUBLE_WIDTH, GREY, panels
from lib.significance import difference

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
        change = (np.nan, np.nan) if option == DEFAULT else difference(values, runs[recipe, DEFAULT])
        rows.append((recipe, option, np.mean(values), np.std(values, ddof=1), *change, len(values)))
    columns = ["recipe", "option", "FPR95", "sd", "change", "s.e.", "n"]
    return pd.DataFrame(rows, columns=columns)


def two_settings(values: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """Compare two settings over seeds: their means, and the difference with its standard error.

    Args:
        values: (seeds, settings) FPR95 in percent, a column a setting; 2 seeds or more for a spread.
        before, after: the two columns.

    Returns:
        Rows `before`, `after` and their difference; columns `mean`, `sd` over seeds and `s.e.` of
        the mean; that of the difference is Welch's.
    """
    of = values[[before, after]]
    table = pd.DataFrame({"mean": of.mean(), "sd": of.std(ddof=1), "s.e.": of.sem(ddof=1)})
    change, error = difference(values[after], values[before])
    table.loc[f"{after} − {before}"] = [change, np.nan, error]
    return table.rename_axis("FPR95 (%)")


def effects_figure(table: pd.DataFrame, note: str) -> Figure:
    """The changes with twice their standard error either way, a row an option.

    Args:
        table: from `effects`.
        note: profile, data and seeds.
    """
    shown = table.dropna(subset="change").assign(error=2 * table["s.e."])
    size = (DOUBLE_WIDTH * 0.8, 0.8 + 0.24 * len(shown))
    with panels(*size, note=note, legend=2) as (figure, [[axes]]):
        plots.intervals(axes, shown, "change", "error", "option", "recipe")
        axes.axvline(0, color=GREY, lw=1)
        axes.set_xlabel("change of mean FPR95 (points; right is worse), bar: ± 2 s.e.")
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
    known = table.set_index(["recipe", "option"])

    def cell(found: re.Match) -> str:
        of = _PROFILE.search(found[0].partition("-->")[2])
        if of is not None and of[1] != where.partition(",")[0]:
            return found[0]
        key = found["recipe"], found["option"]
        if key not in known.index:
            raise ValueError(f"the document asks for the effect of {key}, which was not computed")
        row = known.loc[key]
        mark = found[0].partition("-->")[0] + "-->"
        return f"{mark} {row['change']:+.2f} ± {row['s.e.']:.2f} ({where}, {row['n']:.0f} seeds) "

    return _MARK.sub(cell, text)


def fill_in(path: Path, table: pd.DataFrame, where: str) -> None:
    """Fills in a document in place; see `filled_in`."""
    write_bytes(path, filled_in(path.read_text(encoding="utf-8"), table, where).encode())
