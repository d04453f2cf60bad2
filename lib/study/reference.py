"""Write the committed reference of a profile, and compare results with it."""

import fnmatch
import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lib.data.sources import Source
from lib.files import write_bytes
from lib.study.requests import Request, version
from lib.study.runs import Runs, Study
from lib.study.store import BY_STAGE, CURVES, FOLLOWED, METRICS, RUNS, VERSIONS, Run, packed, rows_of

# Means of a repeated study lie within the prediction interval of the reference with this probability.
CONFIDENCE = 0.95
# What a row of a table is known by.
_KEYS = {
    "metrics": ["data", "run", "method", "train", "test", "seed", "stage", "measure"],
    "runs": ["data", "run"],
    "sets": ["data", "name"],
}
# Fewer means within it fail the comparison.
FEWEST_WITHIN = 0.9
# FPR95 in percent below which logarithms are not compared.
LEAST_RATE = 1e-3


def write_reference(asked: Iterable[tuple[Study, Mapping[str, Request]]]) -> None:
    """Write the reference of a profile anew: metrics.csv, runs.csv, sets.csv and arrays.

    Rows of data that are not among the studies stay, and so do the searches.

    Args:
        asked: studies of one profile, one for each data source, with what was asked of each.

    Raises:
        ValueError: a run is missing.
        OSError: the folder cannot be written.
    """
    asked = list(asked)
    for study, requests in asked:
        for name, request in requests.items():
            if study.find(name, request) is None:
                raise ValueError(f"{request.title} is missing, so that the reference stays as it was")
    _write(asked, anew={study.source.name for study, _ in asked})


def extend_reference(asked: Iterable[tuple[Study, Mapping[str, Request]]]) -> int:
    """Add to the reference of a profile the runs that were made and that it lacks. Of a run that it has
    with fewer measures, the others are added.

    Args:
        asked: studies of one profile, one for each data source, with what was asked of each.

    Returns:
        How many runs were added.

    Raises:
        OSError: the folder cannot be written.
    """
    added = []
    for study, requests in asked:
        new = {}
        for name, request in requests.items():
            if study.find(name, request, in_reference=True) is None and study.find(name, request):
                new[name] = request
        if new:
            added.append((study, new))
    if not added:
        return 0
    _write(added)
    return sum(len(new) for _, new in added)


def _write(asked: Sequence[tuple[Study, Mapping[str, Request]]], anew: Set[str] = frozenset()) -> None:
    """Write runs that exist, below the reference's rows and in place of those that they repeat.

    Args:
        asked: as in `write_reference`; each run exists.
        anew: data of which the reference keeps no row.
    """
    reference = asked[0][0].reference
    folder = reference.folder
    numbers: list[dict[str, object]] = []
    runs: list[dict[str, object]] = []
    sets: list[dict[str, object]] = []
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for study, requests in asked:
        for name, request in requests.items():
            run = study.find(name, request)
            numbers += _numbers(run, request, study.source)
            runs.append(
                {
                    **run.about,
                    "run": name,
                    "method": request.method,
                    "label": request.label,
                    "data": study.source.name,
                    "config": json.dumps(run.about["config"], separators=(",", ":")),
                }
            )
            # A descriptor without training is one run on all data.
            arrays.setdefault(name, {}).update(_arrays(run, request))
        sets += _sets(study, requests.values())
    frames = {
        "metrics": pd.DataFrame(numbers, columns=[*METRICS, "version"]),
        "runs": pd.DataFrame(runs, columns=RUNS),
        "sets": pd.DataFrame(sets, columns=["data", "name", "digest", "classes", "role"]),
    }
    if reference.exists:
        for name, frame in frames.items():
            held = getattr(reference, name).reset_index(drop=True)
            both = pd.concat([held[~held["data"].isin(anew)], frame], ignore_index=True)
            # Where a descriptor has no train set, rows that were read have "" and new ones None.
            keys = both[_KEYS[name]].astype(object).replace("", None)
            repeated = keys.where(keys.notna(), None).duplicated(keep="last")
            frames[name] = both[~repeated].reset_index(drop=True)
        for name in frames["runs"].loc[~frames["runs"]["data"].isin(anew), "run"]:
            arrays[name] = reference.arrays_of(name) | arrays.get(name, {})
    new = folder / "arrays.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for name, content in arrays.items():
        if content:
            write_bytes(new / f"{name}.npz", packed(content))
    for name, frame in frames.items():
        write_bytes(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n").encode())
    shutil.rmtree(folder / "arrays", ignore_errors=True)
    new.rename(folder / "arrays")


def _numbers(run: Run, request: Request, source: Source) -> list[dict[str, object]]:
    rows = rows_of(run, request, source)
    for row in rows:
        module = row["measure"].partition(".")[0]
        row["version"] = version(BY_STAGE if module == FOLLOWED else module)
    return rows


def _arrays(run: Run, request: Request) -> dict[str, np.ndarray]:
    """Return the arrays that a request asks for, and the training curves."""
    wanted = {f"{probe}/{test}" for probe, test in request.probes}
    versions = {f"{VERSIONS}{probe}" for probe, _ in request.probes}
    kept = {}
    for key, array in run.arrays.items():
        is_asked = key.rpartition("/")[0] in wanted or key in versions
        if is_asked or key.startswith(f"{CURVES}/"):
            kept[key] = array
    return kept


def _sets(study: Study, requests: Iterable[Request]) -> list[dict[str, object]]:
    """Return a row for each set that requests read, and for each set with a role of its own."""
    source = study.source
    known = study.reference.sets.set_index(["data", "name"])["classes"] if study.reference.exists else {}
    rows = []
    for name in _named(study, requests):
        classes = known.get((source.name, name), "") if source.recorded else _classes(source, name)
        rows.append(
            {
                "data": source.name,
                "name": name,
                "digest": source.digest(name),
                "classes": classes,
                "role": _role(source, name),
            }
        )
    return rows


def _named(study: Study, requests: Iterable[Request]) -> list[str]:
    """Return the sets with a role and those that requests read, once each."""
    named = [*study.source.tested, *study.source.reserve]
    named += [name for request in requests for name in request.sets]
    return list(dict.fromkeys(named))


def _role(source: Source, name: str) -> str:
    if name in source.sets:
        return "train_and_test"
    if name in source.reserve:
        return "reserve"
    return "test" if name in source.tested else "other"


def _classes(source: Source, name: str) -> int | str:
    """Return how many points a set of patches shows; empty for other sets."""
    if name not in (*source.tested, *source.reserve):
        return ""
    return len(np.unique(source.load(name).point_ids))


def deleted_files(root: Path, pattern: str = "*") -> list[str]:
    """Return the committed files of notebooks and references that are missing in a checkout.

    Args:
        root: of the checkout; outside git nothing is known to be missing.
        pattern: of notebooks; but for "*", only these and the tables and figures of theirs count.
    """
    command = ["git", "ls-files", "--deleted", "-z", "--", "notebooks", "results/reference"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    missing = filter(None, listed.split("\0"))
    return sorted(path for path in missing if pattern == "*" or _belongs(path, pattern))


def _belongs(path: str, pattern: str) -> bool:
    """Whether a file is a notebook of a pattern, or a table or figure that one saved."""
    name = "/".join(Path(path).with_suffix("").parts[-2:])
    return any(fnmatch.fnmatch(name, own) for own in (pattern, f"{pattern}_*"))


def reproduction(runs: Runs, reference: pd.DataFrame) -> tuple[int, int]:
    """Compare the means over seeds of two studies of one size on the same data.

    A mean counts as reproduced if it lies in the 95% prediction interval that the reference gives for
    another mean of as many seeds. The interval has the spread of the method's own seeds, or, where there
    is one run, the pooled spread of the measure. FPR95 is compared on a logarithmic scale.

    Args:
        runs: ours, a tidy frame, with or without a column "steps".
        reference: the reference's tidy frame, likewise.

    Returns:
        How many means lie within the interval, and how many were compared.
    """
    ours, theirs = _means(runs), _means(reference)
    both = ours.join(theirs, how="inner", suffixes=("_ours", "_theirs"))
    spread, freedom = _spreads(theirs)
    both["spread"] = spread.reindex(both.index)
    both["freedom"] = freedom.reindex(both.index)
    both = both.dropna(subset=["spread"])
    half = stats.t.ppf((1 + CONFIDENCE) / 2, both["freedom"]) * both["spread"]
    half *= np.sqrt(1 / both["count_ours"] + 1 / both["count_theirs"])
    # Records hold six digits.
    rounding = 1e-5 * (1 + both["mean_theirs"].abs())
    within = (both["mean_ours"] - both["mean_theirs"]).abs() <= half + rounding
    return int(within.sum()), len(within)


# What runs that differ only in their seed have in common; the number of steps where it is known.
ALIKE = ["method", "optimizer", "data", "train", "test", "stage", "measure", "steps"]


def _means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and number of the values that differ only in their seed."""
    numbers = pd.DataFrame(frame)[frame["seed"].notna()].copy()
    is_rate = numbers["measure"].str.contains("fpr95", regex=False)
    rates = numbers.loc[is_rate, "value"].clip(lower=LEAST_RATE)
    numbers.loc[is_rate, "value"] = np.log(rates)
    alike = [column for column in ALIKE if column in numbers]
    return numbers.groupby(alike, dropna=False)["value"].agg(["mean", "std", "count"])


def _spreads(means: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return the spread of each mean's runs and its degrees of freedom, pooled for single runs."""
    several = means[means["count"] > 1]
    freedom = several["count"] - 1
    by_measure = several.index.get_level_values("measure")
    squares = (several["std"] ** 2 * freedom).groupby(by_measure).sum()
    pooled_freedom = freedom.groupby(by_measure).sum()
    pooled = np.sqrt(squares / pooled_freedom)
    measure = means.index.get_level_values("measure")
    single = means["count"] == 1
    own_spread = means["std"].where(~single, pooled.reindex(measure).to_numpy())
    own_freedom = (means["count"] - 1).where(~single, pooled_freedom.reindex(measure).to_numpy())
    return own_spread, own_freedom
