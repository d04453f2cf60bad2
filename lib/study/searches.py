"""Learning rate searches: their table, the rates that runs take from them, and the runs that make them.

For a folder of places, a search trains on two of the repository's places and tests on the folder's
reserve, so that it looks at no set of a table. For other data with two reserve sets, it trains on either
and tests on the other; with a single one, it trains on the first train set and tests on the reserve.

Rates, seeds and budget are those of the profile's `lib.profiles.Search`. A profile's searches are
``searches.csv`` beside its reference, a row a run: method, label, optimizer, data, train, test, seed,
rate, fpr95 in percent (100 where the loss stopped being finite), and the measures of
`lib.benchmarks.descriptor_spread` by stage.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from statistics import median_low

import pandas as pd

from lib.data.sources import Source
from lib.profiles import Profile, Search
from lib.recipes import RECIPES, Recipe, at_rate
from lib.study.requests import Refused, Request

MEASURES = ("fpr95", "descriptor_spread")
COLUMNS = ["method", "label", "optimizer", "data", "train", "test", "seed", "rate", "fpr95"]
# FPR95, in percent, of a run whose loss stopped being finite.
FAILED = 100.0
# The share of FPR95 by which a rate of a method's own must be better than that of its family.
CLEARLY = 0.15
# The rates that a search can try: 1, 2 and 5 times powers of ten.
GRID = [float(f"{first}e{power}") for power in range(-8, 4) for first in (1, 2, 5)]


# The axes of a recipe that decide how long gradients are.
_SCALE = ("distance", "loss", "reduction")


class NoSearch(Refused):
    """The search of a learning rate is not on record."""


def on_record(searches: pd.DataFrame, data: str) -> pd.DataFrame:
    """Return the rows of the searches that a study's rates come from: those on its own data's reserve
    or, if there are none, those on planes of photographs or of packaged ones, as earlier searches were.

    Args:
        searches: all rows of a profile.
        data: name of the study's data.
    """
    for name in (data, "photos", "mini"):
        own = searches[searches["data"] == name]
        if len(own):
            return own
    return searches


def borrowed(rows: pd.DataFrame, data: str) -> str:
    """Return a clause that names the data on whose reserve rates were searched; empty if that is the
    study's own data."""
    names = rows["data"].unique()
    return f"; learning rates searched on {names[0]}" if {*names} - {data} else ""


def by_rate(rows: pd.DataFrame, method: str, command: str) -> pd.Series:
    """Return the mean FPR95 in percent that a method's search reached on the reserve, by rate.

    Args:
        rows: from `on_record`.
        method: the method's name.
        command: what makes searches, for the message.

    Raises:
        NoSearch: the search was not made yet; the message names the command that makes it.
    """
    own = rows[rows["method"] == method]
    if own.empty:
        raise NoSearch(
            f"no learning rate of {method!r} is on record: search it with {command} "
            f'--methods "{method}", or all that are missing without --methods'
        )
    return own.groupby("rate")["fpr95"].mean()


def family_rate(rows: pd.DataFrame, method: str, family: Sequence[str], command: str) -> float:
    """Return the rate that a method of a family trains at.

    It is the median of the rates at which the searches of the family did best. Another is taken only if
    it is better on every reserve place, and in the mean by more than `CLEARLY`.

    Args:
        rows: from `on_record`.
        method: one of the family.
        family: the methods' names.
        command: what makes searches, for the message.

    Raises:
        NoSearch: a search of the family is missing, or the method's did not try the median.
    """
    means = {name: by_rate(rows, name, command) for name in family}
    common = median_low(float(own.idxmin()) for own in means.values())
    own = means[method]
    best = float(own.idxmin())
    if common not in own.index:
        raise NoSearch(
            f"the search of {method!r} did not try {common:g}, the rate of its family: search it with "
            f'{command} --methods "{method}" --rates {common:g}'
        )
    tested = rows[rows["method"] == method].pivot_table("fpr95", "rate", "test")
    everywhere = (tested.loc[best] < tested.loc[common]).all()
    if everywhere and own[best] < (1 - CLEARLY) * own[common]:
        return best
    return common


def inherited_from(name: str, recipe: Recipe, search: Search) -> str | None:
    """Return the method whose rate a variant takes, or None if it has its own search.

    "hynet_aug, IN" takes the rate of "hynet_aug". "hynet_aug, L_B" does not: its loss is another, and so
    is the length of its gradient.

    Args:
        name: the variant's name, which begins with that of a method in `lib.recipes.RECIPES`.
        recipe: the variant.
        search: whether variants inherit, and the families; a member has its family's rate.
    """
    base = name.rpartition(", ")[0]
    method = RECIPES.get(name.partition(", ")[0])
    if not search.inherited or not base or method is None:
        return None
    if any(name in family for family in search.families):
        return None
    if any(getattr(recipe, axis) != getattr(method, axis) for axis in _SCALE):
        return None
    if any(base in family for family in search.families):
        return base
    if base in RECIPES:
        return base if recipe.optimizer == method.optimizer else None
    return inherited_from(base, recipe, search)


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
    if source.searched:
        return list(product(source.searched, source.reserve))
    if len(source.reserve) == 1:
        return [(source.sets[0], source.reserve[0])]
    return list(permutations(source.reserve, 2))


def requests(
    profile: Profile, source: Source, method: str, recipe: Recipe, rate: float
) -> list[Request]:
    """Return the runs of one rate: each seed on each of `pairs_of_sets`."""
    trained = at_rate(recipe, rate, profile.schedule)
    sized = profile.sized_for(trained)
    if profile.search.budget is not None:
        sized = replace(sized, budget=profile.search.budget)
    return [
        Request(
            method,
            f"{recipe.label} at {rate:g}",
            recipe=trained,
            train=train,
            seed=seed,
            profile=sized,
            measures=tuple((measure, test) for measure in MEASURES),
        )
        for seed, (train, test) in product(profile.search.seeds, pairs_of_sets(source))
    ]


def further_rate(best: float, tried: Sequence[float]) -> float | None:
    """Return the next rate of the grid if the best is at an end of the rates tried, or None."""
    if best == min(tried):
        return max((rate for rate in GRID if rate < best), default=None)
    if best == max(tried):
        return min((rate for rate in GRID if rate > best), default=None)
    return None
