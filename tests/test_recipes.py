"""The table of methods: what each row holds, that its parts exist, and how it is written down."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from lib import augmentation, parts, recipes
from lib.descriptions import descriptions
from lib.objective import build as build_objective
from lib.recipes import (
    ADASAMPLE_TC,
    HYNET_TC,
    RECIPES,
    adasample,
    part,
    values,
)
from lib.samplers import candidates
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
# More than the neighbours that SOSR and TCDesc look at.
PAIRS = 18


@EVERY
def test_every_part_of_every_recipe_resolves_and_builds(name):
    recipe = VARIANTS[name]
    model = parts.build("model", recipe.model, width=1 / 32)
    sampler = parts.build("sampler", recipe.sampler)
    objective = build_objective(recipe)
    schedule = parts.build("schedule", recipe.schedule)
    # More classes than SOSR looks at as neighbours of one.
    pool = candidates.Pool(
        torch.arange(3 * PAIRS).view(PAIRS, 3),
        torch.zeros(PAIRS, 3),
        torch.ones(PAIRS, 3, dtype=torch.bool),
        torch.full((PAIRS,), 3),
    )
    with torch.no_grad():
        output = model.eval().raw(torch.rand(3 * PAIRS, 1, model.input_size, model.input_size))
    handed = [
        each.unflatten(0, (PAIRS, 3)) for each in (output if isinstance(output, tuple) else (output,))
    ]
    choice = sampler.choose(pool, lambda: model.normalise(handed[0]), torch.Generator().manual_seed(0))
    of = descriptions(model, tuple(each[choice.places] for each in handed))
    losses = objective.loss(objective.triplets(of))
    assert losses.shape == (PAIRS,)
    weights = None
    if recipe.pair_weight is not None:
        weights = parts.build("pair_weight", recipe.pair_weight)(choice)
        assert weights.shape == (PAIRS,)
    assert torch.isfinite(objective.total(losses, of, weights))
    assert schedule(0.0) == 1.0
    if recipe.generate is not None:
        candidates.Generation(**recipe.generate.options)
    if recipe.augment is not None:
        augmentation.Turns(**recipe.augment.options)
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[recipe.optimizer.name]
    optimizer(model.parameters(), **recipe.optimizer.options)


@EVERY
def test_values_survive_json_and_leave_out_label_and_empty_axes(name):
    recipe = VARIANTS[name]
    found = values(recipe)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert "label" not in found
    assert None not in found.values()
    assert ("regularizers" in found) == bool(recipe.regularizers), "axes left empty are left out"
    assert found["loss"]["name"] == recipe.loss.name
    assert found["loss"].get("options", {}) == values(recipe.loss.options)
    assert found["budget"]["batch_pairs"] == recipe.budget.batch_pairs


def test_the_label_alone_changes_no_values_and_every_choice_does():
    recipe = RECIPES["hardnet"]
    assert values(replace(recipe, label="another")) == values(recipe)
    seen = {json.dumps(values(r), sort_keys=True) for r in VARIANTS.values()}
    assert len(seen) == len(VARIANTS)
    assert len({r.label for r in VARIANTS.values()}) == len(VARIANTS)


def test_hardnet_is_as_its_authors_train_it():
    recipe = RECIPES["hardnet"]
    assert recipe.distance == part("euclidean", power=1)
    assert recipe.negatives == part("hardest", scope="across", floor=0.008)
    assert recipe.loss == part("hinge", margin=1.0)
    assert recipe.pair_weight is None
    assert recipe.generate is None
    assert recipe.schedule.name == "linear"
    assert recipe.optimizer.options == {
        "lr": 10.0,
        "momentum": 0.9,
        "dampening": 0.9,
        "weight_decay": 1e-4,
    }


def test_adasample_is_as_its_section_5_1_states():
    recipe = RECIPES["adasample_aug_gen"]
    assert recipe.label == "AdaSample+*"
    assert recipe.sampler == part("adasample", lam=10.0, distance=part("angular", power=1))
    assert recipe.distance == part("angular", power=2)
    assert recipe.negatives == part("hardest", scope="within", floor=0.008)
    assert recipe.loss == part("hinge", margin=1.0)
    assert recipe.pair_weight == part("inverse_distance", scale="batch_mean")
    assert recipe.generate == part("rotation", patches_per_class=15, max_degrees=20.0, renew=True)
    assert recipe.augment == part("turns", shared=True)
    assert recipe.optimizer.options == {
        "lr": 10.0,
        "momentum": 0.5,
        "dampening": 0.5,
        "weight_decay": 1e-4,
    }
    assert recipe.budget == recipes.Budget(batch_pairs=1024, epoch_pairs=1_000_000, epochs=90)


def test_dsm_is_as_its_section_5_1_states():
    recipe = RECIPES["dsm_aug"]
    assert recipe.model == part("l2net", dropout=0.1)
    assert recipe.sampler == part("random_pair")
    assert recipe.distance == part("euclidean", power=1, epsilon=2e-6)
    assert recipe.negatives == part("hardest", scope="across", floor=0.008)
    assert recipe.augment == part("turns", shared=True, among="turn_then_flip")
    assert recipe.points == part("shuffled")
    assert recipe.optimizer == part("sgd", lr=0.1, momentum=0.9, dampening=0.0, weight_decay=1e-4)
    assert recipe.schedule.name == "linear"
    budget = recipe.budget
    assert budget.batch_pairs == 1024
    assert budget.epochs * (budget.epoch_pairs // budget.batch_pairs) == 50_000


def test_sosnet_is_hardnet_with_its_own_loss_negatives_of_all_blocks_and_sosr():
    ours, theirs = values(RECIPES["sosnet_aug"]), values(RECIPES["hardnet_aug"])
    differing = {axis for axis in ours if ours[axis] != theirs.get(axis)}
    assert differing == {"augment", "negatives", "loss", "regularizers"}
    recipe = RECIPES["sosnet_aug"]
    assert recipe.negatives == part("hardest", scope="all", floor=0.008)
    assert recipe.loss == part("squared_hinge", margin=1.0)
    assert recipe.regularizers == (part("sosr", weight=1.0, neighbours=8),)


def test_hynet_is_as_its_section_4_and_its_code_state():
    recipe = RECIPES["hynet_aug"]
    assert recipe.model == part("hynet", norm="frn", dropout=0.3)
    assert recipe.distance.name == "hybrid"
    assert recipe.distance.options == {"alpha": 2.0, "z": pytest.approx(2.736, abs=1e-3)}
    assert recipe.negatives.options["scope"] == "all"
    assert recipe.loss == part("hinge", margin=1.2)
    assert recipe.regularizers == (part("norm", weight=0.1),)
    assert recipe.optimizer == part("adam", lr=0.01)
    assert recipe.schedule == part("constant")
    assert recipe.augment == part("turns", shared=True, among="half_turned")
    # 1,024 patches a batch, 439 batches of Liberty an epoch.
    assert recipe.budget == recipes.Budget(batch_pairs=512, epoch_pairs=512 * 439, epochs=200)


def test_infinity_in_a_recipe_is_a_word_since_records_are_json():
    recipe = recipes.hybrid(RECIPES["hynet_aug"], alpha=math.inf)
    json.dumps(values(recipe), allow_nan=False)
    assert parts.build("distance", recipe.distance).of_similarity(torch.tensor(0.25)).item() == 0.75


def test_tcdesc_is_as_its_section_4_states():
    """n = 1024, 150,000 iterations, SGD with momentum 0.9 and weight decay 1e-4, 0.1 falling to 0."""
    for name in ("tcdesc_hn_aug", "tcdesc_dsm_aug"):
        recipe = RECIPES[name]
        assert recipe.positive == part("topology", neighbours=16, gamma=1.0)
        assert recipe.distance.name == "euclidean"
        assert recipe.distance.options["power"] == 1
        assert recipe.augment == part("turns", shared=True, among="turn_then_flip")
        assert recipe.optimizer == part("sgd", lr=0.1, momentum=0.9, dampening=0.0, weight_decay=1e-4)
        assert recipe.schedule.name == "linear"
        budget = recipe.budget
        assert budget.batch_pairs == 1024
        assert budget.epochs * (budget.epoch_pairs // budget.batch_pairs) == 150_000


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
    assert [constant.build()(p) for p in (0, 0.5, 1)] == [1, 1, 1]
    assert [linear.build()(p) for p in (0, 0.25, 1)] == [1, 0.75, 0]
    steps = parts.build("schedule", RECIPES["adasample_gen"].schedule)
    # Epoch e of 90, from 0, at the first step of each: divided by 10 at the end of 30, 60, 80.
    per_epoch = 976
    for epoch in range(90):
        factor = steps(epoch * per_epoch / (90 * per_epoch))
        assert factor == pytest.approx(0.1 ** ((epoch >= 30) + (epoch >= 60) + (epoch >= 80)))
    assert steps((30 * per_epoch - 1) / (90 * per_epoch)) == 1
