"""Methods of other papers in the setting of DSM and TCDesc, where topology stands on their losses."""

from collections.abc import Mapping
from dataclasses import replace

from lib.recipes import DSM, RECIPES, TCDESC_BUDGET, Recipe, replace_options


def on_equal_footing(recipe: Recipe) -> Recipe:
    """A method in DSM's setting, which TCDesc takes over: points used up before they repeat, one rule of
    flips and turns, one dropout, schedule and budget. What its paper proposes stays, a network and
    generated positives too; so do the optimiser, whose rate is searched, and the scope of negatives."""
    return replace(
        recipe,
        model=replace_options(recipe.model, dropout=DSM.model.options["dropout"]),
        points=DSM.points,
        augment=DSM.augment,
        schedule=DSM.schedule,
        budget=TCDESC_BUDGET,
    )


EQUAL: Mapping[str, Recipe] = {
    f"equal_{name}": on_equal_footing(RECIPES[name]) for name in ("adasample_aug_gen", "hynet_aug")
}
# Each has a search of its own; labels tell them from the papers' own settings beside them.
SEARCHED: Mapping[str, Recipe] = {
    key: replace(recipe, label=f"{recipe.label}, equal footing") for key, recipe in EQUAL.items()
}
