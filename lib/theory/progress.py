"""AdaSample's Theorem 1: what a step of SGD is expected to gain, by enumeration and by formula.

Both sides of Eq. 16 at θ_t of a small least-squares problem whose θ* is known, for many sampling
probabilities p, once with the weights of Eq. 4 (w_i = 1/(K p_i)) and once with weights of any kind.
"""

import numpy as np

from lib.theory.least_squares import Problem, draw, stated_probabilities, trace_variance

NAMES = ("uniform", "p ∝ ‖∇L‖ (stated)", "p ∝ L", "p ∝ 1/‖∇L‖")


def compute(
    samples: int = 12, dimensions: int = 3, draws: int = 300, concentration: float = 5.0, seed: int = 0
) -> tuple[dict[str, float | list], dict[str, np.ndarray]]:
    """Eq. 16 for four named p and for random ones around the uniform.

    The learning rate is the one at which the stated p gains most.

    Args:
        samples, dimensions: K and D.
        draws: random p.
        concentration: of their Dirichlet distribution; 1 is even over the simplex.
        seed: of the problem and of the draws.

    Returns:
        Numbers: "rate"; "name", "gain" (R_t by enumeration), "drift" (the first term of Eq. 16),
        "mean_square" (the second), "noise" (the third) for the named p; "largest_error" and
        "largest_error_any_weights", of the identity relative to the sum of the terms' sizes; "share",
        of the random p whose gain is below the stated p's. Arrays: "gain" and "trace_variance"
        (named + draws,), the named first.
    """
    problem = draw(samples, dimensions, seed)
    random = np.random.default_rng(seed + 1)
    norms = np.linalg.norm(problem.gradients, axis=1)
    named = [
        np.full(samples, 1 / samples),
        stated_probabilities(problem.losses, problem.gradients, 1.0),
        problem.losses / problem.losses.sum(),
        (1 / norms) / (1 / norms).sum(),
    ]
    probabilities = np.stack([*named, *random.dirichlet(np.full(samples, concentration), draws)])

    offset = problem.parameters - problem.optimum
    stated = problem.gradients / (samples * named[1])[:, None]
    rate = offset @ (named[1] @ stated) / (named[1] @ (stated**2).sum(axis=1))
    rows = [terms(problem, p, 1 / (samples * p), rate) for p in probabilities]
    free = [terms(problem, p, random.lognormal(size=samples), rate) for p in probabilities]
    gain, drift, mean_square, noise, variance = np.array(rows).T
    numbers = {
        "rate": float(rate),
        "name": list(NAMES),
        "gain": gain[: len(named)].tolist(),
        "drift": drift[: len(named)].tolist(),
        "mean_square": mean_square[: len(named)].tolist(),
        "noise": noise[: len(named)].tolist(),
        "largest_error": max(map(_error, rows)),
        "largest_error_any_weights": max(map(_error, free)),
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
