"""DSM's Figures 1 to 4, its margin taken apart and maps of losses, on made-up records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reporting_records import Run, outcomes
from scipy.stats import norm

from lib.benchmarks.hpatches import LEVELS
from lib.recipes import RECIPES, Recipe, at_rate
from lib.study.artefacts import dsm
from lib.study.jobs import Job
from lib.study.open import Found, open_study
from lib.study.report import hpatches
from lib.study.report.papers import dsm_figures, dsm_margins, loss_shapes
from lib.study.report.style import looks
from lib.theory import loss_shapes as computed

SETS = ("b", "c")
MARGINS = (0.375, 1.0)


def run(
    name: str, recipe: Recipe, seed: int, value: float = 20.0, curve: dict | None = None, **probes: dict
) -> Run:
    job = Job(
        name,
        recipe.label,
        recipe=recipe,
        train_set="a",
        seed=seed,
        measures=tuple(("fpr95", of) for of in SETS),
    )
    content = {
        "metrics": {of: {"fpr95": {"expected": value}} for of in SETS},
        "probes": {f"resampled_fpr95.{of}": "" for of in SETS},
        "curve": curve or {},
    }
    return Run(job, Path("record.json"), content, False, probes)


def batch(gap: float, n: int = 64, seed: int = 0, total: int = 1024) -> dict[str, np.ndarray]:
    """Two stages; d_neg lies `gap` above d_pos, all in a narrow band, and less among all pairs."""
    random = np.random.default_rng(seed)
    positive = random.normal(0.5, 0.15, (2, total)).clip(0.05, 1.5)
    negative = positive.mean(axis=1, keepdims=True) + gap + random.normal(0, 0.08, (2, total))
    return {
        "stage": np.array([0.0, 1.0]),
        "batch_pairs": np.array(n),
        "positive": positive.astype(np.float16),
        "negative": negative.astype(np.float16),
        "negative_of_all": (negative - 0.1).astype(np.float16),
    }


def hardnets(n: int = 64) -> list[Run]:
    curve = {"step": list(range(1, 21)), "zero_share": [0.0] * 10 + [0.05] * 10}
    recipes = {"hardnet_aug": RECIPES["hardnet_aug"], "real_margin_1": dsm.REAL["real_margin_1"]}
    return [
        run(name, recipes[name], seed, curve=curve, triplets_in_batch=batch(gap, n, seed))
        for name, seed, gap in (
            *(("hardnet_aug", seed, 0.4) for seed in range(3)),
            ("real_margin_1", 0, 0.5),
        )
    ]


def histogram() -> dict[str, np.ndarray]:
    """Gaussians that move to the left and widen, and at the last stage one that is none."""
    edges = np.linspace(-2 - 2 / 511, 2 + 2 / 511, 513)
    means, spreads = np.array([0.0, -0.2, -0.4]), np.array([0.1, 0.15, 0.2])
    cdf = norm.cdf(edges, means[:, None], spreads[:, None])
    values = np.random.default_rng(0).normal(means[:, None], spreads[:, None], (3, 64))
    return {
        "stage": np.array([0.0, 0.5, 1.0]),
        "edges": edges,
        "cdf": cdf,
        "mean": means,
        "deviation": spreads,
        "p": np.array([0.9, 0.5, 0.002]),
        "hardest": np.array([0.98, 0.99, 0.99]),
        "easiest": np.array([0.02, 0.01, 0.03]),
        "values": values,
        "weights": norm.cdf(values, means[:, None], spreads[:, None]),
    }


def dsm_runs() -> list[Run]:
    steps = np.arange(1, 101)
    runs = []
    for seed in range(3):
        weight = 0.5 - 0.12 * np.exp(-steps / 15) + 0.01 * np.sin(steps + seed)
        curve = {"step": steps.tolist(), "mean_weight": weight.tolist()}
        probes = {"moving_histogram": histogram()} if seed == 0 else {}
        runs.append(run("dsm_aug", RECIPES["dsm_aug"], seed, curve=curve, **probes))
    return runs


def softness_runs() -> list[Run]:
    """DSM at 20, each control a point more than the one before; seeds shift all alike."""
    steps = list(range(1, 101))
    recipes = {
        "dsm_aug": RECIPES["dsm_aug"],
        "real_margin_2": dsm.REAL["real_margin_2"],
        **dsm.CONTROLS,
        "real_margin_0.25": dsm.REAL["real_margin_0.25"],
    }
    runs = []
    for place, (name, recipe) in enumerate(recipes.items()):
        curve = {"step": steps}
        if recipe.loss.name == "hinge":
            curve["zero_share"] = np.linspace(0, 0.1 * place, 100).tolist()
        elif recipe.loss.name == "hardest_fraction":
            curve["margin"] = [0.2] * 100
        else:
            curve["mean_weight"] = np.linspace(0.9 if "fixed" in name else 0.4, 0.5, 100).tolist()
        for seed, shift in enumerate((0.0, 0.9, -0.6)):
            noise = 0.1 * np.random.default_rng([place, seed]).normal()
            rated = at_rate(recipe, 0.1 * (place + 1))
            runs.append(run(name, rated, seed, 20 + place + shift + noise, curve))
    return runs


def swept() -> pd.DataFrame:
    rows = []
    for kind, margins, values in (
        ("real", ("0.125", "0.25", "0.375", "0.5", "1", "2"), (30, 26, 25, 24, 27, 27.5)),
        ("binary", ("8", "16", "32", "64", "256"), (40, 35, 31, 32, 38)),
    ):
        shown = zip((*margins, "DSM"), (*values, 22.0), strict=True)
        rows += [
            {"descriptor": kind, "margin": margin, "FPR95 (%)": of, "from": of - 1, "to": of + 1}
            for margin, of in shown
        ]
    return pd.DataFrame(rows)


def numbers(level: float) -> dict[str, float]:
    """HPatches' numbers, lower by 20 a level of noise, of two sequences that show two things."""
    found = {}
    for place, noise in enumerate(LEVELS):
        at = level - 20 * place
        found |= {f"verification.{noise}.{kind}.ap": at + 10 for kind in ("intra", "inter")}
        found |= {f"matching.{noise}.{kind}": at - 10 for kind in ("viewpoint", "illumination")}
        found |= {f"matching.{noise}.{name}": at - 10 for name in ("v_one", "i_two")}
        found |= {f"retrieval.{noise}.{name}": at for name in ("v_one", "i_two")}
        found[f"retrieval.{noise}.all"] = at
    means = {"verification": 10.0, "matching": -10.0, "retrieval": 0.0}
    return found | {task: level - 20 + by for task, by in means.items()} | {"retrieval.pools": level}


FIGURE4 = {
    **{"sift": 50.0, "orb": 40.0, "hardnet_aug": 60.0, "real_margin_1": 61.0, "doap_aug": 62.0},
    **{"dsm_aug": 66.0, "l2net_aug": 55.0, "doap_binary_aug": 52.0, "dsm_binary_aug": 54.0},
}


def figure4_records() -> list[Found]:
    tested = open_study().place.source.homographies.test_set("full")
    found = []
    for name, level in FIGURE4.items():
        recipe = RECIPES.get(name) or dsm.REAL.get(name)
        for seed in range(3) if recipe else (None,):
            measured = {"hpatches": numbers(level + (seed or 0) / 10)}
            if name in dsm.FIGURE4_SIGNS:
                measured["hpatches_of_signs"] = numbers(level - 12 + seed / 10)
            label = recipe.label if recipe else name.upper()
            job = Job(name, label, recipe=recipe, train_set="a" if recipe else None, seed=seed)
            content = {"metrics": {tested: measured}, "probes": {}}
            found.append(Found(job, Path("record.json"), content, False))
    return found


def test_figure_1_has_each_triplet_once_and_the_margins_share() -> None:
    figure = dsm_figures.figure1(hardnets(), MARGINS, "note")
    assert len(figure.axes) == 4
    for axes, (gap, name) in zip(figure.axes, ((0.4, "negative"), (0.5, "negative")), strict=False):
        used, excluded = (line.get_xydata() for line in axes.lines[:2])
        assert len(used) + len(excluded) == 1024
        both = batch(gap)
        expected = both[name][-1].astype(float) - both["positive"][-1] > 0.375
        assert len(excluded) == expected.sum()
        assert (excluded[:, 1] - excluded[:, 0] > 0.375).all()
        assert [text.get_text() for text in axes.texts] == ["margin 0.375", "margin 1"]
        share = f"64 pairs; excluded: {100 * expected.mean():.1f}% by 0.375, 0.0% by 1"
        assert axes.get_title(loc="left").splitlines()[1] == share
    assert figure.axes[2].get_title(loc="left").splitlines()[0] == "HardNet+"
    assert figure.axes[2].get_title(loc="left").splitlines()[1].startswith("1024 pairs")


def test_a_batch_that_is_as_large_as_all_has_one_row() -> None:
    few = dsm_figures.figure1(hardnets(1024), MARGINS)
    assert len(few.axes) == 2
    assert few.axes[0].get_xlim()[1] > 1.3, "margins are seen whatever the distances"
    assert len(dsm_figures.figure1_table(hardnets(1024), MARGINS)) == 4


def test_figure_1_s_table_counts_what_each_margin_excludes() -> None:
    table = dsm_figures.figure1_table(hardnets(), MARGINS)
    both = batch(0.4)
    row = table.loc["HardNet+", 0, 64]
    gaps = both["negative"][-1].astype(float) - both["positive"][-1]
    assert row["excluded (%) by", "0.375"] == pytest.approx(100 * (gaps > 0.375).mean())
    assert row["d_pos", "sd"] == pytest.approx(both["positive"][-1].astype(float).std(), rel=1e-3)
    assert row["sd", "ratio"] > 1.5
    assert row["in training", "own (%)"] == pytest.approx(5)
    assert np.isnan(table.loc[("HardNet+", 0, 1024), ("in training", "own (%)")])
    assert dsm_figures.stated_margins() == list(MARGINS)


def test_figure_1_s_claims_are_judged_over_triplets() -> None:
    values = dsm_figures.figure1_values(hardnets(), MARGINS)
    assert values["excluded_0.375"].cells == ("batches of 64",)
    assert values["excluded_0.375"].values.shape == (3, 1)
    assert values["excluded_0.375"].resampled.std() > 0.5
    assert outcomes("dsm", "Figure 1", values) == {
        "f1-margin-0375": "held",
        "f1-margin-1": "held",
        "f1-axes": "held",
    }


def test_figure_3_draws_the_pdf_the_cdf_and_the_weights_of_a_batch() -> None:
    [record, *_] = dsm_runs()
    figure = dsm_figures.figure3(record, "note")
    pdf, weights, drift, pace = figure.axes
    [drawn] = pdf.patches
    density = drawn.get_data()
    assert (density.values * np.diff(density.edges)).sum() == pytest.approx(1, abs=1e-3)
    assert [patch.get_label() for patch in drift.patches] == ["0%", "50%", "100%"]
    lines = {line.get_label(): line for line in weights.lines}
    of = histogram()
    assert lines["CDF"].get_ydata() == pytest.approx(of["cdf"][-1])
    assert lines["weights of a batch"].get_ydata() == pytest.approx(of["weights"][-1])
    assert lines["softplus, β = 1"].get_ydata()[256] == pytest.approx(0.5, abs=0.01)
    assert len(pace.lines[0].get_xdata()) == 100


def test_figure_3_s_table_has_the_gaps_of_each_stage() -> None:
    table = dsm_figures.figure3_table(histogram())
    assert list(table.index) == [0, 0.5, 1]
    gaps = table["largest gap"]
    assert gaps["Gaussian"].to_numpy() == pytest.approx(0, abs=1e-6)
    # Of a logistic and a normal distribution of one variance.
    assert gaps["logistic"].to_numpy() == pytest.approx(0.0226, abs=1e-3)
    assert gaps.loc[1.0, "softplus, same spread"] > 0.7, "two deviations off its centre"
    assert gaps.loc[0.0, "softplus, same spread"] == pytest.approx(gaps.loc[0.0, "logistic"])
    assert gaps["softplus, β = 1"].to_numpy() == pytest.approx([0.5] * 3, abs=0.15)


def test_figure_3_s_claims_get_all_stages_and_the_mean_weight_all_seeds() -> None:
    values = dsm_figures.figure3_values(dsm_runs())
    assert values["gaussian_distance"].values == pytest.approx(np.zeros((1, 3)), abs=1e-6)
    assert values["mean_weight"].shape == (3, 1)
    found = outcomes("dsm", "Figure 3", values)
    assert found["f3-gaussian"] == "held"
    assert found["f3-non-gaussian"] == "did not hold"
    assert found["f3-hardest"] == found["f3-easiest"] == "held"
    assert found["f3-mean-weight"] == "held"


def test_figure_4_has_real_rows_and_binary_ones_with_signs() -> None:
    runs = dsm_figures.figure4_runs(figure4_records(), open_study())
    real, binary = runs["real"], runs["binary"]
    assert list(real.index.unique("key")) == ["sift", *dsm.FIGURE4_REAL]
    assert list(binary.index.unique("key")) == [
        *("orb", "l2net_aug_signs", "hardnet_aug_signs", "doap_binary_aug", "dsm_binary_aug")
    ]
    assert real.xs("dsm_aug", level="key")["matching"].tolist() == pytest.approx([36, 36.1, 36.2])
    assert binary.xs("hardnet_aug_signs", level="key")["matching"].tolist() == pytest.approx(
        [18, 18.1, 18.2]
    )


def test_figure_4_s_claims_are_judged_by_task_and_by_level() -> None:
    runs = dsm_figures.figure4_runs(figure4_records(), open_study())
    found = outcomes("dsm", "Figure 4", dsm_figures.figure4_values(runs))
    assert found["f4-matching-real"] == "held"
    assert found["f4-verification-real"] == "held"
    assert found["f4-tough-real"] == "held"
    assert found["f4-easy"] == "did not hold", "four points ahead at every level"
    assert found["f4-tougher-hardnet"] == "did not hold", "as far ahead at every level"
    assert "not judged" not in found.values()


def test_numbers_at_a_level_are_those_of_that_level() -> None:
    real = dsm_figures.figure4_runs(figure4_records(), open_study())["real"]
    tough = hpatches.at_level(real, "tough").xs("sift", level="key").iloc[0]
    assert tough[["verification", "matching", "retrieval"]].tolist() == [20, 0, 10]
    assert tough["matching.tough.v_one"] == 0
    assert not [name for name in tough.index if "easy" in name]


def test_figure_2_rings_the_best_margin_and_marks_the_papers() -> None:
    figure = dsm_margins.figure2(swept(), "note")
    for axes, best, stated in zip(figure.axes, (3, 2), (2, 2), strict=True):
        by_label = {line.get_label(): line for line in axes.lines}
        assert by_label["the best of these"].get_xdata() == [best]
        assert by_label["the paper's best"].get_xdata()[0] == stated
        assert by_label["DSM"].get_ydata()[0] == 22
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert ticks == ["0.125", "0.25", "0.375", "0.5", "1", "2"]


def test_controls_are_compared_with_dsm_by_seed() -> None:
    table = dsm_margins.softness_table(softness_runs())
    assert len(table) == len(dsm_margins.CONTROLS)
    assert table["margin"].loc["DSM+: fixed soft margin"].tolist() == ["yes", "no"]
    changed = table["change from DSM+"]
    assert np.isnan(changed.loc["DSM+", "change"])
    assert changed["change"].iloc[1:].to_numpy() == pytest.approx(range(1, 7), abs=0.3)
    assert (changed["to"] - changed["change"]).iloc[1:].max() < 1, "shared by the seeds"
    assert table["FPR95", "rate"].iloc[0] == "0.1"
    weights = table["mean weight"]
    assert weights.loc["DSM+"].tolist() == pytest.approx([0.405, 0.495], abs=0.01)
    assert weights.loc["DSM+: hinge, margin 2", "last tenth"] == pytest.approx(0.905, abs=0.01)
    assert weights.loc["DSM+: hardest 1/2"].isna().all()


def test_the_figures_of_the_controls_have_all_of_them() -> None:
    runs = softness_runs()
    left, right = dsm_margins.softness_figure(runs, "note").axes
    names = [text.get_text() for text in left.get_yticklabels()]
    assert len(names) == len(dsm_margins.CONTROLS)
    assert "change from DSM+" in right.get_xlabel()
    (axes,) = dsm_margins.weights_figure(runs, "note").axes
    drawn = [line for line in axes.lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in drawn] == [name for name in names if "1/2" not in name]
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) == len(drawn)


def test_no_two_descriptors_of_dsm_look_alike() -> None:
    labels = [recipe.label for recipe in (*RECIPES.values(), *dsm.REAL.values())]
    methods = [*dict.fromkeys(labels), "SIFT", "ORB", "HardNet+ by sign", "L2-Net+ by sign"]
    seen = [tuple(of.values()) for of in looks(methods).values()]
    assert len(set(seen)) == len(methods)
    colours = {name: of["color"] for name, of in looks(methods).items()}
    assert colours["DSM+"] == colours["DSM+ binary"]
    assert len({colours[name] for name in ("DSM+", "HardNet+", "DOAP+", "L2-Net+")}) == 4


def test_loss_shapes_have_two_maps_a_loss_on_one_scale() -> None:
    numbers, arrays = computed.compute(points=9, triplets=127)
    figure = loss_shapes.figure(numbers, arrays, "note")
    maps = [axes for axes in figure.axes if axes.collections and axes.get_title(loc="left")]
    assert len(maps) == 2 * len(numbers["cases"])
    assert len({axes.collections[0].norm for axes in maps}) == 1
    hinge = np.asarray(maps[0].collections[0].get_array()).reshape(9, 9)
    expected = arrays["pull_hinge_1"] / numbers["cases"][0]["pull"]
    assert np.allclose(hinge, expected)
    table = loss_shapes.table(numbers)
    assert table.loc["DSM", ("", "push / pull")] == pytest.approx(1)
    assert table.loc["the hardest 1/8", ("pull (%)", "hardest quarter")] == pytest.approx(100)


def test_the_jobs_ask_for_their_probes_and_for_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lib.study.artefacts.rows.own_rate", lambda study, name: 0.1)
    study = open_study()
    scattered = dsm.figure1(study)
    assert [job.name for job in scattered] == ["hardnet_aug"] * 3 + ["real_margin_1"]
    assert all(("triplets_in_batch", "mini-a") in job.probes for job in scattered)
    probed, *others = dsm.figure3(study)
    assert ("moving_histogram", "mini-a") in probed.probes
    assert [job.seed for job in others] == list(study.table_seeds[1:])
    assert all(("moving_histogram", "mini-a") not in job.probes for job in others)
    jobs = dsm.figure4(study)
    tested = study.place.source.homographies.test_set("full")
    assert all(("hpatches", tested) in job.measures for job in jobs)
    signs = {job.name for job in jobs if ("hpatches_of_signs", tested) in job.measures}
    assert signs == set(dsm.FIGURE4_SIGNS)
    assert {job.name for job in jobs} == set(FIGURE4)


def test_controls_are_variants_of_dsm_at_rates_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = []
    monkeypatch.setattr(
        "lib.study.artefacts.rows.own_rate", lambda study, name: rates.append(name) or 0.1
    )
    jobs = {job.name: job for job in dsm.softness(open_study())}
    assert set(jobs) == set(dsm_margins.CONTROLS)
    assert set(rates) == {"dsm_aug", "real_margin_2", *dsm.CONTROLS}
    for recipe in dsm.CONTROLS.values():
        assert replace(recipe, loss=RECIPES["dsm_aug"].loss, label="DSM+") == RECIPES["dsm_aug"]


def test_what_is_fixed_has_one_place_and_one_width() -> None:
    losses = {name: of.loss.options for name, of in dsm.CONTROLS.items()}
    place = dsm.REAL["real_margin_0.25"].loss.options["margin"]
    assert losses["control_fixed_soft"] == {"margin": place, "deviation": 0.25}
    assert losses["control_fixed_softplus"] == {"margin": 0.0, "deviation": 0.25}
