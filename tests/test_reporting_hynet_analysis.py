"""HyNet's Figures 1, 2, 3 and 5(b), magnitudes, orthogonality and exposure, on records made up."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from reporting_records import Run, outcomes
from test_reporting_dsm import batch

from lib.recipes import RECIPES
from lib.study.artefacts import hynet as experiments
from lib.study.artefacts.hynet import VARIANTS
from lib.study.artefacts.rows import computation_job
from lib.study.claims import Claim, read_claims, verdict
from lib.study.claims.verdicts import HELD, NOT_HELD
from lib.study.jobs import Job
from lib.study.open import Found, open_study
from lib.study.report.papers import hynet_gradients as gradients
from lib.study.report.papers import hynet_norms as norms
from lib.theory import architecture, descent_directions, gradient_magnitudes, similarity_gradients

STUDY = open_study()
SETS = ("b", "c")


COMPUTED = {
    "descent_directions": lambda: descent_directions.compute(pairs=50),
    "similarity_gradients": lambda: similarity_gradients.compute(points=360),
    "architecture": architecture.compute,
    "gradient_magnitudes": lambda: gradient_magnitudes.compute(points=32, triplets=127),
}


@cache
def computed(name: str) -> Run:
    """The record of a computation, small where that has a size."""
    numbers, arrays = COMPUTED[name]()
    content = {"metrics": {"none": {name: numbers}}, "probes": {}}
    return Run(computation_job(name, name), Path("record.json"), content, False, {name: arrays})


def run(name: str, seed: int, measures: dict[str, dict] | None = None, **probes: dict) -> Run:
    recipe = RECIPES.get(name) or VARIANTS[name]
    asked = tuple((module, of) for module in measures or {} for of in SETS)
    job = Job(
        name,
        recipe.label,
        recipe=recipe,
        train_set="a",
        seed=seed,
        measures=asked,
        probes=tuple((probe, "a") for probe in probes),
    )
    metrics = {
        of: {module: measures[module] for module, test_set in asked if test_set == of} for of in SETS
    }
    return Run(job, Path("record.json"), {"metrics": metrics, "probes": {}}, False, probes)


def test_figure_1_draws_what_is_not_nought_of_both_pairs_and_of_each_measure() -> None:
    record = computed("descent_directions")
    figure = gradients.figure1(record)
    arrows = {
        axes.get_title(loc="left"): sum(1 for text in axes.texts if not text.get_text())
        for axes in figure.axes
    }
    assert len(arrows) == 8
    # Two descriptors, with three arrows each before normalisation and two after.
    for title, count in arrows.items():
        assert count == (6 if "normalised" in title else 8), title
    values = gradients.figure1_values(record)
    assert {values[f"deviation_{key}"].item() for key in descent_directions.MEASURES} == {0}
    assert values["cosine_s"] == values["cosine_d"] == values["parallel_d"] == 0
    table = gradients.figure1_table(record)
    assert table["from Eq. 3"].max() < 1e-9, "Eq. 3 is what autograd gives"
    # Rounding error is no nought.
    assert (table.loc[["s, normalised", "d, normalised"], "from Eq. 3"] > 0).all()
    assert (table["|cos|"] > 0.1).tolist() == [True, True, False, False]
    assert values["cosine_s_raw"] > 0.1
    assert values["parallel_d_raw"] > 0.05


def test_angles_are_those_of_unit_descriptors_at_a_distance() -> None:
    d = np.array([[0, 2 * np.sin(np.pi / 8), np.sqrt(2), 2]])
    probe = {"positive": d, "negative": d[:, ::-1], "negative_of_all": d, "batch_pairs": np.array(2)}
    found = run("hardnet_aug", 0, triplets_in_batch=probe)
    expected = np.array([0, np.pi / 4, np.pi / 2, np.pi])
    assert gradients.angles(found) == pytest.approx(np.stack([expected, expected[::-1]]))
    assert gradients.angles(found, of_all=True)[1] == pytest.approx(expected)


def with_triplets(far: float = 0.0) -> list[Run]:
    """Three runs of either method; a share of SOSNet's negatives lies beyond a right angle."""
    runs = []
    for name in experiments.FIGURE2:
        for seed in range(3):
            of = batch(0.4, seed=seed)
            if name == "sosnet_aug":
                some = int(far * of["negative"].shape[1])
                of["negative"][-1, :some] = 1.6
            runs.append(run(name, seed, triplets_in_batch=of))
    return [computed("similarity_gradients"), *runs]


def test_figure_2_counts_what_lies_beyond_a_right_angle() -> None:
    found = with_triplets(far=0.25)
    table = gradients.figure2_table(found[1:])
    assert table.loc[("HardNet+", 0), ("negative", "beyond 90°")] == 0
    assert table.loc[("SOSNet+", 2), ("negative", "beyond 90°")] == 25
    assert table.loc[("SOSNet+", 2), ("negative of all", "beyond 90°")] == 0
    of_all = found[1].probe("triplets_in_batch")["negative_of_all"]
    assert set(table["negative of all", "pairs"]) == {of_all.shape[-1]}
    values = gradients.figure2_values(found)
    of = values["outside_sosnet_aug"]
    assert of.values == pytest.approx(np.array([[0, 25]] * 3))
    assert of.resampled[0, :, 1].std() > 0.5
    assert values["period_s"].tolist() == [1]
    assert values["period_d"].tolist() == [2]
    assert values["rise_s"] > 0
    assert values["fall_d"] > 0
    figure = gradients.figure2(found, "note")
    assert [label.rpartition(" ")[2] for label in named(figure.axes[1])] == ["π", "2π"]


def test_g_h_of_alpha_2_is_not_between_g_s_and_g_d_where_these_are_about_equal() -> None:
    """At θ = π/3 both are √3/2, and (2 sin θ + cos(θ/2)) / Z is 3 √3 / 2 / 2.736."""
    record = computed("similarity_gradients")
    values = gradients.hybrid_values(record)
    assert values["below"] < 1e-9
    assert values["above"] == pytest.approx(3 * np.sqrt(3) / 2 / 2.736 - np.sqrt(3) / 2, abs=1e-2)
    assert named(gradients.hybrid_figure(record).axes[0]) == [
        f"α = {alpha}, Z = {z}"
        for alpha, z in (("0", "1.000"), ("1", "1.760"), ("2", "2.736"), ("3", "3.727"), ("∞", "1.000"))
    ]


def magnitudes_probe() -> dict[str, np.ndarray]:
    """g_d, measured as it is but in the bins beyond 100 degrees, which are empty."""
    edges, theta = np.linspace(0, np.pi, 37), np.linspace(0.01, 3.13, 32)
    middle = (edges[1:] + edges[:-1]) / 2
    there = middle < np.deg2rad(100)
    mean = np.where(there, np.cos(middle / 2), np.nan)
    probe = {"edges": edges}
    for kind in gradients.KINDS:
        probe[f"count_{kind}"] = np.where(there, 50, 0)
        probe[f"mean_{kind}"] = mean
        probe[f"spread_{kind}"] = np.stack([0.9 * mean, 1.1 * mean], axis=1)
        probe[f"curve_{kind}"] = 70 * np.cos(theta / 2)
    return probe


def named(axes: Axes) -> list[str]:
    return axes.get_legend_handles_labels()[1]


def test_every_loss_has_a_panel_and_trained_networks_have_dots_and_curves_of_their_own() -> None:
    runs = [
        run(name, 0, gradient_magnitudes=magnitudes_probe()) for name in experiments.MEASURED.values()
    ]
    found = [computed("gradient_magnitudes"), *runs]
    cases = found[0].numbers["cases"]
    assert set(experiments.MEASURED) < {case["key"] for case in cases}
    panels = gradients.magnitudes_figure(found, "note").axes
    for axes, case in zip(panels, cases, strict=True):
        measured = case["key"] in experiments.MEASURED
        assert any("measured" in of for of in named(axes)) == measured
        assert (axes.lines[0].get_ydata().max() == pytest.approx(70, abs=0.1)) == measured


def test_losses_favour_what_is_hard_or_do_not() -> None:
    """s_H has one curve for positives and negatives, which rises: it is L_A, and what weighs triplets,
    that favours hard positives and hard negatives both."""
    values = gradients.magnitudes_values(computed("gradient_magnitudes"))
    for loss in ("dsm", "softplus", "squared_hinge", "mixed_hinge"):
        assert values[f"positive_{loss}"] > 0, loss
        assert values[f"negative_{loss}"] > 0, loss
    assert values["positive_hinge_1"] < 0 < values["negative_hinge_1"]
    assert values["negative_hynet"] < 0 < values["positive_hynet"]


def test_figure_3_has_as_many_convolutional_weights_in_both_networks() -> None:
    record = computed("architecture")
    table = norms.architecture_table(record)
    hynet, l2net = (table[name, "parameters"] for name in ("HyNet", "L2-Net"))
    assert hynet["weights of convolutions"] == l2net["weights of convolutions"] == l2net["all"]
    assert hynet["all"] > l2net["all"]
    assert hynet[:8].sum() == hynet["all"]
    assert table["", "output"].tolist()[:4] == ["1×32×32", "32×32×32", "32×32×32", "64×16×16"]
    assert table["HyNet", "layers"].iloc[7] == "conv + BN"
    assert table["L2-Net", "layers"].iloc[1] == "conv + BN + ReLU"
    assert table["HyNet", "layers"].iloc[:2].tolist() == ["FRN + TLU", "conv + FRN + TLU"]
    # Biases, and a γ, a β and a τ a channel.
    assert hynet["1"] - l2net["1"] == 4 * 32
    values = norms.architecture_values(record)
    assert values["batch_norms"].tolist() == [1]
    assert values["weights_difference"].tolist() == [0]
    assert l2net["all"] == 1_334_560


def test_figure_3_draws_each_block_as_large_as_its_maps_and_says_what_it_has() -> None:
    record = computed("architecture")
    figure = norms.architecture_figure(record)
    table = norms.architecture_table(record)
    for axes, name in zip(figure.axes, ("HyNet", "L2-Net"), strict=True):
        heights = [box.get_height() for box in axes.patches]
        widths = [box.get_width() for box in axes.patches]
        assert len(heights) == 8
        # 32, 32, 32, 16, 16, 8, 8 and 1 pixels; 1, 32, 32, 64, 64, and then 128 channels.
        assert np.sign(np.diff(heights)).tolist() == [0, 0, -1, 0, -1, 0, -1]
        assert np.sign(np.diff(widths)).tolist() == [1, 0, 1, 0, 1, 0, 0]
        told = [text.get_text().split("\n") for text in axes.texts if "×" in text.get_text()]
        assert [lines[0] for lines in told] == table["", "output"].tolist()[:8]
        assert [" ".join(lines[1:-1]) for lines in told] == table[name, "layers"].tolist()[:8]
        assert [lines[-1] for lines in told] == [f"{n:,}" for n in table[name, "parameters"][:8]]
        colours = [box.get_facecolor() for box in axes.patches]
        assert (colours[1] == colours[7]) == (name == "L2-Net"), "its last block has HyNet's one BN"


SHRUNK = {"map": 1, "channel": 10}


def orthogonal(of: float) -> dict[str, np.ndarray]:
    """Of maps of 100 values, and of a hundred maps of a channel."""
    return {name: np.tile([of / by, 2 * of / by, 100 * by**2], (6, 1)) for name, by in SHRUNK.items()}


def with_norms() -> list[Run]:
    cosine = {"hynet_aug": 1e-5, "hynet_bn": 0.1, "hynet_in": 2e-5}
    return [
        run(name, seed, orthogonality=orthogonal(of * (1 + seed)))
        for name, of in cosine.items()
        for seed in range(3)
    ]


def test_cosines_are_shown_by_layer_and_norm() -> None:
    found = with_norms()
    values = norms.cosines_values(found)
    assert values["map_hynet_bn"].values == pytest.approx(np.array([[0.2] * 6, [0.4] * 6, [0.6] * 6]))
    assert values["median_hynet_bn"].values[0] == pytest.approx([0.1] * 6)
    by_map, by_channel = norms.cosines_figure(found, "note").axes
    assert [len(axes.lines) for axes in (by_map, by_channel)] == [4, 4]
    # A standard normal value lies within ±1.645 in nine of ten cases.
    for axes, values in ((by_map, 100), (by_channel, 10_000)):
        assert axes.lines[-1].get_ydata() == pytest.approx([1.645 / values**0.5] * 6, rel=1e-3)
    assert by_map.lines[0].get_ydata() == pytest.approx([4e-5] * 6)
    assert by_channel.lines[0].get_ydata() == pytest.approx([4e-6] * 6)


def exposed(rise: float, seed: int, spread: float) -> dict[str, float]:
    changes = ("none", "gain_0.5", "gain_1.4", "gamma_0.5")
    return {
        **{f"fpr95.{of}": 10 + seed + rise * place for place, of in enumerate(changes)},
        **{f"ratio_spread.{of}": spread for of in changes},
        **{f"norm_shift.{of}": 0.02 * place for place, of in enumerate(changes)},
    }


def with_exposures() -> list[Run]:
    """Of HyNet+, without R_L2 at a rate of its own and, which rises most, at HyNet+'s."""
    of = (("hynet_aug", "", 1.0, 0.05), ("hynet_no_norm", "", 2.0, 0.1))
    return [
        named_so(run(name, seed, {"intensity_changes": exposed(rise + 0.1 * seed, seed, spread)}), label)
        for name, label, rise, spread in (*of, ("hynet_aug", experiments.AT_ONE_RATE, 3.0, 0.2))
        for seed in range(3)
    ]


def named_so(of: Run, label: str) -> Run:
    return replace(of, job=replace(of.job, label=label or of.job.label))


def claim_of(metric: str) -> Claim:
    return next(claim for claim in read_claims("hynet", "Sec. 3.1") if claim.metric == metric)


def test_exposures_rise_from_what_no_change_gives() -> None:
    # Runs of the other half of the notebook have nothing to say here.
    found = [*with_norms(), *with_exposures()]
    table = norms.exposures_table(found)
    label = VARIANTS["hynet_no_norm"].label
    assert table.index.unique("network").tolist() == ["HyNet+", label, experiments.AT_ONE_RATE]
    assert table.loc["HyNet+"].index.tolist() == ["none", "gain 0.5", "gain 1.4", "gamma 0.5"]
    assert table.loc["HyNet+", "rise"].tolist() == pytest.approx([0, 1.1, 2.2, 3.3])
    assert table.loc[label, "rise"].tolist() == pytest.approx([0, 2.1, 4.2, 6.3])
    percent = np.mean([100 * (2 + 0.1 * seed) / (10 + seed) for seed in range(3)])
    assert table.loc[(label, "gain 0.5"), "rise (%)"] == pytest.approx(percent)
    assert table.loc[label, "spread of norms"].tolist() == pytest.approx([10] * 4)
    values = norms.claim_values(found)
    rise = values(claim_of("rise"))["hynet_aug"]
    assert rise.cells == ("gain_0.5", "gain_1.4", "gamma_0.5")
    assert rise.values[2] == pytest.approx([1.2, 2.4, 3.6])
    assert values(claim_of("ratio_spread"))["hynet_aug"].values == pytest.approx(np.full((3, 2), 5.0))
    at_one_rate = values(claim_of("rise"))["hynet_no_norm_one_rate"].values
    assert at_one_rate[2] == pytest.approx([3.2, 6.4, 9.6]), "told apart from HyNet+, whose name it has"


def test_the_jobs_ask_for_their_probes_and_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lib.study.artefacts.rows.own_rate", lambda study, name: 0.1)
    train_set = STUDY.place.source.sets[0]
    _, *runs = experiments.figure2(STUDY)
    assert [job.name for job in runs] == ["hardnet_aug"] * 3 + ["sosnet_aug"] * 3
    assert all(("triplets_in_batch", train_set) in job.probes for job in runs)
    computation, *runs = experiments.gradient_magnitudes(STUDY)
    assert computation.computation.name == "gradient_magnitudes"
    assert [job.name for job in runs] == list(experiments.MEASURED.values())
    assert all(("gradient_magnitudes", train_set) in job.probes for job in runs)
    jobs = experiments.norms(STUDY)
    probed = {job.name for job in jobs if ("orthogonality", train_set) in job.probes}
    measured = {job.name for job in jobs if job.sets_of("intensity_changes")}
    assert probed == set(experiments.NORMS)
    assert measured == set(experiments.INTENSITY)
    assert all(replace(job, measures=(), probes=()).sets == (train_set,) for job in jobs if job.recipe)


def test_found_records_are_told_apart_by_what_was_asked_of_them() -> None:
    """HyNet+ is asked for twice: its probe and its exposures."""
    found: list[Found] = [*with_norms(), *with_exposures()]
    assert len(norms.cosines(found)) == 9 * 6 * 2
    assert len(norms.exposures(found)) == 9 * 2 * 4


VALUES = {
    "Figure 1": lambda: gradients.figure1_values(computed("descent_directions")),
    "Figure 2": lambda: gradients.figure2_values(with_triplets()),
    "Figure 3": lambda: norms.architecture_values(computed("architecture")),
    "Gradient magnitudes": lambda: gradients.magnitudes_values(computed("gradient_magnitudes")),
    "Sec. 3.1": lambda: norms.claim_values([*with_norms(), *with_exposures()]),
    "Sec. 3.3": lambda: norms.claim_values([*with_norms(), *with_exposures()]),
}
# What Eq. 3, 4 and 6 and the layers decide whatever is trained, and what the records made up say.
AGAINST = {
    "Figure 1": {"s22-as-printed"},
    "Figure 2": {"s23-period"},
    "Gradient magnitudes": {"gm-hybrid-negatives"},
    "Sec. 3.3": {"s33-in"},
}


@pytest.mark.parametrize("artefact", VALUES)
def test_every_claim_with_a_rule_has_a_verdict(artefact: str) -> None:
    found = outcomes("hynet", artefact, VALUES[artefact]())
    assert found
    against = AGAINST.get(artefact, set())
    assert found == {key: NOT_HELD if key in against else HELD for key in found}
    assert against <= found.keys()


def test_what_speaks_against_a_claim_is_seen() -> None:
    """A quarter of SOSNet's negatives beyond 90 degrees, and R_L2 that makes FPR95 rise more."""
    [far] = [of for of in read_claims("hynet", "Figure 2") if of.id == "hynet-f2-range-sosnet"]
    values = gradients.figure2_values(with_triplets(far=0.25))
    assert verdict(far, values, range(3), "evening", "mini").outcome == NOT_HELD
    swapped = {"HyNet+": experiments.AT_ONE_RATE, experiments.AT_ONE_RATE: "HyNet+"}
    runs = [named_so(of, swapped.get(of.job.label, "")) for of in with_exposures()]
    found = norms.claim_values([*with_norms(), *runs])
    for claim in read_claims("hynet", "Sec. 3.1"):
        if claim.id != "hynet-s31-norms-vary":
            assert verdict(claim, found(claim), range(3), "evening", "mini").outcome == NOT_HELD
