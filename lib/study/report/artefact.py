"""A table or figure of a paper as its notebook opens, shows, saves and judges it.

shown = open_artefact("dsm/table3", profile, data, results, seeds)
shown.judge(values)                           # verdicts in one table; tables/dsm/table3_verdicts.csv
shown.table(frame)                            # a table; tables/dsm/table3.csv
shown.figure(figure, "What it shows", frame)  # a figure; figures/dsm/table3.png, and what it draws
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, Image, Markdown, display
from matplotlib.figure import Figure

from lib.files import write_bytes
from lib.study import claims
from lib.study.artefacts.searches import borrowed_rates
from lib.study.catalogue import ARTEFACTS
from lib.study.claims.measured import values_of
from lib.study.jobs import Job
from lib.study.open import Record, Study, open_study, provenance, records_of
from lib.study.report import style, tables

Values = Mapping[str, object]


@dataclass(frozen=True)
class Artefact:
    """One table or figure of a paper, of one profile and one data source.

    While the reference is read nothing is saved (`Study.saving`).

    Attributes:
        name: the notebook's below notebooks/, e.g. "adasample/table1"; it begins the names of the files
            that are saved.
        study: profile, data and folders.
        runs: its records.
    """

    name: str
    study: Study
    runs: Sequence[Record]

    @property
    def sets(self) -> tuple[str, ...]:
        """The data source's sets of patches, in the order of their roles, then those that only test."""
        return self.study.setting.source.tested

    def table(
        self,
        frame: pd.DataFrame,
        name: str = "",
        decimals: int | Mapping[str, int] = 2,
        caption: str = "",
    ) -> None:
        """Show a table, and save it as CSV with six digits.

        Args:
            frame: its index is a column if it has a name.
            name: follows the artefact's in the file's name; none for the artefact's own table.
            decimals: digits after the point, for all floats or by column's name (last level).
            caption: stands above.
        """
        self.save(frame, name)
        display(HTML(tables.as_html(frame, decimals, caption)))

    def save(self, frame: pd.DataFrame, name: str = "") -> None:
        """Save a table that is too long to show, as `table` does."""
        flat = tables.with_index(frame)
        if flat.columns.nlevels > 1:
            flat.columns = [" ".join(str(part) for part in head if part) for head in flat.columns]
        content = flat.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        self._save("tables", name, ".csv", content.encode())

    def figure(
        self, figure: Figure, alt: str, frame: pd.DataFrame | None = None, name: str = ""
    ) -> None:
        """Show a figure at 100 px an inch, save it as PNG, and what it draws as CSV.

        Args:
            figure: closed here.
            alt: the picture in words, for those who do not see it.
            frame: what is drawn, saved as `table` saves it; None where a table of the artefact holds it.
            name: as for `table`.
        """
        if frame is not None:
            self.save(frame, "_".join(filter(None, (name, "figure"))))
        content = style.png(figure)
        plt.close(figure)
        self._save("figures", name, ".png", content)
        width = round(figure.get_figwidth() * 100)
        display(Image(content, format="png", width=width, alt=alt))

    def judge(
        self,
        values: Values | Callable[[claims.Claim], Values] | None = None,
        seeds: Sequence[int] | None = None,
        artefact: str | Sequence[str] | None = None,
        computed: Values | None = None,
    ) -> None:
        """Judge the paper's claims on this artefact, and show and save the verdicts as one table.

        Args:
            values: by method's key as `lib.study.claims.verdict` takes them, or a function that gives
                them for a claim; by default FPR95 and HPatches' numbers of the artefact's runs.
            seeds: in the order of the arrays' first axis; by default the study's for tables; none where
                values without seeds are of a computation.
            artefact: as the claims name it, or several; by default from the artefact's own name, e.g.
                "Table 1".
            computed: by key, values of a computation, which have no seeds; claims on these are judged at
                any size.

        Raises:
            ValueError: there are no such claims, or values do not fit.
        """
        paper, _, own = self.name.partition("/")
        names = artefact or re.sub(r"_|(?=\d+$)", " ", own).capitalize()
        names = [names] if isinstance(names, str) else names
        judged = [claim for name in names for claim in claims.read_claims(paper, name)]
        if values is None:
            values = partial(values_of, runs=self.runs, sets=self.sets)
        without_seeds = [claim for claim in judged if computed and computed.keys() & claim.a]
        trained = [claim for claim in judged if claim not in without_seeds]
        table = claims.judge(trained, values, self.study, seeds)
        if without_seeds:
            further = claims.judge(without_seeds, computed, self.study, ())
            table = pd.concat([table, further], ignore_index=True)
        self.save(table, "verdicts")
        display(HTML(tables.of_verdicts(table)))

    def _save(self, kind: str, name: str, suffix: str, content: bytes) -> None:
        if self.study.saving is not None:
            stem = "_".join(filter(None, (self.name, name)))
            write_bytes(self.study.saving / kind / f"{stem}{suffix}", content)


def open_artefact(
    name: str,
    profile: str,
    data: str,
    results: str,
    seeds: Sequence[int] | None = None,
    *,
    jobs: Callable[..., Sequence[Job]] | None = None,
    real: str | None = None,
    **options: object,
) -> Artefact:
    """The artefact that a notebook's parameters name, with its records: read, or made there and then.

    Shows one line that says where the numbers come from, and has figures drawn in the study's style.

    Args:
        name: the notebook's below notebooks/.
        profile, data, results, seeds, real: as for `lib.study.open.open_study`.
        jobs: from a study to the records it needs; by default those of the catalogue.
        options: of `jobs`, e.g. ``checkpoints``.

    Raises:
        ValueError, FileNotFoundError: a parameter, as for `open_study`.
        RuntimeError, DamagedRecord: as for `lib.study.open.records_of`, which makes what is missing.
    """
    study = open_study(profile, data, results, seeds, real=real)
    runs = records_of(study, (jobs or ARTEFACTS[name].jobs)(study, **options))
    style.use()
    display(Markdown(f"*{study.heading()}; {provenance(runs)}{borrowed_rates(study)}*"))
    return Artefact(name, study, runs)
