"""HyNet's Eq. 3, 4 and 6 by autograd: directions, magnitudes, layers, and slopes of its losses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lib.analysis import architecture, loss_shapes, similarities
from lib.recipes import largest_gradient


def test_a_step_along_the_direction_brings_positives_closer_and_takes_negatives_away() -> None:
    _, arrays = similarities.compute(pairs=10)
    pair = torch.from_numpy(arrays["descriptors"])
    for row, (key, measure) in enumerate(similarities.MEASURES.items()):
        before = float(measure(*pair))
        for kind, closer in ((0, 1), (1, -1)):
            stepped = pair + 1e-3 * torch.from_numpy(arrays["direction"][row, kind])
            change = float(measure(*stepped)) - before
            assert change * closer * similarities.UPHILL[key] > 0, key


def test_the_parts_add_up_and_are_along_and_across_the_descriptor() -> None:
    _, arrays = similarities.compute(pairs=10)
    parallel, orthogonal = arrays["parallel"], arrays["orthogonal"]
    assert parallel + orthogonal == pytest.approx(arrays["direction"])
    x = arrays["descriptors"]
    assert (orthogonal * x).sum(-1) == pytest.approx(0, abs=1e-12)
    assert parallel[..., 0] * x[:, 1] - parallel[..., 1] * x[:, 0] == pytest.approx(0, abs=1e-12)
    assert np.abs(parallel[2:]).max() < 1e-12, "s and d"
    assert np.linalg.norm(parallel[:2], axis=-1).min() > 0.1, "before normalisation"


def test_eq_3_holds_at_two_descriptors_with_known_gradients() -> None:
    """x = (2, 0), y = (0, 3): s = 0, d = √2."""
    pair = torch.tensor([[[2.0, 0.0]], [[0.0, 3.0]]], dtype=torch.float64)
    expected = {
        "s_raw": [[0, 3], [2, 0]],
        "d_raw": [[2 / math.sqrt(13), -3 / math.sqrt(13)], [-2 / math.sqrt(13), 3 / math.sqrt(13)]],
        "s": [[0, 1 / 2], [1 / 3, 0]],
        "d": [[0, -1 / 2 / math.sqrt(2)], [-1 / 3 / math.sqrt(2), 0]],
    }
    for key, gradients in expected.items():
        for computed in (
            similarities.closed_form(key, pair),
            similarities.gradients(similarities.MEASURES[key], pair),
        ):
            assert computed[:, 0].numpy() == pytest.approx(np.array(gradients, dtype=float)), key


def test_magnitudes_and_periods_are_those_of_eq_4_and_6() -> None:
    numbers, arrays = similarities.compute(pairs=2, points=360)
    theta = arrays["theta"]
    assert arrays["s"] == pytest.approx(np.abs(np.sin(theta)))
    assert arrays["d"] == pytest.approx(np.abs(np.cos(theta / 2)))
    assert numbers["periods"] == {"s": 1.0, "d": 2.0}
    below = theta < np.pi
    for curve in numbers["hybrid"]:
        alpha = math.inf if curve["alpha"] is None else curve["alpha"]
        z = largest_gradient(alpha)
        assert curve["z"] == pytest.approx(z, abs=1e-4)
        terms = (1, 0) if math.isinf(alpha) else (alpha, 1)
        slope = terms[0] * np.sin(theta) + terms[1] * np.cos(theta / 2)
        assert arrays[f"hybrid_{curve['key']}"][below] == pytest.approx(slope[below] / z, abs=1e-4)
        assert arrays[f"hybrid_{curve['key']}"][below].max() == pytest.approx(1)


def test_layers_are_those_of_the_modules() -> None:
    numbers, arrays = architecture.compute(width=1 / 16)
    assert arrays == {}
    by_key = {network["label"]: network for network in numbers["networks"]}
    names = {key: [layer["name"] for layer in network["layers"]] for key, network in by_key.items()}
    # HyNet has its own norm at the input too.
    for key, norm in (("HyNet", "FRN"), ("L2-Net", "BatchNorm2d")):
        assert names[key].count("Conv2d") == names[key].count(norm) == 7
        assert names[key][-1] == "BatchNorm2d"
    assert names["HyNet"].count("BatchNorm2d") == 1
    for network in by_key.values():
        assert sum(layer["parameters"] for layer in network["layers"]) == network["parameters"]
    assert len({network["convolutional"] for network in by_key.values()}) == 1
    shapes = [layer["shape"] for layer in by_key["HyNet"]["layers"] if layer["name"] == "Conv2d"]
    assert shapes[::2] == [[2, 32, 32], [4, 16, 16], [8, 8, 8], [128, 1, 1]]


def literal(key: str, d_pos: float, d_neg: float) -> tuple[float, float]:
    """Return pull and push by hand: derivatives by d_pos and −d_neg."""
    if key == "squared_hinge":
        return (2 * max(0.0, 1 + d_pos - d_neg),) * 2
    if key == "hynet":
        # Z, printed as 2.736: the largest |2 sin θ + cos(θ/2)|, on a fine grid.
        theta = np.linspace(0, np.pi, 1_000_001)
        z = (2 * np.sin(theta) + np.cos(theta / 2)).max()
        h = [(d**2 + d) / z for d in (d_pos, d_neg)]
        active = 1.2 + h[0] - h[1] > 0
        return active * (2 * d_pos + 1) / z, active * (2 * d_neg + 1) / z
    if key == "mixed_hinge":
        active = 1 + d_pos**2 / 2 - d_neg > 0
        return active * d_pos, active * 1.0
    by_s = 2 * (0.9 + (d_pos**2 - d_neg**2) / 2 > 0)
    by_d = 1.2 + d_pos - d_neg > 0
    return by_s * d_pos + by_d, by_s * d_neg + by_d


@pytest.mark.parametrize("key", ["squared_hinge", "hynet", "mixed_hinge", "stacked_hinge"])
def test_slopes_of_hynets_losses(key: str) -> None:
    batch = torch.tensor([[0.3, 0.9], [0.8, 0.7], [0.1, 1.7], [0.4, 1.5]], dtype=torch.float64)
    slopes = loss_shapes.slopes(loss_shapes.CASES[key], batch, batch)
    pulls = torch.tensor([literal(key, *row) for row in batch.tolist()], dtype=torch.float64)
    expected = (pulls * (1 - batch**2 / 4).sqrt()).numpy()
    assert slopes.T.numpy() == pytest.approx(expected, rel=1e-6)


def test_curves_are_derivatives_by_the_angle_with_the_other_distance_at_its_mean() -> None:
    _, arrays = loss_shapes.compute(angles=18, triplets=255)
    theta = arrays["theta"].astype(float)
    d, means = 2 * np.sin(theta / 2), loss_shapes.gaussian_state(255).mean(dim=0).numpy()
    for key in ("squared_hinge", "hynet", "mixed_hinge", "stacked_hinge"):
        pull = np.array([literal(key, distance, means[1])[0] for distance in d]) * np.cos(theta / 2)
        push = np.array([literal(key, means[0], distance)[1] for distance in d]) * np.cos(theta / 2)
        assert arrays[f"positive_{key}"] == pytest.approx(pull, abs=1e-5)
        assert arrays[f"negative_{key}"] == pytest.approx(push, abs=1e-5)
    within = 2 * np.sin(theta / 2) < 1 + means[0]
    assert arrays["negative_hynet"][within] == pytest.approx(arrays["positive_hynet"][within], abs=1e-5)
