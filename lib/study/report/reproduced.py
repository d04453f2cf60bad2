"""How far a study's results reproduce the committed reference of the same profile and data."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lib.study import records

SAVED = (("tables", "*.csv"), ("figures", "*.png"))


@dataclass(frozen=True)
class Reproduction:
    """Results against the reference.

    Attributes:
        means: numbers of which both have a mean over the same seeds, two or more.
        within: how many of ours lie in the interval that the reference's seeds leave for another mean.
        changed: the claims whose verdict is another, by name.
        missing: the tables and figures that the results lack, as paths in the folder.
    """

    means: int
    within: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]

    def sentence(self) -> str:
        """E.g. "Of the reference's 812 means over seeds, 790 were reproduced …"."""
        verdicts = f"changed: {', '.join(self.changed)}" if self.changed else "none changed"
        return (
            f"Of {self.means:,} means over seeds {self.within:,} lie within the 95% interval of the "
            f"reference's seeds; of the verdicts, {verdicts}."
        )


def reproduction(
    results: Path, reference: Path, paths: Iterable[Path], selected: Collection[str]
) -> Reproduction | None:
    """Compare results with a reference.

    Args:
        results, reference: folders with `records`, `tables` and `figures`.
        paths: of the records that were asked for, below `results`.
        selected: artefacts by name.

    Returns:
        None where the reference has none of the records: it is of other data, or there is none.
    """
    pairs = [(path, reference / path.relative_to(results)) for path in paths]
    both = [[records.read(path) for path in pair] for pair in pairs if all(p.exists() for p in pair)]
    if not both:
        return None
    ours, theirs = (_means(side) for side in zip(*both, strict=True))
    # Of some artefacts alone the reference's records have more measures than ours.
    ours, theirs = ours.align(theirs, join="inner", axis=0)
    # Another mean of n seeds differs from this one by t · sd · √(2/n) at most, in 95% of cases.
    n = theirs["count"]
    tolerance = stats.t.ppf(0.975, n - 1) * theirs["std"] * np.sqrt(2 / n)
    # Six digits are on record.
    within = (ours["mean"] - theirs["mean"]).abs() <= tolerance + 1e-6 * theirs["mean"].abs()
    verdicts = [
        saved_verdicts(folder, selected).set_index("claim")["verdict"] for folder in (results, reference)
    ]
    now, before = verdicts[0].align(verdicts[1], join="inner")
    missing = set(saved_files(reference, selected)) - set(saved_files(results, selected))
    changed = tuple(now.index[now != before])
    return Reproduction(len(within), int(within.sum()), changed, tuple(sorted(missing)))


def _means(runs: Sequence[Mapping]) -> pd.DataFrame:
    """Mean, standard deviation and number of the metrics of runs that differ in their seed alone, where
    there are two or more."""
    rows = [
        (run["name"], repr({**run["config"], "seed": None}), test_set, measure, name, value)
        for run in runs
        if run.get("seed") is not None
        for test_set, measures in run["metrics"].items()
        for measure, values in measures.items()
        for name, value in values.items()
        if isinstance(value, int | float)
    ]
    frame = pd.DataFrame(rows, columns=["name", "config", "set", "measure", "metric", "value"])
    table = frame.groupby(list(frame.columns[:-1]))["value"].agg(["mean", "std", "count"])
    return table[table["count"] > 1]


def saved_files(folder: Path, selected: Collection[str]) -> list[str]:
    """The tables and figures that artefacts saved below a folder of results, as paths in it, e.g.
    `tables/adasample/table1_verdicts.csv` of `adasample/table1`."""
    beginnings = tuple(f"{name}{end}" for name in selected for end in "._")
    return [
        path.relative_to(folder).as_posix()
        for kind, pattern in SAVED
        for path in (folder / kind).rglob(pattern)
        if path.relative_to(folder / kind).as_posix().startswith(beginnings)
    ]


def saved_verdicts(folder: Path, selected: Iterable[str]) -> pd.DataFrame:
    """The verdicts that artefacts saved below a folder of results; `notebook` is the artefact's name."""
    columns = ["claim", "paper", "sentence", "verdict", "notebook"]
    tables = [
        pd.read_csv(file, keep_default_na=False).assign(notebook=name)
        for name in selected
        if (file := folder / "tables" / f"{name}_verdicts.csv").exists()
    ]
    return pd.concat([pd.DataFrame(columns=columns), *tables], ignore_index=True)
