"""AdaSample's Theorem 2: the sampling probabilities at which tr Var[G] is least.

Under p_i w_i = α/K · L_i^(α−1) (Eq. 9), tr Var[G] = Σ c_i² / p_i − ‖μ‖² with c_i = p_i w_i ‖∇L_i‖.
By the Cauchy–Schwarz inequality (Σ c_i)² = (Σ (c_i/√p_i) √p_i)² ≤ Σ c_i²/p_i · Σ p_i, with equality
where p_i ∝ c_i: Eq. 17. The proof calls the sum a harmonic mean of the p_i that becomes least. It is
inversely proportional to one: with H the harmonic mean of the p_i weighted by c_i², Σ c_i²/p_i =
Σ c_i² / H. So the variance is least where H is largest, and that is at p_i ∝ c_i.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from lib.theory import EXPONENTS
from lib.theory.least_squares import draw, needed_scale, stated_probabilities, trace_variance


def compute(
    exponents: Sequence[float] = EXPONENTS,
    drawn: Sequence[float] = (1, 3, 10),
    samples: Sequence[int] = (3, 12, 100),
    dimensions: int = 3,
    grid: int = 60,
    starts: int = 3,
    seed: int = 0,
) -> tuple[dict[str, float | list], dict[str, np.ndarray]]:
    """tr Var[G] over a simplex of three samples, and its minimum found by search for more.

    Args:
        exponents: 2α − 1, with α of Eq. 9.
        drawn: those of them for which the simplex is kept.
        samples: K of each problem; the first must be 3.
        dimensions: D.
        grid: triangles along an edge of the simplex.
        starts: random p from which the search starts; the worst end counts.
        seed: of problems and starts.

    Returns:
        Numbers, a value for each K and exponent: "samples", "exponent", "least" (tr Var[G] at the stated
        p), "uniform" (there), "gain" (their quotient), "distance" (half Σ|p − stated p| at the farthest
        end of a search), "effective" (1/Σp², how many samples the stated p spreads over). Arrays:
        "points" (G, 3) and for each exponent e drawn "relative_e" (G,), tr Var[G] over its least;
        "stated_e" (3,) and "searched_e" (3,).

    Raises:
        ValueError: the first K is not 3.
    """
    if samples[0] != 3:
        raise ValueError(f"the drawn simplex has three corners; samples begin with {samples[0]}")
    arrays: dict[str, np.ndarray] = {"points": simplex_grid(grid)}
    rows: list[dict[str, float]] = []
    for count in samples:
        problem = draw(count, dimensions, seed)
        for exponent in exponents:
            alpha = (exponent + 1) / 2
            scale = needed_scale(problem.losses, alpha)

            def at(p: np.ndarray, scale: np.ndarray = scale, gradients=problem.gradients) -> float:
                return trace_variance(p, (scale / p)[:, None] * gradients)

            stated = stated_probabilities(problem.losses, problem.gradients, alpha)
            uniform = np.full(count, 1 / count)
            random = np.random.default_rng(seed + 1)
            factor = scale * np.linalg.norm(problem.gradients, axis=1)
            ends = [search(factor, start) for start in random.dirichlet(np.ones(count), starts)]
            far = [0.5 * float(np.abs(end - stated).sum()) for end in ends]
            least = at(stated)
            rows.append(
                {
                    "samples": count,
                    "exponent": exponent,
                    "least": least,
                    "uniform": at(uniform),
                    "gain": at(uniform) / least,
                    "distance": max(far),
                    "effective": float(1 / (stated**2).sum()),
                }
            )
            if count == 3 and exponent in drawn:
                relative = np.array([at(p) for p in arrays["points"]]) / least
                arrays[f"relative_{exponent:g}"] = relative.astype(np.float32)
                arrays[f"stated_{exponent:g}"] = stated
                arrays[f"searched_{exponent:g}"] = ends[int(np.argmax(far))]
    return {name: [row[name] for row in rows] for name in rows[0]}, arrays


def simplex_grid(edges: int) -> np.ndarray:
    """(G, 3) points inside the simplex of three probabilities: centres of upright triangles."""
    steps = [(i, j) for i in range(edges) for j in range(edges - i)]
    first, second = (np.array(steps) + 1 / 3).T / edges
    return np.stack([first, second, 1 - first - second], axis=1)


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
        each = squares / p
        return float(np.log(each.sum())), p - each / each.sum()

    options = {"maxiter": 5000, "ftol": 0.0, "gtol": 1e-6}
    found = minimize(objective, np.log(start), jac=True, method="L-BFGS-B", options=options)
    return softmax(found.x)
