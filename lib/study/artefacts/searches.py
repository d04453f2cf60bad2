"""Learning rate searches of recipes: the runs that a search makes, and its record.

A search trains a recipe on either reserve set and tests on the other; no table looks at these sets. With
a single reserve set, it trains on the first train set and tests on the reserve. Rates, seeds and budget
are those of the profile's `lib.profiles.Search`. `lib.commands.tuning` runs the search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, permutations, product
from pathlib import Path
from statistics import fmean

from lib import parts
from lib.data.sources import Source
from lib.digests import code_digest
from lib.profiles import Search
from lib.recipes import Recipe, at_rate, values
from lib.study import records
from lib.study.jobs import Job, Setting
from lib.study.open import Study, reference_folder


class NoSearch(ValueError):
    """The search of a learning rate is not on record."""


MEASURES = ("fpr95", "descriptor_spread")
# FPR95, in percent, of a run whose loss stopped being finite.
FAILED = 100.0
# The rates that a search can try: 1, 2 and 5 times powers of ten.
GRID = [float(f"{first}e{power}") for power in range(-8, 4) for first in (1, 2, 5)]


def search_path(profile: str, data: str, name: str) -> Path:
    """Return the path of the record of a recipe's search under a profile on a source's reserve."""
    return reference_folder(profile, data) / "searches" / f"{name}.json"


def searches_folder(study: Study) -> Path:
    """Return the folder of the searches that a study's rates come from: those on its own data's reserve
    or, if there are none, those on the reserve of photographs or of the packaged ones."""
    profile, own = study.profile.name, study.source.name
    folders = [search_path(profile, data, "").parent for data in (own, "photos", "mini")]
    return next(filter(Path.is_dir, folders), folders[0])


def borrowed_rates(study: Study) -> str:
    """Return a clause that names the data on whose reserve a study's rates were searched; empty if that
    is the study's own data."""
    data = searches_folder(study).parent.name
    return "" if data == study.source.name else f"; learning rates searched on {data}"


def searched_fpr95(study: Study, name: str) -> Mapping[str, float]:
    """Return the mean FPR95 that a search on record reached on the reserve, by rate as text.

    Raises:
        NoSearch: the search was not made yet; the message names the command that makes it.
    """
    try:
        return records.read(searches_folder(study) / f"{name}.json")["metrics"]["mean_fpr95"]
    except FileNotFoundError:
        command = f".venv/bin/python -m lib.commands.tuning --profile {study.profile.name}"
        kind, _, folder = study.data.partition(":")
        raise NoSearch(
            f"no learning rate of {name!r} is on record for {study.where}: search it with {command}"
            f"{folder and f' --{kind} {folder}'} --recipes {name}, or all without --recipes"
        ) from None


def searched_rate(study: Study, *names: str) -> float:
    """Return the learning rate at which a recipe did best under a study's profile. For several recipes,
    return the rate at which they did best together, among the rates tried for all of them.

    Raises:
        NoSearch: a search is not on record.
    """
    means = [searched_fpr95(study, name) for name in names]
    tried = [rate for rate in means[0] if all(rate in by_rate for by_rate in means)]
    return float(min(tried, key=lambda rate: sum(by_rate[rate] for by_rate in means)))


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


def search_jobs(setting: Setting, name: str, recipe: Recipe, rate: float) -> list[Job]:
    """Return the runs of one rate: each seed on each of `pairs_of_sets`."""
    search = setting.profile.search
    trained = at_rate(recipe, rate, setting.profile.schedule)
    overrides, jobs = {} if search.budget is None else {"budget": search.budget}, []
    for seed, (train_set, test_set) in product(search.seeds, pairs_of_sets(setting.source)):
        asked = {"measures": tuple(product(MEASURES, (test_set,))), "overrides": overrides}
        jobs.append(Job(name, f"{recipe.label} at {rate:g}", trained, train_set, seed, **asked))
    return jobs


def further_rate(best: float, tried: Sequence[float]) -> float | None:
    """Return the next rate of the grid if the best is at an end of the rates tried, or None."""
    if best == min(tried):
        return GRID[GRID.index(best) - 1]
    return GRID[GRID.index(best) + 1] if best == max(tried) else None


def outcome(
    setting: Setting, name: str, recipe: Recipe, runs: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    """Return the record of a search.

    Args:
        setting: the profile and data of the search.
        name, recipe: what was searched.
        runs: each with "rate", "seed", "train_set", "test_set" and "fpr95" in percent.
    """
    rates = sorted({run["rate"] for run in runs})
    means = {rate: fmean(run["fpr95"] for run in runs if run["rate"] == rate) for rate in rates}
    return {
        "kind": "search",
        "name": name,
        "label": recipe.label,
        "data": setting.source.name,
        "config": {"profile": setting.profile.name, "search": values(setting.profile.search)},
        "digests": search_digests(setting, recipe),
        "metrics": {"mean_fpr95": {str(rate): round(mean, 4) for rate, mean in means.items()}},
        "best": min(means, key=means.get),
        "runs": list(runs),
    }


def search_digests(setting: Setting, recipe: Recipe) -> dict[str, object]:
    """Return digests of the code and data with which a recipe's search would be made today."""
    trained = replace(recipe, schedule=setting.profile.schedule)
    sets = chain.from_iterable(pairs_of_sets(setting.source))
    return {
        "training": code_digest(["lib.training", *parts.modules(trained)]),
        "evaluation": {name: code_digest([f"lib.benchmarks.{name}"]) for name in MEASURES},
        "data": {name: setting.source.digest(name) for name in dict.fromkeys(sets)},
    }
