"""Names today's code in the records, and the searches, whose numbers today's code repeats.

``.venv/bin/python -m lib.commands.stamp CHECKOUT`` is for after a change of code that should have left
every bit as it was: a refactoring, or a new option that no record uses. CHECKOUT is the code that made
the records below ``--results``, e.g. of ``git worktree add``. It and today's code both train a run of
each configuration, and of each search at its best rate, for 20 steps, and evaluate each measure and
probe on three sets. Where all numbers, probes and weights of the two are equal to the last digit the
digests in the records that are of that code become today's, which the records say; what comes out
otherwise is named. Both sides are made here and now, so that it does not matter on which kind of machine
the records were made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from pathlib import Path

from lib import profiles
from lib.commands.options import add_study_options, data_of
from lib.digests import value_digest
from lib.files import write_bytes
from lib.recipes import Budget
from lib.study import pool, records
from lib.study.artefacts import searches
from lib.study.catalogue import ARTEFACTS, SEARCHED
from lib.study.jobs import Job, configuration, digests, look, merged, record_path
from lib.study.open import ROOT, Study, open_study, reference_folder

STEPS, EVALUATED = 20, 3
TRAINED = ("curve", "epoch_fpr95", "weights")


def jobs_on_record(study: Study, folder: Path) -> tuple[dict[Path, Job], dict[Path, Mapping]]:
    """By path, the runs that records below a folder and searches of the study's data are of, and the
    digests that today's code has for them. An artefact that lacks a search has no runs."""
    place, every = study.place, []
    for artefact in ARTEFACTS.values():
        try:
            every += artefact.jobs(study)
        except searches.NoSearch:
            continue
    jobs, today = {}, {}
    for job in merged(every, place):
        path = record_path(job, place, folder)
        if job.recipe and path.exists():
            jobs[path], today[path] = job, digests(job, place)
    for name, recipe in SEARCHED.items():
        path = searches.search_path(place.profile.name, place.source.name, name)
        if path.exists():
            jobs[path] = searches.search_jobs(place, name, recipe, records.read(path)["best"])[0]
            today[path] = searches.search_digests(place, recipe)
    return jobs, today


def kind_of(job: Job, study: Study) -> str:
    """Digest of all that tells which code a run is trained by: seed and train set do not."""
    config = configuration(job, study.place)
    return value_digest({name: config[name] for name in config if name not in ("seed", "train_set")})


def short(study: Study, jobs: Mapping[Path, Job]) -> dict[str, Job]:
    """By `kind_of` a run in 20 steps, followed as the whole one is. Each measure and each probe is taken
    on the first three sets that runs ask it for."""
    runs, taken = {}, Counter()
    for job in jobs.values():
        kind = kind_of(job, study)
        if kind not in runs:
            pairs = job.profile(study.place).budget_for(job.recipe).batch_pairs
            budget = {"budget": Budget(pairs, pairs * STEPS, 1)}
            followed = tuple(wanted for wanted in job.measures if wanted[0] == "fpr95")
            overrides = {**job.overrides, **budget}
            runs[kind] = replace(job, measures=followed, probes=(), overrides=overrides)
        for name in ("measures", "probes"):
            held = getattr(runs[kind], name)
            more = [
                wanted
                for wanted in getattr(job, name)
                if wanted not in held and wanted[0] != "fpr95" and taken[wanted[0]] < EVALUATED
            ]
            taken.update(module for module, _ in more)
            runs[kind] = replace(runs[kind], **{name: (*held, *more)})
    return runs


def numbers(study: Study, jobs: Mapping[Path, Job], then: Mapping | None = None) -> dict[str, Mapping]:
    """What comes out of short runs, made in the study's folder.

    Args:
        study: whose folder, profile and data it is.
        jobs: by path, runs.
        then: the same by other code, to make the same runs; None chooses them.

    Returns:
        By `kind_of` the run's "train_set", "seed", "measures" and "probes", and its "numbers", or None
        where it failed: those of "training" and, by "module.set", of measures and probes.
    """
    runs = short(study, jobs)
    for kind in runs.keys() & (then or {}).keys():
        wanted = {name: tuple(map(tuple, then[kind][name])) for name in ("measures", "probes")}
        same = {name: then[kind][name] for name in ("train_set", "seed")}
        runs[kind] = replace(runs[kind], **same, **wanted)
    every = list(runs.values())
    for job, why in pool.complete(every, study.place, study.at_once, pool.printed(len(every))):
        print(f"{job.title}: {why}")
    made = {}
    for kind, job in runs.items():
        record = look(job, study.place).content
        made[kind] = {name: getattr(job, name) for name in ("train_set", "seed", "measures", "probes")}
        made[kind]["numbers"] = record and {
            "training": {name: record[name] for name in TRAINED},
            **{f"{of}.{test_set}": record["metrics"][test_set][of] for of, test_set in job.measures},
            **record["probes"],
        }
    # As read back, since JSON knows no tuples.
    return json.loads(json.dumps(made))


def repeated(then: Mapping, now: Mapping) -> tuple[set[str], set[str]]:
    """The kinds whose training, and the modules whose numbers, are equal to the last digit."""
    trained, equal = set(), {}
    for kind in then.keys() & now.keys():
        before, after = (side[kind]["numbers"] or {} for side in (then, now))
        for key in before.keys() & after.keys():
            if key != "training":
                equal.setdefault(key.partition(".")[0], set()).add(before[key] == after[key])
            elif before[key] == after[key]:
                trained.add(kind)
    return trained, {module for module, values in equal.items() if values == {True}}


def stamp(path: Path, then: Mapping, now: Mapping, trained: bool, modules: Set[str]) -> str | None:
    """Has a record or a search name today's code in place of other code whose numbers it repeats.

    Args:
        path: of the record.
        then, now: its digests by the code that made it and by today's.
        trained: whether the training is repeated.
        modules: the measures and probes that are.

    Returns:
        What comes out otherwise, or None.
    """
    record = records.read(path)
    held, others = record["digests"], []

    def renamed(part: str, repeats: bool, held: Mapping, then: Mapping, now: Mapping) -> object:
        if not repeats:
            others.append(part)
            return held[part]
        return _renamed(held[part], then.get(part), now.get(part))

    stamped = {part: renamed(part, trained, held, then, now) for part in held if part != "evaluation"}
    evaluated = [side["evaluation"] for side in (held, then, now)]
    stamped["evaluation"] = {part: renamed(part, part in modules, *evaluated) for part in evaluated[0]}
    if stamped != held:
        history = [*record.get("stamped", ()), {"steps": STEPS, "instead_of": held}]
        records.write(path, {**record, "digests": stamped, "stamped": history})
    return f"comes out otherwise today: {', '.join(others)}" if others else None


def _renamed(held: object, then: object, now: object) -> object:
    """Digests that are of one code as today's code has them; those of neither stay."""
    if isinstance(held, Mapping):
        then, now = then or {}, now or {}
        return {name: _renamed(digest, then.get(name), now.get(name)) for name, digest in held.items()}
    return now if held == then and now is not None else held


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    checkout = "the code that made the records, e.g. a git worktree, or what its --numbers wrote"
    add("checkout", type=Path, nargs="?", help=checkout)
    add("--profile", default="quick", choices=list(profiles.PROFILES))
    add_study_options(parser, "where the records lie")
    add("--numbers", type=Path, metavar="FILE", help="write this code's numbers, and stamp nothing")
    chosen = parser.parse_args()
    if not (chosen.checkout or chosen.numbers):
        parser.error("name the checkout that made the records")
    study = open_study(chosen.profile, data_of(chosen), "results", None, chosen.device, chosen.jobs)
    own = (chosen.profile, study.place.source.name)
    folder, reference = Path(ROOT, chosen.results, *own), reference_folder(*own)
    jobs, today = jobs_on_record(study, folder)
    names = {path: path.relative_to(folder if folder in path.parents else reference) for path in jobs}
    with tempfile.TemporaryDirectory() as made:
        then = None if chosen.numbers else _numbers_of(chosen, study, Path(made, "then.json"))
        apart = replace(study, place=replace(study.place, folder=Path(made)))
        runs = numbers(apart, jobs, then and then["runs"])
    if chosen.numbers:
        named = {
            names[path].as_posix(): {"digests": today[path], "run": kind_of(job, study)}
            for path, job in jobs.items()
        }
        write_bytes(chosen.numbers, json.dumps({"records": named, "runs": runs}).encode())
        return
    trained, modules = repeated(then["runs"], runs)
    for path, name in names.items():
        known = then["records"].get(name.as_posix(), {"digests": {"evaluation": {}}, "run": None})
        if why := stamp(path, known["digests"], today[path], known["run"] in trained, modules):
            print(f"{name} {why}")
    same = sum(records.read(path)["digests"] == today[path] for path in names)
    print(f"{same} of {len(names)} records and searches are by today's code")


def _numbers_of(chosen: argparse.Namespace, study: Study, written: Path) -> Mapping:
    """What the checkout's own command writes over these records, or what it has written."""
    if chosen.checkout.is_file():
        return json.loads(chosen.checkout.read_bytes())
    asked = {"profile": chosen.profile, "device": chosen.device, "jobs": study.at_once}
    asked |= {"results": ROOT / chosen.results, "numbers": written}
    kinds = {kind: getattr(chosen, kind) for kind in ("data", "photos", "scenes")}
    asked |= {kind: Path(root).resolve() for kind, root in kinds.items() if root}
    subprocess.run(
        [sys.executable, "-m", "lib.commands.stamp", *(f"--{name}={of}" for name, of in asked.items())],
        env={**os.environ, "PYTHONPATH": str(chosen.checkout.resolve())},
        cwd=chosen.checkout,
        check=True,
    )
    return json.loads(written.read_bytes())


if __name__ == "__main__":
    main()
