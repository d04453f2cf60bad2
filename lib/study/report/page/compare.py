"""What a study's results folder holds against the committed reference of the same profile.

Both folders hold `records/**/*.json`, `tables/**/*.csv` and `figures/**/*.png`. A table or figure
that the reference has and the results lack is a failure. Numbers that differ are reported, since
processors and library builds differ; figures are compared by presence only.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

# Numbers within ABSOLUTE + RELATIVE·|reference| agree.
ABSOLUTE = 0.005
RELATIVE = 1e-3
PATTERNS = (("tables", "*.csv"), ("figures", "*.png"))
HEADS = ["table", "row", "column", "reference", "results", "difference"]


@dataclass(frozen=True)
class Comparison:
    """Outcome of comparing results with the reference.

    Attributes:
        missing: tables and figures of the reference that the results lack, as paths in the folder.
        extra: tables and figures that only the results have.
        compared: how many tables were compared, and how many cells of them.
        differences: one row a differing cell: `table`, `row` (first cell of the row, or its
            number), `column`, `reference`, `results`, `difference` (NaN if not both numbers). A
            table of another shape gives one row whose column is `(shape)`.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    compared: tuple[int, int]
    differences: pd.DataFrame

    def text(self, most: int = 20) -> str:
        """Return a summary in plain text with at most `most` differing cells."""
        tables, cells = self.compared
        lines = [
            f"Compared with the reference: {tables} tables, {cells} cells; numbers agree within "
            f"{ABSOLUTE:g} + {RELATIVE:g}·|reference|."
        ]
        lines += [f"MISSING: {name} (the reference has it)" for name in self.missing]
        lines += [f"New: {name} (not in the reference)" for name in self.extra]
        if self.differences.empty:
            lines += ["No cell differs."] * (tables > 0)
            return "\n".join(lines)
        count = len(self.differences)
        lines.append(f"{count} cell{' differs' if count == 1 else 's differ'}; reported, no failure.")
        for row in self.differences.head(most).itertuples():
            lines.append(f"  {row.table}, {row.row}, {row.column}: {row.reference} -> {row.results}")
        if count > most > 0:
            lines.append(f"  and {count - most} more")
        return "\n".join(lines)


def compare(results: Path, reference: Path, *, selected: Collection[str] | None = None) -> Comparison:
    """Compare a results folder with a reference folder.

    Args:
        results: what the study made.
        reference: what it is compared with.
        selected: as in `artefacts_in`.

    """
    ours, theirs = (set(artefacts_in(folder, selected)) for folder in (results, reference))
    tables = sorted(name for name in ours & theirs if name.endswith(".csv"))
    differences, cells = [pd.DataFrame(columns=HEADS)], 0
    for name in tables:
        before, now = (
            pd.read_csv(folder / name, dtype=object, keep_default_na=False)
            for folder in (reference, results)
        )
        if list(before.columns) != list(now.columns) or len(before) != len(now):
            shapes = [f"{table.shape} {list(table.columns)}" for table in (before, now)]
            differences.append(pd.DataFrame([[name, "", "(shape)", *shapes, np.nan]], columns=HEADS))
            continue
        cells += before.size
        differences.append(_differing_cells(name, before, now))
    return Comparison(
        missing=tuple(sorted(theirs - ours)),
        extra=tuple(sorted(ours - theirs)),
        compared=(len(tables), cells),
        differences=pd.concat(differences, ignore_index=True),
    )


def artefacts_in(folder: Path, selected: Collection[str] | None = None) -> list[str]:
    """The tables and figures below a results folder, as paths in it.

    Args:
        folder: of results.
        selected: artefacts by name, e.g. `adasample/table1`, which `tables/adasample/table1.csv` and
            `tables/adasample/table1_verdicts.csv` are of; None: all.
    """
    beginnings = [""] if selected is None else [f"{of}{end}" for of in selected for end in "._"]
    return [
        path.relative_to(folder).as_posix()
        for kind, pattern in PATTERNS
        for path in (folder / kind).rglob(pattern)
        if not path.name.startswith(".")
        and path.relative_to(folder / kind).as_posix().startswith(tuple(beginnings))
    ]


def _differing_cells(name: str, before: pd.DataFrame, now: pd.DataFrame) -> pd.DataFrame:
    cells = pd.DataFrame({"reference": before.unstack(), "results": now.unstack()})
    numbers = cells.apply(pd.to_numeric, errors="coerce").replace([np.inf, -np.inf], np.nan)
    cells["difference"] = numbers["results"] - numbers["reference"]
    agree = np.isclose(numbers["results"], numbers["reference"], RELATIVE, ABSOLUTE)
    found = cells[(cells["reference"] != cells["results"]) & ~agree].reset_index(names=["column", "row"])
    first = found["column"] == before.columns[0]
    names = before.iloc[found["row"], 0].to_numpy()
    found["row"] = np.where(first, [f"row {row + 1}" for row in found["row"]], names)
    return found.assign(table=name)[HEADS]
