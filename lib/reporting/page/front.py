"""README's first lines, filled in from the quick reference: the four together, findings."""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lib.experiments.artefacts import SEARCHED
from lib.files import write_bytes
from lib.reporting import factorial
from lib.reporting.page import verdicts
from lib.reporting.together import FPR95, summed_up

_FINDINGS, _EQUAL = "findings", "equal footing"
_FACTORIAL = "together/factorial"
# Comparisons on equal footing, their size and how many scenes are trained on, what tells more first.
_COMPARED = (
    ("together/equal_footing", "evening", "one scene"),
    ("together/scenes", "quick", "three scenes"),
    ("together/equal_footing", "quick", "one scene"),
)

_ENDS = ("points", "from", "to")


def filled_in(text: str, rows: pd.DataFrame, equal: str = "") -> str:
    """A document whose findings are those that the report's first screen names.

    Args:
        text: Markdown with what was last filled in between ``<!-- findings -->`` and ``<!-- end of
            findings -->``, and between the like marks of ``equal footing``.
        rows: of `verdicts.read_verdicts`.
        equal: of `equal_footing`; "" leaves that as it is.

    Raises:
        ValueError: marks are missing.
    """
    lines = []
    for row in verdicts.findings(rows).to_dict("records"):
        behind = "; ".join(verdicts.facts(row))
        source = f"[{row['artefact']}](notebooks/{row['notebook']}.ipynb)"
        lines.append(f"- **{row['verdict'].capitalize()}**: {row['sentence']} ({behind}; {source})\n")
    text = _between(text, _FINDINGS, "".join(lines))
    return _between(text, _EQUAL, equal) if equal else text


def _between(text: str, mark: str, content: str) -> str:
    place = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL)
    if not place.search(text):
        raise ValueError(f"the document has no marks between which {mark} stand")
    return place.sub(lambda _: content, text)


def equal_footing(tables: Path) -> str:
    """Equal footing, where it tells most, what the optimiser has to do with it, the factorial and its
    confirmation; "" where no table is there.

    Args:
        tables: the folder of a reference's tables.
    """
    for notebook, profile, scenes in _COMPARED:
        behind = "" if profile == "quick" else f"_{profile}"
        files = [tables / f"{notebook}{part}{behind}.csv" for part in ("", "_orders")]
        if all(file.is_file() for file in files):
            levels, orders = map(pd.read_csv, files)
            pairs = _pairs(tables, notebook, orders["measure"], behind)
            seeds = f"{levels['FPR95 seeds'].min():.0f} seeds"
            source = f"[equal footing](notebooks/{notebook}.ipynb)"
            summed = summed_up(levels, orders, pairs)
            told = f"On {source} ({profile} size, {scenes}, {seeds}): {summed}.\n"
            break
    else:
        return ""
    told += _optimiser(tables)
    effects = tables / f"{_FACTORIAL}_fpr95.csv"
    if not effects.is_file():
        return told
    source = f"[a factorial](notebooks/{_FACTORIAL}.ipynb) (quick size)"
    file = tables / f"{_FACTORIAL}_half_weight.csv"
    halved = pd.read_csv(file) if file.is_file() else None
    told += f"\nIn {source} {factorial.summed_up(pd.read_csv(effects), halved)}.\n"
    confirmation = tables / f"{_FACTORIAL}_confirmation_evening.csv"
    if confirmation.is_file():
        told += f"{factorial.confirmed_in_words(pd.read_csv(confirmation))}.\n"
    return told + _at_both_sizes(tables)


def _pairs(tables: Path, notebook: str, measures: Iterable[str], behind: str) -> dict[str, pd.DataFrame]:
    files = {of: tables / f"{notebook}_pairs_{of.lower()}{behind}.csv" for of in measures}
    return {measure: pd.read_csv(file) for measure, file in files.items() if file.is_file()}


def _optimiser(tables: Path) -> str:
    """What the optimiser alone is worth; HyNet+ alone has another than the rest."""
    file = tables / "hynet/ladder_evening.csv"
    if not file.is_file():
        return ""
    rung = pd.read_csv(file).set_index("rung").loc[SEARCHED["rung_adam"].label]
    change = "{:+.1f} points ({:.1f} to {:.1f})".format(*rung[[f"change {of}" for of in _ENDS]])
    return (
        "HyNet+ is trained with Adam, as its authors do, all others with SGD; what that alone can be "
        f"worth: Adam changes SOSNet+'s {FPR95} by {change.replace('-', '−')} on [HyNet's "
        "ladder](notebooks/hynet/ladder.ipynb) (evening size).\n"
    )


def _at_both_sizes(tables: Path) -> str:
    """How far DSM and TCDesc change FPR95 on equal footing, at the factorial's size and at evening."""
    sizes = [_pairs(tables, "together/equal_footing", [FPR95], behind) for behind in ("", "_evening")]
    if not all(sizes):
        return ""
    told = []
    for name, other in (("DSM+", "HardNet+"), ("TCDesc-DSM+", "DSM+")):
        changes = []
        for size in sizes:
            of = size[FPR95].set_index(["better", "worse"])[["ahead", "from", "to"]]
            lower = (name, other) in of.index
            ahead, low, high = of.loc[(name, other) if lower else (other, name)]
            ends = (-ahead, -high, -low) if lower else (ahead, low, high)
            changes.append("{:+.1f} ({:.1f} to {:.1f})".format(*ends).replace("-", "−"))
        told.append(f"{name} less {other} is {' and '.join(changes)}")
    return (
        "An effect may be another at another size: on equal footing, in points at the quick size and at "
        f"the evening's, {', '.join(told)}.\n"
    )


def fill_in(path: Path, rows: pd.DataFrame, tables: Path) -> None:
    """Fills in a document in place; see `filled_in` and `equal_footing`."""
    filled = filled_in(path.read_text(encoding="utf-8"), rows, equal_footing(tables))
    write_bytes(path, filled.encode())
