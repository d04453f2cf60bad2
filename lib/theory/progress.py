"""AdaSample's Theorem 1: what a step of SGD is expected to gain, by enumeration and by formula.

Both sides of Eq. 16, for many sampling probabilities p, once with the weights of Eq. 4 (w_i = 1/(K p_i))
and once with weights of any kind. The problem is linear least squares, small enough that everything of
Sec. 3.2 is explicit: L_i = ½ (x_i·θ − y_i)², and θ* of Eq. 1 solves the normal equations.
"""

from dataclasses import dataclass

import numpy as np

from lib.theory import Computed

NAMES = ("uniform", "p ∝ ‖∇L‖ (stated)", "p ∝ L", "p ∝ 1/‖∇L‖")
SAMPLES, DRAWS, DIMENSIONS = 12, 300, 3
# Of the Dirichlet distribution of random p; 1 is even over the simplex.
CONCENTRATION = 5.0


@dataclass(frozen=True)
class Problem:
    """K samples of a loss with D parameters, seen from the parameters θ_t.

    Attributes:
        losses: (K,) L_i.
        gradients: (K, D) ∇L_i.
        offset: (D,) θ_t − θ*, where θ* minimises the average loss (Eq. 1).
    """

    losses: np.ndarray
    gradients: np.ndarray
    offset: np.ndarray

    def stated_probabilities(self, alpha: float) -> np.ndarray:
        """(K,) p_i of Eq. 17, L_i^(α−1) ‖∇L_i‖ / Z."""
        weight = self.losses ** (alpha - 1) * np.linalg.norm(self.gradients, axis=1)
        return weight / weight.sum()


def compute() -> Computed:
    """Eq. 16 for four named p and for 300 random ones around the uniform, of 12 samples.

    The learning rate is the one at which the stated p gains most.

    Returns:
        Numbers: "rate"; "name", "gain" (R_t by enumeration), "drift" (the first term of Eq. 16),
        "mean_square" (the second), "noise" (the third) for the named p; "largest_error" and
        "largest_error_any_weights", of the identity relative to the sum of the terms' sizes. Arrays:
        "gain" and "trace_variance" (named + draws,), the named first.
    """
    problem, random = draw(SAMPLES, seed=0), np.random.default_rng(1)
    stated = problem.stated_probabilities(1.0)
    shares = np.stack([np.ones(SAMPLES), stated, problem.losses, 1 / stated])
    named = shares / shares.sum(axis=1, keepdims=True)
    probabilities = [*named, *random.dirichlet(np.full(SAMPLES, CONCENTRATION), DRAWS)]

    estimates = problem.gradients / (SAMPLES * stated)[:, None]
    rate = problem.offset @ (stated @ estimates) / (stated @ (estimates**2).sum(axis=1))
    rows = np.array([terms(problem, p, 1 / (SAMPLES * p), rate) for p in probabilities])
    others = [terms(problem, p, random.lognormal(size=SAMPLES), rate) for p in probabilities]
    columns = zip(("gain", "drift", "mean_square", "noise"), rows[: len(named)].T.tolist(), strict=False)
    errors = {"largest_error": rows, "largest_error_any_weights": np.array(others)}
    numbers = {"rate": float(rate), "name": list(NAMES), **dict(columns)}
    numbers |= {name: _largest_error(gains) for name, gains in errors.items()}
    return numbers, {"gain": rows[:, 0], "trace_variance": rows[:, 4]}


def draw(samples: int, seed: int) -> Problem:
    """A problem with an intercept, whose θ_t lies off the one that the targets were made with.

    The offset along the intercept gives most residuals one sign, so that losses and gradients differ by
    factors of a few and none is near zero by the mere chance of a change of sign.

    Args:
        samples: K, 1 or more.
        seed: of NumPy's generator.
    """
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(samples, DIMENSIONS))
    inputs[:, 0] = 1
    truth = random.normal(size=DIMENSIONS)
    targets = inputs @ truth + 0.5 * random.normal(size=samples)
    start = truth + 0.5 * random.normal(size=DIMENSIONS)
    start[0] = truth[0] + 2
    residuals = inputs @ start - targets
    optimum = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    return Problem(0.5 * residuals**2, residuals[:, None] * inputs, start - optimum)


def terms(
    problem: Problem, probabilities: np.ndarray, weights: np.ndarray, rate: float
) -> tuple[float, float, float, float, float]:
    """R_t by enumeration over the drawn index (Eq. 6), the three terms of Eq. 16, and tr Var[G].

    Args:
        problem: K samples.
        probabilities, weights: (K,) p_i and w_i, any positive ones.
        rate: η_t.
    """
    estimates, offset = weights[:, None] * problem.gradients, problem.offset
    gain = -(probabilities @ (((offset - rate * estimates) ** 2).sum(axis=1) - offset @ offset))
    mean, variance = probabilities @ estimates, trace_variance(probabilities, estimates)
    return gain, 2 * rate * offset @ mean, -(rate**2) * mean @ mean, -(rate**2) * variance, variance


def trace_variance(probabilities: np.ndarray, estimates: np.ndarray) -> float:
    """tr Var[G] of an index drawn with probabilities (K,) and estimates G_i (K, D), from its meaning."""
    mean = probabilities @ estimates
    return float(probabilities @ ((estimates - mean) ** 2).sum(axis=1))


def _largest_error(rows: np.ndarray) -> float:
    gain, right = rows[:, 0], rows[:, 1:4]
    return float((np.abs(gain - right.sum(axis=1)) / np.abs(right).sum(axis=1)).max())
