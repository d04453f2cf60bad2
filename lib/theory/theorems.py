"""AdaSample's Theorems 1 and 2, on a problem small enough that everything of Sec. 3.2 is explicit.

Theorem 1 says what a step of SGD is expected to gain (Eq. 16): the gain is enumerated for many sampling
probabilities p with the weights of Eq. 4, w_i = 1/(K p_i), beside the formula. The problem is linear
least squares: L_i = ½ (x_i·θ − y_i)², and θ* of Eq. 1 solves the normal equations.

Theorem 2 gives the p at which tr Var[G] is least. Under p_i w_i = α/K · L_i^(α−1) (Eq. 9),
tr Var[G] = Σ c_i² / p_i − ‖μ‖² with c_i = p_i w_i ‖∇L_i‖. By the Cauchy–Schwarz inequality
(Σ c_i)² = (Σ (c_i/√p_i) √p_i)² ≤ Σ c_i²/p_i · Σ p_i, with equality where p_i ∝ c_i: Eq. 17. The proof
calls the sum a harmonic mean of the p_i that becomes least. It is inversely proportional to one: with H
the harmonic mean of the p_i weighted by c_i², Σ c_i²/p_i = Σ c_i² / H. So the variance is least where H
is largest, and that is at p_i ∝ c_i.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import softmax

from lib.theory import EXPONENTS, Computed

NAMES = ("uniform", "p ∝ ‖∇L‖ (stated)", "p ∝ L", "p ∝ 1/‖∇L‖")
SAMPLES, DRAWS, DIMENSIONS = 12, 300, 3
# Of the Dirichlet distribution of random p; 1 is even over the simplex.
CONCENTRATION = 5.0
# Exponents for which the simplex of three samples is kept, and triangles along an edge of it.
DRAWN, EDGES = (1, 3, 10), 60


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


def compute(
    exponents: Sequence[float] = EXPONENTS, samples: Sequence[int] = (3, 12, 100), starts: int = 3
) -> Computed:
    """Both theorems.

    Args:
        exponents: 2α − 1, with α of Eq. 9.
        samples: K of each problem of Theorem 2; the first is 3.
        starts: random p from which the search starts; the worst end counts.

    Returns:
        Numbers: "gains" and "variances", as `gains` and `variances` describe them. Arrays: theirs.
    """
    stepped, gained = gains()
    least, simplex = variances(exponents, samples, starts)
    return {"gains": stepped, "variances": least}, gained | simplex


def gains() -> Computed:
    """Eq. 16 for four named p and for 300 random ones around the uniform, of 12 samples.

    The learning rate is the one at which the stated p gains most.

    Returns:
        Numbers: "rate"; "name", "gain" (R_t by enumeration), "drift" (the first term of Eq. 16),
        "mean_square" (the second), "noise" (the third) for the named p; "largest_error" of the identity,
        relative to the sum of the terms' sizes. Arrays: "gain" and "trace_variance" (named + draws,),
        the named first.
    """
    problem, random = draw(SAMPLES, seed=0), np.random.default_rng(1)
    stated = problem.stated_probabilities(1.0)
    shares = np.stack([np.ones(SAMPLES), stated, problem.losses, 1 / stated])
    named = shares / shares.sum(axis=1, keepdims=True)
    probabilities = [*named, *random.dirichlet(np.full(SAMPLES, CONCENTRATION), DRAWS)]
    estimates = problem.gradients / (SAMPLES * stated)[:, None]
    rate = problem.offset @ (stated @ estimates) / (stated @ (estimates**2).sum(axis=1))
    rows = np.array([terms(problem, p, 1 / (SAMPLES * p), rate) for p in probabilities])
    gain, right = rows[:, 0], rows[:, 1:4]
    error = np.abs(gain - right.sum(axis=1)) / np.abs(right).sum(axis=1)
    columns = zip(("gain", "drift", "mean_square", "noise"), rows[: len(named)].T.tolist(), strict=False)
    numbers = {"rate": float(rate), "largest_error": float(error.max()), "name": list(NAMES)}
    return numbers | dict(columns), {"gain": gain, "trace_variance": rows[:, 4]}


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


def variances(exponents: Sequence[float], samples: Sequence[int], starts: int) -> Computed:
    """tr Var[G] over a simplex of three samples, and its minimum found by search for more.

    Arguments are those of `compute`.

    Returns:
        Numbers, a value for each K and exponent: "samples", "exponent", "gain" (tr Var[G] at the uniform
        p over that at the stated one), "distance" (half Σ|p − stated p| at the farthest end of a
        search), "effective" (1/Σp², how many samples the stated p spreads over). Arrays: "points" (G, 3)
        and for each exponent e of `DRAWN` "relative_e" (G,), tr Var[G] over its least; "stated_e" (3,)
        and "searched_e" (3,).
    """
    arrays, rows = {"points": simplex_grid(EDGES)}, []
    for count, exponent in product(samples, exponents):
        problem, alpha = draw(count, seed=0), (exponent + 1) / 2
        scale, stated = needed_scale(problem, alpha), problem.stated_probabilities(alpha)
        factor = scale * np.linalg.norm(problem.gradients, axis=1)
        beginnings = np.random.default_rng(1).dirichlet(np.ones(count), starts)
        ends = np.array([search(factor, start) for start in beginnings])
        distances = 0.5 * np.abs(ends - stated).sum(axis=1)
        least, uniform = (variance_at(p, problem, scale) for p in (stated, np.full(count, 1 / count)))
        row = {"samples": count, "exponent": exponent, "gain": uniform / least}
        rows.append({**row, "distance": distances.max(), "effective": 1 / (stated**2).sum()})
        if count == 3 and exponent in DRAWN:
            relative = np.array([variance_at(p, problem, scale) for p in arrays["points"]]) / least
            simplex = {"relative": relative.astype(np.float32), "stated": stated}
            simplex["searched"] = ends[distances.argmax()]
            arrays |= {f"{name}_{exponent:g}": array for name, array in simplex.items()}
    return pd.DataFrame(rows).to_dict("list"), arrays


def simplex_grid(edges: int) -> np.ndarray:
    """(G, 3) points inside the simplex of three probabilities: centres of upright triangles."""
    corners = np.argwhere(np.add.outer(np.arange(edges), np.arange(edges)) < edges)
    first, second = (corners + 1 / 3).T / edges
    return np.stack([first, second, 1 - first - second], axis=1)


def needed_scale(problem: Problem, alpha: float) -> np.ndarray:
    """p_i w_i of Eq. 9, α/K · L_i^(α−1), (K,)."""
    return alpha / len(problem.losses) * problem.losses ** (alpha - 1)


def variance_at(probabilities: np.ndarray, problem: Problem, scale: np.ndarray) -> float:
    """tr Var[G] at any p (K,), with the weights that p_i w_i of Eq. 9 (K,) then asks for."""
    return trace_variance(probabilities, (scale / probabilities)[:, None] * problem.gradients)


def search(factor: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The p (K,) with least Σ c_i²/p_i, by L-BFGS from a start, without knowledge of Theorem 2.

    Searched over z with p = softmax(z); log Σ c_i²/p_i is convex in z.

    Args:
        factor: (K,) c_i, positive.
        start: (K,) probabilities, positive.
    """
    squares = (factor / factor.sum()) ** 2

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        p = softmax(z)
        parts = squares / p
        return float(np.log(parts.sum())), p - parts / parts.sum()

    options = {"maxiter": 5000, "ftol": 0.0, "gtol": 1e-6}
    end = minimize(objective, np.log(start), jac=True, method="L-BFGS-B", options=options)
    return softmax(end.x)
