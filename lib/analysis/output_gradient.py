"""AdaSample's Eq. 24, ‖∂L/∂x‖ = 2 d_pos: where it holds, and what holds elsewhere.

The loss is L = t + D(x, x⁺) − D(·, x⁻) with a positive hinge, differentiated by the positive x⁺. The
gradient depends on three things that Eq. 24 leaves open: the distance D; whether the normalisation x =
y/‖y‖ is part of the network (its Jacobian removes the radial part and divides by ‖y‖); and which of the
two matching patches the negative is close to. On the unit sphere ‖x − x⁺‖² and 2 − 2 x·x⁺ are equal but
have different gradients, which agree again through the normalisation.

θ is the angle of the matching pair, d = 2 sin(θ/2) their distance, and φ the angle between the negative
and the patch that it is close to. Seen from that patch, the other matching patch and the negative lie at
a right angle, as random directions in many dimensions almost do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.analysis import Computed
from lib.losses.distances import angular, euclidean

Distance = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    """A loss and the variable by which it is differentiated.

    Attributes:
        key: the case's key in the records.
        loss: its name for readers.
        distance: D as a function of (x, y).
        formula: the closed form of the gradient's norm, for readers; tests compare it with `norms`.
        normalised: True for the gradient by y with x⁺ = y/‖y‖ and ‖y‖ = 1, False for that by x⁺ itself.
        side: "anchor" or "positive", the patch that the negative is close to.
    """

    key: str
    loss: str
    distance: Distance
    formula: str
    normalised: bool = True
    side: str = "anchor"


def _difference(x: Tensor, y: Tensor) -> Tensor:
    return ((x - y) ** 2).sum(-1)


_INNER = euclidean(power=2).paired
_UNIT = euclidean(power=1, epsilon=0.0).paired
_ANGLE = angular(power=1, epsilon=0.0).paired
_ANGLE2 = angular(power=2, epsilon=0.0).paired
_SINES, _ANGLES = "2 √(sin²θ + sin²φ)", "2 √(θ² + φ²)"
CASES = (
    Case("ht", "HT, ‖x − x⁺‖²", _difference, "2d", False),
    Case("ht_inner", "HT, 2 − 2 x·x⁺", _INNER, "2", False),
    Case("ht_normalised", "HT", _INNER, "2 sin θ = d √(4 − d²)"),
    Case("root", "HardNet, ‖x − x⁺‖", lambda x, y: _difference(x, y).sqrt(), "1", False),
    Case("root_normalised", "HardNet", _UNIT, "cos(θ/2) = √(1 − d²/4)"),
    Case("aht", "AHT, arccos(x·x⁺)²", _ANGLE2, "2θ / sin θ", False),
    Case("aht_normalised", "AHT", _ANGLE2, "2θ"),
    Case("angle_normalised", "angle, no square", _ANGLE, "1"),
    Case("ht_positive", "HT", _difference, "2 ‖x − x⁻‖", False, "positive"),
    Case("ht_normalised_positive", "HT", _INNER, _SINES, side="positive"),
    Case("aht_normalised_positive", "AHT", _ANGLE2, _ANGLES, side="positive"),
)
# Distances over which "variation" and "correlation" are computed, and those of "d=0.5" and so on.
USUAL = np.linspace(0.2, 1.4, 200)
AT = np.array([0.5, 1.0, 1.4])
# Euclidean distance of a negative from the patch that it is close to.
NEGATIVE_DISTANCE = 1.0


def compute(points: int = 61) -> Computed:
    """Compute the gradient's norm along the matching distance for each of `CASES`.

    Args:
        points: number of points along each curve.

    Returns:
        Numbers: "cases", rows with "key", "loss", "formula", "normalised", "side", the norm at "d=0.5",
        "d=1" and "d=1.4", "variation" (largest over smallest norm/d, or norm/θ for AHT, over the usual
        distances) and "correlation" (Pearson's, of the norm with d or θ over them; None if the norm is
        constant). Arrays: "distance" (points,) and "curve_<key>" (points,).
    """
    along = 2 * np.sin(np.linspace(0, np.pi / 2, points))
    # At the very ends, where the two patches or their antipodes coincide, some gradients are 0/0.
    inside = np.clip(along, 1e-3, 2 - 1e-6)
    arrays = {"distance": along}
    rows = []
    for case in CASES:
        usual = norms(case, USUAL)
        along_usual = 2 * np.arcsin(USUAL / 2) if "aht" in case.key else USUAL
        ratio = usual / along_usual
        constant = np.ptp(usual) < 1e-9 * usual.max()
        row = {name: value for name, value in vars(case).items() if name != "distance"}
        row |= {f"d={d:g}": norm for d, norm in zip(AT, norms(case, AT).tolist(), strict=True)}
        row["variation"] = float(ratio.max() / ratio.min())
        row["correlation"] = None if constant else float(np.corrcoef(usual, along_usual)[0, 1])
        rows.append(row)
        arrays[f"curve_{case.key}"] = norms(case, inside).astype(np.float32)
    return {"cases": rows}, arrays


def norms(case: Case, distances: np.ndarray, negative: float = NEGATIVE_DISTANCE) -> np.ndarray:
    """Compute ‖∂L/∂x⁺‖, or ‖∂L/∂y‖ if the case is normalised, (n,), by automatic differentiation.

    Args:
        case: one of `CASES`.
        distances: (n,) distances of matching pairs, in (0, 2).
        negative: distance of the negative from the patch that it is close to, in (0, 2).
    """
    near, sideways, across = torch.eye(3, dtype=torch.float64)
    theta = 2 * (torch.from_numpy(distances)[:, None] / 2).asin()
    phi = torch.tensor(2 * np.arcsin(negative / 2))
    other = theta.cos() * near + theta.sin() * sideways
    far = phi.cos() * near + phi.sin() * across
    anchor, positive = (near, other) if case.side == "anchor" else (other, near)
    leaf = positive.expand_as(other).clone().requires_grad_()
    x_pos = torch.nn.functional.normalize(leaf, dim=1) if case.normalised else leaf
    # The margin is constant and the hinge positive, so both are left out here.
    loss = case.distance(anchor, x_pos) - case.distance(anchor if case.side == "anchor" else x_pos, far)
    (gradient,) = torch.autograd.grad(loss.sum(), leaf)
    return gradient.norm(dim=1).numpy()
