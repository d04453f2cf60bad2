"""Names today's code in the records, and the searches, whose numbers today's code repeats.

``.venv/bin/python -m lib.commands.stamp CHECKOUT`` is for after a change of code that should have left
every bit as it was: a refactoring, or a new option that no record uses. CHECKOUT is the code that made
the records below ``--results``, e.g. of ``git worktree add``. It and today's code both train a run of
each configuration, and of each search at its best rate, for 20 steps, and evaluate each measure and
probe on three of them. Where all numbers, probes and weights of the two are equal to the last digit the
digests in the records that are of that code become today's, which the records say; the others, which
did change, are named. Both sides are made here and now, so that it does not matter on which kind of
machine the records were made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Set
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
from lib.study.open import ROOT, Study, open_study, reference_folder

STEPS, EVALUATED = 20, 3
SEARCHES = "searches"
COMPARED = ("curve", "epoch_fpr95", "metrics", "probes", "weights")


def jobs_on_record(study: Study, folder: Path) -> tuple[dict[str, Job], dict[str, Mapping]]:
    """The runs that records below a folder and searches of a study's data are of, and the digests that
    today's code has for them; by the record's or the search's path.

    An artefact whose searches are not on record has no runs.
    """
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
            name = path.relative_to(folder).as_posix()
            jobs[name], today[name] = job, digests(job, place)
    for key, recipe in SEARCHED.items():
        path = searches.search_path(place.profile.name, place.source.name, key)
        if path.exists():
            name, rate = f"{SEARCHES}/{key}.json", records.read(path)["best"]
            jobs[name] = searches.search_jobs(place, key, recipe, rate)[0]
            today[name] = searches.search_digests(place, recipe)
    return jobs, today


def short(study: Study, jobs: Mapping[str, Job]) -> dict[str, Job]:
    """By configuration a run in 20 steps: one stands for all seeds and train sets, since the code that
    they run is the same. Each measure and probe is taken on three configurations that ask for it."""
    alike: dict[str, list[Job]] = {}
    for job in jobs.values():
        alike.setdefault(_kind(job, study), []).append(job)
    runs, taken = {}, {}
    for kind, asked in alike.items():
        first = asked[0]
        pairs = first.profile(study.place).budget_for(first.recipe).batch_pairs
        chosen = {
            name: dict.fromkeys(
                wanted
                for job in asked
                for wanted in getattr(job, name)
                if _among_first(taken.setdefault(wanted[0], []), kind)
            )
            for name in ("measures", "probes")
        }
        followed = {wanted: None for wanted in first.measures if wanted[0] == "fpr95"}
        runs[kind] = replace(
            first,
            measures=tuple(followed | chosen["measures"]),
            probes=tuple(chosen["probes"]),
            overrides={**first.overrides, "budget": Budget(pairs, pairs * STEPS, 1)},
        )
    return runs


def _kind(job: Job, study: Study) -> str:
    """All that tells which code a run is trained by."""
    config = configuration(job, study.place)
    return value_digest({name: config[name] for name in config if name not in ("seed", "train_set")})


def _among_first(kinds: list[str], kind: str) -> bool:
    if kind not in kinds and len(kinds) < EVALUATED:
        kinds.append(kind)
    return kind in kinds


def numbers(study: Study, jobs: Mapping[str, Job], then: Mapping | None = None) -> dict[str, Mapping]:
    """What comes out of short runs, made in the study's folder.

    Args:
        study: whose folder, profile and data it is.
        jobs: by path, runs.
        then: the same by other code, to make the same runs; None chooses them.

    Returns:
        By configuration the run's "train_set", "seed", "measures" and "probes", and its "numbers", which
        are what `COMPARED` names, or None where it failed.
    """
    runs = short(study, jobs)
    for kind, other in (then or {}).items():
        if kind in runs:
            wanted = {name: tuple(map(tuple, other[name])) for name in ("measures", "probes")}
            same = {name: other[name] for name in ("train_set", "seed")}
            runs[kind] = replace(runs[kind], **same, **wanted)
    every = list(runs.values())
    for job, why in pool.complete(every, study.place, study.at_once, pool.printed(len(every))):
        print(f"{job.title}: {why}")
    made = {}
    for kind, job in runs.items():
        record = look(job, study.place).content
        made[kind] = {name: getattr(job, name) for name in ("train_set", "seed", "measures", "probes")}
        made[kind]["numbers"] = record and {name: record[name] for name in COMPARED}
    # As read back, since JSON knows no tuples.
    return json.loads(json.dumps(made))


def repeated(then: Mapping, now: Mapping) -> tuple[set[str], set[str]]:
    """The configurations whose training, and the measures and probes whose numbers, both codes have in
    common to the last digit."""
    whole = {kind for kind in then.keys() & now.keys() if then[kind]["numbers"] and now[kind]["numbers"]}
    trained = {
        kind
        for kind in whole
        if all(
            then[kind]["numbers"][name] == now[kind]["numbers"][name]
            for name in ("curve", "epoch_fpr95", "weights")
        )
    }
    same: dict[str, list[bool]] = {}
    for kind in whole:
        ours, theirs = now[kind]["numbers"], then[kind]["numbers"]
        for module, test_set in now[kind]["measures"]:
            values = (side["metrics"].get(test_set, {}).get(module) for side in (ours, theirs))
            same.setdefault(module, []).append(next(values) == next(values))
        for module, test_set in now[kind]["probes"]:
            key = f"{module}.{test_set}"
            same.setdefault(module, []).append(ours["probes"][key] == theirs["probes"].get(key))
    return trained, {module for module, equal in same.items() if all(equal)}


def stamp(path: Path, then: Mapping, now: Mapping, trained: bool, modules: Set[str]) -> str | None:
    """Has a record or a search name today's code in place of other code whose numbers it repeats.

    Args:
        path: of the record.
        then, now: its digests by the code that made it and by today's.
        trained: whether the training is repeated.
        modules: the measures and probes that are.

    Returns:
        What stays as it is, or None.
    """
    record = records.read(path)
    held = record["digests"]
    changed = {part for part in held if part != "evaluation" and not trained}
    evaluation = {
        module: _renamed(digest, then["evaluation"].get(module), now["evaluation"].get(module))
        if module in modules
        else digest
        for module, digest in held["evaluation"].items()
    }
    stamped = {
        part: digest if part in changed else _renamed(digest, then.get(part), now.get(part))
        for part, digest in held.items()
    } | {"evaluation": evaluation}
    if stamped != held:
        history = [*record.get("stamped", ()), {"steps": STEPS, "instead_of": held}]
        records.write(path, {**record, "digests": stamped, "stamped": history})
    others = sorted(changed | (held["evaluation"].keys() - modules))
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
    data = parser.add_mutually_exclusive_group().add_argument
    data("--photos", metavar="DIR", help="folder of photographs that the embedded data was made from")
    data("--scenes", metavar="DIR", help="folder of real multi-view photographs, a folder a scene")
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add("--results", default="results", metavar="DIR", help="where the records lie (default: results)")
    add("--jobs", type=int, help="runs at once (default: as many as the cores hold)")
    add("--numbers", type=Path, metavar="FILE", help="write this code's numbers, and stamp nothing")
    chosen = parser.parse_args()
    kinds = {"photos": chosen.photos, "scenes": chosen.scenes}
    source = next((f"{kind}:{Path(of).resolve()}" for kind, of in kinds.items() if of), "mini")
    study = open_study(chosen.profile, source, "results", None, chosen.device, chosen.jobs)
    data_name = study.place.source.name
    reference = reference_folder(chosen.profile, data_name)
    folder = ROOT / chosen.results / chosen.profile / data_name
    jobs, today = jobs_on_record(study, folder)
    then = None
    if chosen.checkout and chosen.checkout.is_file():
        then = json.loads(chosen.checkout.read_bytes())
    elif not chosen.numbers:
        with tempfile.TemporaryDirectory() as written_to:
            # That checkout's own command, over the records of this one.
            arguments = ["--profile", chosen.profile, "--device", chosen.device]
            arguments += ["--results", str(ROOT / chosen.results), "--jobs", str(study.at_once)]
            arguments += [f"--{kind}={root}" for kind, _, root in [source.partition(":")] if root]
            arguments += ["--numbers", (written := f"{written_to}/then.json")]
            subprocess.run(
                [sys.executable, "-m", "lib.commands.stamp", *arguments],
                env={**os.environ, "PYTHONPATH": str(chosen.checkout.resolve())},
                cwd=chosen.checkout,
                check=True,
            )
            then = json.loads(Path(written).read_bytes())
    with tempfile.TemporaryDirectory() as short_runs:
        made = replace(study, place=replace(study.place, folder=Path(short_runs)))
        runs = numbers(made, jobs, then and then["runs"])
    if chosen.numbers:
        kind_of = {path: _kind(job, study) for path, job in jobs.items()}
        named = {path: {"digests": today[path], "run": kind} for path, kind in kind_of.items()}
        write_bytes(chosen.numbers, json.dumps({"records": named, "runs": runs}).encode())
        return
    trained, modules = repeated(then["runs"], runs)
    stamped = 0
    for path in today:
        if path not in then["records"]:
            print(f"{path} is unknown to that code: make it anew")
            continue
        known, above = then["records"][path], reference if path.startswith(SEARCHES) else folder
        why = stamp(above / path, known["digests"], today[path], known["run"] in trained, modules)
        stamped += why is None
        if why:
            print(f"{path} {why}")
    print(f"stamped: {stamped} of {len(today)} records and searches")


if __name__ == "__main__":
    main()
