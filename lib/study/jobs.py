"""What there is to have on record: jobs, their configuration, and whether their record is there.

Plain data and file names, no torch.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lib import parts
from lib.data.sources import Source
from lib.digests import code_digest, value_digest
from lib.profiles import Profile
from lib.recipes import Part, Recipe, values
from lib.study import records

NO_SET = "none"


@dataclass(frozen=True)
class Job:
    """One record to have: a training run, a descriptor that needs no training, or a computation.

    Attributes:
        name: key of the recipe, descriptor or computation; names the record's folder.
        label: the name readers know it by.
        recipe: how it is trained; None for a handcrafted one.
        train_set, seed: likewise.
        descriptor: one that nobody trains here: a module of `lib.models` with ``build(**options)``.
        paths: options of it that name files of this machine, which are no part of what is on record;
            what is in the files is, by a hash among the descriptor's own options.
        computation: one without data: a module of `lib.theory` with ``compute(**options)`` giving
            (numbers, arrays), which become the record's metrics and its probe, both of set "none".
        measures: what is measured: a module of `lib.evaluation` with ``measure``, and a set.
        probes: likewise with ``probe``.
        overrides: fields of `Profile` that this run takes other values for.
    """

    name: str
    label: str
    recipe: Recipe | None = None
    train_set: str | None = None
    seed: int | None = None
    descriptor: Part | None = None
    computation: Part | None = None
    measures: tuple[tuple[str, str], ...] = ()
    probes: tuple[tuple[str, str], ...] = ()
    overrides: Mapping[str, object] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """One line for people, e.g. "HardNet* on mini-a, seed 0"."""
        if self.recipe is None:
            return self.label
        changed = "".join(f", {name} {value}" for name, value in self.overrides.items())
        return f"{self.label} on {self.train_set}, seed {self.seed}{changed}"

    @property
    def sets(self) -> tuple[str, ...]:
        """Every set it is trained, measured or probed on, each once."""
        wanted = (name for _, name in (*self.measures, *self.probes))
        return tuple(dict.fromkeys(name for name in (self.train_set, *wanted) if name is not None))

    def sets_of(self, measure: str) -> tuple[str, ...]:
        """The sets on which a module of `lib.evaluation` measures."""
        return tuple(name for module, name in self.measures if module == measure)

    def profile(self, place: Place) -> Profile:
        """The size this run has at a place."""
        return replace(place.profile, **self.overrides)


@dataclass(frozen=True)
class Place:
    """Where and at which size jobs are done.

    Attributes:
        profile, source: the size and the data.
        folder: results/<profile>; records, weights, locks and checkpoints go below it.
        device: "cpu", "cuda", …
    """

    profile: Profile
    source: Source
    folder: Path
    device: str = "cpu"


def configuration(job: Job, place: Place) -> dict:
    """All values that decide a job's numbers besides its code and data; JSON-able."""
    if job.computation is not None:
        return {"computation": values(job.computation)}
    if job.descriptor is not None:
        return {"data": place.source.name, "descriptor": values(job.descriptor)}
    profile = job.profile(place)
    return {
        "data": place.source.name,
        "recipe": values(job.recipe),
        "profile": {
            "name": profile.name,
            "width": profile.width,
            "budget": values(profile.budget_for(job.recipe)),
            "learning_rate": profile.learning_rate_for(job.recipe),
            "precision": profile.precision,
            "channels_last": profile.channels_last,
            "compile": profile.compile,
            "threads": profile.threads,
        },
        "train_set": job.train_set,
        "seed": job.seed,
    }


def digests(job: Job, place: Place) -> dict:
    """Digests of today's code and data: "training", "evaluation" by module, "data" by set."""
    if job.computation is not None:
        training = code_digest([f"lib.theory.{job.computation.name}"])
    elif job.descriptor is not None:
        training = code_digest([f"lib.models.{job.descriptor.name}"])
    else:
        training = code_digest(["lib.training", *parts.modules(job.recipe)])
    wanted = (*job.measures, *job.probes)
    return {
        "training": training,
        "evaluation": {name: code_digest([f"lib.evaluation.{name}"]) for name, _ in wanted},
        "data": {name: place.source.digest(name) for name in sorted(job.sets)},
    }


def record_path(job: Job, place: Place, folder: Path | None = None) -> Path:
    """Where a job's record lies below a folder, by default the place's own."""
    stem = "untrained" if job.recipe is None else f"{job.train_set}-seed{job.seed}"
    short = value_digest(configuration(job, place))[:8]
    return (folder or place.folder) / "records" / job.name / f"{stem}-{short}.json"


def probe_path(record: Path, probe: str, test_set: str) -> Path:
    """Where a probe lies, beside its record."""
    return record.with_name(f"{record.stem}.{probe}.{test_set}.npz")


def state(job: Job, place: Place, folder: Path | None = None) -> str:
    """How a job's record stands: "complete", "incomplete", "older code", "damaged" or "missing".

    "incomplete": trained by today's code on today's data, but a metric or a probe is missing, or is
    by older code or on older data.
    """
    path = record_path(job, place, folder)
    try:
        record = records.read(path)
    except FileNotFoundError:
        return "missing"
    except records.DamagedRecord:
        return "damaged"
    # What training itself looked at: its own set, and those it was followed on epoch by epoch.
    seen = {job.train_set, *record.get("epoch_fpr95", ())}
    if record["digests"]["training"] != digests(job, place)["training"] or seen & _changed(
        job, place, record
    ):
        return "older code"
    return "incomplete" if to_evaluate(job, place, record, path) else "complete"


def to_evaluate(job: Job, place: Place, record: Mapping, path: Path) -> list[tuple[str, str]]:
    """The (module of `lib.evaluation`, set) that a record lacks or has by older code or data."""
    if job.computation is not None:
        # Its numbers and arrays are of one making, and its code is the record's.
        return [wanted for wanted in probes_of(job) if not _whole(probe_path(path, *wanted))]
    today, then = digests(job, place)["evaluation"], record["digests"]["evaluation"]
    there = {(m, name): m in record["metrics"].get(name, {}) for m, name in job.measures}
    there |= {(probe, name): _whole(probe_path(path, probe, name)) for probe, name in job.probes}
    changed = _changed(job, place, record)
    return [
        (module, name)
        for (module, name), found in there.items()
        if not found or then.get(module) != today[module] or name in changed
    ]


def _changed(job: Job, place: Place, record: Mapping) -> set[str]:
    """The sets whose data is no longer what the record was made on."""
    then = record["digests"]["data"]
    return {name for name, new in digests(job, place)["data"].items() if then.get(name, new) != new}


def readable(job: Job, place: Place, folder: Path) -> bool:
    """Whether a record below a folder holds all that a job asks for, by whatever code."""
    path = record_path(job, place, folder)
    try:
        record = records.read(path)
    except (FileNotFoundError, records.DamagedRecord):
        return False
    measures = job.measures if job.computation is None else [(job.computation.name, NO_SET)]
    measured = all(name in record["metrics"].get(of, {}) for name, of in measures)
    return measured and all(_whole(probe_path(path, *wanted)) for wanted in probes_of(job))


def _whole(probe: Path) -> bool:
    # A probe cut short has lost the directory at its end.
    return zipfile.is_zipfile(probe)


def probes_of(job: Job) -> list[tuple[str, str]]:
    """The (probe, set) that a job has; a computation has one, of its own name."""
    return [(job.computation.name, NO_SET)] if job.computation is not None else list(job.probes)


def merged(jobs: Iterable[Job], place: Place) -> list[Job]:
    """The jobs, each record's once, with all that any of them asks to evaluate on it."""
    by_path: dict[Path, Job] = {}
    for job in jobs:
        path = record_path(job, place)
        other = by_path.get(path, job)
        both = {
            name: tuple(dict.fromkeys((*getattr(other, name), *getattr(job, name))))
            for name in ("measures", "probes")
        }
        by_path[path] = replace(other, **both)
    return list(by_path.values())


def cost(job: Job, place: Place) -> float:
    """Patches forwarded in a job's training, a backward pass counted as two forward ones."""
    if job.recipe is None:
        return 0.0
    budget = job.profile(place).budget_for(job.recipe)
    steps = budget.epochs * max(1, budget.epoch_pairs // budget.batch_pairs)
    candidates = 0
    if job.recipe.sampler.name != "random_pair":
        generate = job.recipe.generate
        candidates = generate.options["patches_per_class"] if generate else 3
    return steps * budget.batch_pairs * (6.0 + candidates)


def estimated_seconds(jobs: Sequence[Job], place: Place, at_once: int) -> float:
    """A rough forecast of the wall clock that jobs take, from the profile's stated speed."""
    speed = place.profile.forward_patches_per_second[place.device.partition(":")[0]]
    each = [2.0 + cost(job, place) / speed for job in jobs]
    return max([sum(each) / at_once, *each], default=0.0)
