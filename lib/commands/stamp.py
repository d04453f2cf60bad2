"""Names today's code in the records, and the searches, whose numbers today's code repeats.

``.venv/bin/python -m lib.commands.stamp CHECKOUT`` is for after a change of code that should have left
every bit as it was: a refactoring, or a new option that no record uses. CHECKOUT is the code that made
the records below ``--results``, e.g. of ``git worktree add``. It and today's code both train a run of
each configuration, and of each search at its best rate, for 20 steps, and evaluate it as the records
are. Where all numbers, probes and weights of the two are equal to the last digit the records are
stamped, which they say; the others, which did change, are named. Both sides are made here and now, so
that it does not matter on which kind of machine the records were made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lib import profiles
from lib.digests import value_digest
from lib.files import write_bytes
from lib.recipes import Budget
from lib.study import pool, records
from lib.study.artefacts import searches
from lib.study.catalogue import ARTEFACTS, SEARCHED
from lib.study.jobs import Job, configuration, digests, look, merged, record_path
from lib.study.open import REFERENCE, Study, open_study

STEPS = 20
COMPARED = ("curve", "epoch_fpr95", "metrics", "probes", "weights")
# By record or search, its digests by that code and what came out of its short runs.
Numbers = Mapping[str, Mapping]


def short(job: Job, study: Study) -> Job:
    """The run in 20 steps, evaluated as the whole one is."""
    pairs = job.profile(study.place).budget_for(job.recipe).batch_pairs
    return replace(job, overrides={**job.overrides, "budget": Budget(pairs, pairs * STEPS, 1)})


def numbers(study: Study, jobs: Mapping[str, Job]) -> dict[str, Mapping | None]:
    """What comes out of short runs, made in the study's folder: one of each configuration and of what is
    evaluated stands for all its seeds and train sets, since the code that they run is the same.

    Args:
        study: whose folder, profile and data it is.
        jobs: by name, runs.

    Returns:
        By the same names what `COMPARED` names, or None where the run failed.
    """
    alike: dict[str, Job] = {}
    for job in jobs.values():
        alike.setdefault(_kind(job, study), short(job, study))
    every = list(alike.values())
    for job, why in pool.complete(every, study.place, study.at_once, pool.printed(len(every))):
        print(f"{job.title}: {why}")

    def outcome(job: Job) -> Mapping | None:
        record = look(alike[_kind(job, study)], study.place).content
        return record and {name: record[name] for name in COMPARED}

    return {name: outcome(job) for name, job in jobs.items()}


def _kind(job: Job, study: Study) -> str:
    """All that tells which code a run goes through."""
    configured = configuration(job, study.place)
    for own in ("seed", "train_set"):
        del configured[own]
    evaluated = sorted({module for module, _ in (*job.measures, *job.probes)})
    return value_digest([configured, evaluated])


def by_this_code(study: Study, then: Mapping[str, Numbers] | None = None) -> dict[str, Numbers]:
    """Digests and numbers of the artefacts' runs, and of a run of each search at its best rate, by the
    code that is running: by the record's or the search's place below its profile's folder.

    Args:
        study: whose they are.
        then: those by other code, to make the same runs in the same order; None for all there are.
    """
    place, profile = study.place, study.place.profile.name
    every = merged((job for of in ARTEFACTS.values() for job in of.jobs(study)), place)
    jobs = {_below(record_path(job, place), place.folder): job for job in every if job.recipe}
    named = {path: digests(job, place) for path, job in jobs.items()}
    for name in searches.searched(profile):
        if name in SEARCHED:
            rate, recipe = searches.read_search(profile, name)["best"], SEARCHED[name]
            path = _below(searches.search_path(profile, name), REFERENCE / profile)
            jobs[path] = searches.search_jobs(place, name, recipe, rate)[0]
            named[path] = searches.search_digests(place, recipe)
    if then is not None:
        jobs = {path: jobs[path] for path in then if path in jobs}
    made = numbers(study, jobs)
    return {path: {"digests": named[path], "numbers": made[path]} for path in jobs}


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def stamp(path: Path, then: Mapping | None, now: Mapping) -> str | None:
    """Has a record name today's code if both codes' numbers are equal; says why not.

    Args:
        path: of a record or a search.
        then, now: its digests and numbers by the code that made it and by today's.
    """
    record = records.read(path)
    if then is None or not _names(record["digests"], then["digests"]):
        return "is not by the code of that checkout"
    if then["numbers"] is None or then["numbers"] != now["numbers"]:
        return "comes out otherwise today"
    stamped = {"steps": STEPS, "instead_of": record["digests"]}
    told = [*record.get("stamped", ()), stamped]
    records.write(path, {**record, "digests": now["digests"], "stamped": told})
    return None


def _names(record: object, code: object) -> bool:
    """Whether all digests in a record are those of some code, which may know of more."""
    if not isinstance(record, Mapping):
        return record == code
    return all(name in code and _names(of, code[name]) for name, of in record.items())


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("checkout", type=Path, help="the code that made the records, e.g. a git worktree")
    add("--profile", default="quick", choices=list(profiles.PROFILES))
    add("--photos", metavar="DIR", help="folder of photographs that the embedded data was made from")
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add("--results", default="results", metavar="DIR", help="where the records lie (default: results)")
    add("--jobs", type=int, help="runs at once (default: as many as the cores hold)")
    add("--numbers", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    data = f"photos:{chosen.photos}" if chosen.photos else "mini"

    def opened(results: str) -> Study:
        return open_study(chosen.profile, data, results, None, chosen.device, chosen.jobs)

    if chosen.numbers:
        # This very file, run with that checkout's library.
        made = by_this_code(opened(chosen.results))
        write_bytes(chosen.numbers, json.dumps(made).encode())
        return
    study = opened(chosen.results)
    needed = (*study.place.source.sets, *study.place.source.reserve)
    pool.prepare(study.place.source, needed, study.at_once)
    with tempfile.TemporaryDirectory() as folder:
        for side in ("then", "now"):
            place = Path(folder, side, chosen.profile)
            place.mkdir(parents=True)
            (place / "data").symlink_to((study.place.folder / "data").resolve())
        told = Path(folder, "then.json")
        told_to = {"PYTHONPATH": str(chosen.checkout.resolve())}
        subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--results", f"{folder}/then", "--numbers", told],
            env={**os.environ, **told_to},
            cwd=chosen.checkout,
            check=True,
        )
        then = json.loads(told.read_bytes())
        # As read back, since JSON knows no tuples.
        now = json.loads(json.dumps(by_this_code(opened(f"{folder}/now"), then)))
    done = {"records": 0, "searches": 0}
    for name, today in now.items():
        kind = name.partition("/")[0]
        path = (REFERENCE / chosen.profile if kind == "searches" else study.place.folder) / name
        if path.exists() and not _names(records.read(path)["digests"], today["digests"]):
            why = stamp(path, then.get(name), today)
            done[kind] += why is None
            if why:
                print(f"{name} {why}: make it anew")
    print(f"stamped: {done['records']} runs, {done['searches']} searches")


if __name__ == "__main__":
    main()
