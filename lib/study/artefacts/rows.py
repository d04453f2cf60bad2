"""The runs that artefacts need, as rows of data: methods, seeds, train sets and measures. A study turns
a row into jobs: recipes to train, handcrafted descriptors and computations."""

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

# In px of a 64 px patch, whose width is 14 standard deviations of its keypoint's Gaussian.
KEYPOINT_SMOOTHING = 4.6
# Handcrafted descriptors by name: (label, part).
DESCRIPTORS = {
    "sift": ("SIFT", part("sift", root=False)),
    "rootsift": ("RootSIFT", part("sift", root=True)),
    "sift_smooth": ("SIFT, smoothed", part("sift", root=False, smoothing=KEYPOINT_SMOOTHING)),
    "rootsift_smooth": ("RootSIFT, smoothed", part("sift", root=True, smoothing=KEYPOINT_SMOOTHING)),
    "orb": ("ORB", part("orb")),
}
HANDCRAFTED = ("sift", "rootsift")
# The split on which the papers train their HPatches models. All models are tested on its other part.
HPATCHES_SPLIT = "a"
# The search that gives a recipe its rate, or several that share a rate; None keeps the recipe's own.
Searched = str | tuple[str, ...] | None
Row = Callable[..., list[Job]]
# New values by axis of a recipe; a dict changes options of the axis's current part.
Changes = Mapping[str, object]
# The axes that each choice changes, by recipe and choice. The unchanged recipe is added as "default".
Options = Mapping[str, Mapping[str, Changes]]
OPTION_SEEDS = 3


@dataclass(frozen=True)
class Runs:
    """The runs of methods that an artefact needs, each at its own learning rate.

    Attributes:
        methods: names of recipes in `lib.recipes.RECIPES` or in `recipes`.
        seeds: the study's seeds for a "table", a "grid" or a "test"; or the seeds themselves.
        most: takes only so many of these seeds, from the first; None takes all.
        sets: trains on the "first" set of patches, on the first `Profile.grid_sets` ones ("grid") or on
            "all"; or names of sets.
        handcrafted: names in `DESCRIPTORS`. They come before the methods; checkpoints come in between.
        computations: modules of `lib.theory` with their labels; they come first.
        hpatches: the split of HPatches on which all methods are also tested; "" is none.
        by_sign: names of methods that are also measured by the signs of their descriptors: on HPatches
            with `hpatches`, else on the sets of FPR95.
        measures: further modules of `lib.benchmarks`, measured on each set of FPR95.
        probes: modules of `lib.probes`, run on the run's own train set.
        recipes: recipes by name, looked up before `lib.recipes.RECIPES`.
        searched: by name, the search that gives a recipe its rate, where that is not its own.
        changes: axes changed once a recipe has its rate and the profile's schedule.
        overrides: new values for fields of `Profile` in these runs.
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
        """Return the row's jobs in a study: methods in their order, train sets and seeds ascending.

        Args:
            study: supplies the data and the profile.
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
    """Return one row with the jobs of several rows, one after the other."""
    return lambda study, **options: [job for row in rows for job in row(study, **options)]


def option_runs(options: Options) -> Row:
    """Return a row with the runs of every option of every recipe, each recipe unchanged first, on the
    first train set. An option trains at the rate that was found for the unchanged recipe."""
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
    """Group the runs of `option_runs`, given in its order, by the recipe's label and by option, with
    "default" first."""
    left, seeds = iter(runs), len(study.test_seeds[:OPTION_SEEDS])
    return {
        find(name).label: {option: list(islice(left, seeds)) for option in ("default", *choices)}
        for name, choices in options.items()
    }


def changed(recipe: Recipe, label: str, changes: Changes) -> Recipe:
    """Return a recipe with a few axes changed and another label."""
    axes = {
        axis: replace_options(getattr(recipe, axis), **choice) if isinstance(choice, dict) else choice
        for axis, choice in changes.items()
    }
    return replace(recipe, label=label, **axes)


def variants(recipe: Recipe, changes: Mapping[str, tuple[str, Changes]]) -> dict[str, Recipe]:
    """Return variants of a recipe by name, each with a few axes changed.

    Args:
        recipe: the one to change.
        changes: by name, the text that follows the recipe's label, and the axes changed.
    """
    return {
        name: changed(recipe, f"{recipe.label}: {shown}", axes)
        for name, (shown, axes) in changes.items()
    }


def at_profile(study: Study, recipe: Recipe, searched: Searched) -> Recipe:
    """Return a recipe as the study's profile trains it: at a learning rate found on the reserve, with
    the schedule that all recipes of the profile share. Under `paper` it stays as its authors state it.

    Raises:
        NoSearch: a search is not on record.
    """
    profile = study.profile
    if searched is None or profile.search is None:
        return recipe
    names = (searched,) if isinstance(searched, str) else searched
    return at_rate(recipe, searched_rate(study, *names), profile.schedule)


def handcrafted_job(study: Study, name: str, train_sets: Sequence[str] = ()) -> Job:
    """Return the job of one of `DESCRIPTORS`, evaluated as `evaluated_on` says."""
    label, descriptor = DESCRIPTORS[name]
    evaluated = evaluated_on(study, train_sets, ("fpr95", "set_statistics"))
    return Job(name, label, descriptor=descriptor, **evaluated)


def evaluated_on(
    study: Study, train_sets: Sequence[str], measures: Sequence[str] = ("fpr95",)
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the measures and probes of a job. It is tested on all of the source's test sets but those
    it was trained on. On real places, FPR95 of the widest pairs and matching between photographs are
    measured too. Resamples are for verdicts, so quick runs have none."""
    sets = [name for name in study.source.tested if name not in train_sets]
    pairs = list(product(measures, sets))
    if study.source.scenes is not None:
        pairs += [("fpr95", f"{name}{WIDE}") for name in sets]
        pairs += [("image_pairs", f"{name}{IMAGES_OF}") for name in sets]
    resampled = () if study.profile.name == "quick" else ("resampled_fpr95",)
    probes = product(("distance_histogram", *resampled), sets)
    return {"measures": tuple(pairs), "probes": tuple(probes)}


def published_jobs(study: Study, checkpoints: Sequence[str | Path]) -> list[Job]:
    """Return the jobs of checkpoints that others trained or that were exported here, measured as
    handcrafted descriptors are.

    A checkpoint is identified by its content: the same file elsewhere, also on another machine, is the
    same row. An exported network is not measured on the sets that its file says it was trained on.

    Args:
        study: supplies the data.
        checkpoints: files in one of `lib.models.published.LAYOUTS`, labelled by their names without the
            extension; or a network's ``model.safetensors`` (`lib.models.exported`), labelled by its
            folder or, if the folder has the name of a recipe, by that method.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: two files have one name, or a text is given in place of a list of texts.
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
    """Return the job with a further probe on sets."""
    return replace(job, probes=(*job.probes, *product((probe,), sets)))


def measured(job: Job, measure: str, sets: Iterable[str]) -> Job:
    """Return the job with a further measure on sets."""
    return replace(job, measures=(*job.measures, *product((measure,), sets)))


def by_sign(job: Job, measure: str) -> Job:
    """Return the job with a measure also taken by the signs of its descriptors."""
    return measured(job, measure + SIGNS, job.sets_of(measure))
