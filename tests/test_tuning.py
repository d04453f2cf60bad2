"""Quick's learning rates: those of the search that is on record, over photographs no table uses."""

from __future__ import annotations

import pytest

from lib import parts, profiles, recipes
from lib.commands import tuning
from lib.data.mini.allotment import packaged_photographs
from lib.digests import code_digest
from lib.experiments import training
from lib.study import records
from lib.study.open import open_study

QUICK = profiles.find("quick")


@pytest.mark.parametrize("optimizer", QUICK.learning_rates)
def test_the_rate_is_the_best_of_the_search_on_record(optimizer: str) -> None:
    outcome = records.read(training.tuning_path("quick", optimizer))
    means = {float(rate): value for rate, value in outcome["metrics"]["mean_fpr95"].items()}
    assert min(means, key=means.get) == QUICK.learning_rates[optimizer]
    for rate, mean in means.items():
        values = [run["fpr95"] for run in outcome["runs"] if run["rate"] == rate]
        assert len(values) == 2 * len(tuning.RECIPES[optimizer])
        assert mean == pytest.approx(sum(values) / len(values), abs=1e-3)


def test_every_optimiser_of_a_recipe_has_a_quick_rate() -> None:
    assert {recipe.optimizer.name for recipe in recipes.RECIPES.values()} <= set(QUICK.learning_rates)


def test_no_photograph_is_used_twice() -> None:
    names = [photograph.name for group in packaged_photographs().values() for photograph in group]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("optimizer", QUICK.learning_rates)
def test_the_search_was_made_by_today_s_code_on_today_s_data(optimizer: str) -> None:
    outcome = records.read(training.tuning_path("quick", optimizer))
    source = open_study().place.source
    assert outcome["digests"]["data"] == {name: source.digest(name) for name in source.reserve}
    searched = [m for name in tuning.RECIPES[optimizer] for m in parts.modules(recipes.find(name))]
    assert outcome["digests"]["training"] == code_digest(["lib.training", *searched])
