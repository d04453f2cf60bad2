"""The baselines' rows: their settings, their training, and resuming a run that was cut off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from resumed_training import resumed

from lib import parts, profiles, recipes
from lib.data.patchset import PatchSet
from lib.recipes import Budget, part, values
from lib.study.printed import printed
from lib.training import train

TINY = replace(
    profiles.find("quick"),
    width=1 / 16,
    budget=Budget(batch_pairs=8, epoch_pairs=40, epochs=1),
    stages=(0.0, 1.0),
)
NAMES = ("tfeat_m_aug", "l2net", "l2net_aug", "cs_l2net", "cs_l2net_aug", "doap_aug")


@pytest.mark.parametrize("name", NAMES)
def test_a_few_steps_are_finite_and_move_every_weight(name: str, small_set: PatchSet) -> None:
    trained = train(recipes.find(name), replace(TINY, precision="bfloat16"), small_set, 0)
    assert np.isfinite([trained.curve[quantity] for quantity in ("loss", "d_pos", "d_neg")]).all()
    for key, value in trained.stages["1.0"].items():
        assert torch.isfinite(value).all(), key
        if key.endswith("weight"):
            assert not torch.equal(value, trained.stages["0.0"][key]), key


# Baselines with extra state: torch's generator draws TFeat's negatives, and towers hold mean images.
@pytest.mark.parametrize("name", ["tfeat_m_aug", "cs_l2net_aug"])
def test_a_killed_run_resumes_to_the_same_bits(name: str, small_set: PatchSet, tmp_path: Path) -> None:
    arguments = (recipes.find(name), TINY, small_set, 0)
    continued, uninterrupted = resumed(4, *arguments, checkpoint=tmp_path / "run.pt"), train(*arguments)
    assert continued.curve == uninterrupted.curve
    for key, value in uninterrupted.stages["1.0"].items():
        assert torch.equal(continued.stages["1.0"][key], value), key


def test_a_run_stores_the_mean_images_and_the_three_loss_terms(small_set: PatchSet) -> None:
    trained = train(recipes.find("cs_l2net"), TINY, small_set, 0)
    assert {"e1", "e2", "e3"} <= trained.curve.keys()
    terms = np.sum([trained.curve[name] for name in ("e1", "e2", "e3")], axis=0)
    np.testing.assert_allclose(terms, trained.curve["loss"], rtol=1e-4)
    last = trained.stages["1.0"]
    for tower in ("surround", "centre"):
        assert int(last[f"model/{tower}.batches"]) == 5
        assert 0 < last[f"model/{tower}.mean_image"].mean() < 255
        assert not trained.stages["0.0"][f"model/{tower}.mean_image"].any()


def test_every_computed_row_of_adasamples_table_has_the_printed_key_and_label() -> None:
    table = printed("adasample", "table1").drop_duplicates("key").set_index("key")["label"]
    assert set(NAMES) <= set(table.index)
    assert {name: recipes.find(name).label for name in NAMES} == {name: table[name] for name in NAMES}
    missing = set(table.index) - recipes.RECIPES.keys() - {"sift", "rootsift"}
    assert missing == {"deepdesc", "geodesc", "matchnet"}


def test_tfeat_trains_as_in_its_authors_notebook() -> None:
    recipe = recipes.find("tfeat_m_aug")
    assert recipe.negatives == part("random", swap=True)
    assert recipe.loss == part("hinge", margin=2.0)
    assert recipe.distance.options["unit"] is False
    assert recipe.optimizer == part("sgd", lr=0.1, weight_decay=1e-4)
    assert recipe.budget == Budget(batch_pairs=300, epoch_pairs=1_000_000, epochs=300)
    schedule = parts.build("schedule", recipe.schedule)
    for epoch in range(300):
        # The first and the last step of each epoch.
        for step in (0, 3332):
            factor = schedule((3333 * epoch + step) / (3333 * 300))
            assert factor == pytest.approx(0.8 ** (epoch // 10)), epoch


def test_plus_adds_augmentation_alone() -> None:
    for name in ("l2net", "cs_l2net"):
        plain, plus = values(recipes.find(name)), values(recipes.find(f"{name}_aug"))
        assert plus.pop("augment") == {"name": "turns", "options": {"shared": True}}
        assert plain == plus


def test_the_two_towers_differ_from_l2net_in_the_model_alone() -> None:
    plain, towers = values(recipes.find("l2net")), values(recipes.find("cs_l2net"))
    assert {axis for axis in plain if plain[axis] != towers[axis]} == {"model"}
