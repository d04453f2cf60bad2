"""Searches of learning rates: FPR95 against rate, how wide its valley is, and how descriptors spread.

A frame of runs has a row a run of the searches on record under one profile, as `runs` gives them; FPR95
is in percent. A way is a reserve scene trained on, the other being tested on.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.study.artefacts.searches import read_search, searched
from lib.study.catalogue import SEARCHED
from lib.study.open import Study

FPR95 = "FPR95 (%)"
# A valley's rates exceed the best mean by this share of it at most.
TOLERANCE = 0.1
# A run is near a collapse once it has gone this share of the way there from the untrained network.
NEAR = 0.9
# By the name in a record, how a measure of spread is called; each is 1 where all descriptors are one.
SPREAD: Mapping[str, str] = {
    "effective_rank": "effective rank",
    "first_share": "share of the first direction",
    "mean_cosine": "mean cosine, other points",
}
COLLAPSED = 1.0
# Where the shades of excess FPR95 change, in percent; the first ends where a valley does.
EXCESS = (0, 100 * TOLERANCE, 25, 50, 100)


def runs(study: Study) -> pd.DataFrame:
    """All runs of the searches on record, recipes in the order of `SEARCHED`.

    Returns:
        "recipe" (its label), "rate", "train_set", "seed", "FPR95 (%)" and "spread": by name and stage
        what `lib.benchmarks.descriptor_spread` measures, or {} of a run whose loss was not finite.
    """
    on_record = set(searched(study))
    found = [read_search(study, name) for name in SEARCHED if name in on_record]
    rows = [{"recipe": of["label"], "spread": {}, **run} for of in found for run in of["runs"]]
    return pd.DataFrame(rows).rename(columns={"fpr95": FPR95}).drop(columns="test_set")


def valley(means: pd.Series, tolerance: float = TOLERANCE) -> tuple[float, float]:
    """The least and the largest of the rates next to the best whose mean is near the best one.

    Args:
        means: FPR95 by rate, ascending. Rates beyond one that is worse do not count.
        tolerance: the share of the best mean by which another may exceed it.
    """
    best = means.index.get_loc(means.idxmin())
    worse = np.flatnonzero(means.to_numpy() > (1 + tolerance) * means.min())
    low = max((place + 1 for place in worse if place < best), default=0)
    high = min((place - 1 for place in worse if place > best), default=len(means) - 1)
    return means.index[low], means.index[high]


def sensitivity(runs: pd.DataFrame) -> pd.DataFrame:
    """How much hangs on each recipe's rate.

    Returns:
        By "recipe" how many rates were "tried", its "own" rate, the mean "FPR95" there over ways and
        seeds and the standard error "s.e." of that over seeds (the ways fixed; missing with one seed),
        the "valley" and the factor between its ends, "width"; "open" names the ends that lie at an end
        of what was tried, beyond which the valley may go on.
    """
    rows = {}
    for recipe, of in runs.groupby("recipe", sort=False):
        means = of.groupby("rate")[FPR95].mean()
        low, high = valley(means)
        way = of[of["rate"] == means.idxmin()].groupby("train_set")[FPR95].agg(["var", "size"])
        open_ends = [low == means.index[0] and "below", high == means.index[-1] and "above"]
        rows[recipe] = {
            "tried": len(means),
            "own": f"{means.idxmin():g}",
            "FPR95": means.min(),
            "s.e.": math.sqrt((way["var"] / way["size"]).sum(skipna=False)) / len(way),
            "valley": f"{low:g} to {high:g}" if high > low else f"{low:g}",
            "width": high / low,
            "open": " and ".join(filter(None, open_ends)),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("recipe")


def by_rate(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    """Means of a column over ways and seeds, a row a recipe, a column a rate."""
    table = frame.pivot_table(value, "recipe", "rate", sort=False)
    return table.sort_index(axis=1).rename(columns="{:g}".format)


def compared(runs: pd.DataFrame, lower: str, higher: str) -> pd.DataFrame:
    """Two recipes at each rate that both were tried at, and last at each one's own.

    Args:
        runs: of `runs`.
        lower, higher: labels; the first is said to have the lower FPR95.

    Returns:
        By "rate" the mean FPR95 of both, their "difference", and in how many of the runs paired by way
        and seed the first one "is lower".
    """
    both = runs.pivot(index=["rate", "train_set", "seed"], columns="recipe", values=FPR95)
    both = both[[higher, lower]]
    rows = {f"{rate:g}": of for rate, of in both.dropna().groupby(level="rate")}
    own = both.groupby(level="rate").mean().idxmin()
    rows["own"] = pd.DataFrame({label: both[label].xs(rate) for label, rate in own.items()})
    table = pd.DataFrame({rate: of.mean() for rate, of in rows.items()}).T
    table["difference"] = table[lower] - table[higher]
    table["is lower"] = [f"{(of[lower] < of[higher]).sum()} of {len(of)}" for of in rows.values()]
    return table.rename_axis("rate")


def spread(runs: pd.DataFrame) -> pd.DataFrame:
    """How descriptors spread: a row a run and stage, with "stage" (share of training) and a column for
    each of `SPREAD`; runs whose loss was not finite have none."""
    rows = []
    for run in runs.to_dict("records"):
        measured = run.pop("spread")
        stages = dict.fromkeys(key.partition(".")[2] for key in measured)
        for stage in stages:
            numbers = {name: measured[f"{name}.{stage}"] for name in SPREAD}
            rows.append({**run, "stage": float(stage), **numbers})
    return pd.DataFrame(rows)


def at_end(spread: pd.DataFrame) -> pd.DataFrame:
    """The rows of `spread` after the last step."""
    return spread[spread["stage"] == spread["stage"].max()]


def nearest_to_collapse(spread: pd.DataFrame) -> pd.DataFrame:
    """How many runs come near to descriptors that are all one, and which comes nearest.

    Returns:
        By measure the mean "untrained" value; how many runs are "near" after the last step (`NEAR`), and
        how many "of" each recipe; the value "nearest" to 1, its recipe, rate and FPR95.
    """
    trained, rows = at_end(spread), {}
    untrained = spread[spread["stage"] == 0]
    for name, label in SPREAD.items():
        left, start = (trained[name] - COLLAPSED).abs(), untrained[name].mean()
        near = trained[left <= (1 - NEAR) * abs(start - COLLAPSED)]
        counts = near["recipe"].value_counts(sort=False)
        run = trained.loc[left.idxmin()]
        rows[label] = {
            "untrained": start,
            "near": f"{len(near)} of {len(trained)}",
            "of": ", ".join(f"{recipe} {count}" for recipe, count in counts.items()) or "none",
            "nearest": run[name],
            "recipe": run["recipe"],
            "rate": f"{run['rate']:g}",
            "FPR95": run[FPR95],
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("measure")
