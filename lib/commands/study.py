"""Run the whole study: make missing runs, execute the notebooks and build the report.

``run_all.sh`` creates the environment and passes its options to ``python -m lib.commands study``.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import pandas as pd

from lib.commands.options import add_study_options, check_device, data_of, exit_status, stated
from lib.study import planning
from lib.study.planning import Planned
from lib.study.requests import Request
from lib.study.runs import REFERENCE, ROOT, Study, open_study
from lib.study.store import rows_of
from lib.study.sweep import processes_for, span, wall_clock

# (what failed, why).
Failures = list[tuple[str, str]]
# Studies that differ in their data, each with what is asked of it, by run.
Asked = Sequence[tuple[Study, Mapping[str, Request]]]
# Size of a run's weights at six stages, arrays and JSON, in megabytes: of the full network and of
# narrower ones.
FULL_RUN = 33.0
NARROW_RUN = 8.0
MISSING = "it is committed, and missing here: git restore brings it back"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study and return the exit status: 0, 1 if something failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="./run_all.sh",
        description="Regenerate every table and figure of the study. With no option: train and "
        "evaluate everything from nothing at the quick size, execute the notebooks, compare with the "
        "reference and build a report. './run_all.sh test' runs the tests instead.",
    )
    add = parser.add_argument
    add("--plan", action="store_true", help="print what would be run, hours and disk, and stop")
    add("--only", default="*", metavar="PATTERN", help="notebooks by name, e.g. 'adasample/*'")
    add_study_options(parser, "where runs, tables and the report go")
    text = "of a Dask scheduler, whose workers do the runs"
    add("--cluster", type=stated, metavar="ADDRESS", help=text)
    add = partial(parser.add_mutually_exclusive_group().add_argument, action="store_true")
    add("--cached", help="render the evidence on record, train nothing")
    add("--train-only", help="train and evaluate, execute no notebook")
    text = "write the reference of this profile anew, and the outputs of the notebooks that show it"
    add("--update-reference", help=text)
    text = "train what the reference of this profile lacks and add it, also if stopped before the end"
    add("--extend-reference", help=text)
    return exit_status(parser, arguments, _run)


def _run(options: argparse.Namespace) -> int:
    results = (ROOT / options.results).resolve()
    if options.results == "reference" or REFERENCE in (results, *results.parents):
        raise ValueError("--results is the committed reference, which --update-reference writes")
    if options.update_reference and options.only != "*":
        raise ValueError("--update-reference writes all of it: leave out --only")
    if options.plan and options.extend_reference:
        raise ValueError("--plan makes nothing: leave out --extend-reference")
    if options.cached:
        return _cached(options, results)
    study = open_study(
        "",
        options.profile,
        data_of(options),
        options.results,
        device=options.device,
        jobs=options.jobs,
        address=options.cluster,
    )
    if not options.cluster and not options.plan:
        check_device(options.device)
    if options.extend_reference:
        return _extend_reference(replace(study, reading=True), options.only)
    planned, failures = _planned(study, options.only)
    asked = planning.together(planned)
    if options.update_reference:
        asked = _of_profile(study, planning.together([*planned, *_committed_elsewhere(planned)]))
    planning.one_name_each(asked)
    if options.plan:
        print(_plan(study, planned, asked))
        return 0
    print(study.heading)
    failures += _make(asked)
    if not options.train_only:
        failures += _report(
            study, planned, asked, options, results, compare=not options.update_reference
        )
    if options.update_reference and not failures:
        _update_reference(study, asked, [notebook.name for notebook in planned])
    return _ended(failures)


def _extend_reference(study: Study, pattern: str) -> int:
    """Make what the reference lacks of the notebooks of a pattern, each run with all that any notebook
    asks of it, since its weights are not kept for later; add to the reference what is made."""
    from lib.study import reference

    planned, unplanned = _planned(study, "*")
    failures = [(name, why) for name, why in unplanned if fnmatch(name, pattern)]
    needed = planning.together([one for one in planned if fnmatch(one.name, pattern)])
    names = {name for _, requests in needed for name in requests}
    asked = []
    for part, requests in _of_profile(study, planning.together(planned)):
        asked.append((part, {name: own for name, own in requests.items() if name in names}))
    planning.one_name_each(asked)
    print(study.heading)
    try:
        for part, requests in asked:
            lacking = [request for name, request in requests.items() if not part.find(name, request)]
            failures += part.make(lacking)
    finally:
        print(f"added to the reference: {reference.extend_reference(asked)} runs")
    return _ended(failures)


def _planned(study: Study, pattern: str) -> tuple[list[Planned], Failures]:
    """Return the notebooks of a pattern that the study has data for, and those whose plan failed. Print
    the notebooks that are left out."""
    kept, failures = [], []
    for name in planning.names(pattern):
        notebook = planning.plan(name, study)
        if notebook.failure:
            failures.append((name, notebook.failure))
        elif notebook.lacking:
            print(f"left out: {name}, since {notebook.lacking}")
        else:
            kept.append(notebook)
    if not kept and not failures:
        raise ValueError(f"--only {pattern!r} leaves no notebook")
    return kept, failures


def _committed_elsewhere(planned: Sequence[Planned]) -> list[Planned]:
    """Plan the other notebooks as they are committed. One that is committed at a larger profile may
    compare with runs of this one, which the reference then needs."""
    known = {notebook.name for notebook in planned}
    others = []
    for name in planning.names():
        if name not in known:
            own = planning.own_parameters(name)
            others.append(planning.plan(name, open_study(name, own["profile"], own["data"])))
    return others


def _plan(study: Study, planned: Sequence[Planned], asked: Asked) -> str:
    """Describe what a run of the study would do: runs by notebook, hours and disk."""
    jobs = study.jobs or processes_for(study.profile.threads if study.device == "cpu" else 0)
    rows = {notebook.name: planning.together([notebook]) for notebook in planned}
    rows["all, shared runs once"] = asked
    table = {}
    for name, own in rows.items():
        seconds = _seconds_to_make(own)
        table[name] = {
            "runs": sum(len(requests) for _, requests in own),
            "to make": len(seconds),
            "hours": f"{wall_clock(seconds, jobs) / 3600:.2f}",
        }
    frame = pd.DataFrame.from_dict(table, orient="index").rename_axis(columns="notebook")
    # The last row is that of all notebooks.
    expected = span(wall_clock(seconds, jobs))
    disk = len(seconds) * (NARROW_RUN if study.profile.width < 1 else FULL_RUN) / 1000
    return (
        f"{study.heading}\n\n{frame.to_string(col_space=9)}\n\n"
        f"runs {expected}, forecast within a factor of two; {jobs} at once on "
        f"{study.device}; about {disk:.1f} GB of disk; data and notebooks come on top"
    )


def _seconds_to_make(asked: Asked) -> list[float]:
    """Return the seconds that each missing run takes."""
    from lib.study.making import cost

    seconds = []
    for study, requests in asked:
        for run, request in requests.items():
            if study.find(run, request) is None:
                seconds.append(sum(cost(request, study.source, study.profile, study.device)))
    return seconds


def _make(asked: Asked) -> Failures:
    failures = []
    for study, requests in asked:
        failures += study.make(requests.values())
    return failures


def _report(
    study: Study,
    planned: Sequence[Planned],
    asked: Asked,
    options: argparse.Namespace,
    results: Path,
    compare: bool,
) -> Failures:
    """Execute the notebooks, build the report, and return what failed or is missing."""
    from lib.study import render

    report = results / options.profile / "report"
    names, failures = [], []
    for notebook in planned:
        if notebook.is_on_record():
            names.append(notebook.name)
        else:
            failures.append((notebook.name, "not executed: some of its runs are missing"))
    failures += render.execute(names, study, options.results, report)
    sentence = ""
    if compare:
        sentence, missing = _compared(study, asked, names)
        print(f"\n{sentence}")
        failures += missing
    evidence = render.write_evidence(planning.names(), report)
    index = render.write_index(report, evidence, names, failures, study.heading, sentence)
    print(f"\nThe report: {index}")
    return failures


def _compared(study: Study, asked: Asked, names: Sequence[str]) -> tuple[str, Failures]:
    """Say how far the study reproduces the reference, and return what it fails to."""
    from lib.study import reference, render

    if not study.reference.recorded(study.source.name):
        return f"There is no reference of {study.where} to compare with.", []
    frames = [_numbers(part, requests) for part, requests in _of_profile(study, asked)]
    if not any(len(frame) for frame in frames):
        return "No run was asked for, so that there is nothing to compare.", []
    steps = study.reference.runs.reset_index(drop=True)[["run", "steps"]].drop_duplicates("run")
    theirs = study.reference.metrics.merge(steps, on="run", how="left")
    within, count = reference.reproduction(pd.concat(frames), theirs)
    sentence = f"{within:,} of {count:,} means lie within the 95% prediction interval of a repetition."
    missing = render.missing_files(study.results, study.reference.folder, names)
    failures = [(name, "the reference has it, and it was not made") for name in missing]
    if count and within < reference.FEWEST_WITHIN * count:
        failures.append(("comparison with the reference", sentence))
    return sentence, failures


def _of_profile(study: Study, asked: Asked) -> Asked:
    """Return those of the studies asked for that have the study's profile."""
    return [(part, own) for part, own in asked if part.profile.name == study.profile.name]


def _numbers(study: Study, requests: Mapping[str, Request]) -> pd.DataFrame:
    """Return the numbers of runs, with their steps."""
    rows = []
    for name, request in requests.items():
        run = study.find(name, request)
        if run is None:
            continue
        for row in rows_of(run, request, study.source):
            rows.append({**row, "steps": run.about["steps"]})
    return pd.DataFrame(rows)


def _cached(options: argparse.Namespace, results: Path) -> int:
    """Render the committed notebooks anew, each at its own profile and data, from the reference."""
    from lib.study import reference, render

    report = results / "report"
    names = planning.names(options.only)
    failures = [(name, MISSING) for name in reference.deleted_files(ROOT, options.only)]
    if not names and not failures:
        raise ValueError(f"--only {options.only!r} leaves no notebook")
    left_out = {name: why for name in names if (why := _why_left_out(name))}
    failures += left_out.items()
    kept = [name for name in names if name not in left_out]
    failures += render.execute_committed(kept, results / "notebooks", report, options.jobs)
    titles = render.titles(kept)
    index = render.write_index(report, titles, [], failures, "", "")
    print(f"\nThe report: {index}")
    return _ended(failures)


def _why_left_out(name: str) -> str:
    """Say why a committed notebook cannot be rendered from the reference; empty if it can."""
    try:
        own = planning.own_parameters(name)
        notebook = planning.plan(name, open_study(name, own["profile"], own["data"]))
        if notebook.failure or notebook.lacking:
            return notebook.failure or notebook.lacking
        return next(notebook.lacking_in_reference(), "")
    except (ValueError, OSError, KeyError) as error:
        return f"{error}"


def _update_reference(study: Study, asked: Asked, names: Sequence[str]) -> None:
    """Write the reference of the study's profile anew, with the notebooks' tables and figures, and store
    the outputs of the notebooks that are committed with this profile and data."""
    import shutil

    from lib.study import reference, render

    reference.write_reference(_of_profile(study, asked))
    folder = study.reference.folder
    for kind, suffix in render.SAVED.items():
        shutil.rmtree(folder / kind, ignore_errors=True)
        for name in names:
            for path in render.saved(study.results, kind, name, suffix):
                copy = folder / path.relative_to(study.results)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    for name in names:
        own = planning.own_parameters(name)
        if (own["profile"], own["data"]) == (study.profile.name, study.source.name):
            render.store_outputs(name)


def _ended(failures: Failures) -> int:
    for name, why in failures:
        print(f"FAILED {name}: {why}", file=sys.stderr)
    return 1 if failures else 0
