"""A table or figure of a paper, as its notebook opens, shows, saves and judges it.

shown = open_artefact("dsm/table3", profile, data, results, seeds)
shown.judge(values)                           # verdicts in one table; tables/dsm/table3_verdicts.csv
shown.table(frame)                            # a table; tables/dsm/table3.csv
shown.figure(figure, "What it shows", frame)  # a figure; figures/dsm/table3.png, and its data as CSV
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, Image, Markdown, display
from matplotlib.figure import Figure
from pandas.api.types import is_numeric_dtype

from lib.files import write_bytes
from lib.study import claims
from lib.study.artefacts.searches import borrowed_rates
from lib.study.catalogue import ARTEFACTS
from lib.study.claims.measured import values_of
from lib.study.jobs import Job
from lib.study.open import Runs, Study, open_study, provenance, records_of
from lib.study.report import figures


@dataclass(frozen=True)
class Artefact:
    """One table or figure of a paper, for one profile and one data source.

    Nothing is saved while the reference is read (`Study.saving`).

    Attributes:
        name: the notebook's path below notebooks/, e.g. "adasample/table1", with which the names of
            saved files begin.
        study: profile, data and folders.
        runs: the artefact's records.
    """

    name: str
    study: Study
    runs: Runs

    @property
    def sets(self) -> tuple[str, ...]:
        """The data source's sets of patches, in the order of their roles, then the test-only sets."""
        return self.study.source.tested

    def table(
        self,
        frame: pd.DataFrame,
        name: str = "",
        decimals: int | Mapping[str, int] = 2,
        caption: str = "",
    ) -> None:
        """Show a table and save it as CSV with six digits.

        Args:
            frame: the table; its index becomes a column if it has a name.
            name: appended to the artefact's name in the file name; empty for the artefact's own table.
            decimals: digits after the decimal point, for all floats or by column name (last level).
            caption: shown above the table.
        """
        self.save(frame, name)
        display(HTML(as_html(frame, decimals, caption)))

    def save(self, frame: pd.DataFrame, name: str = "") -> None:
        """Save a table as `table` does without showing it, if it is too long to show."""
        flat = _with_index(frame)
        if flat.columns.nlevels > 1:
            flat.columns = [" ".join(str(part) for part in head if part) for head in flat.columns]
        content = flat.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        self._save("tables", name, ".csv", content.encode())

    def figure(
        self, figure: Figure, alt: str, frame: pd.DataFrame | None = None, name: str = ""
    ) -> None:
        """Show a figure at 100 px an inch, save it as PNG, and save its data as CSV.

        Args:
            figure: the figure, which is closed here.
            alt: a description of the picture for readers who do not see it.
            frame: the data drawn, saved as `table` does; None if a table of the artefact holds them.
            name: as for `table`.
        """
        if frame is not None:
            self.save(frame, "_".join(filter(None, (name, "figure"))))
        content = figures.png(figure)
        plt.close(figure)
        self._save("figures", name, ".png", content)
        width = round(figure.get_figwidth() * 100)
        display(Image(content, format="png", width=width, alt=alt))

    def judge(
        self,
        values: claims.Values | Callable[[claims.Claim], claims.Values] | None = None,
        seeds: Sequence[int] | None = None,
        artefact: str | Sequence[str] | None = None,
        computed: Mapping[str, object] = {},
        ids: Collection[str] = (),
    ) -> None:
        """Judge the paper's claims on this artefact, and show and save the verdicts as one table.

        Args:
            values: method's key -> values as `lib.study.claims.verdict` takes them, or a function that
                returns them for a claim; by default FPR95 and HPatches' numbers of the artefact's runs.
            seeds: in the order of the arrays' first axis; by default the study's seeds for tables; empty
                if values without seeds come from a computation.
            artefact: its name in the claims, e.g. "Table 1", or several; by default made from its own
                name.
            computed: key -> values of a computation, which have no seeds; claims on these are judged in
                any profile.
            ids: ids of the claims, in place of `artefact`.

        Raises:
            ValueError: there are no such claims, or values do not fit.
        """
        paper, _, own = self.name.partition("/")
        names = artefact or re.sub(r"_|(?=\d+$)", " ", own).capitalize()
        names = [names] if isinstance(names, str) else names
        judged = [claim for claim in claims.read_claims() if claim.id in ids] if ids else []
        judged = judged or [claim for name in names for claim in claims.read_claims(paper, name)]
        values = partial(values_of, runs=self.runs, sets=self.sets) if values is None else values
        # Claims on computed values come last.
        judged.sort(key=lambda claim: bool(computed.keys() & claim.a))
        table = claims.judge(judged, values, self.study, seeds, computed)
        self.save(table, "verdicts")
        # Sentences for which we have no number are folded below the others, if there are any others.
        unmeasured = table["observed"].isna()
        parts = [verdicts_as_html(rows) for _, rows in table.groupby(unmeasured)]
        fold = (
            f"<summary>Sentences that we have no number for ({unmeasured.sum()}), with reasons</summary>"
        )
        display(HTML(f"<details>{fold}".join(parts) + "</details>" * (len(parts) - 1)))

    def _save(self, kind: str, name: str, suffix: str, content: bytes) -> None:
        if self.study.saving is not None:
            stem = "_".join(filter(None, (self.name, name)))
            write_bytes(self.study.saving / kind / f"{stem}{suffix}", content)


class Refused(ValueError):
    """A notebook parameter that is not accepted. IPython shows it in one line, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


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
    """Open the artefact that a notebook's parameters name, and read its records or make them.

    One line is shown that says where the numbers come from. Figures get the study's style.

    Args:
        name: the notebook's path below notebooks/.
        profile, data, results, seeds, real: as for `lib.study.open.open_study`.
        jobs: function from a study to the jobs whose records it needs; by default the catalogue's.
        options: options of `jobs`, e.g. ``checkpoints``.

    Raises:
        Refused: `open_study` or `jobs` refuses a parameter.
        RuntimeError, DamagedRecord: as for `lib.study.open.records_of`, which makes missing records.
    """
    try:
        study = open_study(profile, data, results, seeds, real=real)
        asked = (jobs or ARTEFACTS[name].jobs)(study, **options)
    except (ValueError, FileNotFoundError) as error:
        raise Refused(f"This notebook's first cell: {error}") from None
    runs = records_of(study, asked)
    figures.use_style()
    display(Markdown(f"*{study.heading()}; {provenance(runs)}{borrowed_rates(study)}*"))
    return Artefact(name, study, runs)


def as_html(table: pd.DataFrame, decimals: int | Mapping[str, int] = 2, caption: str = "") -> str:
    """Return a rounded table as HTML, the same on every machine, with a dot for a missing value.

    Args:
        table: any frame, with one or two levels of column heads; its index is shown if it has a name.
        decimals: digits after the decimal point of floats, for all or by (last level of) column name.
        caption: shown above the table.
    """
    shown = _with_index(table)
    cells = {}
    heads = []
    for head, column in shown.items():
        parts = head if isinstance(head, tuple) else (head,)
        digits = decimals if isinstance(decimals, int) else decimals.get(parts[-1], 2)
        align = str if is_numeric_dtype(column) else _left
        cells[len(cells)] = [align(_cell(value, digits)) for value in column]
        heads.append(tuple(align(escape(str(part))) for part in parts))
    heads = pd.MultiIndex.from_tuples(heads) if shown.columns.nlevels > 1 else [h for [h] in heads]
    aligned = pd.DataFrame(cells).set_axis(heads, axis=1)
    html = aligned.to_html(index=False, border=0, justify="right", escape=False)
    above = f"\n  <caption>{escape(caption)}</caption>" if caption else ""
    return html.replace("\n  <thead>", f"{above}\n  <thead>", 1)


def verdicts_as_html(verdicts: pd.DataFrame) -> str:
    """Return verdicts as one HTML table: sentence, printed value, ours with its interval, verdict.

    A reason that all verdicts share is shown once, below the table.

    Args:
        verdicts: from `lib.study.claims.judge`.
    """
    shown = verdicts[["sentence", "printed", "rival", "verdict", "why"]].replace("", None)
    estimates = verdicts[["observed", "low", "high", "unit"]].itertuples(index=False)
    shown.insert(2, "ours (95%)", [_estimate(*estimate) for estimate in estimates])
    reasons = verdicts["why"].unique()
    note = reasons[0] if len(reasons) == 1 and len(shown) > 1 else None
    shown = shown.drop(columns="why" if note else []).dropna(axis=1, how="all")
    return as_html(shown, 3) + (f"<p>{escape(note)}</p>" if note else "")


def _estimate(observed: float, low: float, high: float, unit: str) -> str | None:
    if pd.isna(observed):
        return None
    text = f"{observed:.3g} {'' if unit == 'ratio' else unit}".rstrip()
    return (text if pd.isna(low) else f"{text} ({low:.3g} to {high:.3g})").replace("-", "−")


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its index as columns, if the index has a name."""
    return table.reset_index(drop=not any(table.index.names))


def _left(text: str) -> str:
    return f'<div style="text-align: left">{text}</div>' if text else ""


def _cell(value: object, digits: int) -> str:
    if pd.isna(value):
        return "·"
    if not isinstance(value, float):
        return escape(str(value))
    # A value that rounds to 0 has no sign.
    return f"{value:z.{digits}f}".replace("-", "−")
