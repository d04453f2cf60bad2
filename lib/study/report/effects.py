"""What changing one option does to FPR95: changes from the default, and where the docs show them."""

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.statistics.intervals import Measured
from lib.study.report.changes import changes, levels

DEFAULT = "default"
_MARK = re.compile(r"<!-- effect: (?P<recipe>[\w+*-]+), (?P<option>[^>]+?) -->[^|\n]*")
_PROFILE = re.compile(r"[(;] ?([a-z]+), ")


def effects(by_recipe: Mapping[str, Mapping[str, Measured]]) -> pd.DataFrame:
    """Changes from the default.

    Args:
        by_recipe: by recipe and option FPR95 in percent, (seeds, test sets); each recipe has the option
            "default".

    Returns:
        A row an option, in the order given: `recipe`, `option`, `mean` FPR95 (%), `sd` of it over the
        `seeds`, and the `change` from the recipe's default in points, with its interval `from` and `to`.
        The default's own change is missing.
    """
    tables = {}
    for recipe, of in by_recipe.items():
        pairs = {option: (option, DEFAULT) for option in of if option != DEFAULT}
        spread = [each.values.mean(axis=1).std(ddof=1) for each in of.values()]
        table = levels(of)[["mean", "seeds"]].assign(sd=spread)
        tables[recipe] = table.join(changes(of, pairs))
    return pd.concat(tables, names=["recipe", "option"]).reset_index()


def filled_in(text: str, table: pd.DataFrame, where: str) -> str:
    """A document with its marked cells filled in.

    Args:
        text: Markdown whose cells hold ``<!-- effect: RECIPE, OPTION -->`` and what was last filled in,
            or nothing.
        table: from `effects`.
        where: profile and data. What was last filled in of another profile stays as it is.

    Raises:
        ValueError: a mark names an option that is not in the table, and its cell does not say so.
    """
    known = table.set_index(["recipe", "option"])

    def cell(found: re.Match) -> str:
        mark, end, filled = found[0].partition("-->")
        of, key = _PROFILE.search(filled), (found["recipe"], found["option"])
        of_another = of is not None and of[1] != where.partition(",")[0]
        if of_another or (key not in known.index and not filled.strip()):
            return found[0]
        if key not in known.index:
            raise ValueError(f"the document asks for the effect of {key}, which was not computed")
        row = known.loc[key]
        interval = f"{row['from']:+.2f} to {row['to']:+.2f}"
        return f"{mark}{end} {row['change']:+.2f} ({interval}; {where}, {row['seeds']:.0f} seeds) "

    return _MARK.sub(cell, text)


def fill_in(path: Path, table: pd.DataFrame, where: str) -> None:
    """Fills in a document in place; see `filled_in`."""
    write_bytes(path, filled_in(path.read_text(encoding="utf-8"), table, where).encode())
