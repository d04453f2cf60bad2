"""README's findings, filled in from the verdicts of the quick reference."""

import re
from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.reporting.page import verdicts

_FINDINGS = re.compile(r"(?<=<!-- findings -->\n).*?(?=<!-- end of findings -->)", re.DOTALL)


def filled_in(text: str, rows: pd.DataFrame) -> str:
    """A document whose findings are those that the report's first screen names.

    Args:
        text: Markdown with what was last filled in between ``<!-- findings -->`` and ``<!-- end of
            findings -->``.
        rows: of `verdicts.read_verdicts`.

    Raises:
        ValueError: the marks are missing.
    """
    if not _FINDINGS.search(text):
        raise ValueError("the document has no marks between which findings stand")
    lines = []
    for row in verdicts.findings(rows).to_dict("records"):
        behind = "; ".join(verdicts.facts(row))
        source = f"[{row['artefact']}](notebooks/{row['notebook']}.ipynb)"
        lines.append(f"- **{row['verdict'].capitalize()}**: {row['sentence']} ({behind}; {source})\n")
    return _FINDINGS.sub(lambda _: "".join(lines), text)


def fill_in(path: Path, rows: pd.DataFrame) -> None:
    """Fills in a document in place; see `filled_in`."""
    write_bytes(path, filled_in(path.read_text(encoding="utf-8"), rows).encode())
