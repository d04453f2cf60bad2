"""Equal footing: what is trained, and at whose rate."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

import pytest
from dsm_records import rate_of as search_of
from dsm_records import searched

from lib.experiments import together
from lib.experiments.artefacts import SEARCHED
from lib.experiments.rows import training_job
from lib.recipes import DSM, RECIPES, TCDESC_BUDGET, TCDESC_DSM, Recipe, part, values
from lib.study.jobs import record_path
from lib.study.open import Study

SHARED = {"model", "points", "augment", "schedule", "budget"}


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    return searched(monkeypatch)


def changed(recipe: Recipe, base: Recipe) -> set[str]:
    """The axes on which two recipes differ."""
    axes = {f.name for f in fields(Recipe)} - {"label"}
    return {name for name in axes if getattr(recipe, name) != getattr(base, name)}


def test_on_equal_footing_all_share_what_no_paper_proposes():
    for key, name in together.METHODS.items():
        recipe, own = together.EQUAL[key], RECIPES[name]
        assert changed(recipe, own) <= SHARED, "what the paper proposes stays"
        assert recipe.model.name == own.model.name
        other = recipe.model.options.keys() - {"dropout"}
        assert {n: recipe.model.options[n] for n in other} == {n: own.model.options[n] for n in other}
        setting = (recipe.points, recipe.augment, recipe.schedule, recipe.budget)
        assert setting == (DSM.points, DSM.augment, DSM.schedule, TCDESC_BUDGET)
        assert recipe.model.options["dropout"] == DSM.model.options["dropout"]


def test_every_recipe_of_the_four_papers_stands_on_equal_footing():
    papers = ("hardnet", "adasample", "dsm", "sosnet", "hynet", "tcdesc")
    augmented = {name for name in RECIPES if name.startswith(papers) and "_aug" in name}
    # HardNet with GOR, and AdaSample's other loss.
    others = {"hardnet_gor_aug", "adasample_aug_gen_ht"}
    assert set(together.METHODS.values()) == augmented - others


def test_dsm_and_tcdesc_on_it_share_their_runs_with_tcdesc_s_own_tables(study: Study):
    assert together.EQUAL["tcdesc_dsm_aug"] == TCDESC_DSM
    without = replace(TCDESC_DSM, positive=part("pair"))
    assert values(together.EQUAL["dsm_long"]) == values(without), "the topology alone differs"
    [job] = [of for of in together.equal_footing(study) if (of.name, of.seed) == ("tcdesc_dsm_aug", 0)]
    own = training_job(study, "tcdesc_dsm_aug", job.train_set, 0)
    assert record_path(job, study.place) == record_path(own, study.place)


def test_equal_footing_has_each_method_at_its_own_rate_on_one_scene_with_the_seeds_of_a_table(
    study: Study,
):
    jobs = together.equal_footing(study)
    assert Counter(job.name for job in jobs) == dict.fromkeys(together.METHODS, len(study.table_seeds))
    assert all(search_of(job) == job.name for job in jobs)
    assert {job.train_set for job in jobs} == {study.place.source.sets[0]}
    tested = study.place.source.homographies.test_set("a")
    assert all(("hpatches", tested) in job.measures for job in jobs)
    budgets = {job.profile(study.place).budget_for(job.recipe) for job in jobs}
    assert len(budgets) == 1


def test_each_search_of_these_has_a_name_and_a_label_of_its_own():
    ours = together.SEARCHED
    assert ours.keys() <= SEARCHED.keys()
    labels = Counter(recipe.label for recipe in SEARCHED.values())
    assert all(labels[recipe.label] == 1 for recipe in ours.values())
