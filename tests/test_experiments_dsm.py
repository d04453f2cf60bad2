"""DSM's runs: the loss, seeds and learning rate that each artefact asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lib.study.artefacts import dsm
from lib.study.artefacts.rows import by_option, changed, option_runs
from lib.study.open import Study
from paper_records import rate_of

from lib import parts
from lib.analysis import narrow_weights
from lib.losses.descriptions import drawn
from lib.objective import build as build_objective
from lib.recipes import RECIPES, values


@pytest.mark.parametrize("name", dsm.VARIANTS)
def test_a_variant_changes_only_the_loss_of_dsm_and_builds(name: str) -> None:
    recipe, base = dsm.VARIANTS[name], RECIPES[dsm.DSM[name.partition("_")[0]]]
    assert replace(recipe, label=base.label, loss=base.loss) == base
    assert values(recipe.loss) != values(base.loss)
    build_objective(recipe)


def test_margins_in_bits_are_on_the_scale_of_their_distance() -> None:
    distance = parts.build("distance", dsm.VARIANTS["binary_margin_32"].distance)
    code, flipped = torch.ones(1, 256), torch.ones(1, 256)
    flipped[0, :32] = -1
    margin = dsm.VARIANTS["binary_margin_32"].loss.options["margin"]
    assert distance.paired(code, flipped).item() == pytest.approx(margin)
    assert dsm.VARIANTS["binary_margin_256"].loss.options["margin"] == distance.maximum


@pytest.mark.parametrize("name", ["real_margin_2", "binary_margin_256"])
def test_the_largest_margin_gives_the_gradient_of_the_basic_triplet_loss(name: str) -> None:
    positive = torch.linspace(0.1, 1.9, 6, requires_grad=True)
    triplets = drawn(positive, (2 - positive.detach()).requires_grad_())
    parts.build("loss", dsm.VARIANTS[name].loss)(triplets).sum().backward()
    assert triplets.positive.grad.tolist() == [1.0] * 6
    assert triplets.negative.grad.tolist() == [-1.0] * 6


def test_options_change_one_axis_of_dsm_at_its_rate(study: Study) -> None:
    jobs, choices = option_runs(dsm.OPTIONS)(study), 1 + len(dsm.OPTIONS["dsm_aug"])
    assert {rate_of(job) for job in jobs} == {"dsm_aug"}
    assert len(jobs) == 3 * choices
    assert len({str(values(job.recipe)) for job in jobs}) == choices
    for changes in dsm.OPTIONS["dsm_aug"].values():
        build_objective(changed(RECIPES["dsm_aug"], "DSM+", changes))
    grouped = by_option(jobs, study, dsm.OPTIONS)
    assert list(grouped["DSM+"]) == ["default", *dsm.OPTIONS["dsm_aug"]]
    assert [job.seed for job in grouped["DSM+"]["32 bins"]] == list(study.test_seeds[:3])


def test_weights_are_equal_only_for_a_distribution_within_one_bin() -> None:
    numbers, arrays = narrow_weights.compute(
        deviations=(0.01, 1.0), positions=(0.1, 0.5, 0.9), pairs=200, batches=3
    )
    assert numbers["width"] == pytest.approx(4 / 511)
    # All in one bin: each gets the share at the node below, 1 − the position between the nodes.
    assert arrays["mean_floor"][0] == pytest.approx([0.9, 0.5, 0.1], abs=0.01)
    assert arrays["spread_floor"][0].max() < 0.01
    # A uniform distribution's spread is 1 / √3 of its mean.
    assert arrays["spread_floor"][1].min() > 0.5
    assert arrays["spread_gaussian"][1] == pytest.approx([3**-0.5] * 3, abs=0.03)
