"""What README shows of the reference, filled in: the four together, findings."""

import re
from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.study.report.page import verdicts
from lib.study.report.together import FPR95, OPTIMISERS

_FINDINGS, _EQUAL = "findings", "equal footing"
_OPTIMISERS = "together/optimisers"


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
    """A table in Markdown of the four papers' methods with either optimiser at the evening's size: FPR95
    and matching mAP in percent, the lowest FPR95 of either first; "" where that is not on record.

    Args:
        tables: the folder of a reference's tables.
    """
    file = tables / f"{_OPTIMISERS}_evening.csv"
    if not file.is_file():
        return ""
    methods, names = pd.read_csv(file).set_index("method"), tuple(OPTIMISERS.values())
    columns = {
        f"{of}, {name}": methods[f"{of} {name}"].map(f"{{:.{digits}f}}".format)
        for of, digits in ((FPR95, 2), ("matching", 1))
        for name in names
    }
    best = methods[[f"{FPR95} {name}" for name in names]].min(axis=1)
    table = pd.DataFrame(columns).loc[best.sort_values().index]
    rows = [
        ["method", *table],
        ["---"] * (len(columns) + 1),
        *table.itertuples(),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def fill_in(path: Path, rows: pd.DataFrame, tables: Path) -> None:
    """Fills in a document in place; see `filled_in` and `equal_footing`."""
    filled = filled_in(path.read_text(encoding="utf-8"), rows, equal_footing(tables))
    write_bytes(path, filled.encode())
