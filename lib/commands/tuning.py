"""Sets a profile's learning rate, once per optimiser, on the reserve photographs.

``python -m lib.commands.tuning`` trains the recipes below at each rate on one reserve scene and tests
on the other, both ways, and takes the rate with the lowest mean FPR95 over all. The outcome is
written beside the reference and frozen in `lib.profiles`; no scene that a table is made of is looked
at.
"""

import argparse
import itertools

import pandas as pd

from lib import parts, profiles, recipes
from lib.digests import code_digest
from lib.experiments.training import tuning_path
from lib.study import pool, records
from lib.study.jobs import Job, look
from lib.study.open import Study, open_study

RATES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
# One blind and one sampling recipe, on either distance, for each optimiser.
RECIPES = {"sgd": ("hardnet", "hardnet_gen", "adasample_gen", "adasample_aug_gen")}
SEED = 0


def searching_job(rate: float, recipe: str, train_set: str, test_set: str) -> Job:
    """A run of a recipe at a rate of its own."""
    chosen = recipes.find(recipe)
    return Job(
        recipe,
        chosen.label,
        recipe=chosen,
        train_set=train_set,
        seed=SEED,
        measures=(("fpr95", test_set),),
        overrides={"learning_rates": {chosen.optimizer.name: rate}},
    )


def search(study: Study, optimizer: str) -> dict:
    """Has all runs of a search made and returns its outcome, rates with their mean FPR95 among it.

    A run whose loss was no longer finite counts as 100%.

    Raises:
        RuntimeError: another run failed.
    """
    source, searched = study.place.source, RECIPES[optimizer]
    pool.prepare(source, source.reserve, study.at_once)
    asked = list(itertools.product(RATES, searched, itertools.permutations(source.reserve, 2)))
    jobs = [searching_job(rate, recipe, *way) for rate, recipe, way in asked]
    failures = pool.complete(jobs, study.place, study.at_once, pool.printed(len(jobs)))
    other = [f"{job.title}: {why}" for job, why in failures if not why.startswith("FloatingPointError")]
    if other:
        raise RuntimeError("; ".join(other))
    found = [look(job, study.place).content for job in jobs]
    values = [
        100.0 if record is None else record["metrics"][way[1]]["fpr95"]["expected"]
        for record, (_, _, way) in zip(found, asked, strict=True)
    ]
    runs = [
        {"rate": rate, "recipe": recipe, "train_set": way[0], "test_set": way[1], "fpr95": round(v, 4)}
        for (rate, recipe, way), v in zip(asked, values, strict=True)
    ]
    means = pd.DataFrame(runs).groupby("rate")["fpr95"].mean().round(4).rename(str).to_dict()
    return {
        "kind": "tuning",
        "name": optimizer,
        "config": {"profile": study.place.profile.name, "seed": SEED, "rates": list(RATES)},
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
    parser.add_argument("--jobs", type=int, help="runs at once (default: as many as the cores hold)")
    chosen = parser.parse_args()
    outcome = search(
        open_study(chosen.profile, results="results", at_once=chosen.jobs), chosen.optimizer
    )
    records.write(tuning_path(chosen.profile, chosen.optimizer), outcome)
    print(outcome["metrics"]["mean_fpr95"], "best:", outcome["best"])


if __name__ == "__main__":
    main()
