"""Search methods' learning rates on the reserve, and put the searches on record.

``.venv/bin/python -m lib.commands search`` makes the searches that the notebooks' `runs` cells need and
that are not on record; ``--methods`` names others. ``--rates`` adds rates. While the best rate is at an
end of those tried, the search goes on there. No set that a table uses is looked at.
"""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from lib.commands.options import add_study_options, check_device, data_of, exit_status
from lib.files import write_bytes
from lib.profiles import PROFILES
from lib.recipes import Recipe
from lib.study import planning, searches
from lib.study.requests import Request, configuration, identity
from lib.study.runs import Study, open_study


def main(arguments: Sequence[str] | None = None) -> int:
    """Search the methods that the command line names and return the exit status of `exit_status`."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.commands search", description=__doc__.splitlines()[0]
    )
    sized = [name for name, profile in PROFILES.items() if profile.search]
    add_study_options(parser, "where the runs go", sized)
    text = "methods to search, anew if need be (default: those without a search on record)"
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=text)
    rates = {"type": float, "choices": searches.GRID, "default": [], "metavar": "RATE"}
    parser.add_argument("--rates", nargs="+", help="tried too", **rates)
    return exit_status(parser, arguments, _search)


def _search(options: argparse.Namespace) -> None:
    study = open_study(
        "", options.profile, data_of(options), options.results, device=options.device, jobs=options.jobs
    )
    check_device(options.device)
    known = planning.searched(study)
    if options.methods is None:
        held = set(study.searches["method"])
        wanted = [name for name in known if name not in held]
    else:
        wanted = options.methods
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"unknown method {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    for name in wanted:
        _search_one(study, name, known, options.rates)
    if not wanted:
        print("All searches that the notebooks need are on record.")


def search(study: Study, method: str, recipe: Recipe, besides: Iterable[float] = ()) -> pd.DataFrame:
    """Make all runs of a method's search and return its rows. While the best rate is at an end of those
    tried, the search goes on there. A run whose loss stopped being finite counts as 100%.

    Args:
        study: the data, profile and folder of the search.
        method, recipe: what is searched.
        besides: rates to try besides those of the profile.

    Raises:
        RuntimeError: a run failed for another reason.
    """
    rows: list[dict[str, object]] = []
    rates = sorted({*searches.first_rates(study.profile.search, recipe), *besides})
    while rates:
        asked = [
            request
            for rate in rates
            for request in searches.requests(study.profile, study.source, method, recipe, rate)
        ]
        failures = study.make(asked)
        other = [f"{title}: {why}" for title, why in failures if not why.startswith("FloatingPoint")]
        if other:
            raise RuntimeError("; ".join(other))
        rows += [_row(study, method, recipe, request) for request in asked]
        table = pd.DataFrame(rows)
        means = table.groupby("rate")["fpr95"].mean()
        further = searches.further_rate(float(means.idxmin()), list(means.index))
        rates = [] if further is None else [further]
    return table


def _row(study: Study, method: str, recipe: Recipe, request: Request) -> dict[str, object]:
    run = study.store.find(identity(configuration(request, study.source)))
    test = request.measures[0][1]
    row = {
        "method": method,
        "label": recipe.label,
        "optimizer": recipe.optimizer.name,
        "data": study.source.name,
        "train": request.train,
        "test": test,
        "seed": request.seed,
        "rate": request.rate,
    }
    if run is None:
        return {**row, "fpr95": searches.FAILED}
    spread: Mapping[str, float] = run.metrics["descriptor_spread", test]["values"]
    fpr95 = run.metrics["fpr95", test]["values"]["expected"]
    return {**row, "fpr95": round(fpr95, 4), **spread}


def record(study: Study, rows: pd.DataFrame) -> None:
    """Put the rows of searches on record, in place of earlier ones of the same methods and data.

    Raises:
        OSError: the file cannot be written.
    """
    path = study.reference.folder / "searches.csv"
    held = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=searches.COLUMNS)
    searched = set(zip(rows["method"], rows["data"], strict=True))
    kept = [pair not in searched for pair in zip(held["method"], held["data"], strict=True)]
    table = pd.concat([held[kept], rows]).sort_values(["data", "method", "rate", "train", "seed"])
    write_bytes(path, table.to_csv(index=False, lineterminator="\n", float_format=_short).encode())


def _short(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


def _search_one(study: Study, name: str, known: Mapping[str, Recipe], rates: Sequence[float]) -> None:
    rows = search(study, name, known[name], rates)
    record(study, rows)
    means = rows.groupby("rate")["fpr95"].mean().round(4)
    print(f"{name}: {means.to_dict()} best: {means.idxmin()}", flush=True)
