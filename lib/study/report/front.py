"""The tables of README that are made of the reference."""

import re
from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.study.report.together import FPR95, OPTIMISERS

# Below the reference: the four papers' methods with either optimiser.
EQUAL_FOOTING = "quick/mini/tables/together/optimisers_evening.csv"


def filled_in(text: str, reference: Path) -> str:
    """A document with the table of the methods on equal footing between its two comments.

    Raises:
        ValueError: the document has no such comments.
    """
    mark = re.compile(r"(?<=<!-- equal footing -->\n).*?(?=<!-- end of equal footing -->)", re.DOTALL)
    if not mark.search(text):
        raise ValueError("the document has no comments between which the methods stand")
    return mark.sub(lambda _: equal_footing(pd.read_csv(reference / EQUAL_FOOTING)), text)


def equal_footing(measured: pd.DataFrame) -> str:
    """A table in Markdown of methods: FPR95 and matching mAP in percent with either optimiser, the
    lowest FPR95 of either first.

    Args:
        measured: columns `method` and, e.g., "FPR95 Adam" and "matching Adam".
    """
    methods, names = measured.set_index("method"), tuple(OPTIMISERS.values())
    columns = {
        f"{metric}, {name}": methods[f"{metric} {name}"].map(f"{{:.{digits}f}}".format)
        for metric, digits in ((FPR95, 2), ("matching", 1))
        for name in names
    }
    best = methods[[f"{FPR95} {name}" for name in names]].min(axis=1)
    table = pd.DataFrame(columns).loc[best.sort_values().index]
    rows = [["method", *table], ["---"] * (len(columns) + 1), *table.itertuples()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def fill_in(path: Path, reference: Path) -> None:
    """Fills in a document in place; see `filled_in`."""
    write_bytes(path, filled_in(path.read_text(encoding="utf-8"), reference).encode())
