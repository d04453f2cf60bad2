"""Recipes that change a few axes of another; and what the papers leave open, one choice at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from lib.recipes import RECIPES, Recipe, replace_options
from lib.study.artefacts.rows import at_profile, jobs_of
from lib.study.jobs import Job
from lib.study.open import Record, Study

# By axis what stands there instead; a dict changes options of the part that is there.
Changes = Mapping[str, object]
# By recipe and name of the choice, the axes changed; each recipe has a "default" that changes none.
Options = Mapping[str, Mapping[str, Changes]]
OPTION_SEEDS = 3


def changed(recipe: Recipe, label: str, changes: Changes) -> Recipe:
    """A recipe with a few axes changed, under another label."""
    axes = {
        axis: replace_options(getattr(recipe, axis), **choice) if isinstance(choice, dict) else choice
        for axis, choice in changes.items()
    }
    return replace(recipe, label=label, **axes)


def variants(recipe: Recipe, changes: Mapping[str, tuple[str, Changes]]) -> dict[str, Recipe]:
    """By name recipes that change a few axes of one; what stands behind its label comes with each."""
    return {
        name: changed(recipe, f"{recipe.label}: {shown}", axes)
        for name, (shown, axes) in changes.items()
    }


def option_jobs(study: Study, options: Options) -> list[Job]:
    """Every option of every recipe at the rate that was found for the recipe as it stands, on the first
    train set."""
    jobs = []
    for name, choices in options.items():
        recipe = at_profile(study, name)
        for changes in choices.values():
            runs = {name: changed(recipe, recipe.label, changes)}
            jobs += jobs_of(study, runs, study.test_seeds[:OPTION_SEEDS])
    return jobs


def by_option(
    runs: Sequence[Record], study: Study, options: Options
) -> dict[str, dict[str, list[Record]]]:
    """The runs of `option_jobs`, in their order, by recipe's label and by option."""
    left, seeds = iter(runs), len(study.test_seeds[:OPTION_SEEDS])
    return {
        RECIPES[name].label: {option: list(islice(left, seeds)) for option in choices}
        for name, choices in options.items()
    }
