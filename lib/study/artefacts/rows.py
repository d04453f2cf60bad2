"""The runs that artefacts are made of, as rows of data: methods, seeds, train sets and measures; and the
jobs that a study makes of a row: a recipe trained, a descriptor that nobody trains, a computation."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lib.data.scenes.sets import IMAGES_OF, WIDE
from lib.files import sha256
from lib.recipes import Recipe, at_rate, find, part
from lib.study.artefacts.searches import own_rate
from lib.study.jobs import NO_SET, SIGNS, Job
from lib.study.open import Study

HANDCRAFTED = {
    "sift": ("SIFT", part("sift", root=False)),
    "rootsift": ("RootSIFT", part("sift", root=True)),
}
ORB = {"orb": ("ORB", part("orb"))}
# The split whose patches the papers' HPatches-trained models train on; all are tested on its other part.
HPATCHES_SPLIT = "a"


@dataclass(frozen=True)
class Runs:
    """A row of what an artefact needs: runs of methods, each at its own learning rate.

    Attributes:
        methods: names of recipes, of `lib.recipes.RECIPES` or of `recipes`.
        seeds: which of the study's: those of a "table", of a "grid" or of a "test"; or seeds themselves.
        most: the first so many of these seeds; None takes all.
        sets: trained on the "first" set of patches, on as many as tables have ("grid"), or on "all"; or
            names of sets.
        handcrafted: descriptors that stand above the methods.
        hpatches: the split of HPatches on whose patches all of them are tested, too; "" is none.
        by_sign: those of whose descriptors the signs are measured, too, on what all are tested on.
        measures: modules of `lib.benchmarks` that measure on each set that FPR95 is measured on.
        probes: modules of `lib.probes` that look at the run's own train set.
        recipes: recipes by name that are no rows of `lib.recipes.RECIPES`.
        searched: by name the search whose rate a recipe takes, where that is not its own.
    """

    methods: Iterable[str] = ()
    seeds: str | tuple[int, ...] = "table"
    most: int | None = None
    sets: str | tuple[str, ...] = "first"
    handcrafted: tuple[str, ...] = ()
    hpatches: str = ""
    by_sign: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    searched: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, study: Study) -> list[Job]:
        """The row's jobs in a study, methods as they come, train sets and seeds ascending."""
        every = study.setting.source.sets
        sets = {"first": every[:1], "grid": study.grid_sets, "all": every}.get(self.sets, self.sets)
        seeds = {kind: getattr(study, f"{kind}_seeds") for kind in ("grid", "table", "test")}
        recipes = {
            name: at_profile(study, self.searched.get(name, name), self.recipes.get(name) or find(name))
            for name in self.methods
        }
        jobs = [handcrafted_job(study, name) for name in self.handcrafted]
        jobs += jobs_of(study, recipes, seeds.get(self.seeds, self.seeds)[: self.most], sets)
        for measure in self.measures:
            jobs = [measured(job, measure) for job in jobs]
        for probe in self.probes:
            jobs = [probed(job, probe) for job in jobs]
        if self.hpatches:
            jobs = on_hpatches(study, jobs, self.hpatches)
        signs = "hpatches" if self.hpatches else "fpr95"
        return [by_sign(job, signs) if job.name in self.by_sign else job for job in jobs]


@dataclass(frozen=True)
class Computations:
    """A row of computations of `lib.theory`: by name what readers know each by."""

    labels: Mapping[str, str]

    def __call__(self, study: Study) -> list[Job]:
        """The row's jobs, which are the same in every study."""
        return [computation_job(name, label) for name, label in self.labels.items()]


Row = Callable[[Study], list[Job]]


def several(*parts: Row) -> Row:
    """What an artefact needs that several rows say together, in their order."""
    return lambda study: [job for part in parts for job in part(study)]


def at_profile(study: Study, name: str, recipe: Recipe | None = None) -> Recipe:
    """A recipe as the study's profile trains it: at its own learning rate, found on the reserve, with
    the schedule that all recipes of the profile share; under `paper` as the authors state.

    Args:
        study: whose profile it is.
        name: of the search whose rate it takes, by default that of the recipe itself: one that varies
            another in a grid inherits the other's.
        recipe: what is trained; None takes the one of that name.

    Raises:
        ValueError: an unknown recipe, or no search of that name is on record.
    """
    profile, chosen = study.setting.profile, recipe or find(name)
    if profile.search is None:
        return chosen
    return at_rate(chosen, own_rate(study, name), profile.schedule)


def training_job(
    study: Study, name: str, train_set: str, seed: int, recipe: Recipe | None = None, **overrides: object
) -> Job:
    """A run of a recipe, evaluated on all that the source tests on but its own train set.

    Args:
        study: whose data and profile it takes.
        name: a key of `lib.recipes.RECIPES`, or of a row of one's own.
        train_set, seed: what it is trained on and from.
        recipe: the row of one's own, trained as it stands; None takes the named one `at_profile`.
        overrides: fields of `Profile` that this run takes other values for.

    Raises:
        ValueError: as `at_profile`.
    """
    others = [name for name in study.setting.source.tested if name != train_set]
    chosen = recipe or at_profile(study, name)
    return Job(
        name,
        chosen.label,
        recipe=chosen,
        train_set=train_set,
        seed=seed,
        measures=(*on(("fpr95",), others), *on_scenes(study, others)),
        probes=on(probes_of(study), others),
        overrides=overrides,
    )


def jobs_of(
    study: Study,
    recipes: Mapping[str, Recipe],
    seeds: Sequence[int],
    sets: Sequence[str] = (),
    **overrides: object,
) -> list[Job]:
    """`training_job` of each recipe as it stands, each train set and each seed, in this order.

    Args:
        study: whose data and profile they take.
        recipes: by name.
        seeds, sets: what they are trained from and on, by default the first train set.
        overrides: as for `training_job`.
    """
    return [
        training_job(study, name, train_set, seed, recipe, **overrides)
        for name, recipe in recipes.items()
        for train_set, seed in itertools.product(sets or study.setting.source.sets[:1], seeds)
    ]


def probes_of(study: Study) -> tuple[str, ...]:
    """Probes of every set of patches that something is tested on. Resamples are for verdicts, which
    quick runs give none."""
    resampled = () if study.setting.profile.name == "quick" else ("resampled_fpr95",)
    return ("distance_histogram", *resampled)


def on_scenes(study: Study, places: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """What is measured of real places besides FPR95 of random pairs: that of the widest pairs, and
    matching between photographs. Nothing of other sets."""
    if study.setting.source.scenes is None:
        return ()
    wide = on(("fpr95",), [f"{name}{WIDE}" for name in places])
    return (*wide, *on(("image_pairs",), [f"{name}{IMAGES_OF}" for name in places]))


def on(modules: Sequence[str], sets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(itertools.product(modules, sets))


def handcrafted_job(study: Study, name: str) -> Job:
    """SIFT, RootSIFT or ORB, evaluated on all that the source tests on."""
    label, descriptor = {**HANDCRAFTED, **ORB}[name]
    sets = study.setting.source.tested
    return Job(
        name,
        label,
        descriptor=descriptor,
        measures=(*on(("fpr95", "set_statistics"), sets), *on_scenes(study, sets)),
        probes=on(probes_of(study), sets),
    )


def published_jobs(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Rows of checkpoints that others trained or that were exported here, measured as handcrafted
    descriptors are.

    They are known by their content: the same file elsewhere, on another machine too, is the same row.

    Args:
        study: whose data it takes.
        checkpoints: files in one of `lib.models.published.LAYOUTS`, labelled by their names without the
            ending; or a network's ``model.safetensors`` (`lib.models.exported`), labelled by its folder.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: two files of one name, or a text in place of a list of texts.
    """
    if isinstance(checkpoints, str | Path):
        raise ValueError(f"checkpoints is a list of files: give [{str(checkpoints)!r}]")
    paths, jobs = [Path(path).expanduser().resolve() for path in checkpoints], []
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no checkpoint at {path}; give the path of a published one")
        model, called = _how_stored(path)
        if [_how_stored(other)[1] for other in paths].count(called) > 1:
            raise ValueError(f"two checkpoints are called {called}: rename one, since rows are")
        content = sha256(path)
        job = replace(
            handcrafted_job(study, "sift"),
            name=f"{re.sub(r'[^A-Za-z0-9._-]', '_', called)}-{content[:8]}",
            label=f"{called} ({model})",
            descriptor=part(model, sha256=content),
            paths={"weights": str(path)},
        )
        jobs.append(job)
    return jobs


def _how_stored(path: Path) -> tuple[str, str]:
    exported = path.suffix == ".safetensors"
    return ("exported", path.parent.name) if exported else ("published", path.stem)


def probed(job: Job, probe: str, sets: Iterable[str] | None = None) -> Job:
    """The job with a probe on sets, by default on its own train set."""
    return replace(job, probes=(*job.probes, *on((probe,), [job.train_set] if sets is None else sets)))


def measured(job: Job, measure: str, sets: Iterable[str] | None = None) -> Job:
    """The job with a measure on sets, by default on every one that it is tested on."""
    sets = job.sets_of("fpr95") if sets is None else sets
    return replace(job, measures=(*job.measures, *on((measure,), sets)))


def computation_job(name: str, label: str) -> Job:
    """A computation of `lib.theory`, which needs neither data nor training."""
    own = ((name, NO_SET),)
    return Job(name, label, computation=part(name), measures=own, probes=own)


def by_sign(job: Job, measure: str) -> Job:
    """The job, with what it measures measured by the signs of its descriptors too."""
    return measured(job, measure + SIGNS, job.sets_of(measure))


def tested_on(study: Study) -> str:
    """The set of HPatches patches that AdaSample's, HyNet's and TCDesc's tables test on.

    The splits of HyNet's Table 3 and of TCDesc's tables are unstated. TCDesc's is not the protocol of
    DSM's paper, all sequences and the whole pool (`lib.study.artefacts.dsm.tested_on`), which has 61
    percent of retrieval for DSM where TCDesc's has 70 for TCDesc.
    """
    return study.setting.source.homographies.test_set(HPATCHES_SPLIT)


def on_hpatches(study: Study, jobs: Iterable[Job], split: str = HPATCHES_SPLIT) -> list[Job]:
    """The jobs, measured on what a split of HPatches tests on, too, where the study has HPatches."""
    if study.setting.source.own_hpatches is None:
        return list(jobs)
    tested = [study.setting.source.homographies.test_set(split)]
    return [measured(job, "hpatches", tested) for job in jobs]
