"""Searches of learning rates on record: FPR95 in percent against rate, of two recipes side by side.

A frame of runs has a row a run of the searches under one profile, as `runs` gives them. A run was
trained on one reserve scene and tested on the other.
"""

from collections.abc import Mapping

import pandas as pd

from lib.study.artefacts.searches import read_search, searched
from lib.study.catalogue import SEARCHED
from lib.study.open import Study

FPR95 = "FPR95 (%)"
# By the name in a record, how a measure of spread is called; each is 1 where all descriptors are one.
SPREAD: Mapping[str, str] = {
    "effective_rank": "effective rank",
    "first_share": "share of the first direction",
    "mean_cosine": "mean cosine, other points",
}


def runs(study: Study) -> pd.DataFrame:
    """All runs of the searches on record, recipes in the order of `SEARCHED`.

    Returns:
        "recipe" (its label), "rate", "train_set", "seed", "FPR95 (%)" and "spread": by name and stage
        what `lib.benchmarks.descriptor_spread` measures, or {} of a run whose loss was not finite.
    """
    on_record = set(searched(study))
    searches = [read_search(study, name) for name in SEARCHED if name in on_record]
    rows = [{"recipe": s["label"], "spread": {}, **run} for s in searches for run in s["runs"]]
    return pd.DataFrame(rows).rename(columns={"fpr95": FPR95}).drop(columns="test_set")


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
    pairs = {f"{rate:g}": at_rate for rate, at_rate in both.dropna().groupby(level="rate")}
    own = both.groupby(level="rate").mean().idxmin()
    pairs["own"] = pd.DataFrame({label: both[label].xs(rate) for label, rate in own.items()})
    table = pd.DataFrame({rate: fpr95.mean() for rate, fpr95 in pairs.items()}).T
    table["difference"] = table[lower] - table[higher]
    counts = [(fpr95[lower] < fpr95[higher]).sum() for fpr95 in pairs.values()]
    table["is lower"] = [f"{n} of {len(fpr95)}" for n, fpr95 in zip(counts, pairs.values(), strict=True)]
    return table.rename_axis("rate")
