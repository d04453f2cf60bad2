"""Sets a profile's learning rate, once per optimiser, on the reserve photographs.

``python -m lib.commands.tuning`` trains the recipes below at each rate on one reserve scene and tests
on the other, both ways, and takes the rate with the lowest mean FPR95 over all. The outcome is
written beside the reference and frozen in `lib.profiles`; no scene that a table is made of is looked
at.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from lib import parts, profiles, recipes
from lib.data.sources import open_source
from lib.digests import code_digest
from lib.evaluation.fpr95 import measure
from lib.evaluation.subject import Subject, describe
from lib.experiments.training import tuning_path
from lib.study import records
from lib.study.open import ROOT
from lib.training import train

RATES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
# One blind and one sampling recipe, on either distance, for each optimiser.
RECIPES = {"sgd": ("hardnet", "hardnet_gen", "adasample_gen", "adasample_aug_gen")}
SEED = 0


def fpr95_at(rate: float, recipe: str, train_set: str, test_set: str, profile: str, data: Path) -> float:
    """FPR95 in percent of one run; 100 where the loss was no longer finite."""
    chosen, size = recipes.find(recipe), profiles.find(profile)
    size = replace(size, learning_rates={**size.learning_rates, chosen.optimizer.name: rate})
    source = open_source("mini", data, size.mini)
    try:
        trained = train(chosen, size, source.load(train_set), SEED)
    except FloatingPointError:
        return 100.0
    subject = Subject(partial(describe, trained.model))
    return measure(subject, source.load(test_set))["expected"]


def search(profile: str, optimizer: str, jobs: int) -> dict:
    """Trains all runs of a search and returns its outcome, rates with their mean FPR95 among it."""
    size = profiles.find(profile)
    data = ROOT / "results" / profile / "data"
    source = open_source("mini", data, size.mini)
    for name in source.reserve:
        source.load(name)
    ways = list(itertools.permutations(source.reserve, 2))
    searched = RECIPES[optimizer]
    asked = list(itertools.product(RATES, searched, ways))
    values = Parallel(n_jobs=jobs, verbose=10)(
        delayed(fpr95_at)(rate, recipe, *way, profile, data) for rate, recipe, way in asked
    )
    runs = [
        {"rate": rate, "recipe": recipe, "train_set": way[0], "test_set": way[1], "fpr95": round(v, 4)}
        for (rate, recipe, way), v in zip(asked, values, strict=True)
    ]
    means = {
        str(r): round(float(np.mean([x["fpr95"] for x in runs if x["rate"] == r])), 4) for r in RATES
    }
    return {
        "kind": "tuning",
        "name": optimizer,
        "config": {"profile": profile, "seed": SEED, "rates": list(RATES)},
        "digests": {
            "training": code_digest(
                ["lib.training", *(m for name in searched for m in parts.modules(recipes.find(name)))]
            ),
            "evaluation": {"fpr95": code_digest(["lib.evaluation.fpr95"])},
            "data": {name: source.digest(name) for name in source.reserve},
        },
        "metrics": {"mean_fpr95": means},
        "best": min(RATES, key=lambda rate: means[str(rate)]),
        "runs": runs,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="quick", choices=list(profiles.PROFILES))
    parser.add_argument("--optimizer", default="sgd", choices=list(RECIPES))
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    chosen = parser.parse_args()
    outcome = search(chosen.profile, chosen.optimizer, chosen.jobs)
    records.write(tuning_path(chosen.profile, chosen.optimizer), outcome)
    print(outcome["metrics"]["mean_fpr95"], "best:", outcome["best"])


if __name__ == "__main__":
    main()
