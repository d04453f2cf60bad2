"""Run the whole study: make missing records, execute the notebooks and build the report.

``run_all.sh`` creates the environment and passes its options to ``python -m lib.commands.study``.
``--records-only`` needs no notebook packages, so it makes runs on a machine without them.
"""

import argparse
import fnmatch
import shutil
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from lib.commands.options import add_study_options, check_device, data_of, exit_status
from lib.data.states import read_manifest, write_manifest
from lib.processes import span, wall_clock
from lib.study.artefacts.searches import NoSearch, borrowed_rates
from lib.study.catalogue import ARTEFACTS, Artefact
from lib.study.jobs import Job, Record, merged, probe_path, record_status, remaining
from lib.study.open import REFERENCE, ROOT, Study, make, manifest_path, open_study, sets_of, to_do
from lib.study.records import DamagedRecord

# (what failed, why).
Failures = list[tuple[str, str]]
# The records of an artefact's jobs, in whatever state, by artefact.
Runs = Mapping[str, list[Record]]
# Size of a run's weights at six stages, record and probes, for the thin (True) and the full network.
_MEGABYTES_PER_RUN = {True: 8.0, False: 33.0}
# Seconds per notebook.
_NOTEBOOK = 10.0


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
    add("--only", default="*", metavar="PATTERN", help="artefacts by name, e.g. 'adasample/*'")
    add("--extras", action="store_true", help="also what the default leaves out for time")
    add_study_options(parser, "where records, tables and the report go")
    add("--cluster", metavar="ADDRESS", help="of a Dask scheduler, whose workers do the runs")
    add = partial(parser.add_mutually_exclusive_group().add_argument, action="store_true")
    add("--cached", help="render from the committed reference, train nothing")
    add("--records-only", help="train and evaluate, execute no notebook")
    add("--collect", help="train nothing; add to the reference the records that are complete")
    text = "write the reference of this profile and data anew, extras too, and its notebooks' outputs"
    add("--update-reference", help=text)
    return exit_status(parser, arguments, _run)


def _run(options: argparse.Namespace) -> int:
    results, data = (ROOT / options.results).resolve(), data_of(options)
    if options.results == "reference" or REFERENCE in (results, *results.parents):
        raise ValueError("--results is the committed reference, which --update-reference writes")
    if options.update_reference and options.only != "*":
        raise ValueError("--update-reference writes all of it: leave out --only")
    if options.cached and data == "mini":
        # The first kind of data for which this profile has a reference.
        kinds = ("mini", "photos", "scenes")
        data = next((kind for kind in kinds if manifest_path(options.profile, kind).exists()), data)
    read = "reference" if options.cached else options.results
    study = open_study(options.profile, data, read, None, options.device, options.jobs)
    selected = _selected(study, options.only, options.extras or options.update_reference)
    if options.plan:
        print(plan(study, selected))
        return 0
    if options.collect:
        print(f"{collect(study, selected)} record(s) of {study.heading()} added")
        return 0
    if not options.cluster:
        check_device(options.device)
    if options.cached:
        # Records are read from the reference alone; rendered output goes where --results says.
        rendered = results / options.profile / study.source.name
        study = replace(study, folder=rendered, reading=study.reading[:1])
        runs, failures = _on_record(study, selected)
    else:
        print(f"{study.heading()}{borrowed_rates(study)}")
        for name, why in study.source.skipped.items():
            print(f"photograph left out: {name}: {why}")
        failures = make(study, _jobs(study, selected), options.cluster)
        runs = {name: artefact.records(study) for name, artefact in selected.items()}
    if not options.records_only:
        failures += _report(study, runs, options, read)
    if options.update_reference and not failures:
        update_reference(study, selected)
    for name, why in failures:
        print(f"FAILED {name}: {why}", file=sys.stderr)
    return 1 if failures else 0


def _report(study: Study, runs: Runs, options: argparse.Namespace, read: str) -> Failures:
    """Execute the notebooks, build the report and return what failed or is missing."""
    from lib.study.report import execution, reference

    folder, source = ROOT / options.results / options.profile / "report", study.source
    made, manifest, sentence = study.reading[0], study.reference / "manifest.json", ""
    failures = execution.execute(study, runs, read, folder)
    # Compare only with a reference on data with the same content, and not if it is to be replaced.
    compared = manifest.exists() and not (options.cached or options.update_reference)
    listed = read_manifest(manifest).sets if compared else {}
    if source.manifest(source.sets).sets.items() <= listed.items():
        paths = {record.path for records in runs.values() for record in records}
        try:
            sentence, missing = reference.reproduction(made, study.reference, paths, runs)
            print(f"\n{sentence}")
            failures += [(name, "it is in the reference and was not made") for name in missing]
        except DamagedRecord as error:
            failures.append(("comparison with the reference", f"{error}; bring it back by git checkout"))
    texts = {"heading": study.heading(), "reproduced": sentence}
    copies, verdicts = study.folder / "notebooks", reference.saved_verdicts(made, runs)
    index = execution.write_index(folder, copies, verdicts, runs, failures, **texts)
    print(f"\nThe report: {index}")
    return failures


def _selected(study: Study, pattern: str, extras: bool) -> dict[str, Artefact]:
    """Return the artefacts of a pattern that the study has data for; print those it has none for."""
    selected = {}
    for name in fnmatch.filter(ARTEFACTS, pattern):
        artefact = ARTEFACTS[name]
        if artefact.extras and not extras:
            continue
        if lacking := artefact.lacking(study):
            print(f"left out: {name}, {lacking}")
        else:
            selected[name] = artefact
    if not selected:
        raise ValueError(f"--only {pattern!r} leaves no artefact; --extras has more of them")
    return selected


def _on_record(study: Study, selected: Mapping[str, Artefact]) -> tuple[Runs, Failures]:
    """Return the artefacts whose records all exist, damaged or not, with those records; and the
    artefacts whose searches are damaged. Print which artefacts are left out."""
    kept, damaged = {}, {}
    for name, artefact in selected.items():
        try:
            runs = artefact.records(study)
            if all(record.readable or record.damaged for record in runs):
                kept[name] = runs
        except NoSearch:
            continue
        except DamagedRecord as error:
            damaged[name] = f"not executed: {error}"
    if left_out := [name for name in selected if name not in kept | damaged]:
        print(f"left out, not on record at this profile: {', '.join(left_out)}")
    return kept, [*damaged.items()]


def _jobs(study: Study, selected: Mapping[str, Artefact]) -> list[Job]:
    return [job for artefact in selected.values() for job in artefact.jobs(study)]


def plan(study: Study, selected: Mapping[str, Artefact]) -> str:
    """Describe what a run of the study would do: runs by artefact, hours and disk."""
    jobs = {name: artefact.jobs(study) for name, artefact in selected.items()}
    jobs["all, shared runs once"] = [job for asked in jobs.values() for job in asked]
    rows = {}
    for name, asked in jobs.items():
        todo = to_do(study, asked)
        runs = wall_clock((remaining(job, study) for job in todo), study.at_once)
        rows[name] = {"runs": len(asked), "to make": len(todo), "hours": f"{runs / 3600:.2f}"}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(columns="artefact")
    # After the loop, `todo` and `runs` are those of the whole study.
    rendering = wall_clock([_NOTEBOOK] * len(selected), study.at_once)
    disk = len(todo) * _MEGABYTES_PER_RUN[study.profile.width < 1] / 1000
    return (
        f"{study.heading()}\n\n{table.to_string(col_space=9)}\n\n{span(runs + rendering)} in all "
        f"(runs {span(runs)}, notebooks {span(rendering)}), forecast within a factor of two;\n"
        f"{study.at_once} at once on {study.device}; about {disk:.1f} GB of disk; data aside"
    )


def collect(study: Study, selected: Mapping[str, Artefact]) -> int:
    """Add the artefacts' complete records to the reference of the study's profile and data, and return
    how many were new. A long study can thus go on record while it is still running."""
    new = []
    for job in merged(_jobs(study, selected), study):
        made, there = record_status(job, study), record_status(job, study, study.reference)
        if made.state == "complete" and there.state != "complete":
            new.append(made)
    _put_on_record(new, study)
    return len(new)


def _put_on_record(made: Sequence[Record], study: Study) -> None:
    """Copy records and their probes to the reference, and list the contents of their sets there."""
    manifest = study.source.manifest(sets_of(study, [record.job for record in made]))
    write_manifest(study.reference / "manifest.json", manifest)
    for record in made:
        probes = (probe_path(record.path, *probe) for probe in record.job.probes)
        _copy([record.path, *probes], study)


def _copy(files: Iterable[Path], study: Study) -> None:
    """Copy files of the study's folder to the same places in its reference."""
    for file in files:
        copy = study.reference / file.relative_to(study.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def update_reference(study: Study, selected: Mapping[str, Artefact]) -> None:
    """Rewrite the reference of the study's profile and data: records, probes, tables, figures.

    Learning rate searches stay, since `lib.commands.tuning` makes them. Notebooks that are committed
    with this profile and data are executed again on the new reference, and their outputs stored.

    Args:
        study: what was run, with its results in its own folder. `execution.execute` removed there what
            earlier executions had saved for these artefacts, so only new tables and figures are left.
        selected: the artefacts.
    """
    from lib.study.report import execution, reference

    folder, profile, data = study.reference, study.profile.name, study.source.name
    for part in ("records", "tables", "figures"):
        shutil.rmtree(folder / part, ignore_errors=True)
    (folder / "manifest.json").unlink(missing_ok=True)
    jobs = merged(_jobs(study, selected), study)
    _put_on_record([record_status(job, study) for job in jobs], study)
    _copy((study.folder / path for path in reference.saved_files(study.folder, selected)), study)
    for name in selected:
        notebook = ROOT / f"notebooks/{name}.ipynb"
        own = execution.own_parameters(notebook)
        if (own["profile"], own["data"]) == (profile, data):
            execution.store_outputs(notebook)
    if f"{profile}/{data}" in reference.JUDGED:
        reference.fill_in(ROOT / "README.md", reference.with_tables, REFERENCE)
    measured = [pd.read_csv(file) for file in sorted(folder.glob("tables/*/options.csv"))]
    if measured:
        where = f"{profile}, {study.source.sets[0]}"
        reference.fill_in(ROOT / "docs/choices.md", reference.with_effects, pd.concat(measured), where)


if __name__ == "__main__":
    # On SIGTERM everything unwinds, as on Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
