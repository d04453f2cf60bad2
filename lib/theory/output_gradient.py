"""AdaSample's Eq. 24, ‖∂L/∂x‖ = 2 d_pos: where it holds, and what holds elsewhere.

L = t + D(x, x⁺) − D(·, x⁻) with a positive hinge, differentiated by the positive x⁺. The gradient
depends on three things that Eq. 24 leaves open: on which distance D, on whether the normalisation
x = y/‖y‖ is part of the network (its Jacobian takes away what is radial, and divides by ‖y‖), and on
which of the two matching patches the negative lies close to. On the unit sphere ‖x − x⁺‖² and
2 − 2 x·x⁺ are one number and have different gradients, which agree again through the normalisation.

θ is the angle of the matching pair, d = 2 sin(θ/2) their distance, φ the angle of positive and negative,
and ω the angle at the positive between the ways to the anchor and to the negative.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from lib.distances import angular, euclidean
from lib.theory import Computed

Distance = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    """A loss, what it is differentiated by, and the closed form of that gradient's norm.

    Attributes:
        key: names the case in records.
        loss: its name for readers.
        distance: D of (x, y).
        formula: the closed form, for readers.
        norm: from θ (n,), φ and cos ω to the closed form (n,).
        normalised: the gradient is by y with x⁺ = y/‖y‖ and ‖y‖ = 1; else by x⁺ itself.
        side: "anchor" or "positive", what the negative lies close to.
    """

    key: str
    loss: str
    distance: Distance
    formula: str
    norm: Callable[..., np.ndarray]
    normalised: bool = True
    side: str = "anchor"


def _difference(x: Tensor, y: Tensor) -> Tensor:
    return ((x - y) ** 2).sum(-1)


def _root(x: Tensor, y: Tensor) -> Tensor:
    return _difference(x, y).sqrt()


def _resultant(pull: np.ndarray, push: np.ndarray, cos_omega: np.ndarray) -> np.ndarray:
    return 2 * np.sqrt(np.maximum(pull**2 + push**2 - 2 * pull * push * cos_omega, 0.0))


def _by_sines(theta: np.ndarray, phi: np.ndarray, cos_omega: np.ndarray) -> np.ndarray:
    return _resultant(np.sin(theta), np.sin(phi), cos_omega)


def _from_negative(theta: np.ndarray, phi: np.ndarray, cos_omega: np.ndarray) -> np.ndarray:
    # ‖x − x⁻‖² = 2 − 2 x·x⁻, with the spherical law of cosines.
    inner = np.cos(theta) * np.cos(phi) + np.sin(theta) * np.sin(phi) * cos_omega
    return 2 * np.sqrt(2 - 2 * inner)


_INNER = euclidean.build(power=2).paired
_UNIT = euclidean.build(power=1, epsilon=0.0).paired
_ANGLE = angular.build(power=1, epsilon=0.0).paired
_ANGLE2 = angular.build(power=2, epsilon=0.0).paired
_SINES, _ANGLES = "2 √(sin²θ + sin²φ − 2 sin θ sin φ cos ω)", "2 √(θ² + φ² − 2 θ φ cos ω)"
CASES = (
    Case("ht", "HT, ‖x − x⁺‖²", _difference, "2d", lambda t, *_: 4 * np.sin(t / 2), False),
    Case("ht_inner", "HT, 2 − 2 x·x⁺", _INNER, "2", lambda t, *_: np.full_like(t, 2), False),
    Case("ht_normalised", "HT", _INNER, "2 sin θ = d √(4 − d²)", lambda t, *_: 2 * np.sin(t)),
    Case("root", "HardNet, ‖x − x⁺‖", _root, "1", lambda t, *_: np.ones_like(t), False),
    Case("root_normalised", "HardNet", _UNIT, "cos(θ/2) = √(1 − d²/4)", lambda t, *_: np.cos(t / 2)),
    Case("aht", "AHT, arccos(x·x⁺)²", _ANGLE2, "2θ / sin θ", lambda t, *_: 2 * t / np.sin(t), False),
    Case("aht_normalised", "AHT", _ANGLE2, "2θ", lambda t, *_: 2 * t),
    Case("angle_normalised", "angle, no square", _ANGLE, "1", lambda t, *_: np.ones_like(t)),
    Case("ht_positive", "HT", _difference, "2 ‖x − x⁻‖", _from_negative, False, "positive"),
    Case("ht_normalised_positive", "HT", _INNER, _SINES, _by_sines, side="positive"),
    Case("aht_normalised_positive", "AHT", _ANGLE2, _ANGLES, _resultant, side="positive"),
)
# Distances between which "variation" and "correlation" are taken; of the records' "at".
USUAL, AT = np.linspace(0.2, 1.4, 200), np.array([0.5, 1.0, 1.4])
# Euclidean distance of a negative from the patch that it lies close to.
NEGATIVE_DISTANCE = 1.0


def compute(points: int = 61, dots: int = 60) -> Computed:
    """Norms by autograd at random triplets beside the closed forms, and the forms along the distance.

    Args:
        points: along the curves.
        dots: random triplets.

    Returns:
        Numbers: "cases", rows of "key", "loss", "formula", "normalised", "side", "error" (the largest of
        autograd against the closed form, relative), "at" (the norm at d = 0.5, 1.0 and 1.4), "variation"
        (largest over smallest norm/d, or norm/θ for AHT's, between the usual distances) and
        "correlation" (Pearson, with d or θ there; None where the norm is constant). Arrays: "distance"
        (points,); "curve_<key>" (points,); "dot_distance" (dots,) and "dot_<key>" (dots,) by autograd.
        Dots are of triplets in random directions, all else of such in which anchor and negative lie at a
        right angle seen from the patch between them, as random directions in many dimensions almost do.
    """
    random = np.random.default_rng(0)
    scattered = random.uniform(0.1, 1.9, dots)
    along = 2 * np.sin(np.linspace(0, np.pi / 2, points))
    # The forms are 0/0 at the very ends, where the two patches or their antipodes coincide.
    inside, phi = np.clip(along, 1e-3, 2 - 1e-6), 2 * np.arcsin(NEGATIVE_DISTANCE / 2)
    arrays, rows = {"distance": along, "dot_distance": scattered}, []
    for case in CASES:
        triplets = draw(scattered, case.side, NEGATIVE_DISTANCE, 128, random)
        gradient = by_autograd(case, *triplets)
        error = np.abs(gradient / case.norm(*angles(*triplets)) - 1).max()
        curve, at, norms = (case.norm(2 * np.arcsin(d / 2), phi, 0.0) for d in (inside, AT, USUAL))
        along_usual = 2 * np.arcsin(USUAL / 2) if "aht" in case.key else USUAL
        ratio, constant = norms / along_usual, np.ptp(norms) < 1e-9 * norms.max()
        row = {name: getattr(case, name) for name in ("key", "loss", "formula", "normalised", "side")}
        row |= {"error": float(error), "at": at.tolist(), "variation": float(ratio.max() / ratio.min())}
        row["correlation"] = None if constant else float(np.corrcoef(norms, along_usual)[0, 1])
        rows.append(row)
        arrays[f"curve_{case.key}"] = curve.astype(np.float32)
        arrays[f"dot_{case.key}"] = gradient.astype(np.float32)
    return {"cases": rows}, arrays


def draw(
    distances: np.ndarray, side: str, negative: float, k: int, random: Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Anchors, positives and negatives (n, k) at given matching distances, in random directions.

    Args:
        distances: (n,) of the matching pair, in (0, 2).
        side: "anchor" or "positive", what the negative lies close to.
        negative: its distance from that one, in (0, 2).
        k: length of the descriptors, 3 or more.
        random: where directions come from.
    """
    near = random.normal(size=(len(distances), k))
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    other, far = (
        np.cos(angle) * near + np.sin(angle) * _across(random.normal(size=near.shape), near)
        for angle in (2 * np.arcsin(distances / 2)[:, None], 2 * np.arcsin(negative / 2))
    )
    return *((near, other) if side == "anchor" else (other, near)), far


def by_autograd(
    case: Case, anchor: np.ndarray, positive: np.ndarray, negative: np.ndarray
) -> np.ndarray:
    """‖∂L/∂x⁺‖, or ‖∂L/∂y‖ where the case is normalised, by automatic differentiation, (n,)."""
    leaf = torch.from_numpy(positive).requires_grad_()
    x, x_neg = torch.from_numpy(anchor), torch.from_numpy(negative)
    x_pos = torch.nn.functional.normalize(leaf, dim=1) if case.normalised else leaf
    # The margin is constant, so that it is enough that the hinge be positive: it is left open here.
    loss = case.distance(x, x_pos) - case.distance(x if case.side == "anchor" else x_pos, x_neg)
    (gradient,) = torch.autograd.grad(loss.sum(), leaf)
    return gradient.norm(dim=1).numpy()


def angles(
    anchor: np.ndarray, positive: np.ndarray, negative: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ, φ and cos ω of triplets, (n,) each."""
    theta, phi = (
        2 * np.arctan2(np.linalg.norm(x - positive, axis=1), np.linalg.norm(x + positive, axis=1))
        for x in (anchor, negative)
    )
    return theta, phi, np.vecdot(_across(anchor, positive), _across(negative, positive))


def _across(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Unit vectors along what of y is at a right angle to unit vectors x."""
    sideways = y - np.vecdot(y, x)[:, None] * x
    return sideways / np.linalg.norm(sideways, axis=1, keepdims=True)
