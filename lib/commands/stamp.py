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
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lib.commands.options import add_study_options, data_of
from lib.digests import value_digest
from lib.files import write_bytes
from lib.profiles import PROFILES
from lib.recipes import Budget
from lib.study import pool, records
from lib.study.artefacts import searches
from lib.study.catalogue import ARTEFACTS, SEARCHED
from lib.study.jobs import Job, Setting, configuration, digests, merged, record_path
from lib.study.open import ROOT, Study, open_study

STEPS, EVALUATED = 20, 3
TRAINED = ("curve", "epoch_fpr95", "weights")
# In a folder of short runs, by record or search the digests that their code has for it.
DIGESTS = "digests.json"


def jobs_on_record(study: Study, folder: Path) -> dict[Path, tuple[Job, Mapping]]:
    """By path, the runs that records below a folder and searches of the study's data are of, and the
    digests that today's code has for them. An artefact that lacks a search has no runs."""
    setting, jobs = study.setting, []
    for artefact in ARTEFACTS.values():
        with suppress(searches.NoSearch):
            jobs += artefact.jobs(study)
    paths = {record_path(job, setting, folder): job for job in merged(jobs, setting) if job.recipe}
    on_record = {path: (job, digests(job, setting)) for path, job in paths.items() if path.exists()}
    for name, recipe in SEARCHED.items():
        path = searches.search_path(setting.profile.name, setting.source.name, name)
        if path.exists():
            job = searches.search_jobs(setting, name, recipe, records.read(path)["best"])[0]
            on_record[path] = (job, searches.search_digests(setting, recipe))
    return on_record


def kind_of(job: Job, setting: Setting) -> str:
    """Digest of all that tells which code a run is trained by: seed and train set do not."""
    config = configuration(job, setting)
    return value_digest({name: config[name] for name in config if name not in ("seed", "train_set")})


def short_runs(jobs: Iterable[Job], setting: Setting) -> dict[str, Job]:
    """By `kind_of` the run that asks for most, in 20 steps and followed as the whole one is. Each
    measure and each probe is taken on three sets in all."""
    runs, taken = {}, Counter()

    def few(wanted: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        kept = []
        for module, test_set in wanted:
            taken[module] += 1
            if module == "fpr95" or taken[module] <= EVALUATED:
                kept.append((module, test_set))
        return tuple(kept)

    for job in sorted(jobs, key=lambda job: len(job.measures) + len(job.probes), reverse=True):
        kind = kind_of(job, setting)
        if kind not in runs:
            pairs = job.profile(setting).budget_for(job.recipe).batch_pairs
            overrides = {**job.overrides, "budget": Budget(pairs, pairs * STEPS, 1)}
            wanted = {"measures": few(job.measures), "probes": few(job.probes)}
            runs[kind] = replace(job, **wanted, overrides=overrides)
    return runs


def repeated(runs: Mapping[str, Job], then: Setting, now: Setting) -> tuple[set[str], set[str]]:
    """The kinds whose training, and the modules whose numbers, are equal to the last digit.

    Args:
        runs: `short_runs`.
        then, now: where they were made by other code and by today's.
    """
    trained, equal = set(), {}
    for kind, job in runs.items():
        paths = [record_path(job, setting) for setting in (then, now)]
        if not all(path.exists() for path in paths):
            continue
        before, after = map(records.read, paths)
        if all(before[name] == after[name] for name in TRAINED):
            trained.add(kind)
        one, other = map(_numbers, (before, after))
        for key in one.keys() | other.keys():
            same = one.get(key) == other.get(key)
            equal.setdefault(key.partition(".")[0], set()).add(same)
    return trained, {module for module, values in equal.items() if values == {True}}


def _numbers(record: Mapping) -> dict[str, object]:
    """By "module.set" what a record holds of a measure, and the hash of a probe."""
    measured = {
        f"{module}.{test_set}": values
        for test_set, by_module in record["metrics"].items()
        for module, values in by_module.items()
    }
    return measured | record["probes"]


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
    evaluated = [side.get("evaluation", {}) for side in (held, then, now)]
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
    add("--profile", default="quick", choices=list(PROFILES))
    add_study_options(parser, "where the records lie")
    text = "write this code's short runs into a folder, and stamp nothing"
    add("--numbers", type=Path, metavar="DIR", help=text)
    chosen = parser.parse_args()
    if not (chosen.checkout or chosen.numbers):
        parser.error("name the checkout that made the records")
    study = open_study(chosen.profile, data_of(chosen), "results", None, chosen.device, chosen.jobs)
    folder = ROOT / chosen.results / chosen.profile / study.setting.source.name
    on_record = jobs_on_record(study, folder)
    names = {
        path: path.relative_to(folder if folder in path.parents else study.reference).as_posix()
        for path in on_record
    }
    runs = short_runs([job for job, _ in on_record.values()], study.setting)
    with tempfile.TemporaryDirectory() as made:
        now = replace(study.setting, folder=chosen.numbers or Path(made, "now"))
        failures = pool.complete(runs.values(), now, study.at_once, pool.printed(len(runs)))
        for job, why in failures:
            print(f"{job.title}: {why}")
        if chosen.numbers:
            today = {names[path]: digests for path, (_, digests) in on_record.items()}
            write_bytes(chosen.numbers / DIGESTS, json.dumps(today).encode())
            return
        then = replace(
            study.setting, folder=_made_by(chosen.checkout, Path(made, "then"), chosen.results)
        )
        trained, modules = repeated(runs, then, now)
        known = json.loads((then.folder / DIGESTS).read_bytes())
    for path, (job, today) in on_record.items():
        repeats = kind_of(job, study.setting) in trained
        if why := stamp(path, known.get(names[path], {}), today, repeats, modules):
            print(f"{names[path]} {why}")
    same = sum(records.read(path)["digests"] == today for path, (_, today) in on_record.items())
    print(f"{same} of {len(on_record)} records and searches are by today's code")


def _made_by(checkout: Path, folder: Path, results: str) -> Path:
    """The folder of a checkout's own short runs for these records, which it makes unless it has."""
    if (checkout / DIGESTS).is_file():
        return checkout
    again = [*sys.argv[1:], "--results", str(ROOT / results), "--numbers", str(folder)]
    command = [sys.executable, "-P", "-m", "lib.commands.stamp", *again]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(checkout.resolve())}, check=True)
    return folder


if __name__ == "__main__":
    main()
