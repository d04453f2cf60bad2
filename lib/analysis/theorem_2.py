"""AdaSample's Theorem 2, on a problem small enough to make everything in Sec. 3.2 explicit.

The theorem gives the p that minimises tr Var[G]. Under p_i w_i = α/K · L_i^(α−1) (Eq. 9), tr Var[G] = Σ
c_i² / p_i − ‖μ‖² with c_i = p_i w_i ‖∇L_i‖. By the Cauchy–Schwarz inequality (Σ c_i)² = (Σ (c_i/√p_i)
√p_i)² ≤ Σ c_i²/p_i · Σ p_i, with equality where p_i ∝ c_i, which is Eq. 17. The paper's proof calls the
sum Σ c_i²/p_i a harmonic mean of the p_i and minimises it. In fact the sum is inversely proportional to
one: with H the harmonic mean of the p_i weighted by c_i², Σ c_i²/p_i = Σ c_i² / H. So the variance is
smallest where H is largest, which is at p_i ∝ c_i.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from lib.analysis import EXPONENTS, Computed

DIMENSIONS = 3
# Problem sizes K, and number of random p from which a search starts.
SAMPLES, STARTS = (3, 12, 100), 3
# Exponents for which the simplex of three samples is kept, and number of triangles along its edge.
DRAWN, EDGES = (1, 3, 10), 60


def compute(exponents: Sequence[float] = EXPONENTS) -> Computed:
    """Compute tr Var[G] over a simplex of three samples, and search for its minimum for all `SAMPLES`.

    Args:
        exponents: values of 2α − 1, with α of Eq. 9.

    Returns:
        Numbers: "rows", one for each number of "samples" and "exponent", with "gain" (tr Var[G] at the
        uniform p over that at the stated p, Eq. 17), "distance" (half Σ|p − stated p| at the farthest
        end of a search) and "effective" (1/Σp², over how many samples the stated p spreads). Arrays:
        "points" (G, 3) and for each exponent e of `DRAWN` "relative_e" (G,), tr Var[G] over its minimum;
        "stated_e" (3,) and "searched_e" (3,), the stated p and the one found.
    """
    arrays = {"points": simplex_grid(EDGES)}
    rows = []
    for count, exponent in product(SAMPLES, exponents):
        losses, gradients = draw(count, seed=0)
        scale = needed_scale(losses, (exponent + 1) / 2)
        factor = scale * np.linalg.norm(gradients, axis=1)
        # Eq. 17: L_i^(α−1) ‖∇L_i‖ / Z.
        stated = factor / factor.sum()
        beginnings = np.random.default_rng(1).dirichlet(np.ones(count), STARTS)
        ends = np.array([search(factor, start) for start in beginnings])
        distances = 0.5 * np.abs(ends - stated).sum(axis=1)
        least = variance(stated, scale, gradients)
        uniform = variance(np.full(count, 1 / count), scale, gradients)
        rows.append(
            {
                "samples": count,
                "exponent": exponent,
                "gain": float(uniform / least),
                "distance": float(distances.max()),
                "effective": float(1 / (stated**2).sum()),
            }
        )
        if count == 3 and exponent in DRAWN:
            relative = variance(arrays["points"], scale, gradients) / least
            arrays[f"relative_{exponent:g}"] = relative.astype(np.float32)
            arrays[f"stated_{exponent:g}"] = stated
            arrays[f"searched_{exponent:g}"] = ends[distances.argmax()]
    return {"rows": rows}, arrays


def needed_scale(losses: np.ndarray, alpha: float) -> np.ndarray:
    """Return p_i w_i of Eq. 9, α/K · L_i^(α−1), (K,), for losses (K,)."""
    return alpha / len(losses) * losses ** (alpha - 1)


def variance(probabilities: np.ndarray, scale: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return tr Var[G] at any p (…, K), given p_i w_i (K,) and gradients (K, D)."""
    estimates = (scale / probabilities)[..., None] * gradients
    squares = ((estimates - scale @ gradients) ** 2).sum(axis=-1)
    return (probabilities * squares).sum(axis=-1)


def draw(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw losses L_i = ½ (x_i·θ − y_i)² (K,) and gradients ∇L_i (K, D) of linear least squares.

    The problem has an intercept, and θ_t is off the θ that generated the targets. The offset along the
    intercept gives most residuals one sign, so that losses and gradients differ by factors of a few and
    none is near zero merely because a residual changes sign.

    Args:
        samples: K, 1 or more.
        seed: seed of NumPy's generator.
    """
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(samples, DIMENSIONS))
    inputs[:, 0] = 1
    truth = random.normal(size=DIMENSIONS)
    targets = inputs @ truth + 0.5 * random.normal(size=samples)
    start = truth + 0.5 * random.normal(size=DIMENSIONS)
    start[0] = truth[0] + 2
    residuals = inputs @ start - targets
    return 0.5 * residuals**2, residuals[:, None] * inputs


def simplex_grid(edges: int) -> np.ndarray:
    """Return points inside the simplex of three probabilities, (G, 3): centres of upright triangles."""
    corners = np.argwhere(np.add.outer(np.arange(edges), np.arange(edges)) < edges)
    first, second = (corners + 1 / 3).T / edges
    return np.stack([first, second, 1 - first - second], axis=1)


def search(factor: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Find the p (K,) that minimises Σ c_i²/p_i, by L-BFGS from a start, without using Theorem 2.

    The search is over z with p = softmax(z); log Σ c_i²/p_i is convex in z.

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
