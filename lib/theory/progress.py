"""AdaSample's Theorem 1: what a step of SGD is expected to gain, by enumeration and by formula.

Both sides of Eq. 16 at θ_t of a small least-squares problem whose θ* is known, for many sampling
probabilities p, once with the weights of Eq. 4 (w_i = 1/(K p_i)) and once with weights of any kind.
"""

import numpy as np

from lib.theory import Computed
from lib.theory.least_squares import Problem, draw, trace_variance

NAMES = ("uniform", "p ∝ ‖∇L‖ (stated)", "p ∝ L", "p ∝ 1/‖∇L‖")
SAMPLES, DRAWS = 12, 300
# Of the Dirichlet distribution of random p; 1 is even over the simplex.
CONCENTRATION = 5.0


def compute() -> Computed:
    """Eq. 16 for four named p and for 300 random ones around the uniform, of 12 samples.

    The learning rate is the one at which the stated p gains most.

    Returns:
        Numbers: "rate"; "name", "gain" (R_t by enumeration), "drift" (the first term of Eq. 16),
        "mean_square" (the second), "noise" (the third) for the named p; "largest_error" and
        "largest_error_any_weights", of the identity relative to the sum of the terms' sizes; "share",
        of the random p whose gain is below the stated p's. Arrays: "gain" and "trace_variance"
        (named + draws,), the named first.
    """
    problem, random = draw(SAMPLES, 3, seed=0), np.random.default_rng(1)
    norms = np.linalg.norm(problem.gradients, axis=1)
    uniform, stated = np.full(SAMPLES, 1 / SAMPLES), problem.stated_probabilities(1.0)
    named = [uniform, stated, problem.losses / problem.losses.sum(), (1 / norms) / (1 / norms).sum()]
    drawn = random.dirichlet(np.full(SAMPLES, CONCENTRATION), DRAWS)
    probabilities = np.stack([*named, *drawn])

    offset = problem.parameters - problem.optimum
    estimates = problem.gradients / (SAMPLES * stated)[:, None]
    rate = offset @ (stated @ estimates) / (stated @ (estimates**2).sum(axis=1))
    rows = np.array([terms(problem, p, 1 / (SAMPLES * p), rate) for p in probabilities])
    any_weights = [terms(problem, p, random.lognormal(size=SAMPLES), rate) for p in probabilities]
    gain, variance = rows[:, 0], rows[:, 4]
    columns = zip(("gain", "drift", "mean_square", "noise"), rows[: len(named)].T, strict=False)
    numbers = {
        "rate": float(rate),
        "name": list(NAMES),
        **{name: column.tolist() for name, column in columns},
        "largest_error": max(map(_error, rows.tolist())),
        "largest_error_any_weights": max(map(_error, any_weights)),
        "share": float((gain[len(named) :] < gain[1]).mean()),
    }
    return numbers, {"gain": gain, "trace_variance": variance}


def terms(
    problem: Problem, probabilities: np.ndarray, weights: np.ndarray, rate: float
) -> tuple[float, float, float, float, float]:
    """R_t by enumeration over the drawn index (Eq. 6), the three terms of Eq. 16, and tr Var[G].

    Args:
        problem: K samples.
        probabilities, weights: (K,) p_i and w_i, any positive ones.
        rate: η_t.
    """
    estimates = weights[:, None] * problem.gradients
    offset = problem.parameters - problem.optimum
    stepped = offset - rate * estimates
    gain = -(probabilities @ ((stepped**2).sum(axis=1) - offset @ offset))
    mean = probabilities @ estimates
    variance = trace_variance(probabilities, estimates)
    drift, mean_square = 2 * rate * offset @ mean, -(rate**2) * mean @ mean
    return float(gain), float(drift), float(mean_square), -(rate**2) * variance, variance


def _error(row: tuple[float, float, float, float, float]) -> float:
    gain, *right = row[:4]
    return abs(gain - sum(right)) / sum(map(abs, right))
