"""Jobs, the state of their records, and how long they take.

Plain data and file names, no torch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lib import parts
from lib.data.scenes.sets import WIDE
from lib.data.sources import Source
from lib.data.states import content_half
from lib.digests import code_digest, value_digest
from lib.profiles import Profile
from lib.recipes import Part, Recipe, values
from lib.study import records

NO_SET = "none"
# Suffix of the name of a `lib.benchmarks` module that measures the signs of descriptors.
SIGNS = "_of_signs"
# The profile fields that a run uses, except its budget, which may be the recipe's own.
_SIZE = ["name", "width", "precision", "channels_last", "compile", "threads", "stages", "followed_pairs"]
# Seconds that the slow modules of `lib.benchmarks` and `lib.probes` take on one CPU thread for one set
# of embedded data.
_SECONDS = dict.fromkeys(("hpatches", "intensity_changes", "oxford_affine"), 5.0)
_SECONDS |= dict.fromkeys(("sfm", "imc", "retrieval"), 26.0)


@dataclass(frozen=True)
class Setting:
    """The data, size, folder and device of jobs.

    Attributes:
        profile, source: the size and the data.
        folder: results/<profile>/<data>, for records, weights, locks and checkpoints.
        device: "cpu", "cuda", …
    """

    profile: Profile
    source: Source
    folder: Path
    device: str = "cpu"


@dataclass(frozen=True)
class Job:
    """One record to make: a training run, a descriptor that needs no training, or a computation.

    Attributes:
        name: key of the recipe, descriptor or computation; names the record's folder.
        label: the name that readers see.
        recipe: how a training run trains; None for other jobs.
        train_set, seed: those of a training run; None for other jobs.
        descriptor: one that is not trained here: a module of `lib.models` with ``build(**options)``.
        paths: options of the descriptor that name files on this machine. They are not part of the
            record; the files' content is, as a hash among the descriptor's own options.
        computation: one without data: a module of `lib.theory` whose ``compute(**options)`` returns
            (numbers, arrays). They become the record's metrics and its probe. The computation is the
            job's only measure and only probe, both on set "none".
        measures: (module, set) pairs to measure. The module is one of `lib.benchmarks`, with the suffix
            `SIGNS` to measure the signs of descriptors.
        probes: likewise, with a module of `lib.probes`.
        overrides: new values for fields of `Profile` in this run.
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
        """The job in one line, e.g. "HardNet* on mini-a, seed 0"."""
        if self.recipe is None:
            return self.label
        return f"{self.label} on {self.train_set}, seed {self.seed}"

    @property
    def sets(self) -> tuple[str, ...]:
        """All sets that the job trains, measures or probes on, each once."""
        wanted = [self.train_set, *(name for _, name in (*self.measures, *self.probes))]
        return tuple(name for name in dict.fromkeys(wanted) if name not in (None, NO_SET))

    def sets_of(self, measure: str) -> tuple[str, ...]:
        """Return the sets on which a module of `lib.benchmarks` measures."""
        return tuple(name for module, name in self.measures if module == measure)

    @property
    def test_sets(self) -> tuple[str, ...]:
        """The sets on which FPR95 is measured, except places' sets of wide pairs."""
        return tuple(name for name in self.sets_of("fpr95") if not name.endswith(WIDE))

    def profile(self, setting: Setting) -> Profile:
        """Return the profile that this run has in a setting."""
        return replace(setting.profile.sized_for(self.recipe), **self.overrides)


def configuration(job: Job, setting: Setting) -> dict:
    """Return all values besides code and data that decide a job's numbers; JSON-able.

    There can be two budgets: the profile's is the one that ran; the recipe's is what its authors state.
    """
    if job.computation is not None:
        return {"computation": values(job.computation)}
    if job.descriptor is not None:
        return {"data": setting.source.name, "descriptor": values(job.descriptor)}
    profile = job.profile(setting)
    return {
        "data": setting.source.name,
        "recipe": values(job.recipe),
        "profile": {
            **{name: values(getattr(profile, name)) for name in _SIZE},
            "budget": values(profile.budget_for(job.recipe)),
        },
        "train_set": job.train_set,
        "seed": job.seed,
    }


def digests(job: Job, setting: Setting, followed: Iterable[str] | None = None) -> dict:
    """Return digests of today's code and data, as a record made today would contain them.

    Args:
        job, setting: what is made, and where.
        followed: the sets on which a run's training is followed; by default those of the job.

    Returns:
        Entries "training", "following" (runs only: FPR95 by epoch) and "evaluation" (by module of
        `lib.benchmarks` or `lib.probes`). Each gives the "code" that was run and, by set, the "data"
        that it read.
    """
    # A computation is its own measure and probe.
    wanted = () if job.computation else (*job.measures, *job.probes)
    evaluation = {
        name: _made_by(
            [evaluating(job, name)], [own for module, own in wanted if module == name], setting
        )
        for name in dict(wanted)
    }
    if job.recipe is None:
        package, own = ("theory", job.computation) if job.computation else ("models", job.descriptor)
        made = {"training": _made_by([f"lib.{package}.{own.name}"], (), setting)}
    else:
        modules = ["lib.training", *parts.modules(job.recipe)]
        followed = job.sets_of("fpr95") if followed is None else followed
        made = {
            "training": _made_by(modules, [job.train_set], setting),
            "following": _made_by(["lib.benchmarks.fpr95_by_stage"], followed, setting),
        }
    return {**made, "evaluation": evaluation}


def _made_by(modules: Iterable[str], sets: Iterable[str], setting: Setting) -> dict:
    data = {name: setting.source.digest(name) for name in dict.fromkeys(sets)}
    return {"code": code_digest(modules), "data": data}


def evaluating(job: Job, name: str) -> str:
    """Return the module that measures or probes under a name."""
    package = "lib.benchmarks" if name in dict(job.measures) else "lib.probes"
    return f"{package}.{name.removesuffix(SIGNS)}"


def record_path(job: Job, setting: Setting, folder: Path | None = None) -> Path:
    """Return the path of a job's record below a folder, by default that of the setting. The name has a
    digest of the train set's content, so a run on other data has another record. Its last 8 digits are
    of the configuration, so runs of one recipe with other rates or options are in the same folder."""
    stem = "untrained"
    if job.recipe is not None:
        content = content_half(setting.source.digest(job.train_set))
        stem = f"{job.train_set}-{content}-seed{job.seed}"
    short = value_digest(configuration(job, setting))[:8]
    return (folder or setting.folder) / "records" / job.name / f"{stem}-{short}.json"


def probe_path(record: Path, probe: str, test_set: str) -> Path:
    """Return the path of a probe, beside its record."""
    return record.with_name(f"{record.stem}.{probe}.{test_set}.npz")


@dataclass(frozen=True)
class Record:
    """The record of a job in a folder, and its state.

    Attributes:
        job: what was asked for.
        path: where the record is, or would be.
        content: the record; None where it is damaged or missing.
        state: "complete", "incomplete" (trained by today's code, but a metric or a probe is missing,
            damaged, of other data or by older code), "older code", "other data" (on which its training
            was followed), "damaged" or "missing".
        lacking: (module, set) pairs that the job asks for and the record does not have for this data.
        stale: (module, set) pairs that the record has by older code.
        damaged: files that do not contain what was written.
    """

    job: Job
    path: Path
    content: Mapping | None
    state: str = "complete"
    lacking: tuple[tuple[str, str], ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    damaged: tuple[Path, ...] = ()

    @property
    def readable(self) -> bool:
        """Whether the record has all that the job asks for on this data, by whatever code."""
        return self.content is not None and not self.lacking and self.state != "other data"

    @property
    def older(self) -> bool:
        """Whether the code behind a readable record has changed since."""
        return self.state != "complete"

    def fpr95(self, test_set: str) -> float:
        """Return FPR95 in percent, as the expected value over orders of ties."""
        return self.content["metrics"][test_set]["fpr95"]["expected"]

    @property
    def numbers(self) -> Mapping:
        """A computation's numbers."""
        return self.content["metrics"][NO_SET][self.job.computation.name]

    @property
    def arrays(self) -> dict:
        """A computation's arrays."""
        return self.probe(self.job.computation.name, NO_SET)

    def probe(self, name: str, test_set: str | None = None) -> dict:
        """Return a probe's arrays, by default those of the run's own train set.

        Raises:
            DamagedRecord: its file does not contain what was written.
        """
        test_set = test_set or self.job.train_set
        expected = self.content["probes"][f"{name}.{test_set}"]
        return records.read_probe(probe_path(self.path, name, test_set), expected)


def record_status(job: Job, setting: Setting, folder: Path | None = None) -> Record:
    """Return a job's record and its state in a folder, by default that of the setting."""
    path = record_path(job, setting, folder)
    try:
        content = records.read(path)
    except FileNotFoundError:
        return Record(job, path, None, "missing")
    except records.DamagedRecord:
        return Record(job, path, None, "damaged", damaged=(path,))
    then = content["digests"]
    # Jobs that share a run may ask for fewer sets than its training was followed on.
    followed = then.get("following", {"data": {}})["data"]
    today = digests(job, setting, followed)
    lacking, stale, damaged = [], [], []
    for wanted in dict.fromkeys((*job.measures, *job.probes)):
        (code, data), (code_now, data_now) = _made(then, *wanted), _made(today, *wanted)
        held = wanted not in job.measures or wanted[0] in content["metrics"].get(wanted[1], {})
        if wanted in job.probes:
            file, expected = probe_path(path, *wanted), content["probes"].get(".".join(wanted))
            held = held and records.is_whole(file, expected)
            if expected and not held and file.exists():
                damaged.append(file)
        if not held or content_half(data) != content_half(data_now):
            lacking.append(wanted)
        elif (code, data) != (code_now, data_now):
            stale.append(wanted)
    if any(content_half(d) != content_half(today["following"]["data"][s]) for s, d in followed.items()):
        state = "other data"
    elif any(then.get(part) != today.get(part) for part in ("training", "following")):
        state = "older code"
    else:
        state = "incomplete" if lacking or stale else "complete"
    return Record(job, path, content, state, tuple(lacking), tuple(stale), tuple(damaged))


def _made(digests: Mapping, module: str, test_set: str) -> tuple[str, str]:
    evaluated = digests["evaluation"].get(module, {"code": "", "data": {}})
    return evaluated["code"], evaluated["data"].get(test_set, "")


def merged(jobs: Iterable[Job], setting: Setting) -> list[Job]:
    """Merge jobs that share a record into one job with all their measures and probes."""
    by_path: dict[Path, Job] = {}
    for job in jobs:
        path = record_path(job, setting)
        first = by_path.get(path, job)
        by_path[path] = replace(
            first,
            measures=tuple(dict.fromkeys(first.measures + job.measures)),
            probes=tuple(dict.fromkeys(first.probes + job.probes)),
        )
    return list(by_path.values())


def cost(job: Job, setting: Setting) -> tuple[float, float]:
    """Estimate one process's seconds for a job from scratch: for training, and for metrics and probes.

    Training time is the number of patches forwarded, a backward pass counted as two forward ones, over
    the profile's speed. Metrics and probes take measured seconds per set.
    """
    if job.computation is not None:
        return 0.0, 5.0
    modules = [module.removesuffix(SIGNS) for module, _ in (*job.measures, *job.probes)]
    # A real set of patches has 100,000 labelled pairs, an embedded one 10,000 at the quick size.
    larger = 1.0 if setting.source.embedded else 10.0
    evaluation = larger * sum(_SECONDS.get(module, 0.7) for module in modules)
    if job.recipe is None:
        return 0.0, evaluation
    budget = job.profile(setting).budget_for(job.recipe)
    steps = budget.epochs * max(1, budget.epoch_pairs // budget.batch_pairs)
    candidates = 0
    if job.recipe.sampler.name != "random_pair":
        generate = job.recipe.generate
        candidates = generate.options["patches_per_class"] if generate else 3
    speed = setting.profile.patches_per_second[setting.device.partition(":")[0]]
    return steps * budget.batch_pairs * (6.0 + candidates) / speed, evaluation


def remaining(job: Job, setting: Setting) -> float:
    """Estimate the seconds of work that a job still needs in the setting's folder."""
    (training, evaluation), record = cost(job, setting), record_status(job, setting)
    if record.state != "incomplete":
        return training + evaluation
    return evaluation * len((*record.lacking, *record.stale)) / len((*job.measures, *job.probes))
