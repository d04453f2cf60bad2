"""A small problem in which everything of AdaSample's Sec. 3.2 is explicit: linear least squares.

L_i = ½ (x_i·θ − y_i)², so that ∇L_i = (x_i·θ − y_i) x_i, and θ* of Eq. 1 is the normal equations' own.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Problem:
    """K samples of a linear model with D parameters, and the parameters at which it stands.

    Attributes:
        inputs: (K, D).
        targets: (K,).
        parameters: (D,) θ_t.
    """

    inputs: np.ndarray
    targets: np.ndarray
    parameters: np.ndarray

    @property
    def losses(self) -> np.ndarray:
        """(K,) L_i at θ_t."""
        return 0.5 * (self.inputs @ self.parameters - self.targets) ** 2

    @property
    def gradients(self) -> np.ndarray:
        """(K, D) ∇L_i at θ_t."""
        return (self.inputs @ self.parameters - self.targets)[:, None] * self.inputs

    @property
    def optimum(self) -> np.ndarray:
        """(D,) θ*, which minimises the average loss (Eq. 1)."""
        return np.linalg.lstsq(self.inputs, self.targets, rcond=None)[0]

    def stated_probabilities(self, alpha: float) -> np.ndarray:
        """(K,) p_i of Eq. 17, L_i^(α−1) ‖∇L_i‖ / Z."""
        weight = self.losses ** (alpha - 1) * np.linalg.norm(self.gradients, axis=1)
        return weight / weight.sum()


def draw(samples: int, dimensions: int, seed: int) -> Problem:
    """A problem with an intercept, whose θ_t lies off the one the targets were made with.

    The offset along the intercept gives most residuals one sign, so that losses and gradients differ by
    factors of a few and none is near zero by the mere chance of a change of sign.

    Args:
        samples, dimensions: K and D, 1 or more.
        seed: of NumPy's generator.
    """
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(samples, dimensions))
    inputs[:, 0] = 1
    truth = random.normal(size=dimensions)
    targets = inputs @ truth + 0.5 * random.normal(size=samples)
    start = truth + 0.5 * random.normal(size=dimensions)
    start[0] = truth[0] + 2
    return Problem(inputs, targets, start)


def needed_scale(losses: np.ndarray, alpha: float) -> np.ndarray:
    """p_i w_i of Eq. 9, α/K · L_i^(α−1), (K,)."""
    return alpha / len(losses) * losses ** (alpha - 1)


def trace_variance(probabilities: np.ndarray, estimates: np.ndarray) -> float:
    """tr Var[G] of an index drawn with probabilities (K,) and estimates G_i (K, D), from its meaning."""
    mean = probabilities @ estimates
    return float(probabilities @ ((estimates - mean) ** 2).sum(axis=1))
