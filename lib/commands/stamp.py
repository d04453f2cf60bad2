"""Stamp records and searches with today's code where it reproduces their numbers.

Use ``.venv/bin/python -m lib.commands.stamp CHECKOUT`` after a code change that should leave every bit
of the results as it was: a refactoring, or a new option that no record uses. CHECKOUT is the code that
made the records below ``--results``, e.g. from ``git worktree add``. CHECKOUT and today's code both
train a run of each configuration, and of each search at its best rate, for 20 steps, and evaluate each
measure and probe on one set. Where all numbers, probes and weights are equal to the last digit, today's
digests replace the old ones in the records, and the records note this. Records that keep other digests
are listed. Both sides run here and now, so the machine that made the records does not matter.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from lib.commands.options import add_study_options, data_of
from lib.data.states import code_half, content_half
from lib.processes import printed
from lib.recipes import Budget
from lib.study import records
from lib.study.artefacts import searches
from lib.study.catalogue import ARTEFACTS, SEARCHED
from lib.study.jobs import Job, Setting, configuration, digests, merged, record_path
from lib.study.open import ROOT, Study, open_study
from lib.study.pool import complete

STEPS = 20
# A digest of code, or of data and the code that makes it.
DIGEST = re.compile(r'(?<=")[0-9a-f]{16}(?=")')
# The entries of a record that the code behind each part of its digests computed.
NUMBERS = {
    "training": ("curve", "epoch_fpr95", "weights"),
    "following": ("epoch_fpr95",),
    "evaluation": ("metrics", "probes"),
}


def jobs_on_record(study: Study, folder: Path) -> dict[Path, tuple[Job, Mapping]]:
    """Return, by path, the run behind each record below a folder and each search on the study's data,
    with today's digests. An artefact that lacks a search, or data, has no runs."""
    jobs = []
    for artefact in ARTEFACTS.values():
        with suppress(searches.NoSearch):
            jobs += [] if artefact.lacking(study) else artefact.jobs(study)
    paths = {record_path(job, study, folder): job for job in merged(jobs, study) if job.recipe}
    on_record = {path: (job, digests(job, study)) for path, job in paths.items() if path.exists()}
    for name, recipe in SEARCHED.items():
        path = searches.search_path(study.profile.name, study.source.name, name)
        if path.exists():
            job = searches.search_jobs(study, name, recipe, records.read(path)["best"])[0]
            on_record[path] = (job, searches.search_digests(study, recipe))
    return on_record


def short_runs(jobs: Iterable[Job], setting: Setting) -> list[Job]:
    """Return a run of 20 steps for each configuration, whatever its seed and train set. A measure or
    probe has the same code in all runs, so only the first run that has it evaluates it, on one set."""
    runs: dict[str, Job] = {}
    asked: set[str] = set()
    for job in sorted(jobs, key=lambda job: len(job.measures) + len(job.probes), reverse=True):
        alike = repr({**configuration(job, setting), "seed": None, "train_set": None})
        if alike in runs:
            continue
        pairs = job.profile(setting).budget_for(job.recipe).batch_pairs
        short = {**job.overrides, "budget": Budget(pairs, pairs * STEPS, 1)}
        measures, probes = (
            tuple((name, own) for name, own in dict(wanted).items() if name not in asked)
            for wanted in (job.measures, job.probes)
        )
        asked |= {*dict(measures), *dict(probes)}
        runs[alike] = replace(job, measures=measures, probes=probes, overrides=short)
    return list(runs.values())


def repeated(runs: Iterable[Job], then: Setting, now: Setting) -> dict[str, str]:
    """Map digests of other code to today's, where all that the code computed is equal to the last digit.
    A digest of data is mapped by its code half.

    Args:
        runs: from `short_runs`.
        then, now: the settings in which other code and today's code made the runs.
    """
    equal, otherwise = {}, {}
    for job in runs:
        paths = [record_path(job, setting) for setting in (then, now)]
        if all(path.exists() for path in paths):
            before, after = map(records.read, paths)
            for part, names in NUMBERS.items():
                same = all(before[name] == after[name] for name in names)
                codes = (_codes(record["digests"][part]) for record in (before, after))
                (equal if same else otherwise).update(zip(*codes, strict=True))
    return {code: today for code, today in equal.items() if code not in otherwise}


def _codes(digests: object) -> list[str]:
    held = DIGEST.findall(json.dumps(digests, sort_keys=True))
    return [code for digest in held for code in (digest, code_half(digest))]


def stamp(path: Path, today: Mapping[str, str]) -> Mapping:
    """Replace other code's digests in a record or search by today's, and return its digests.

    Args:
        path: the record's path.
        today: from `repeated`.
    """
    record = records.read(path)
    stamped = json.loads(DIGEST.sub(partial(_renamed, today=today), json.dumps(record["digests"])))
    if stamped != record["digests"]:
        history = [*record.get("stamped", ()), {"steps": STEPS, "instead_of": record["digests"]}]
        records.write(path, {**record, "digests": stamped, "stamped": history})
    return stamped


def _renamed(digest: re.Match, today: Mapping[str, str]) -> str:
    code = code_half(digest[0])
    return today.get(digest[0]) or content_half(digest[0]) + today.get(code, code)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    checkout = "the code that made the records, e.g. a git worktree, or what its --numbers wrote"
    add("checkout", type=Path, nargs="?", default=ROOT, help=checkout)
    add_study_options(parser, "where the records lie")
    text = "write this code's short runs into a folder, and stamp nothing"
    add("--numbers", type=Path, metavar="DIR", help=text)
    chosen = parser.parse_args()
    study = open_study(chosen.profile, data_of(chosen), "results", None, chosen.device, chosen.jobs)
    results = ROOT / chosen.results
    on_record = jobs_on_record(study, results / chosen.profile / study.source.name)
    runs = short_runs([job for job, _ in on_record.values()], study)
    with tempfile.TemporaryDirectory() as made:
        now = replace(study, folder=chosen.numbers or Path(made, "now"))
        for job, why in complete(runs, now, study.at_once, printed(len(runs))):
            print(f"{job.title}: {why}")
        if chosen.numbers:
            return
        then = replace(study, folder=chosen.checkout)
        if not (then.folder / "records").is_dir():
            then = replace(study, folder=Path(made, "then"))
            again = [*sys.argv[1:], "--results", str(results), "--numbers", str(then.folder)]
            command = [sys.executable, "-P", "-m", "lib.commands.stamp", *again]
            environment = {**os.environ, "PYTHONPATH": str(chosen.checkout.resolve())}
            subprocess.run(command, env=environment, check=True)
        renamed = repeated(runs, then, now)
    left = [path for path, (_, today) in on_record.items() if stamp(path, renamed) != today]
    for path in left:
        print(f"{path} comes out otherwise today, or was made by neither code")
    print(f"{len(on_record) - len(left)} of {len(on_record)} records and searches are by today's code")


if __name__ == "__main__":
    main()
