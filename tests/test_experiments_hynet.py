"""HyNet's runs: those of each artefact, how they differ, and whose learning rate they use."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from lib.study.artefacts import hynet
from lib.study.catalogue import SEARCHED
from lib.study.open import Study
from paper_records import BEST, changed, rate_of

from lib import parts, profiles
from lib.losses.descriptions import descriptions
from lib.objective import build as build_objective
from lib.recipes import HYNET, RECIPES, SOSNET, values
from lib.study.printed import printed

EVERY = {**RECIPES, **hynet.VARIANTS}


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("hynet_no_norm", {"regularizers"}),
        ("hynet_bn", {"model"}),
        ("hynet_h_0.4", {"loss"}),
        ("hynet_d_1.4", {"distance", "negatives", "loss"}),
        ("hynet_s_0.3", {"distance", "negatives", "loss"}),
        ("hynet_sosr", {"regularizers"}),
        ("hynet_mixed", {"distance", "negatives", "loss"}),
        ("rung_summed", {"reduction", "regularizers"}),
    ],
)
def test_a_row_of_table_3_changes_only_what_it_names(name: str, axes: set[str]) -> None:
    assert changed(EVERY[name], HYNET) == axes


@pytest.mark.parametrize("name", hynet.VARIANTS)
def test_every_variant_is_built(name: str) -> None:
    recipe = hynet.VARIANTS[name]
    model = parts.build("model", recipe.model, width=1 / 32)
    n = 12
    outputs = descriptions(model, model.raw(255 * torch.rand(2 * n, 1, 32, 32)))
    objective = build_objective(recipe)
    losses = objective.loss(objective.triplets(outputs))
    assert losses.shape == (n,)
    assert objective.total(losses, outputs).isfinite()


@pytest.mark.parametrize(("short", "norm"), [("bn", "BatchNorm2d"), ("in", "InstanceNorm2d")])
def test_a_norm_alone_keeps_all_but_the_norm_where_the_authors_form_drops_more(
    short: str, norm: str
) -> None:
    def layers(name: str) -> list[str]:
        model = parts.build("model", EVERY[name].model, width=1 / 32)
        return [type(module).__name__ for module in model.modules()]

    original, swapped = layers("hynet_aug"), layers(f"hynet_{short}_alone")
    first = original.index("FRN") + 1
    assert swapped == [
        *original[:first],
        *(norm if layer == "FRN" else layer for layer in original[first:]),
    ]
    assert "TLU" in swapped
    assert "TLU" not in layers(f"hynet_{short}")


def test_each_rung_changes_one_choice() -> None:
    steps = [changed(EVERY[b], EVERY[a]) for a, b in zip(hynet.LADDER, hynet.LADDER[1:], strict=False)]
    assert steps == [
        {"optimizer", "schedule", "budget"},
        {"model"},
        {"model"},
        {"loss"},
        {"distance", "negatives", "loss"},
        {"regularizers"},
        {"regularizers"},
        {"reduction", "regularizers"},
    ]
    assert EVERY["hynet_no_norm"].regularizers == ()
    assert EVERY["rung_hinge"].loss.options == {"margin": SOSNET.loss.options["margin"]}


def test_recipes_are_written_with_an_infinite_alpha_and_no_two_are_alike() -> None:
    recipes = map(values, SEARCHED.values())
    written = [json.dumps(recipe, sort_keys=True, allow_nan=False) for recipe in recipes]
    assert len(set(written)) == len(written)
    assert values(EVERY["hynet_s_1"])["distance"]["options"]["alpha"] == "inf"
    labels = [recipe.label for recipe in EVERY.values()]
    assert len(set(labels)) == len(labels)


def test_table_3_takes_each_similarity_at_the_margin_whose_search_is_best(study: Study) -> None:
    assert {hynet.best_margin(similarity) for similarity in hynet.MARGINS} == BEST
    jobs = hynet.table3(study)
    names = list(dict.fromkeys(job.name for job in jobs))
    assert [name for name in names if name in BEST] == ["hynet_aug", "hynet_d_1.4", "hynet_s_1"]
    assert len(jobs) == 12 * 3
    assert {"hynet_bn_alone", "hynet_in_alone"} < set(names)
    seeds = {name: [job.seed for job in jobs if job.name == name] for name in names}
    assert all(job_seeds == list(study.table_seeds) for job_seeds in seeds.values())
    assert {rate_of(job) for job in jobs} == set(names), "each at its own rate"
    test_set = study.source.homographies.test_set("a")
    assert all((("hpatches", test_set) in job.measures) == (job.seed == 0) for job in jobs)
    keys = set(printed("hynet", "table3")["key"])
    assert keys - {"hynet_h", "hynet_d", "hynet_s"} <= set(names)
    evening = hynet.table3(replace(study, profile=profiles.find("evening")))
    assert {job.name for job in evening} == set(names) - {"hynet_bn_alone", "hynet_in_alone"}


def test_margins_are_the_given_shares_of_the_similarity_at_90_degrees() -> None:
    expected = {"h": [0.08, 0.32, 0.96], "d": [0.07, 0.28, 0.99], "s": [0.1, 0.3, 1]}
    for similarity, margins in hynet.MARGINS.items():
        for margin, key in margins.items():
            distance = parts.build("distance", EVERY[key].distance)
            share = margin / distance.of_similarity(torch.zeros(())).item()
            assert round(share, 2) == expected[similarity].pop(0)
