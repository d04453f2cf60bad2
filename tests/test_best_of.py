"""The variant that stands for a method, and losses in another method's setting."""

from dataclasses import replace

import pandas as pd
import pytest

from lib.profiles import find
from lib.recipes import SOSNET, difference, loss_of, part, variants
from lib.study import open_study
from lib.study.searches import NoSearch

MARGINS = variants("hynet_aug", {f"margin {m:g}": {"loss": part("hinge", margin=m)} for m in (1, 2, 3)})


def searched(fpr95):
    """Return a study whose searches on record reached these FPR95, by margin."""
    study = open_study()
    rows = [
        {"method": f"hynet_aug, margin {margin}", "data": "mini", "rate": rate, "fpr95": value}
        for margin, (first, second) in fpr95.items()
        for rate, value in ((0.1, first), (0.2, second))
    ]
    columns = ["method", "data", "rate", "fpr95"]
    study.reference.__dict__["searches"] = pd.DataFrame(rows, columns=columns)
    return study


def best_margin(study):
    [name] = study.best_of(MARGINS)
    return int(name[-1])


def test_the_variant_with_the_lowest_fpr95_at_its_best_rate_is_taken():
    # The third has the lowest FPR95 at the first rate, the second at its own best.
    assert best_margin(searched({1: (9, 8), 2: (9, 4), 3: (5, 6)})) == 2


def test_of_those_that_tie_the_last_is_taken():
    assert best_margin(searched({1: (4, 8), 2: (9, 4), 3: (5, 6)})) == 2


def test_variants_without_a_search_are_left_out():
    assert best_margin(searched({1: (4, 5)})) == 1


def test_without_any_search_the_missing_one_is_named():
    with pytest.raises(NoSearch, match="margin 3"):
        searched({}).best_of(MARGINS)


def test_a_profile_without_searches_takes_the_last():
    assert best_margin(replace(open_study(), profile=find("paper"))) == 3


def test_all_are_searched():
    assert replace(searched({1: (4, 5)}), searched={}).best_of(MARGINS) == MARGINS


def test_hynet_with_the_loss_of_sosnet_keeps_its_network_and_setting():
    [recipe] = variants("hynet_aug", {"SOSNet's loss": loss_of(SOSNET)}).values()
    axes = [said.partition(":")[0] for said in difference(recipe, SOSNET).split("; ")]
    assert axes == ["model", "optimizer", "schedule", "budget"]
