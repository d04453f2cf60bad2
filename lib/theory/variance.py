"""AdaSample's Theorem 2: the sampling probabilities at which tr Var[G] is least.

Under p_i w_i = α/K · L_i^(α−1) (Eq. 9), tr Var[G] = Σ c_i² / p_i − ‖μ‖² with c_i = p_i w_i ‖∇L_i‖.
By the Cauchy–Schwarz inequality (Σ c_i)² = (Σ (c_i/√p_i) √p_i)² ≤ Σ c_i²/p_i · Σ p_i, with equality
where p_i ∝ c_i: Eq. 17. The proof calls the sum a harmonic mean of the p_i that becomes least. It is
inversely proportional to one: with H the harmonic mean of the p_i weighted by c_i², Σ c_i²/p_i =
Σ c_i² / H. So the variance is least where H is largest, and that is at p_i ∝ c_i.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import softmax

from lib.theory import EXPONENTS, Computed
from lib.theory.progress import Problem, draw, trace_variance

# Exponents for which the simplex of three samples is kept, and triangles along an edge of it.
DRAWN, EDGES = (1, 3, 10), 60


def compute(
    exponents: Sequence[float] = EXPONENTS, samples: Sequence[int] = (3, 12, 100), starts: int = 3
) -> Computed:
    """tr Var[G] over a simplex of three samples, and its minimum found by search for more.

    Args:
        exponents: 2α − 1, with α of Eq. 9.
        samples: K of each problem; the first is 3.
        starts: random p from which the search starts; the worst end counts.

    Returns:
        Numbers, a value for each K and exponent: "samples", "exponent", "gain" (tr Var[G] at the uniform
        p over that at the stated one), "distance" (half Σ|p − stated p| at the farthest end of a
        search), "effective" (1/Σp², how many samples the stated p spreads over). Arrays: "points" (G, 3)
        and for each exponent e drawn "relative_e" (G,), tr Var[G] over its least; "stated_e" (3,) and
        "searched_e" (3,).
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
        terms = squares / p
        return float(np.log(terms.sum())), p - terms / terms.sum()

    options = {"maxiter": 5000, "ftol": 0.0, "gtol": 1e-6}
    end = minimize(objective, np.log(start), jac=True, method="L-BFGS-B", options=options)
    return softmax(end.x)
