"""Equal footing and the factorial: what is trained, at whose rate, and what the design tells apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_records import changed

from lib import parts
from lib.descriptions import Triplets, descriptions
from lib.objective import build as build_objective
from lib.recipes import DSM, RECIPES, TCDESC_BUDGET, TCDESC_DSM, Part, Recipe, part, values
from lib.samplers.candidates import Pool
from lib.study.artefacts import factorial, searches, together
from lib.study.artefacts.factorial import (
    AXES,
    CELLS,
    DESIGN,
    EVERY,
    PAPERS,
    SEARCHED_CELLS,
    TERMS,
    recipe_of,
)
from lib.study.artefacts.rows import training_job
from lib.study.jobs import Job, record_path
from lib.study.open import Record, Study, open_study

SHARED = {"model", "points", "augment", "schedule", "budget"}


@pytest.fixture
def with_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches in which every combination did best at 0.002."""
    means = {"0.001": 30.0, "0.002": 20.0, "0.005": 40.0}
    monkeypatch.setattr(searches, "read_search", lambda *_: {"metrics": {"mean_fpr95": means}})


def found(job: Job, fpr95: float) -> Record:
    metrics = {name: {"fpr95": {"expected": fpr95}} for name in job.sets_of("fpr95")}
    return Record(job, Path("record.json"), {"metrics": metrics}, False)


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


def test_dsm_and_tcdesc_on_it_share_their_runs_with_tcdesc_s_own_tables(study: Study):
    assert together.EQUAL["tcdesc_dsm_aug"] == TCDESC_DSM
    without = replace(TCDESC_DSM, positive=part("pair"))
    assert values(together.EQUAL["dsm_long"]) == values(without), "the topology alone differs"
    [job] = [of for of in together.equal_footing(study) if (of.name, of.seed) == ("tcdesc_dsm_aug", 0)]
    own = training_job(study, "tcdesc_dsm_aug", job.train_set, 0)
    assert record_path(job, study.setting) == record_path(own, study.setting)


def test_the_optimiser_that_suits_a_method_is_the_one_whose_search_went_lower(
    monkeypatch: pytest.MonkeyPatch,
):
    reached = {"dsm_long": 9.0, "equal_dsm_aug_adam": 9.5, "equal_hynet_aug": 7.0}

    def search(_: str, name: str) -> dict:
        return {"metrics": {"mean_fpr95": {"0.1": reached.get(name, 8.0), "0.2": 9.9}}}

    monkeypatch.setattr(together, "read_search", search)
    suits = together.optimiser_on_reserve("evening")
    assert suits["DSM+"] == "sgd"
    assert suits["HyNet+"] == "adam"
    assert len(suits) == len(together.SWAPPED)


@pytest.mark.parametrize(
    ("axis", "axes"),
    [
        ("sampler", {"sampler", "pair_weight"}),
        ("distance", {"distance", "negatives", "loss"}),
        ("loss", {"loss"}),
        ("regulariser", {"regularizers"}),
        ("positive", {"positive"}),
        ("network", {"model"}),
    ],
)
def test_an_axis_changes_what_it_names_alone(axis: str, axes: set[str]):
    assert changed(recipe_of(f"cell_{axis[0]}"), factorial.PLAIN) == axes


def step(recipe: Recipe, n: int = 24) -> torch.Tensor:
    """The losses of a batch of n pairs, which the sampler has seen and whose gradient is finite."""
    torch.manual_seed(0)
    model = parts.build("model", recipe.model, width=1 / 32)
    sampler, objective = parts.build("sampler", recipe.sampler), build_objective(recipe)
    pool = Pool(
        torch.arange(3 * n).view(n, 3),
        torch.zeros(n, 3),
        torch.ones(n, 3, dtype=torch.bool),
        torch.full((n,), 3),
    )
    raw = model.raw(255 * torch.rand(3 * n, 1, 32, 32)).unflatten(0, (n, 3))
    generator = torch.Generator().manual_seed(0)
    choice = sampler.choose(pool, lambda: model.normalise(raw).detach(), generator)
    of = descriptions(model, raw[choice.places])
    triplets = objective.triplets(of)
    losses = objective.loss(triplets)
    if hasattr(sampler, "observe"):
        sampler.observe(triplets, losses)
    weights = parts.build("pair_weight", recipe.pair_weight)(choice) if recipe.pair_weight else None
    objective.total(losses, of, weights).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    return losses


@pytest.mark.parametrize("cell", EVERY)
def test_every_combination_is_lawful(cell):
    assert step(recipe_of(cell)).isfinite().all()


def test_adasample_as_published_is_not_lawful_on_dsm_s_loss():
    recipe = recipe_of("cell_sl")
    apart = torch.full((4,), 0.5), torch.full((4,), 0.8)
    triplets = Triplets(None, *apart, None, apart[0] - apart[1])
    losses = parts.build("loss", recipe.loss)(triplets)
    published = Part("adasample", {**recipe.sampler.options, "of": "loss"})
    with pytest.raises(ValueError, match="of='hinge'"):
        parts.build("sampler", published).observe(triplets, losses)
    parts.build("sampler", recipe.sampler).observe(triplets, losses)


def test_the_half_is_balanced_and_tells_every_effect_of_one_and_two_axes_from_every_other():
    signs = DESIGN.loc[CELLS].to_numpy()
    assert signs.shape == (32, 1 + 6 + 15)
    assert np.array_equal(signs.T @ signs, 32 * np.eye(22, dtype=int))


def test_of_two_searched_combinations_with_one_loss_and_network_all_else_differs():
    cells = [EVERY[key] for key in SEARCHED_CELLS]
    signs = DESIGN.loc[[*SEARCHED_CELLS], [*AXES]].to_numpy()
    assert np.array_equal(signs.T @ signs, 8 * np.eye(len(AXES), dtype=int))
    for chosen in map(set, ((), ("loss",), ("network",), ("loss", "network"))):
        one, other = (cell for cell in cells if cell & {"loss", "network"} == chosen)
        assert one ^ other == AXES.keys() - {"loss", "network"}


def test_a_rate_is_that_of_the_searched_combinations_with_the_same_loss_and_network(
    monkeypatch: pytest.MonkeyPatch,
):
    def search(_: str, key: str) -> dict:
        cell, first = EVERY[key], "sampler" in EVERY[key]
        if "network" not in cell:
            return {"metrics": {"mean_fpr95": {"0.001": 1.0, "0.5": 2.0}}}
        # Alone one would take 0.01 and the other 0.05, which the first was not tried at.
        means = {"0.01": 10.0, "0.02": 11.0} if first else {"0.01": 30.0, "0.02": 12.0, "0.05": 1.0}
        return {"metrics": {"mean_fpr95": means}}

    monkeypatch.setattr(searches, "read_search", search)
    for key, cell in EVERY.items():
        assert factorial.rate_of(open_study(), key) == (0.02 if "network" in cell else 0.001)


EFFECTS = st.lists(st.floats(-5, 5), min_size=1 + len(TERMS), max_size=1 + len(TERMS))


@settings(max_examples=20, deadline=None)
@given(EFFECTS)
def test_the_effects_give_back_what_the_runs_were_made_of_also_where_none_was_trained(effects):
    halves = pd.Series(effects, DESIGN.columns)
    fpr95 = factorial.foreseen(halves)
    tested = (("fpr95", "b"), ("fpr95", "c"))
    back = factorial.halves_of([found(Job(key, key, measures=tested), fpr95[key]) for key in CELLS])
    assert back.to_dict() == pytest.approx(halves.to_dict(), abs=1e-9)
    assert fpr95[factorial.best(back)] == pytest.approx(fpr95.min(), abs=1e-6)
    assert factorial.rival(back) in PAPERS.values()


HALVES = pd.Series(0.0, DESIGN.columns)
HALVES[["loss", "network", "sampler", "distance × positive"]] = -2.0, -1.0, 0.2, -0.9


def test_what_is_confirmed_follows_from_the_effects(with_rates: None):
    evening = open_study("evening", "photos")
    assert factorial.largest(HALVES) == ["loss", "network", "distance × positive"]
    best = EVERY[factorial.best(HALVES)]
    assert {"loss", "network"} <= best
    assert "sampler" not in best
    assert ("distance" in best) == ("positive" in best)
    jobs = factorial.confirmation(evening, HALVES)
    cells = {
        *(best ^ set(axes) for axes in ((), ("loss",), ("network",), ("distance",), ("positive",))),
        *(best ^ {"distance", "positive"}, EVERY[PAPERS["DSM"]], EVERY[PAPERS["HardNet"]]),
    }
    assert {job.name for job in jobs} == set(map(factorial.key_of, cells))
    assert Counter(job.name for job in jobs) == dict.fromkeys(map(factorial.key_of, cells), 5)


def test_it_is_confirmed_on_seeds_and_scenes_that_nothing_has_read(with_rates: None):
    evening = open_study("evening", "photos")
    setting = evening.setting
    jobs = factorial.confirmation(evening, HALVES)
    read = {*setting.source.sets, *setting.source.reserve}
    seeds = {*setting.profile.test_seeds, *setting.profile.table_seeds, *setting.profile.search.seeds}
    assert {job.seed for job in jobs}.isdisjoint(seeds)
    assert len(setting.source.confirmation) == 2
    for job in jobs:
        assert job.train_set == setting.source.sets[0]
        assert {name for _, name in (*job.measures, *job.probes)} == set(setting.source.confirmation)
    assert read.isdisjoint(setting.source.confirmation)


def test_without_a_second_reserve_or_without_effects_nothing_is_confirmed(
    with_rates: None, monkeypatch: pytest.MonkeyPatch
):
    assert factorial.confirmation(open_study("evening"), HALVES) == []
    monkeypatch.setattr(factorial, "on_record", lambda *_: [])
    assert factorial.confirmed(open_study("evening", "photos")) == []
    monkeypatch.setattr(
        factorial,
        "on_record",
        lambda _, jobs: [found(job, 20.0 - 2 * (job.name == "cell_l")) for job in jobs],
    )
    assert factorial.confirmed(open_study("evening", "photos"))
