"""AdaSample's Eq. 24, ‖∂L/∂x‖ = 2 d_pos: where it holds, and what holds elsewhere.

L = t + D(x, x⁺) − D(·, x⁻) with a positive hinge, differentiated by the positive x⁺. The gradient
depends on three things that Eq. 24 leaves open: on which distance D, on whether the normalisation
x = y/‖y‖ is part of the network (its Jacobian takes away what is radial, and divides by ‖y‖), and on
which of the two matching patches the negative lies close to. On the unit sphere ‖x − x⁺‖² and
2 − 2 x·x⁺ are one number and have different gradients, which agree again through the normalisation.

θ is the angle of the matching pair, d = 2 sin(θ/2) their distance, φ the angle of the negative pair.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from lib.distances import angular, euclidean
from lib.theory import Computed


@dataclass(frozen=True)
class Triplets:
    """Geometry of matching pairs and negatives, all unit vectors.

    Attributes:
        anchor, positive, negative: (n, k).
    """

    anchor: np.ndarray
    positive: np.ndarray
    negative: np.ndarray

    @property
    def theta(self) -> np.ndarray:
        """(n,) radians between anchor and positive."""
        return _angle(self.anchor, self.positive)

    @property
    def phi(self) -> np.ndarray:
        """(n,) radians between positive and negative."""
        return _angle(self.positive, self.negative)

    @property
    def d(self) -> np.ndarray:
        """(n,) Euclidean distance of anchor and positive."""
        return np.linalg.norm(self.anchor - self.positive, axis=1)

    def resultant(self, pull: np.ndarray, push: np.ndarray) -> np.ndarray:
        """(n,) length of a pull towards the anchor and a push off the negative, (n,) each, which are at
        an angle ω to each other at the positive."""
        sides = (_orthogonal(patch, self.positive) for patch in (self.anchor, self.negative))
        square = pull**2 + push**2 - 2 * pull * push * np.vecdot(*sides)
        return np.sqrt(np.maximum(square, 0.0))


@dataclass(frozen=True)
class Case:
    """A loss, what it is differentiated by, and the closed form of that gradient's norm.

    Attributes:
        key: names the case in records.
        loss: its name for readers.
        distance: D of (x, y).
        formula: the closed form, for readers.
        norm: from triplets to the closed form, (n,) or a constant.
        normalised: the gradient is by y with x⁺ = y/‖y‖ and ‖y‖ = 1; else by x⁺ itself.
        side: "anchor" or "positive", what the negative lies close to.
    """

    key: str
    loss: str
    distance: Callable[[Tensor, Tensor], Tensor]
    formula: str
    norm: Callable[[Triplets], np.ndarray | float]
    normalised: bool = True
    side: str = "anchor"

    def norms(self, triplets: Triplets) -> np.ndarray:
        """(n,) of the closed form."""
        return np.broadcast_to(self.norm(triplets), len(triplets.anchor))


def _difference(x: Tensor, y: Tensor) -> Tensor:
    return ((x - y) ** 2).sum(-1)


def _over_sine(t: Triplets) -> np.ndarray:
    return 2 * t.theta / np.sin(t.theta)


def _from_negative(t: Triplets) -> np.ndarray:
    return 2 * np.linalg.norm(t.anchor - t.negative, axis=1)


def _by_sines(t: Triplets) -> np.ndarray:
    return 2 * t.resultant(np.sin(t.theta), np.sin(t.phi))


def _by_angles(t: Triplets) -> np.ndarray:
    return 2 * t.resultant(t.theta, t.phi)


_INNER = euclidean.build(power=2).paired
_ROOT = euclidean.build(power=1, epsilon=0.0).paired
_ANGLE = angular.build(power=1, epsilon=0.0).paired
_ANGLE2 = angular.build(power=2, epsilon=0.0).paired
_SINES, _ANGLES = "2 √(sin²θ + sin²φ − 2 sin θ sin φ cos ω)", "2 √(θ² + φ² − 2 θ φ cos ω)"
CASES = (
    Case("ht", "HT, ‖x − x⁺‖²", _difference, "2d", lambda t: 2 * t.d, False),
    Case("ht_inner", "HT, 2 − 2 x·x⁺", _INNER, "2", lambda t: 2.0, False),
    Case("ht_normalised", "HT", _INNER, "2 sin θ = d √(4 − d²)", lambda t: t.d * np.sqrt(4 - t.d**2)),
    Case("root", "HardNet, ‖x − x⁺‖", lambda x, y: _difference(x, y).sqrt(), "1", lambda t: 1.0, False),
    Case("root_normalised", "HardNet", _ROOT, "cos(θ/2) = √(1 − d²/4)", lambda t: np.cos(t.theta / 2)),
    Case("aht", "AHT, arccos(x·x⁺)²", _ANGLE2, "2θ / sin θ", _over_sine, False),
    Case("aht_normalised", "AHT", _ANGLE2, "2θ", lambda t: 2 * t.theta),
    Case("angle_normalised", "angle, no square", _ANGLE, "1", lambda t: 1.0),
    Case("ht_positive", "HT", _difference, "2 ‖x − x⁻‖", _from_negative, False, "positive"),
    Case("ht_normalised_positive", "HT", _INNER, _SINES, _by_sines, side="positive"),
    Case("aht_normalised_positive", "AHT", _ANGLE2, _ANGLES, _by_angles, side="positive"),
)
# Distances between which "variation" and "correlation" are taken; of the records' "at".
USUAL, AT = (0.2, 1.4), np.array([0.5, 1.0, 1.4])
# Euclidean distance of a negative from the patch that it lies close to.
NEGATIVE_DISTANCE = 1.0


def compute(points: int = 61, dots: int = 60) -> Computed:
    """Norms by autograd at random triplets beside the closed forms, and the forms along the distance.

    Args:
        points: along the curves.
        dots: random triplets.

    Returns:
        Numbers: "usual", distances; "cases", rows of "key", "loss", "formula", "normalised", "side",
        "error" (the largest of autograd against the closed form, relative), "at" (the norm at d = 0.5,
        1.0 and 1.4), "variation" (largest over smallest norm/d, or norm/θ for AHT's, between the usual
        distances) and "correlation" (Pearson, with d or θ there; None where the norm is constant).
        Arrays: "distance" (points,); "curve_<key>" (points,); "dot_distance" (dots,) and "dot_<key>"
        (dots,) by autograd. Dots are of triplets in random directions, all else of such in which anchor
        and negative lie at a right angle seen from the patch between them, as random directions in many
        dimensions almost do.
    """
    random = np.random.default_rng(0)
    scattered = random.uniform(0.1, 1.9, dots)
    along = 2 * np.sin(np.linspace(0, np.pi / 2, points))
    # The forms are 0/0 at the very ends, where the two patches or their antipodes coincide.
    inside = np.clip(along, 1e-3, 2 - 1e-6)
    usual = np.linspace(*USUAL, 200)
    arrays, rows = {"distance": along, "dot_distance": scattered}, []
    for case in CASES:
        dotted = draw(scattered, case.side, NEGATIVE_DISTANCE, 128, random)
        curved, three, even = (
            draw(distances, case.side, NEGATIVE_DISTANCE, 128, random, square=True)
            for distances in (inside, AT, usual)
        )
        gradient = by_autograd(case, dotted)
        by, norms = even.theta if "aht" in case.key else usual, case.norms(even)
        constant = np.ptp(norms) < 1e-9 * norms.max()
        row = {name: getattr(case, name) for name in ("key", "loss", "formula", "normalised", "side")}
        row["error"] = float(np.abs(gradient / case.norms(dotted) - 1).max())
        row["at"] = case.norms(three).tolist()
        row["variation"] = float((norms / by).max() / (norms / by).min())
        row["correlation"] = None if constant else float(np.corrcoef(norms, by)[0, 1])
        rows.append(row)
        arrays[f"curve_{case.key}"] = case.norms(curved).astype(np.float32)
        arrays[f"dot_{case.key}"] = gradient.astype(np.float32)
    return {"usual": list(USUAL), "cases": rows}, arrays


def draw(
    distances: np.ndarray, side: str, negative: float, k: int, random: Generator, square: bool = False
) -> Triplets:
    """Triplets at given matching distances, in random directions otherwise.

    Args:
        distances: (n,) of the matching pair, in (0, 2).
        side: "anchor" or "positive", what the negative lies close to.
        negative: its distance from that one, in (0, 2).
        k: length of the descriptors, 3 or more.
        random: where directions come from.
        square: directions from there to the negative and to the other patch are at a right angle.
    """
    near = _unit(random.normal(size=(len(distances), k)))
    other = _away(near, distances, random)
    far = _away(near, np.full(len(distances), negative), random, other if square else None)
    return Triplets(*((near, other) if side == "anchor" else (other, near)), far)


def by_autograd(case: Case, triplets: Triplets) -> np.ndarray:
    """‖∂L/∂x⁺‖, or ‖∂L/∂y‖ where the case is normalised, by automatic differentiation, (n,)."""
    anchor, negative = torch.from_numpy(triplets.anchor), torch.from_numpy(triplets.negative)
    leaf = torch.from_numpy(triplets.positive).requires_grad_()
    positive = torch.nn.functional.normalize(leaf, dim=1) if case.normalised else leaf
    near = anchor if case.side == "anchor" else positive
    # The margin is constant, so that it is enough that the hinge be positive: it is left open here.
    loss = case.distance(anchor, positive) - case.distance(near, negative)
    (gradient,) = torch.autograd.grad(loss.sum(), leaf)
    return gradient.norm(dim=1).numpy()


def _angle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * np.arctan2(np.linalg.norm(x - y, axis=1), np.linalg.norm(x + y, axis=1))


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _away(
    x: np.ndarray, distances: np.ndarray, random: Generator, square_to: np.ndarray | None = None
) -> np.ndarray:
    """Unit vectors at given distances of x, in random directions or such at a right angle to another."""
    angle = 2 * np.arcsin(distances / 2)[:, None]
    sideways = _orthogonal(random.normal(size=x.shape), x)
    if square_to is not None:
        sideways = _orthogonal(sideways, _orthogonal(square_to, x))
    return np.cos(angle) * x + np.sin(angle) * sideways


def _orthogonal(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _unit(y - np.vecdot(y, x)[:, None] * x)
