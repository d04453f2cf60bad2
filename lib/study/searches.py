"""Learning rate searches: their table, the rates that runs take from them, and the runs that make them.

A search trains a method on either reserve set and tests on the other; no table looks at these sets. With
a single reserve set, it trains on the first train set and tests on the reserve. Rates, seeds and budget
are those of the profile's `lib.profiles.Search`. A profile's searches are ``searches.csv`` beside its
reference, a row a run: method, label, optimizer, data, train, test, seed, rate, fpr95 in percent (100
where the loss stopped being finite), and the measures of `lib.benchmarks.descriptor_spread` by stage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import TYPE_CHECKING

import pandas as pd

from lib.data.sources import Source
from lib.files import write_bytes
from lib.profiles import Search
from lib.recipes import Recipe, at_rate
from lib.study.requests import Refused, Request, configuration, identity

if TYPE_CHECKING:
    from lib.study.runs import Study

MEASURES = ("fpr95", "descriptor_spread")
COLUMNS = ["method", "label", "optimizer", "data", "train", "test", "seed", "rate", "fpr95"]
# FPR95, in percent, of a run whose loss stopped being finite.
FAILED = 100.0
# The rates that a search can try: 1, 2 and 5 times powers of ten.
GRID = [float(f"{first}e{power}") for power in range(-8, 4) for first in (1, 2, 5)]


class NoSearch(Refused):
    """The search of a learning rate is not on record."""


def on_record(study: Study) -> pd.DataFrame:
    """Return the rows of the searches that a study's rates come from: those on its own data's reserve
    or, if there are none, those on the reserve of photographs or of the packaged ones."""
    every = study.reference.searches
    for data in (study.source.name, "photos", "mini"):
        own = every[every["data"] == data]
        if len(own):
            return own
    return every


def borrowed(study: Study) -> str:
    """Return a clause that names the data on whose reserve a study's rates were searched; empty if that
    is the study's own data."""
    data = on_record(study)["data"].unique()
    return f"; learning rates searched on {data[0]}" if {*data} - {study.source.name} else ""


def by_rate(study: Study, method: str) -> pd.Series:
    """Return the mean FPR95 in percent that a method's search reached on the reserve, by rate.

    Raises:
        NoSearch: the search was not made yet; the message names the command that makes it.
    """
    searches = on_record(study)
    own = searches[searches["method"] == method]
    if own.empty:
        command = f".venv/bin/python -m lib.commands.search --profile {study.profile.name}"
        kind, _, folder = study.data.partition(":")
        where = f" --{kind} {folder}" if folder else ""
        raise NoSearch(
            f"no learning rate of {method!r} is on record for {study.where}: search it with {command}"
            f'{where} --methods "{method}", or all without --methods'
        )
    return own.groupby("rate")["fpr95"].mean()


def best_rate(study: Study, *methods: str) -> float:
    """Return the learning rate at which a method did best. For several methods, return the rate at which
    they did best together, among the rates tried for all of them.

    Raises:
        NoSearch: a search is not on record.
    """
    means = pd.concat([by_rate(study, method) for method in methods], axis=1).dropna()
    return float(means.sum(axis=1).idxmin())


def best_fpr95(study: Study, method: str) -> float:
    """Return the mean FPR95 that a method's search reached at its best rate, in percent.

    Raises:
        NoSearch: the search is not on record.
    """
    return float(by_rate(study, method).min())


def first_rates(search: Search, recipe: Recipe) -> tuple[float, ...]:
    """Return the rates that a recipe's search tries first, ascending.

    Along a constant gradient, SGD's steps are lr (1 − dampening) / (1 − momentum) times the gradient: lr
    with HardNet's dampening, for which the profile states rates, and ten times lr without, as in DSM.
    """
    options = recipe.optimizer.options
    if recipe.optimizer.name != "sgd":
        return search.rates[recipe.optimizer.name]
    gain = (1 - options.get("dampening", 0.0)) / (1 - options.get("momentum", 0.0))
    return tuple(float(f"{rate / gain:.6g}") for rate in search.rates["sgd"])


def pairs_of_sets(source: Source) -> list[tuple[str, str]]:
    """Return the (train, test) pairs of sets of a search.

    Raises:
        ValueError: the source has no reserve.
    """
    if not source.reserve:
        raise ValueError(f"{source.name} has no reserve: name a place under 'reserve' in scenes.json")
    if len(source.reserve) == 1:
        return [(source.sets[0], source.reserve[0])]
    return list(permutations(source.reserve, 2))


def requests(study: Study, method: str, recipe: Recipe, rate: float) -> list[Request]:
    """Return the runs of one rate: each seed on each of `pairs_of_sets`."""
    search = study.profile.search
    trained = at_rate(recipe, rate, study.profile.schedule)
    profile = study.profile.sized_for(trained)
    if search.budget is not None:
        profile = replace(profile, budget=search.budget)
    return [
        Request(
            method,
            f"{recipe.label} at {rate:g}",
            recipe=trained,
            train=train,
            seed=seed,
            profile=profile,
            measures=tuple((measure, test) for measure in MEASURES),
        )
        for seed, (train, test) in product(search.seeds, pairs_of_sets(study.source))
    ]


def further_rate(best: float, tried: Sequence[float]) -> float | None:
    """Return the next rate of the grid if the best is at an end of the rates tried, or None."""
    if best == min(tried):
        return GRID[GRID.index(best) - 1]
    if best == max(tried):
        return GRID[GRID.index(best) + 1]
    return None


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
    from lib.study.making import make

    rows: list[dict[str, object]] = []
    rates = sorted({*first_rates(study.profile.search, recipe), *besides})
    while rates:
        asked = [request for rate in rates for request in requests(study, method, recipe, rate)]
        failures = make(asked, study)
        other = [f"{title}: {why}" for title, why in failures if not why.startswith("FloatingPoint")]
        if other:
            raise RuntimeError("; ".join(other))
        rows += [_row(study, method, recipe, request) for request in asked]
        table = pd.DataFrame(rows)
        means = table.groupby("rate")["fpr95"].mean()
        further = further_rate(float(means.idxmin()), list(means.index))
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
        return {**row, "fpr95": FAILED}
    spread: Mapping[str, float] = run.metrics["descriptor_spread", test]["values"]
    fpr95 = run.metrics["fpr95", test]["values"]["expected"]
    return {**row, "fpr95": round(fpr95, 4), **spread}


def record(study: Study, rows: pd.DataFrame) -> None:
    """Put the rows of searches on record, in place of earlier ones of the same methods and data.

    Raises:
        OSError: the file cannot be written.
    """
    path = study.reference.folder / "searches.csv"
    held = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=COLUMNS)
    searched = set(zip(rows["method"], rows["data"], strict=True))
    kept = [pair not in searched for pair in zip(held["method"], held["data"], strict=True)]
    table = pd.concat([held[kept], rows]).sort_values(["data", "method", "rate", "train", "seed"])
    write_bytes(path, table.to_csv(index=False, lineterminator="\n", float_format=_short).encode())


def _short(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""
