"""Open the study that a notebook's parameters name, and look up or make its records."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lib import processes, profiles
from lib.data.sources import KINDS, open_source
from lib.study import pool, records
from lib.study.jobs import Job, Record, Setting, merged, record_status, remaining

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "results" / "reference"
SEEDS = ("grid_seeds", "table_seeds", "test_seeds")
Runs = Sequence[Record]


@dataclass(frozen=True, kw_only=True)
class Study(Setting):
    """The study that a notebook's parameters describe. New records go to its folder.

    Attributes:
        data: as `open_study` takes it.
        reading: folders in which records are looked up, in order of preference.
        grid_seeds, table_seeds, test_seeds: the seeds asked for, or the profile's: for a grid over a
            parameter, for a table of methods, and for a comparison that needs a spread.
        at_once: how many missing runs are made at once.
    """

    data: str
    reading: tuple[Path, ...]
    grid_seeds: tuple[int, ...]
    table_seeds: tuple[int, ...]
    test_seeds: tuple[int, ...]
    at_once: int

    @property
    def reference(self) -> Path:
        """The folder of the committed records of its profile and data."""
        return reference_folder(self.profile.name, self.source.name)

    @property
    def saving(self) -> Path | None:
        """The folder for tables and figures; None while reading the reference, to which no notebook
        writes."""
        return self.folder if self.reading[0] == self.folder else None

    @property
    def where(self) -> str:
        """Profile and data in two words, for a figure's note."""
        return f"{self.profile.name}, {self.source.name}"

    def heading(self) -> str:
        """Return one line that says which profile and data the numbers come from."""
        source = self.source
        return f"profile {self.profile.name}, data {source.name} ({', '.join(source.tested)})"


def open_study(
    profile: str = "quick",
    data: str = "mini",
    results: str = "reference",
    seeds: Sequence[int] | None = None,
    device: str = "cpu",
    at_once: int | None = None,
    real: str | None = None,
) -> Study:
    """Open the study that a notebook's parameters name.

    Args:
        profile: a key of `lib.profiles.PROFILES`.
        data: "mini", "photos:DIR", "scenes:DIR" or a folder of PhotoTour sets. "photos" and "scenes" are
            those of the profile's reference, whose pixels need not be here; see `lib.data.sources`.
        results: "reference" reads the committed records and writes missing ones to results/. Any other
            value is the folder of results to read and write, relative to the repository. The records of
            each data source have their own folder, results/<profile>/<data>.
        seeds: replace the profile's.
        device: for making missing records.
        at_once: how many runs at once; by default as many as the machine holds.
        real: a folder of real homography sequences, up to two levels deep, for a further set of
            HPatches patches; or of released sets of whole images, each in a folder named by its kind.

    Raises:
        ValueError: an unknown profile or device, a parameter that is an empty text or no text, or seeds
            that are not a list of different whole numbers of 0 or more.
        FileNotFoundError: data is missing, or `real` contains neither.
    """
    for parameter, value in {"profile": profile, "data": data, "results": results}.items():
        if not isinstance(value, str) or not value:
            raise ValueError(f"{parameter} is a text, got {value!r}")
    chosen = profiles.find(profile)
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f"unknown device {device!r}; there are: cpu, cuda, cuda:N")
    if seeds is not None and not (isinstance(seeds, list | tuple) and seeds and _are_seeds(seeds)):
        raise ValueError(f"seeds is a list of different whole numbers of 0 or more, got {seeds!r}")
    made = ROOT / ("results" if results == "reference" else results) / profile
    if data in ("photos", "scenes") and not manifest_path(profile, data).exists():
        raise FileNotFoundError(
            f"there is no reference of {profile} with {data}: set both profile and data to what is in "
            f'results/reference, or name a folder: data = "{data}:DIR"'
        )
    source = open_source(
        data,
        made / "data",
        chosen.mini,
        chosen.sequences,
        _sequences_in(real),
        images=None if real is None else Path(real).resolve(),
        manifest=manifest_path(profile, data),
    )
    folder, reference = made / source.name, reference_folder(profile, source.name)
    return Study(
        profile=chosen,
        source=source,
        folder=folder,
        device=device,
        data=data,
        reading=(reference, folder) if results == "reference" else (folder,),
        **{name: tuple(seeds or getattr(chosen, name)) for name in SEEDS},
        at_once=at_once or processes.held_at_once(chosen.threads if device == "cpu" else 0),
    )


def _are_seeds(numbers: Sequence[object]) -> bool:
    # bool is a subclass of int; the generators of numpy and torch take 63 bits.
    whole = all(type(number) is int and 0 <= number < 2**63 for number in numbers)
    return whole and len(set(numbers)) == len(numbers)


def reference_folder(profile: str, data: str) -> Path:
    """Return the folder of the committed records of a profile and a data source."""
    return REFERENCE / profile / data


def manifest_path(profile: str, data: str) -> Path:
    """Return the path of the file that lists the contents of a reference's sets; see
    `lib.data.states`."""
    return reference_folder(profile, data) / "manifest.json"


def _sequences_in(real: str | None) -> tuple[Path, ...]:
    if real is None:
        return ()
    from lib.data.hpatches.homographies import sequence_folders

    folders = tuple(path.resolve() for path in sequence_folders(Path(real)))
    if not folders and not any(Path(real, kind).is_dir() for kind in KINDS):
        raise FileNotFoundError(
            f"real = {real!r} is no folder with homography sequences in it, or with {', '.join(KINDS)}"
        )
    return folders


def records_of(study: Study, jobs: Sequence[Job]) -> list[Record]:
    """Return the records of jobs, in their order. Missing ones are made first.

    Existing records are read even if they are by older code (`Record.older`).

    Raises:
        RuntimeError: a job failed; the message names each and why.
        DamagedRecord: a file of the reference does not contain what was written.
    """
    runs = [find(study, job) for job in jobs]
    if missing := [job for job, run in zip(jobs, runs, strict=True) if run is None]:
        print("Records are missing. Interrupt to stop making them; the same call goes on.")
        if failures := make(study, missing):
            reasons = "\n".join(f"  {job}: {reason}" for job, reason in failures)
            raise RuntimeError(f"{len(failures)} of the records failed:\n{reasons}")
    return [run or find(study, job) for job, run in zip(jobs, runs, strict=True)]


def sets_of(study: Study, jobs: Sequence[Job]) -> list[str]:
    """Return the data's own sets, and the other sets that jobs read."""
    named = (name for job in jobs for name in job.sets)
    return list(dict.fromkeys([*study.source.sets, *named]))


def make(study: Study, jobs: Sequence[Job], address: str | None = None) -> list[tuple[str, str]]:
    """Make missing data and records, here or on a cluster, and print the progress.

    Args:
        study: the study, whose folder gets the records.
        jobs: the jobs whose records are needed.
        address: of the cluster's scheduler.

    Returns:
        The titles of the jobs that failed, each with the reason.

    Raises:
        FileNotFoundError: the study reads real places from the reference, which lacks a record.
    """
    complete, by, at_once, where = pool.complete, study.at_once, study.at_once, ""
    if address:
        from lib.cluster import at_once as held
        from lib.study import cluster

        # Ask the cluster first: if it does not answer, we know before any data is made.
        complete, by, at_once = cluster.complete, address, max(1, held(address))
        where = f" at {address}"
    if study.data == "scenes":
        raise FileNotFoundError('name the folder of the photographs: data = "scenes:DIR"')
    print("data: making or checking it …", flush=True)
    pool.prepare(study.source, sets_of(study, jobs), study.at_once)
    todo = to_do(study, jobs)
    if not todo:
        print("runs: all on record")
        return []
    span = processes.span(processes.wall_clock([remaining(job, study) for job in todo], at_once))
    print(f"runs: {len(todo)} to make, {at_once} at once{where}, about {span}", flush=True)
    failures = complete(todo, study, by, processes.printed(len(todo)))
    return [(job.title, reason) for job, reason in failures]


def find(study: Study, job: Job) -> Record | None:
    """Return a job's first complete record, or else its first record by older code that has everything.

    Raises:
        DamagedRecord: a file of the reference does not contain what was written.
    """
    candidates = [record_status(job, study, folder) for folder in study.reading]
    # Damaged files in the last folder, the study's own, are made again instead.
    if damaged := [file for record in candidates[:-1] for file in record.damaged]:
        advice = "it does not hold what was committed; bring it back, e.g. with git checkout"
        raise records.DamagedRecord(f"{damaged[0]} is damaged: {advice}")
    readable = [record for record in candidates if record.readable]
    return min(readable, key=lambda record: record.older, default=None)


def to_do(study: Study, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs, each once, whose records in the study's own folder must be made.

    Records by older code are made again at the quick size. At other sizes, where they are costly, they
    are kept and the report marks them.
    """
    kept = ("complete",) if study.profile.name == "quick" else ("complete", "older code")
    own = [record_status(job, study) for job in merged(jobs, study)]
    return [record.job for record in own if record.state not in kept or not record.readable]


def provenance(runs: Runs) -> str:
    """Say in one line where numbers come from: how many records, where, how many by older code."""
    older = sum(run.older for run in runs)
    where = " and ".join(sorted({os.path.relpath(run.path.parents[1], ROOT) for run in runs}))
    share = "all" if older in (0, len(runs)) else f"{older} of them"
    code = "OLDER CODE or" if older else "the current code and"
    count = f"{len(runs)} record{'s' * (len(runs) > 1)}"
    return f"{count} in {where}, {share} made with {code} data" if runs else "no records"
