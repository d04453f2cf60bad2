"""The runs that artefacts need, as rows of data: methods, seeds, train sets and measures. A study makes
jobs of a row: a recipe to train, a descriptor that nobody trains, or a computation."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path

from safetensors import safe_open

from lib.data.scenes.sets import IMAGES_OF, WIDE
from lib.files import sha256
from lib.recipes import RECIPES, Recipe, at_rate, find, part, replace_options
from lib.study.artefacts.searches import searched_rate
from lib.study.jobs import NO_SET, SIGNS, Job
from lib.study.open import Record, Study

# Px of a patch of 64, which is 14 standard deviations of its keypoint's Gaussian wide.
KEYPOINT_SMOOTHING = 4.6
# Those that nobody trains, and what they are called.
DESCRIPTORS = {
    "sift": ("SIFT", part("sift", root=False)),
    "rootsift": ("RootSIFT", part("sift", root=True)),
    "sift_smooth": ("SIFT, smoothed", part("sift", root=False, smoothing=KEYPOINT_SMOOTHING)),
    "rootsift_smooth": ("RootSIFT, smoothed", part("sift", root=True, smoothing=KEYPOINT_SMOOTHING)),
    "orb": ("ORB", part("orb")),
}
HANDCRAFTED = ("sift", "rootsift")
# The split whose patches the papers' HPatches-trained models train on; all are tested on its other part.
HPATCHES_SPLIT = "a"
# The search whose rate a recipe takes, or several that share a rate; None leaves it as it stands.
Searched = str | tuple[str, ...] | None
Row = Callable[..., list[Job]]
# By axis what stands there instead; a dict changes options of the part that is there.
Changes = Mapping[str, object]
# By recipe and name of the choice, the axes changed; each recipe stands beside them as its "default".
Options = Mapping[str, Mapping[str, Changes]]
OPTION_SEEDS = 3


@dataclass(frozen=True)
class Runs:
    """A row of what an artefact needs: runs of methods, each at its own learning rate.

    Attributes:
        methods: names of recipes, of `lib.recipes.RECIPES` or of `recipes`.
        seeds: which of the study's: those of a "table", of a "grid" or of a "test"; or seeds themselves.
        most: the first so many of these seeds; None takes all.
        sets: trained on the "first" set of patches, on as many as tables have ("grid"), or on "all"; or
            names of sets.
        handcrafted: of `DESCRIPTORS`, which stand above the methods, and checkpoints below them.
        computations: modules of `lib.theory`, and what readers know each by; they come first.
        hpatches: the split of HPatches on whose patches all of them are tested, too; "" is none.
        by_sign: those of whose descriptors the signs are measured, too, on what all are tested on.
        measures: modules of `lib.benchmarks` that measure on each set that FPR95 is measured on.
        probes: modules of `lib.probes` that look at the run's own train set.
        recipes: recipes by name that are no rows of `lib.recipes.RECIPES`.
        searched: by name the search whose rate a recipe takes, where that is not its own.
        changes: of axes, once a recipe has its rate and the profile's schedule.
        overrides: fields of `Profile` that the runs take other values for.
    """

    methods: Iterable[str] = ()
    seeds: str | tuple[int, ...] = "table"
    most: int | None = None
    sets: str | tuple[str, ...] = "first"
    handcrafted: tuple[str, ...] = ()
    computations: Mapping[str, str] = field(default_factory=dict)
    hpatches: str = ""
    by_sign: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    searched: Mapping[str, Searched] = field(default_factory=dict)
    changes: Changes = field(default_factory=dict)
    overrides: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
        """The row's jobs in a study, methods as they come, train sets and seeds ascending.

        Args:
            study: whose data and profile they take.
            checkpoints: as `published_jobs` takes them, for a row that has handcrafted descriptors.
        """
        source, sets, seeds = study.source, self.sets, self.seeds
        if isinstance(sets, str):
            sets = source.sets[: {"first": 1, "grid": study.profile.grid_sets, "all": None}[sets]]
        if isinstance(seeds, str):
            seeds = getattr(study, f"{seeds}_seeds")
        jobs = [handcrafted_job(study, name) for name in self.handcrafted]
        jobs += published_jobs(study, checkpoints) if self.handcrafted else []
        for name in dict.fromkeys(self.methods):
            recipe = self.recipes.get(name) or find(name)
            recipe = at_profile(study, recipe, self.searched.get(name, name))
            recipe = changed(recipe, recipe.label, self.changes)
            for train_set, seed in product(sets, seeds[: self.most]):
                run = Job(name, recipe.label, recipe, train_set, seed, overrides=self.overrides)
                jobs.append(replace(run, **evaluated_on(study, [train_set])))
        for measure in self.measures:
            jobs = [measured(job, measure, job.sets_of("fpr95")) for job in jobs]
        for probe in self.probes:
            jobs = [probed(job, probe, [job.train_set]) for job in jobs]
        if self.hpatches and source.own_hpatches is not None:
            tested = [source.homographies.test_set(self.hpatches)]
            jobs = [measured(job, "hpatches", tested) for job in jobs]
        signs = "hpatches" if self.hpatches else "fpr95"
        jobs = [by_sign(job, signs) if job.name in self.by_sign else job for job in jobs]
        computed = [
            Job(
                name, label, computation=part(name), measures=((name, NO_SET),), probes=((name, NO_SET),)
            )
            for name, label in self.computations.items()
        ]
        return computed + jobs


def several(*rows: Row) -> Row:
    """The jobs of several rows, one row after the other."""
    return lambda study, **options: [job for row in rows for job in row(study, **options)]


def option_runs(options: Options) -> Row:
    """Runs of every option of every recipe, each recipe unchanged first, on the first train set. An
    option trains at the rate that was found for the unchanged recipe."""
    return several(
        *(
            Runs([name], "test", OPTION_SEEDS, changes=changes)
            for name, choices in options.items()
            for changes in ({}, *choices.values())
        )
    )


def by_option(
    runs: Sequence[Record], study: Study, options: Options
) -> dict[str, dict[str, list[Record]]]:
    """The runs of `option_runs`, which come in its order, by the recipe's label and by option, "default"
    first."""
    left, seeds = iter(runs), len(study.test_seeds[:OPTION_SEEDS])
    return {
        find(name).label: {option: list(islice(left, seeds)) for option in ("default", *choices)}
        for name, choices in options.items()
    }


def changed(recipe: Recipe, label: str, changes: Changes) -> Recipe:
    """A recipe with a few axes changed, under another label."""
    axes = {
        axis: replace_options(getattr(recipe, axis), **choice) if isinstance(choice, dict) else choice
        for axis, choice in changes.items()
    }
    return replace(recipe, label=label, **axes)


def variants(recipe: Recipe, changes: Mapping[str, tuple[str, Changes]]) -> dict[str, Recipe]:
    """Recipes by name that each change a few axes of one.

    Args:
        recipe: the one to change.
        changes: by name, the text that follows the recipe's label, and the axes changed.
    """
    return {
        name: changed(recipe, f"{recipe.label}: {shown}", axes)
        for name, (shown, axes) in changes.items()
    }


def at_profile(study: Study, recipe: Recipe, searched: Searched) -> Recipe:
    """A recipe as the study's profile trains it: at a learning rate found on the reserve, with the
    schedule that all recipes of the profile share. Under `paper` it stays as its authors state it.

    Raises:
        NoSearch: a search is not on record.
    """
    profile = study.profile
    if searched is None or profile.search is None:
        return recipe
    names = (searched,) if isinstance(searched, str) else searched
    return at_rate(recipe, searched_rate(study, *names), profile.schedule)


def handcrafted_job(study: Study, name: str, train_sets: Sequence[str] = ()) -> Job:
    """One of `DESCRIPTORS`, evaluated as `evaluated_on` says."""
    label, descriptor = DESCRIPTORS[name]
    evaluated = evaluated_on(study, train_sets, ("fpr95", "set_statistics"))
    return Job(name, label, descriptor=descriptor, **evaluated)


def evaluated_on(
    study: Study, train_sets: Sequence[str], measures: Sequence[str] = ("fpr95",)
) -> dict[str, tuple[tuple[str, str], ...]]:
    """The measures and probes of a job, which is tested on all that the source tests on but the sets it
    was trained on. On real places FPR95 of the widest pairs and matching between photographs are
    measured, too; resamples are for verdicts, which quick runs give none."""
    sets = [name for name in study.source.tested if name not in train_sets]
    pairs = list(product(measures, sets))
    if study.source.scenes is not None:
        pairs += [("fpr95", f"{name}{WIDE}") for name in sets]
        pairs += [("image_pairs", f"{name}{IMAGES_OF}") for name in sets]
    resampled = () if study.profile.name == "quick" else ("resampled_fpr95",)
    probes = product(("distance_histogram", *resampled), sets)
    return {"measures": tuple(pairs), "probes": tuple(probes)}


def published_jobs(study: Study, checkpoints: Sequence[str | Path]) -> list[Job]:
    """Rows of checkpoints that others trained or that were exported here, measured as handcrafted
    descriptors are.

    They are known by their content: the same file elsewhere, on another machine too, is the same row.
    An exported network is not measured on what its file says it was trained on.

    Args:
        study: whose data it takes.
        checkpoints: files in one of `lib.models.published.LAYOUTS`, labelled by their names without the
            ending; or a network's ``model.safetensors`` (`lib.models.exported`), labelled by its
            folder, or by the method whose recipe that names.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: two files of one name, or a text in place of a list of texts.
    """
    if isinstance(checkpoints, str | Path):
        raise ValueError(f"checkpoints is a list of files: give [{str(checkpoints)!r}]")
    jobs = {}
    for path in (Path(path).expanduser().resolve() for path in checkpoints):
        model, name, method, train_sets = "published", path.stem, path.stem, ()
        if path.suffix == ".safetensors":
            model, name = "exported", path.parent.name
            method = RECIPES[name].label if name in RECIPES else name
            with safe_open(path, "np") as file:
                train_sets = file.metadata().get("train_set", "").split("+")
        if name in jobs:
            raise ValueError(f"two checkpoints are called {name}: rename one, since rows are")
        content = sha256(path)
        jobs[name] = replace(
            handcrafted_job(study, "sift", train_sets),
            name=f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}-{content[:8]}",
            label=f"{method} ({model})",
            descriptor=part(model, sha256=content),
            paths={"weights": str(path)},
        )
    return list(jobs.values())


def probed(job: Job, probe: str, sets: Iterable[str]) -> Job:
    """The job with a probe on sets."""
    return replace(job, probes=(*job.probes, *product((probe,), sets)))


def measured(job: Job, measure: str, sets: Iterable[str]) -> Job:
    """The job with a measure on sets."""
    return replace(job, measures=(*job.measures, *product((measure,), sets)))


def by_sign(job: Job, measure: str) -> Job:
    """The job, with what it measures measured by the signs of its descriptors too."""
    return measured(job, measure + SIGNS, job.sets_of(measure))
