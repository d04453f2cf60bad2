"""What a notebook shows: tables, figures and verdicts, each shown, saved and judged in one call."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from IPython.display import Image
from matplotlib.figure import Figure

from lib.files import write_bytes
from lib.study import claims
from lib.study.artefacts.searches import NoSearch
from lib.study.jobs import Job
from lib.study.open import Found, Study, evening_beside, obtain, on_record, provenance
from lib.study.report import style, text

Values = Mapping[str, object]


@dataclass(frozen=True)
class Showing:
    """One artefact of one study, as its notebook shows it.

    A notebook makes one and passes everything through it:

        study = open_study(profile, data, results, seeds)
        shown = Showing("adasample/table1", study, obtain(study, table1(study)))
        shown.heading()                             # profile, data, how many records
        shown.table(frame)                          # printed; tables/adasample/table1.csv
        shown.table(frame, "pairs", decimals=3)     # printed; tables/adasample/table1_pairs.csv
        shown.figure(figure, "What it shows")       # displayed; figures/adasample/table1.png
        shown.verdicts(values)                      # printed; tables/adasample/table1_verdicts.csv

    While the reference is read nothing is saved (`Study.saving`).

    Attributes:
        artefact: paper or part, a slash and the notebook's name, e.g. "adasample/table1"; it begins the
            names of all files that are saved.
        study: what the numbers come from.
        found: its records.
        beside: the study beside which this one is shown: where that saves, this one does, under names
            that end with this one's profile.
    """

    artefact: str
    study: Study
    found: Sequence[Found] = ()
    beside: Study | None = None

    def heading(self) -> None:
        """Print profile and data, and what records there are."""
        print(self.study.heading())
        print(provenance(self.found))

    def table(
        self,
        frame: pd.DataFrame,
        name: str = "",
        decimals: int | Mapping[str, int] = 2,
        as_shown: pd.DataFrame | None = None,
    ) -> None:
        """Print a table as plain rounded text, and save it as CSV with six digits.

        Args:
            frame: its index is a column if it has a name.
            name: what follows the artefact's in the file's name; none for the artefact's own table.
            decimals: digits after the point, for all floats or by column's name (last level).
            as_shown: printed in place of `frame`, e.g. fewer rows or numbers formatted already.
        """
        self._save_table(frame, name)
        print(text.as_text(frame if as_shown is None else as_shown, decimals))

    def figure(self, figure: Figure, alt: str, name: str = "") -> Image:
        """Save a figure as PNG, and return what a cell displays: the same PNG at 100 px an inch.

        A cell displays it if it is the cell's last expression, else by `display(shown.figure(…))`.

        Args:
            figure: the figure.
            alt: what the picture shows, for those who do not see it.
            name: as in `table`.
        """
        content = style.png(figure)
        self._save("figures", name, ".png", content)
        return Image(content, format="png", width=round(figure.get_figwidth() * 100), alt=alt)

    def verdicts(
        self,
        values: Values | Callable[[claims.Claim], Values],
        seeds: Sequence[int] | None = None,
        artefact: str | Sequence[str] | None = None,
    ) -> None:
        """Judge the paper's claims on this artefact, print what becomes of them, and save that as CSV.

        Args:
            values: by method's key as `lib.study.claims.verdict` takes them: `Measured`, with
                resamples of what it was tested on, (seeds, cells), or (cells,) for a method without
                seeds; or a function that gives them for a claim.
            seeds: in the order of the arrays' first axis; by default the study's for tables; none where
                values without seeds are of a computation.
            artefact: as the claims name it, or several; by default from the artefact's own name, e.g.
                "Table 1".

        Raises:
            ValueError: there are no such claims, or values do not fit.
        """
        paper, _, own = self.artefact.partition("/")
        names = artefact or re.sub(r"(?=\d+$)", " ", own, count=1).capitalize()
        names = [names] if isinstance(names, str) else names
        judged = claims.read_claims(paper, names[0])
        for name in names[1:]:
            judged += claims.read_claims(paper, name)
        table = claims.judge(judged, values, self.study, seeds)
        self._save_table(table, "verdicts")
        shown = ["sentence", "printed", "observed", "low", "high", "unit", "verdict"]
        print(text.as_text(table[shown], decimals=3))

    def _save_table(self, frame: pd.DataFrame, name: str) -> None:
        flat = text.with_index(frame)
        if flat.columns.nlevels > 1:
            flat.columns = [" ".join(str(part) for part in head if part) for head in flat.columns]
        content = flat.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        self._save("tables", name, ".csv", content.encode())

    def _save(self, kind: str, name: str, suffix: str, content: bytes) -> None:
        folder = (self.beside or self.study).saving
        if folder is not None:
            own = self.study.place.profile.name if self.beside else ""
            whole = "_".join(filter(None, (self.artefact, name, own)))
            write_bytes(folder / kind / f"{whole}{suffix}", content)


def showings(artefact: str, study: Study, jobs: Callable[[Study], Sequence[Job]]) -> tuple[Showing, ...]:
    """The artefact of a study and, where all of its records are there, of the evening on record.

        shown, *evening = showings("adasample/table3", study, table3)
        for each in (shown, *evening):
            each.heading()

    Args:
        artefact, study: as for `Showing`.
        jobs: what the artefact needs of a study.

    Raises:
        RuntimeError, DamagedRecord: as `lib.study.open.obtain`, which has what is missing made.
    """
    own = Showing(artefact, study, obtain(study, jobs(study)))
    longer = evening_beside(study)
    try:
        found = on_record(longer, jobs(longer)) if longer else []
    except NoSearch:
        found = []
    return (own, Showing(artefact, longer, found, study)) if found else (own,)
