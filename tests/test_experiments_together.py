"""Equal footing: what all its methods share, and which optimiser suits each better."""

from __future__ import annotations

from dataclasses import replace

import pytest
from paper_records import changed
from small_study import training_job

from lib.recipes import DSM, HYNET, RECIPES, TCDESC_BUDGET, TCDESC_DSM, part, values
from lib.study.artefacts import together
from lib.study.jobs import record_path
from lib.study.open import Study, open_study

SHARED = {"model", "points", "augment", "schedule", "budget"}


def test_methods_on_equal_footing_share_what_no_paper_proposes():
    for key, name in together.METHODS.items():
        recipe, original = together.EQUAL[key], RECIPES[name]
        assert changed(recipe, original) <= SHARED, "what the paper proposes stays"
        assert recipe.model.name == original.model.name
        options = recipe.model.options.keys() - {"dropout"}
        assert {n: recipe.model.options[n] for n in options} == {
            n: original.model.options[n] for n in options
        }
        setting = (recipe.points, recipe.augment, recipe.schedule, recipe.budget)
        assert setting == (DSM.points, DSM.augment, DSM.schedule, TCDESC_BUDGET)
        assert recipe.model.options["dropout"] == DSM.model.options["dropout"]


def test_dsm_and_tcdesc_on_equal_footing_share_runs_with_tcdesc_s_tables(study: Study):
    assert together.EQUAL["tcdesc_dsm_aug"] == TCDESC_DSM
    without = replace(TCDESC_DSM, positive=part("pair"))
    assert values(together.EQUAL["dsm_long"]) == values(without), "the topology alone differs"
    [job] = [
        candidate
        for candidate in together.equal_footing(study)
        if (candidate.name, candidate.seed) == ("tcdesc_dsm_aug", 0)
    ]
    table_job = training_job(study, "tcdesc_dsm_aug", job.train_set, 0)
    assert record_path(job, study) == record_path(table_job, study)


def test_the_optimiser_that_suits_a_method_is_the_one_whose_search_went_lower(
    monkeypatch: pytest.MonkeyPatch, study: Study
):
    fpr95 = {"dsm_long": 9.0, "equal_dsm_aug_adam": 9.5, "equal_hynet_aug": 7.0}

    def search(_: Study, name: str) -> dict:
        return {"0.1": fpr95.get(name, 8.0), "0.2": 9.9}

    monkeypatch.setattr(together, "searched_fpr95", search)
    keys = together.suited_keys(study)
    assert keys["dsm_long"] == "dsm_long"
    assert keys["equal_hynet_aug"] == "equal_hynet_aug"
    assert list(keys) == list(together.EQUAL)


def test_each_method_is_trained_on_the_second_real_place_with_the_optimiser_that_suits_it():
    on_places = open_study("evening", "scenes")
    first, second, *_ = on_places.source.sets
    jobs = together.orders(on_places)
    chosen = together.suited_keys(on_places).values()
    assert {job.name for job in jobs if job.train_set == second} == set(chosen)
    recipes = {job.name: job.recipe for job in jobs if job.train_set == first}
    for job in jobs:
        if job.train_set == second:
            assert job.recipe == recipes[job.name], "at the same learning rate"
            assert first in job.sets_of("fpr95")
            assert second not in job.sets_of("fpr95")


def test_every_method_whose_sgd_is_dampened_has_a_twin_with_that_of_dsm():
    twins = {key: together.UNDAMPED[undamped] for undamped, key in together.UNDAMPED_KEYS.items()}
    for key, recipe in together.EQUAL.items():
        twin = twins.get(key, recipe)
        assert changed(twin, recipe) <= {"optimizer"}
        assert twin.optimizer in (DSM.optimizer, HYNET.optimizer)
