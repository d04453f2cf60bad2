"""What there is to have on record: jobs, how their records stand, and how long they take.

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
# Behind the name of a module of `lib.benchmarks`: it measures the signs of descriptors.
SIGNS = "_of_signs"
# What a run takes from its profile besides its budget, which may be the recipe's own.
_SIZE = ["name", "width", "precision", "channels_last", "compile", "threads", "stages", "followed_pairs"]
# Seconds on one CPU thread, on one set of embedded data, of the modules of `lib.benchmarks` and
# `lib.probes` that take long.
_SECONDS = dict.fromkeys(("hpatches", "intensity_changes", "oxford_affine"), 5.0)
_SECONDS |= dict.fromkeys(("sfm", "imc", "retrieval"), 26.0)


@dataclass(frozen=True)
class Setting:
    """On which data, at which size and where jobs are done.

    Attributes:
        profile, source: the size and the data.
        folder: results/<profile>/<data>; records, weights, locks and checkpoints go below it.
        device: "cpu", "cuda", …
    """

    profile: Profile
    source: Source
    folder: Path
    device: str = "cpu"


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
            (numbers, arrays), which become the record's metrics and its probe; it is the one measure and
            the one probe of the job, both of set "none".
        measures: what is measured: a module of `lib.benchmarks`, with `SIGNS` behind its name where the
            signs of descriptors are measured, and a set.
        probes: likewise, a module of `lib.probes`.
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
        return f"{self.label} on {self.train_set}, seed {self.seed}"

    @property
    def sets(self) -> tuple[str, ...]:
        """Every set it is trained, measured or probed on, each once."""
        wanted = [self.train_set, *(name for _, name in (*self.measures, *self.probes))]
        return tuple(name for name in dict.fromkeys(wanted) if name not in (None, NO_SET))

    def sets_of(self, measure: str) -> tuple[str, ...]:
        """The sets on which a module of `lib.benchmarks` measures."""
        return tuple(name for module, name in self.measures if module == measure)

    @property
    def test_sets(self) -> tuple[str, ...]:
        """The sets on which FPR95 is measured, without the wide pairs of places among them."""
        return tuple(name for name in self.sets_of("fpr95") if not name.endswith(WIDE))

    def profile(self, setting: Setting) -> Profile:
        """The size that this run has in a setting."""
        return replace(setting.profile.sized_for(self.recipe), **self.overrides)


def configuration(job: Job, setting: Setting) -> dict:
    """All values that decide a job's numbers besides its code and data; JSON-able.

    Of two budgets the profile's is the one that ran; the recipe's is what its authors state.
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
    """Digests of today's code and data, as a record made today holds them.

    Args:
        job, setting: what is made, and where.
        followed: the sets on which a run's training is followed; by default those of the job.

    Returns:
        Each of "training", "following" (runs only: FPR95 by epoch) and, by module of
        `lib.benchmarks` or `lib.probes`,
        "evaluation" says the "code" that was run and, by set, the "data" that it read.
    """
    # What a computation measures and probes is its own.
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
    """The module that measures or probes under a name."""
    package = "lib.benchmarks" if name in dict(job.measures) else "lib.probes"
    return f"{package}.{name.removesuffix(SIGNS)}"


def record_path(job: Job, setting: Setting, folder: Path | None = None) -> Path:
    """Where a job's record lies below a folder, by default that of the setting. What the train set
    contains is part of the name: a run on other data has another record. The last 8 digits are of the
    configuration, so that runs of one recipe with other rates or options lie beside each other."""
    stem = "untrained"
    if job.recipe is not None:
        content = content_half(setting.source.digest(job.train_set))
        stem = f"{job.train_set}-{content}-seed{job.seed}"
    short = value_digest(configuration(job, setting))[:8]
    return (folder or setting.folder) / "records" / job.name / f"{stem}-{short}.json"


def probe_path(record: Path, probe: str, test_set: str) -> Path:
    """Where a probe lies, beside its record."""
    return record.with_name(f"{record.stem}.{probe}.{test_set}.npz")


@dataclass(frozen=True)
class Record:
    """A job's record, as it stands in a folder.

    Attributes:
        job: what was asked for.
        path: where the record lies, or would lie.
        content: the record; None where it is damaged or missing.
        state: "complete", "incomplete" (trained by today's code, but a metric or a probe is missing,
            damaged, of other data or by older code), "older code", "other data" (on which its training
            was followed), "damaged" or "missing".
        lacking: the (module, set) that the job asks for and the record has not of this data.
        stale: those that it has by older code.
        damaged: files that do not hold what was written.
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
        """Whether all that the job asks for is there of this data, by whatever code."""
        return self.content is not None and not self.lacking and self.state != "other data"

    @property
    def older(self) -> bool:
        """Whether code of a readable record has changed since."""
        return self.state != "complete"

    def fpr95(self, test_set: str) -> float:
        """In percent, the expected value over tie orders."""
        return self.content["metrics"][test_set]["fpr95"]["expected"]

    @property
    def numbers(self) -> Mapping:
        """What a computation computed."""
        return self.content["metrics"][NO_SET][self.job.computation.name]

    @property
    def arrays(self) -> dict:
        """A computation's arrays."""
        return self.probe(self.job.computation.name, NO_SET)

    def probe(self, name: str, test_set: str | None = None) -> dict:
        """A probe's arrays, by default those of the run's own train set.

        Raises:
            DamagedRecord: its file does not hold what was written.
        """
        test_set = test_set or self.job.train_set
        expected = self.content["probes"][f"{name}.{test_set}"]
        return records.read_probe(probe_path(self.path, name, test_set), expected)


def record_status(job: Job, setting: Setting, folder: Path | None = None) -> Record:
    """A job's record as it stands in a folder, by default that of the setting."""
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
    """The jobs, each record's once, with all that any of them asks to evaluate on it."""
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
    """Seconds that a job takes one process from nothing: of training, and of metrics and probes.

    Training goes by the patches forwarded, a backward pass counted as two forward ones, at the speed
    that the profile states; metrics and probes by measured seconds for each set.
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
    """Seconds that are left to be done of a job in the setting's folder."""
    (training, evaluation), record = cost(job, setting), record_status(job, setting)
    if record.state != "incomplete":
        return training + evaluation
    return evaluation * len((*record.lacking, *record.stale)) / len((*job.measures, *job.probes))
