"""The table of methods: the settings of each row, that its parts exist, and how it is serialised."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from itertools import combinations

import pytest
import torch

from lib import parts, recipes
from lib.recipes import (
    ADASAMPLE_TC,
    HYNET_TC,
    RECIPES,
    adasample,
    changed,
    difference,
    part,
    replace_options,
    values,
    variants,
)
from lib.samplers.hardpos import Hardpos
from lib.schedules import constant, linear

VARIANTS = {
    **RECIPES,
    "topology on AdaSample": ADASAMPLE_TC,
    "topology on HyNet": HYNET_TC,
    "hardpos": adasample(math.inf, "HT"),
    "lambda 0": adasample(0.0),
}
EVERY = pytest.mark.parametrize("name", sorted(VARIANTS))


@EVERY
def test_values_survive_json_and_leave_out_label_and_empty_axes(name):
    recipe = VARIANTS[name]
    written = values(recipe)
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert "label" not in written
    assert None not in written.values()
    assert ("regularizers" in written) == bool(recipe.regularizers), "axes left empty are left out"
    assert written["loss"]["name"] == recipe.loss.name
    assert written["loss"].get("options", {}) == values(recipe.loss.options)
    assert written["budget"]["batch_pairs"] == recipe.budget.batch_pairs


def test_a_label_changes_no_values_and_every_choice_does():
    recipe = RECIPES["hardnet"]
    assert values(replace(recipe, label="another")) == values(recipe)
    assert values(replace(recipe, rate_of="dsm_aug")) == values(recipe)
    distinct = {json.dumps(values(r), sort_keys=True) for r in VARIANTS.values()}
    assert len(distinct) == len(VARIANTS)
    assert len({r.label for r in VARIANTS.values()}) == len(VARIANTS)


SGD = {"momentum": 0.9, "weight_decay": 1e-4}
ACROSS = part("hardest", scope="across", floor=0.008)
LINEAR = part("linear")
# From sections 5.1, 5.1 and 4 of AdaSample, DSM and TCDesc; of HardNet and HyNet, also from their code.
STATED = {
    "hardnet": {
        "distance": part("euclidean", power=1),
        "negatives": ACROSS,
        "loss": part("hinge", margin=1.0),
        "optimizer": part("sgd", lr=10.0, dampening=0.9, **SGD),
        "schedule": LINEAR,
    },
    "adasample_aug_gen": {
        "sampler": part("adasample", lam=10.0, distance=part("angular", power=1)),
        "distance": part("angular", power=2),
        "negatives": part("hardest", scope="within", floor=0.008),
        "loss": part("hinge", margin=1.0),
        "pair_weight": part("inverse_distance", scale="batch_mean"),
        "generate": part("rotation", patches_per_class=15, max_degrees=20.0, renew=True),
        "augment": part("turns", shared=True),
        "optimizer": part("sgd", lr=10.0, momentum=0.5, dampening=0.5, weight_decay=1e-4),
        "budget": recipes.Budget(batch_pairs=1024, epoch_pairs=1_000_000, epochs=90),
    },
    "dsm_aug": {
        "model": part("l2net", dropout=0.1),
        "sampler": part("random_pair"),
        "distance": part("euclidean", power=1, epsilon=2e-6),
        "negatives": ACROSS,
        "augment": part("turns", shared=True, among="turn_then_flip"),
        "points": part("shuffled"),
        "optimizer": part("sgd", lr=0.1, dampening=0.0, **SGD),
        "schedule": LINEAR,
    },
    "tcdesc_dsm_aug": {
        "positive": part("topology", neighbours=16, gamma=1.0),
        "augment": part("turns", shared=True, among="turn_then_flip"),
        "optimizer": part("sgd", lr=0.1, dampening=0.0, **SGD),
        "schedule": LINEAR,
    },
    "hynet_aug": {
        "model": part("hynet", norm="frn", dropout=0.3),
        "loss": part("hinge", margin=1.2),
        "regularizers": (part("norm", weight=0.1),),
        "optimizer": part("adam", lr=0.01),
        "schedule": part("constant"),
        "augment": part("turns", shared=True, among="half_turned"),
        # 1,024 patches a batch, 439 batches of Liberty an epoch.
        "budget": recipes.Budget(batch_pairs=512, epoch_pairs=512 * 439, epochs=200),
    },
}
STATED["tcdesc_hn_aug"] = STATED["tcdesc_dsm_aug"]


@pytest.mark.parametrize("name", STATED)
def test_a_method_is_as_its_paper_states(name):
    recipe = RECIPES[name]
    assert {axis: getattr(recipe, axis) for axis in STATED[name]} == STATED[name]


@pytest.mark.parametrize(("name", "steps"), [("dsm_aug", 50_000), ("tcdesc_hn_aug", 150_000)])
def test_dsm_and_tcdesc_train_for_the_stated_steps_of_1024_pairs(name, steps):
    budget = RECIPES[name].budget
    assert budget.batch_pairs == 1024
    assert budget.epochs * (budget.epoch_pairs // budget.batch_pairs) == steps


def test_sosnet_is_hardnet_with_its_own_loss_negatives_of_all_blocks_and_sosr():
    sosnet, hardnet = values(RECIPES["sosnet_aug"]), values(RECIPES["hardnet_aug"])
    differing = {axis for axis in sosnet if sosnet[axis] != hardnet.get(axis)}
    assert differing == {"augment", "negatives", "loss", "regularizers"}
    recipe = RECIPES["sosnet_aug"]
    assert recipe.negatives == part("hardest", scope="all", floor=0.008)
    assert recipe.loss == part("squared_hinge", margin=1.0)
    assert recipe.regularizers == (part("sosr", weight=1.0, neighbours=8),)


def test_hynets_distance_is_divided_by_its_largest_slope():
    recipe = RECIPES["hynet_aug"]
    assert recipe.distance.name == "hybrid"
    assert recipe.distance.options == {"alpha": 2.0, "z": pytest.approx(2.736, abs=1e-3)}
    assert recipe.negatives.options["scope"] == "all"


def test_infinity_in_a_recipe_is_written_as_a_word_for_json():
    recipe = recipes.hybrid(RECIPES["hynet_aug"], alpha=math.inf)
    json.dumps(values(recipe), allow_nan=False)
    assert parts.build("distance", recipe.distance).of_similarity(torch.tensor(0.25)).item() == 0.75


def test_an_infinite_lambda_is_hardpos_of_the_anchor():
    recipe = adasample(math.inf)
    sampler = parts.build("sampler", recipe.sampler)
    assert isinstance(sampler, Hardpos)
    assert sampler.of == "anchor"
    differing = {
        axis for axis, value in values(recipe).items() if value != values(adasample(10.0))[axis]
    }
    assert differing == {"sampler"}


def test_schedules_begin_at_one_and_fall_as_stated():
    assert [constant()(p) for p in (0, 0.5, 1)] == [1, 1, 1]
    assert [linear()(p) for p in (0, 0.25, 1)] == [1, 0.75, 0]
    steps = parts.build("schedule", RECIPES["adasample_gen"].schedule)
    # At the first step of each of 90 epochs: divided by 10 after 30, 60 and 80 epochs.
    per_epoch = 976
    for epoch in range(90):
        factor = steps(epoch * per_epoch / (90 * per_epoch))
        assert factor == pytest.approx(0.1 ** ((epoch >= 30) + (epoch >= 60) + (epoch >= 80)))
    assert steps((30 * per_epoch - 1) / (90 * per_epoch)) == 1


# Variants of a recipe, and what distinguishes two recipes


def test_a_mapping_changes_options_and_anything_else_replaces_the_axis():
    hinge = part("hinge", margin=2.0)
    recipe = changed(
        RECIPES["dsm_aug"], "new", {"loss": hinge, "model": {"dropout": 0.3}, "augment": None}
    )
    assert recipe.label == "new"
    assert recipe.loss == hinge
    assert recipe.model == part("l2net", dropout=0.3)
    assert recipe.augment is None
    named = {axis.name for axis in fields(recipe)} - {"label", "loss", "model", "augment"}
    assert all(getattr(recipe, axis) == getattr(RECIPES["dsm_aug"], axis) for axis in named)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"los": {"margin": 1.0}}, "a recipe has no axis 'los'; there are: model, sampler, distance, "),
        ({"augment": {"among": "square"}}, "HardNet has no single part as its augment"),
        ({"regularizers": {"weight": 1.0}}, "HardNet has no single part as its regularizers"),
    ],
)
def test_a_change_that_fits_no_axis_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        changed(RECIPES["hardnet"], "new", changes)


def test_variants_have_the_name_and_label_of_their_base_and_their_own_rate():
    margins = {f"margin {margin:g}": {"loss": part("hinge", margin=margin)} for margin in (0.5, 2.0)}
    made = variants("dsm_aug", margins)
    assert list(made) == ["dsm_aug, margin 0.5", "dsm_aug, margin 2"]
    first = made["dsm_aug, margin 0.5"]
    assert (first.label, first.rate_of) == ("DSM+, margin 0.5", None)
    assert first == replace(RECIPES["dsm_aug"], label=first.label, loss=part("hinge", margin=0.5))
    with pytest.raises(ValueError, match="unknown recipe 'dsm'"):
        variants("dsm", margins)


def test_variants_of_variants_and_the_method_whose_rate_they_take():
    base = ("mine", replace(RECIPES["hardnet"], label="Mine", rate_of="hardnet"))
    axes = {"loss": {"margin": 2.0}}
    changes = {"a": axes, "b": {**axes, "rate_of": "mine, a"}}
    made = variants(base, changes, rate_of="hardnet_gen")
    assert {name: recipe.rate_of for name, recipe in made.items()} == {
        "mine, a": "hardnet_gen",
        "mine, b": "mine, a",
    }
    assert variants(base, changes)["mine, a"].rate_of is None, "its base's rate is not its own"
    further = variants(("mine, a", made["mine, a"]), {"c": {}})
    assert further["mine, a, c"].label == "Mine, a, c"


STEPS = part("steps", at=(0.5, 0.75), factor=0.1)
SOSR, GOR = part("sosr", weight=1.0), part("gor", weight=1.0)
# What is changed in HardNet, and how it is said.
SAID = [
    ({}, "nothing"),
    ({"label": "another", "rate_of": "dsm_aug"}, "nothing"),
    ({"loss": part("hinge", margin=0.5)}, "loss: hinge (margin 1 -> 0.5)"),
    ({"loss": part("hinge", margin=1.0, of="x")}, "loss: hinge (of default -> x)"),
    ({"model": part("l2net")}, "model: l2net (dropout 0.3 -> default)"),
    ({"loss": part("l2net")}, "loss: hinge (margin 1) -> l2net"),
    ({"schedule": STEPS}, "schedule: linear -> steps (at 0.5 and 0.75, factor 0.1)"),
    (
        {"negatives": part("random", swap=True)},
        "negatives: hardest (scope across, floor 0.008) -> random (swap yes)",
    ),
    ({"augment": recipes.TURNED}, "augment: none -> turns (shared yes)"),
    ({"budget": recipes.Budget(512, 5_000_000, 10)}, "budget: batch_pairs 1024 -> 512"),
    ({"regularizers": (SOSR,)}, "regularizers: none -> sosr (weight 1)"),
    ({"regularizers": (SOSR, GOR)}, "regularizers: none -> sosr (weight 1) and gor (weight 1)"),
    ({"reduction": "sum"}, "reduction: mean -> sum"),
]


@pytest.mark.parametrize(("axes", "said"), SAID)
def test_a_difference_is_said_in_words(axes, said):
    assert difference(recipes.HARDNET, replace(recipes.HARDNET, **axes)) == said


def test_differences_of_parts_within_parts_and_of_several_axes():
    plain, sampled = RECIPES["hardnet_aug_gen"], RECIPES["adasample_aug_gen"]
    assert difference(plain, sampled) == (
        "sampler: random_pair -> adasample (lam 10, distance angular (power 1)); "
        "distance: euclidean (power 1) -> angular (power 2); "
        "negatives: hardest (scope across -> within); "
        "pair_weight: none -> inverse_distance (scale batch_mean)"
    )
    assert difference(sampled, RECIPES["adasample_aug_gen_ht"]) == (
        "sampler: adasample (distance angular (power 1) -> euclidean (power 1, epsilon 0)); "
        "distance: angular (power 2) -> euclidean (power 2)"
    )
    weaker = (replace_options(SOSR, weight=0.5),)
    both = (replace(plain, regularizers=regularizers) for regularizers in ((SOSR,), weaker))
    assert difference(*both) == "regularizers: sosr (weight 1 -> 0.5)"


def test_two_recipes_of_different_values_never_differ_in_nothing():
    for one, other in combinations(VARIANTS.values(), 2):
        assert difference(one, other) != "nothing"


# The names of parts


def parts_of(recipe):
    """Every (axis, part) of a recipe, parts among the options included."""
    for axis in fields(recipe):
        chosen = getattr(recipe, axis.name)
        for each in chosen if isinstance(chosen, tuple) else (chosen,):
            if isinstance(each, recipes.Part) and axis.name != "optimizer":
                yield axis.name, each
                yield from ((k, v) for k, v in each.options.items() if isinstance(v, recipes.Part))


@EVERY
def test_every_part_of_a_recipe_is_known_by_its_name(name):
    for axis, chosen in parts_of(VARIANTS[name]):
        assert callable(parts.find(axis, chosen.name))


def test_an_unknown_part_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"schedule: no part 'cosine'; there are: constant, linear, steps$"
    ):
        parts.build("schedule", part("cosine"))


def test_a_methods_name_without_the_shared_setting_keeps_what_follows_it() -> None:
    assert recipes.without_setting("hynet_aug, shared, SGD") == "hynet_aug"
    assert recipes.without_setting("hardnet_aug, shared, damped SGD by sign") == "hardnet_aug by sign"
    assert recipes.without_setting("dsm_aug, margin 1") == "dsm_aug, margin 1"
