"""Search recipes' learning rates on the reserve photographs, and record the searches.

``.venv/bin/python -m lib.commands.tuning`` trains and tests each recipe at each rate of the profile's
search on the sets of `searches.pairs_of_sets`. ``--rates`` adds rates. While the best rate is at an end
of those tried, the search goes on there. The outcome is written beside the reference, from where
`lib.study.artefacts.rows.at_profile` takes the rate. No scene that a table uses is looked at.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence

from lib.commands.options import add_study_options, check_device, data_of, exit_status
from lib.processes import printed
from lib.profiles import PROFILES
from lib.recipes import Recipe
from lib.study import records
from lib.study.artefacts import searches
from lib.study.catalogue import SEARCHED
from lib.study.jobs import Job, record_status
from lib.study.open import Study, open_study
from lib.study.pool import complete


def search(study: Study, name: str, recipe: Recipe, besides: Iterable[float] = ()) -> dict[str, object]:
    """Make all runs of a recipe's search and return its outcome.

    A run whose loss stopped being finite counts as 100%.

    Args:
        study: the data, profile and folder of the search.
        name, recipe: what is searched.
        besides: rates to try besides those of the profile.

    Raises:
        RuntimeError: a run failed for another reason.
    """
    runs = []
    rates = sorted({*searches.first_rates(study.profile.search, recipe), *besides})
    while rates:
        jobs = [job for rate in rates for job in searches.search_jobs(study, name, recipe, rate)]
        failures = complete(jobs, study, study.at_once, printed(len(jobs)))
        other = [f"{job.title}: {why}" for job, why in failures if not why.startswith("FloatingPoint")]
        if other:
            raise RuntimeError("; ".join(other))
        runs += [_run(study, job) for job in jobs]
        outcome = searches.outcome(study, name, recipe, runs)
        further = searches.further_rate(outcome["best"], [run["rate"] for run in runs])
        rates = [] if further is None else [further]
    return outcome


def _run(study: Study, job: Job) -> Mapping[str, object]:
    (test_set,), record = job.test_sets, record_status(job, study)
    rate = job.recipe.optimizer.options["lr"]
    run = {"rate": rate, "seed": job.seed, "train_set": job.train_set, "test_set": test_set}
    if record.content is None:
        return {**run, "fpr95": searches.FAILED}
    spread = record.content["metrics"][test_set]["descriptor_spread"]
    return {**run, "fpr95": round(record.fpr95(test_set), 4), "spread": spread}


def main(arguments: Sequence[str] | None = None) -> int:
    """Search the recipes that the command line names and return the exit status of `exit_status`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    sized = [name for name, profile in PROFILES.items() if profile.search]
    add_study_options(parser, "where the runs go", sized)
    add("--recipes", nargs="+", default=list(SEARCHED), choices=list(SEARCHED), metavar="NAME")
    rates = {"type": float, "choices": searches.GRID, "default": [], "metavar": "RATE"}
    add("--rates", nargs="+", help="tried too", **rates)
    return exit_status(parser, arguments, _search_all)


def _search_all(chosen: argparse.Namespace) -> None:
    study = open_study(chosen.profile, data_of(chosen), chosen.results, None, chosen.device, chosen.jobs)
    check_device(chosen.device)
    for name in chosen.recipes:
        outcome = search(study, name, SEARCHED[name], chosen.rates)
        records.write(searches.search_path(chosen.profile, study.source.name, name), outcome)
        means = outcome["metrics"]["mean_fpr95"]
        print(f"{outcome['label']}: {means} best: {outcome['best']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
