"""Stamps the records, and the searches, whose training today's code repeats.

``.venv/bin/python -m lib.commands.stamp`` is for after a change of code that should have left every bit
of training as it was: what it stamps need not be trained anew, what it does not stamp has changed.
Records are those below ``--results``, where their weights lie; `./run_all.sh --update-reference` or
``--collect`` then takes them. Bits are the same only on the kind of machine that trained.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from lib import profiles
from lib.experiments import searches
from lib.experiments.artefacts import ARTEFACTS, SEARCHED
from lib.study import pool, records
from lib.study.jobs import Job, Place, look, merged
from lib.study.open import Study, open_study
from lib.study.stamping import STEPS, stamp


def stamp_runs(study: Study, jobs: Sequence[Job]) -> int:
    """Stamps what can be of the runs by older code; says which it could not, and returns how many it
    did."""
    older = [job for job in jobs if job.recipe and look(job, study.place).state == "older code"]
    tasks = [pool.Task(job.title, partial(_stamp, job, study.place)) for job in older]
    outcomes = pool.run(tasks, study.at_once, threads=study.place.profile.threads)
    for job, of in zip(older, outcomes, strict=True):
        if not of.value:
            print(f"{job.title}: {of.failure or 'trains otherwise today'}")
    return sum(bool(of.value) for of in outcomes)


def _stamp(job: Job, place: Place, tell: pool.Tell) -> bool:
    return stamp(job, place)


def stamp_search(study: Study, name: str) -> bool:
    """Whether the search of a recipe is by today's code, or now is: today's code repeats its runs at the
    best rate, and measures on them what is on record."""
    place, recipe = study.place, SEARCHED[name]
    found = searches.read_search(place.profile.name, name)
    today = searches.search_digests(place, recipe)
    if found["digests"] == today:
        return True
    jobs = searches.search_jobs(place, name, recipe, found["best"])
    stamp_runs(study, jobs)
    if found["digests"]["data"] != today["data"] or any(
        look(job, place).state not in ("complete", "incomplete") for job in jobs
    ):
        return False
    pool.complete(jobs, place, study.at_once, lambda standing: None)
    if not all(_as_on_record(found, job, place) for job in jobs):
        return False
    instead_of = {part: of for part, of in found["digests"].items() if part != "data"}
    stamped = [*found.get("stamped", ()), {"steps": STEPS, "instead_of": instead_of}]
    path = searches.search_path(place.profile.name, name)
    records.write(path, {**found, "digests": today, "stamped": stamped})
    return True


def _as_on_record(found: Mapping, job: Job, place: Place) -> bool:
    (_, test_set), record = job.measures[0], look(job, place).content
    fpr95 = round(record["metrics"][test_set]["fpr95"]["expected"], 4)
    which = (found["best"], job.seed, job.train_set)
    on_record = {(of["rate"], of["seed"], of["train_set"]): of["fpr95"] for of in found["runs"]}
    return on_record[which] == fpr95


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--profile", default="quick", choices=list(profiles.PROFILES))
    add("--photos", metavar="DIR", help="folder of photographs that the embedded data was made from")
    add("--device", default="cpu", help="the one that trained (default: cpu)")
    add("--results", default="results", metavar="DIR", help="where the runs lie (default: results)")
    add("--jobs", type=int, help="runs at once (default: as many as the cores hold)")
    chosen = parser.parse_args()
    data = f"photos:{chosen.photos}" if chosen.photos else "mini"
    study = open_study(chosen.profile, data, chosen.results, device=chosen.device, at_once=chosen.jobs)
    names = searches.searched(chosen.profile)
    of_today = [name for name in names if stamp_search(study, name)]
    print(f"searches by today's code: {len(of_today)} of {len(names)}")
    for name in sorted(set(names) - set(of_today)):
        print(f"{name}: search it anew")
    jobs = merged((job for of in ARTEFACTS.values() for job in of.jobs(study)), study.place)
    print(f"runs stamped: {stamp_runs(study, jobs)}")


if __name__ == "__main__":
    main()
