"""The whole study in one command: makes what is missing, executes the notebooks, builds the report.

``run_all.sh`` makes the environment and hands its options to ``python -m lib.commands.study``. With
``--records-only`` no notebook package is needed, so runs can be made on a machine without them.
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lib import profiles
from lib.experiments.artefacts import ARTEFACTS, Artefact
from lib.reporting.report import Failure
from lib.study import pool
from lib.study.jobs import (
    Job,
    estimated_seconds,
    merged,
    probe_path,
    probes_of,
    readable,
    record_path,
)
from lib.study.open import ROOT, Study, open_study, to_do

REFERENCE = ROOT / "results" / "reference"
# Weights at six stages, a record and its probes, of the thin and of the whole network.
_MEGABYTES_PER_RUN = {True: 8.0, False: 33.0}


@dataclass(frozen=True)
class Options:
    """The command line; see `parse`."""

    profile: str
    data: str
    results: str
    device: str
    jobs: int | None
    only: str
    cached: bool
    plan: bool
    extras: bool
    update_reference: bool
    records_only: bool


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The command line as options; exits with 2 and a line that says why if it cannot be taken."""
    parser = argparse.ArgumentParser(
        prog="./run_all.sh",
        description="Regenerate every table and figure of the study. With no option: train and "
        "evaluate everything from nothing at the quick size, execute the notebooks, compare with the "
        "reference and build a report. './run_all.sh test' runs the tests instead.",
    )
    add = parser.add_argument
    add("--profile", default="quick", help=f"size: {', '.join(profiles.PROFILES)} (default: quick)")
    add("--cached", action="store_true", help="render from the committed reference, train nothing")
    add("--plan", action="store_true", help="print what would be run, hours and disk, and stop")
    add("--only", default="*", metavar="PATTERN", help="artefacts by name, e.g. 'adasample/*'")
    add("--extras", action="store_true", help="also what the default leaves out for time")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--data", metavar="DIR", help="folder with liberty, notredame and yosemite as downloaded"
    )
    where.add_argument(
        "--photos", metavar="DIR", help="folder of photographs to make the embedded data from"
    )
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add("--jobs", type=int, metavar="N", help="runs at once (default: as many as the cores hold)")
    add(
        "--results",
        default="results",
        metavar="DIR",
        help="where records, tables and the report go (default: results)",
    )
    add(
        "--update-reference",
        action="store_true",
        help="write results/reference and the notebooks' stored outputs anew, with the extras",
    )
    add("--records-only", action="store_true", help="train and evaluate, execute no notebook")
    chosen = parser.parse_args(arguments)
    if chosen.jobs is not None and chosen.jobs < 1:
        parser.error(f"--jobs must be 1 or more, got {chosen.jobs}")
    if not _selected(chosen.only, extras=True):
        parser.error(f"--only {chosen.only!r} fits no artefact; there are: {', '.join(ARTEFACTS)}")
    if not _selected(chosen.only, chosen.extras or chosen.update_reference):
        parser.error(f"--only {chosen.only!r} fits extras alone; add --extras")
    if chosen.update_reference and chosen.records_only:
        parser.error("--update-reference stores the notebooks' outputs too; leave out --records-only")
    if chosen.update_reference and (chosen.cached or chosen.data or chosen.photos):
        parser.error("--update-reference takes the embedded data made anew, not --cached or other data")
    if chosen.update_reference and chosen.only != "*":
        parser.error("--update-reference writes the whole reference; leave out --only")
    if chosen.cached and (chosen.data or chosen.photos):
        parser.error("--cached renders the committed reference; leave out --data and --photos")
    data = chosen.data or (f"photos:{Path(chosen.photos).resolve()}" if chosen.photos else "mini")
    if chosen.data:
        data = str(Path(chosen.data).resolve())
    # The notebooks are tested as they stand, the extras among them.
    chosen.extras |= chosen.update_reference
    kept = {key: value for key, value in vars(chosen).items() if key not in ("photos", "data")}
    return Options(data=data, **kept)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study and returns the exit status: 0, 1 if something failed, 130 after Ctrl-C."""
    options = parse(arguments)
    try:
        return _run(options)
    except KeyboardInterrupt:
        print("\nStopped. What was done is kept, nothing is half-written; the same command continues.")
        return 130
    except (ValueError, OSError) as error:
        print(f"run_all.sh: {error}", file=sys.stderr)
        return 1


def _run(options: Options) -> int:
    selected = _selected(options.only, options.extras)
    study = open_study(
        options.profile, options.data, options.results, None, options.device, options.jobs
    )
    selected = _with_data(study, selected)
    if options.plan:
        print(plan(study, selected))
        return 0
    _check_device(options.device)
    failures: list[Failure] = []
    if options.cached:
        study = open_study(options.profile, device=options.device, at_once=options.jobs)
        # Records are read from the reference; what is rendered goes where --results says.
        rendered = replace(study.place, folder=ROOT / options.results / options.profile)
        study = replace(study, place=rendered)
        _check_cached(study, selected)
    else:
        failures += make(study, selected)
    if options.records_only:
        return _closing(failures)

    from lib.reporting.page import rendering

    started = time.time()
    results = "reference" if options.cached else options.results
    executed, failed = rendering.execute(study, selected, results)
    failures += failed
    report, problems = rendering.report(study, selected, executed, failures, compared=not options.cached)
    if options.update_reference:
        # What the old reference has and the study no longer makes is what an update is for.
        problems = []
        if not failures:
            update_reference(study, selected, started)
    print(f"\nThe report: {report}")
    return _closing(failures + problems)


def _check_device(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        there = torch.cuda.device_count()
        number = int(device.partition(":")[2] or 0)
        if number >= there:
            raise ValueError(f"device {device} is not there: torch finds {there} CUDA device(s)")


def _closing(failures: Sequence[Failure]) -> int:
    for failure in failures:
        cell = f", cell {failure.cell}" if failure.cell else ""
        print(f"FAILED {failure.notebook}{cell}: {failure.error}", file=sys.stderr)
    return 1 if failures else 0


def _selected(pattern: str, extras: bool) -> dict[str, Artefact]:
    return {
        name: artefact
        for name, artefact in ARTEFACTS.items()
        if fnmatch.fnmatch(name, pattern) and (extras or not artefact.extras)
    }


def _with_data(study: Study, selected: dict[str, Artefact]) -> dict[str, Artefact]:
    """The artefacts that the study has data for; says which it has none for."""
    lacking = [name for name, artefact in selected.items() if artefact.hpatches]
    if study.place.source.own_hpatches is not None or not lacking:
        return selected
    told = f"{study.data} holds no hpatches-release with tasks, needed for {', '.join(lacking)}"
    if len(lacking) == len(selected):
        raise FileNotFoundError(f"{told}; unpack HPatches there and put the benchmark's tasks beside it")
    print(f"left out: {told}")
    return {name: artefact for name, artefact in selected.items() if name not in lacking}


def _jobs(study: Study, selected: dict[str, Artefact]) -> list[Job]:
    return [job for artefact in selected.values() for job in artefact.jobs(study)]


def plan(study: Study, selected: dict[str, Artefact]) -> str:
    """What a run of the study would do, as text: runs by artefact, hours and disk."""
    lines = [study.heading(), "", f"{'artefact':<28}{'runs':>6}{'to make':>9}{'hours':>8}"]
    for name, artefact in selected.items():
        jobs = artefact.jobs(study)
        todo = to_do(study, jobs)
        hours = estimated_seconds(todo, study.place, study.at_once) / 3600
        lines.append(f"{name:<28}{len(jobs):>6}{len(todo):>9}{hours:>8.2f}")
    todo = to_do(study, _jobs(study, selected))
    hours = estimated_seconds(todo, study.place, study.at_once) / 3600
    disk = len(todo) * _MEGABYTES_PER_RUN[study.place.profile.width < 1] / 1000
    lines.append(f"{'all, shared runs once':<28}{'':>6}{len(todo):>9}{hours:>8.2f}")
    lines += [
        "",
        f"{study.at_once} at once on {study.place.device}; about {disk:.1f} GB of disk, data aside.",
        "Hours are forecast from a measured speed and can be off by a factor of two.",
    ]
    return "\n".join(lines)


def make(study: Study, selected: dict[str, Artefact]) -> list[Failure]:
    """Has all missing records made and returns what failed."""
    print(study.heading())
    source = study.place.source
    if source.skipped:
        print(f"{source.skipped} file(s) among the photographs could not be read and were skipped.")
    print("data: making or checking it …", flush=True)
    jobs = _jobs(study, selected)
    sets = dict.fromkeys([*source.sets, *(name for job in jobs for name in job.sets)])
    source.prepare(sets, study.at_once)
    todo = to_do(study, jobs)
    if not todo:
        print("runs: all on record")
        return []
    seconds = estimated_seconds(todo, study.place, study.at_once)
    print(f"runs: {len(todo)} to make, {study.at_once} at once, about {_span(seconds)}", flush=True)

    told = 0.0

    def show(standing: pool.Standing) -> None:
        nonlocal told
        if standing.ended is None:
            # A long run says once a minute that it goes on.
            if standing.seconds - told >= 60:
                told = standing.seconds
                more = _span(standing.seconds_left) if standing.seconds_left is not None else "unknown"
                print(f"      {standing.share:.0%} of all work done, {more} more", flush=True)
            return
        told = standing.seconds
        left = (
            f", {_span(standing.seconds_left)} more" if standing.seconds_left and standing.left else ""
        )
        outcome = f"FAILED: {standing.failure}" if standing.failure else "done"
        print(
            f"[{len(todo) - standing.left:>3}/{len(todo)}] {standing.ended.title}: {outcome}"
            f" ({_span(standing.seconds)} so far{left})",
            flush=True,
        )

    failures = pool.complete(todo, study.place, study.at_once, show)
    return [Failure(failure.job.title, None, failure.reason) for failure in failures]


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _check_cached(study: Study, selected: dict[str, Artefact]) -> None:
    reference = study.reading[0]
    jobs = _jobs(study, selected)
    missing = [job.title for job in jobs if not readable(job, study.place, reference)]
    if missing:
        raise ValueError(
            f"the reference {reference.relative_to(ROOT)} lacks {len(missing)} record(s), e.g. "
            f"{missing[0]}; run without --cached"
        )


def update_reference(study: Study, selected: dict[str, Artefact], since: float) -> None:
    """Writes the reference of the study's profile anew: records, probes, tables, figures.

    It is put together beside the old one and takes its place at once; then the notebooks' stored
    outputs are made anew from it, by executing them as they stand.

    Args:
        study: what was run, in its own folder.
        selected: the artefacts.
        since: tables and figures older than this (seconds since 1970) are not of this run.
    """
    import pandas as pd

    from lib.reporting import effects
    from lib.reporting.page import rendering

    made, folder = study.place.folder, REFERENCE / study.place.profile.name
    new, old = (REFERENCE / f".{study.place.profile.name}.{kind}" for kind in ("new", "old"))
    shutil.rmtree(new, ignore_errors=True)
    files: list[Path] = []
    for job in merged(_jobs(study, selected), study.place):
        record = record_path(job, study.place)
        files += [record, *(probe_path(record, probe, name) for probe, name in probes_of(job))]
    for part in ("tables", "figures"):
        for file in (made / part).rglob("*.*"):
            ours = any(rendering.belongs(file.relative_to(made), name) for name in selected)
            if ours and file.stat().st_mtime >= since:
                files.append(file)
    for file in files:
        target = new / file.relative_to(made)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    # The search for learning rates is made by lib.commands.tuning and no part of a run.
    shutil.copytree(folder / "tuning", new / "tuning", dirs_exist_ok=True)
    shutil.rmtree(old, ignore_errors=True)
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)
    for artefact in selected.values():
        rendering.store_outputs(ROOT / artefact.notebook)
    effects.fill_in(
        ROOT / "docs" / "paper_vs_code.md",
        pd.read_csv(folder / "tables" / "adasample" / "options.csv"),
        f"{study.place.profile.name}, {study.place.source.sets[0]}",
    )


if __name__ == "__main__":
    sys.exit(main())
