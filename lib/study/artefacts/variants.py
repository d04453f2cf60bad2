"""Recipes that change a few axes of another; and what the papers leave open, one choice at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from lib.recipes import RECIPES, Recipe, replace_options
from lib.study.open import Record, Study

# By axis what stands there instead; a dict changes options of the part that is there.
Changes = Mapping[str, object]
# By recipe and name of the choice, the axes changed; each recipe stands beside them as its "default".
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


def by_option(
    runs: Sequence[Record], study: Study, options: Options
) -> dict[str, dict[str, list[Record]]]:
    """The runs of `lib.study.artefacts.rows.option_runs`, in their order, by recipe's label and by
    option, "default" first."""
    left, seeds = iter(runs), len(study.test_seeds[:OPTION_SEEDS])
    return {
        RECIPES[name].label: {option: list(islice(left, seeds)) for option in ("default", *choices)}
        for name, choices in options.items()
    }
