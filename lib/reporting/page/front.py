"""README's first lines, filled in from the quick reference: the four together, findings."""

import re
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
    """Equal footing, where it tells most, and the factorial in a sentence or two each; "" where no table
    is there.

    Args:
        tables: the folder of a reference's tables.
    """
    for notebook, profile, scenes in _COMPARED:
        behind = "" if profile == "quick" else f"_{profile}"
        files = [tables / f"{notebook}{part}{behind}.csv" for part in ("", "_orders")]
        if all(file.is_file() for file in files):
            levels, orders = map(pd.read_csv, files)
            seeds = f"{levels['FPR95 seeds'].min():.0f} seeds"
            source = f"[equal footing](notebooks/{notebook}.ipynb)"
            told = f"On {source} ({profile} size, {scenes}, {seeds}): {summed_up(levels, orders)}.\n"
            break
    else:
        return ""
    told += _optimiser(tables)
    effects = tables / f"{_FACTORIAL}_fpr95.csv"
    if effects.is_file():
        source = f"[a factorial](notebooks/{_FACTORIAL}.ipynb) (quick size)"
        file = tables / f"{_FACTORIAL}_half_weight.csv"
        halved = pd.read_csv(file) if file.is_file() else None
        told += f"\nIn {source} {factorial.summed_up(pd.read_csv(effects), halved)}.\n"
    confirmation = tables / f"{_FACTORIAL}_confirmation_evening.csv"
    if confirmation.is_file():
        told += (
            "\nThe largest of these effects again (evening size, seeds and photographs that nothing "
            "else has read, all else as in the combination that is best by the quick effects; in "
            "points): "
            f"{factorial.confirmed_in_words(pd.read_csv(confirmation))}.\n"
        )
    return told


def _optimiser(tables: Path) -> str:
    """What the optimiser alone is worth, in which HyNet+ differs from all others on equal footing."""
    file = tables / "hynet/ladder_evening.csv"
    if not file.is_file():
        return ""
    rung = pd.read_csv(file).set_index("rung").loc[SEARCHED["rung_adam"].label]
    change = "{:+.1f} points ({:.1f} to {:.1f})".format(*rung[[f"change {of}" for of in _ENDS]])
    return (
        "Each has its paper's optimiser, Adam for HyNet+ and SGD for all others; what that alone can be "
        f"worth: Adam changes SOSNet+'s {FPR95} by {change.replace('-', '−')} on [HyNet's "
        "ladder](notebooks/hynet/ladder.ipynb) (evening size).\n"
    )


def fill_in(path: Path, rows: pd.DataFrame, tables: Path) -> None:
    """Fills in a document in place; see `filled_in` and `equal_footing`."""
    filled = filled_in(path.read_text(encoding="utf-8"), rows, equal_footing(tables))
    write_bytes(path, filled.encode())
