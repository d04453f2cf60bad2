"""AdaSample's Eq. 10: is the drawn and weighted gradient one of (1/K) Σ L_i^α?

Eq. 9 asks for p_i w_i ∝ L_i^(α−1) over all samples. Eq. 12 takes p_i ∝ d^(2α−1) and w_i ∝ 1/d, which is
that for L = d² if the p_i share one normaliser. Alg. 1 normalises them within a class and for one
anchor: there p_i w_i = L_i^(α−1) / Z with a Z of its own for each anchor. Expectations are enumerated
exactly: they are sums of c_q ∇L_q over all pairs q, so a scheme is its coefficients c_q. The same is
then drawn at random with the library's own sampler and weights.
"""

from collections.abc import Sequence
from functools import partial, reduce
from itertools import combinations

import numpy as np
import torch
from scipy.stats import sem

from lib.distances import euclidean
from lib.pair_weights.inverse_distance import inverse_distance
from lib.samplers import adasample
from lib.samplers.candidates import Pool
from lib.theory import EXPONENTS
from lib.theory.small_classes import Pairs, draw

# Form of w_i by the name it has here; all but the first with Alg. 1's probabilities.
ONE_Z = "one Z, 1/d"
SCHEMES = (ONE_Z, "per class, none", "raw", "batch_mean", "class, raw", "class")
BATCH_SCALED = {"batch_mean": "raw", "class": "class, raw"}


def compute(
    classes: int = 8,
    patches: int = 3,
    exponents: Sequence[float] = EXPONENTS,
    batch: int = 4,
    largest_batch: int = 6,
    drawn_exponent: float = 10,
    draws: int = 20_000,
    unequal: Sequence[int] = (2, 3, 4, 5, 2, 3, 4, 5),
    problems: int = 20,
    spread_exponents: Sequence[float] = (10, 20, 50),
    seed: int = 0,
) -> tuple[dict[str, float | list], dict[str, np.ndarray]]:
    """What each scheme's expectation is, beside what Eq. 10 says.

    Args:
        classes, patches: N and k.
        exponents: 2α − 1 = λ / L_avg, E of them.
        batch: pairs a batch, where weights are scaled to a batch mean of 1.
        largest_batch: of the curve over batch sizes.
        drawn_exponent, draws: of the Monte Carlo check: the exponent, and batches drawn.
        unequal: class sizes of a second problem.
        problems: how many others, of the seeds after this one, for the spread over problems.
        spread_exponents: at which that spread is taken.
        seed: of the problems and of the draws.

    Returns:
        Numbers: "drawn_exponent"; "monte_carlo", rows of "scheme", "largest_z" (of the components of
        mean gradient minus exact expectation over standard error), "components", "cosine" and
        "cosine_drawn"; "unequal", rows of "scheme", "exponent" and "cosine" for classes of unequal size
        with one Z, with w = Z/d and with w = k Z/d; "problems", rows of "scheme", "exponent", "lowest",
        "median" and "highest" cosine over the other problems. Arrays: "class_distance" (N,), mean
        matching distance; "exponents" (E,), and for each scheme "cosine_<scheme>" (E,) of the
        expectation with ∇ Σ L^α / K, L = d²; "length_<scheme>" (E,) of the first along the second, over
        the second; "hinge_<scheme>" (E,), the cosine with the hinge of Eq. 14 as L;
        "effective_<scheme>" (E,), E[w]² / E[w²], the fraction of a batch that the weights leave;
        "factor_<scheme>" (E, N), a class's share of the weight over the share that Eq. 9 gives it;
        "batch_sizes" (B,) and "by_batch_<scheme>" (B,), cosines at the drawn exponent.
    """
    pairs = draw((patches,) * classes, seed)
    arrays = {
        "class_distance": _by_class(pairs, pairs.distance) / (patches * (patches - 1)),
        "exponents": np.array(exponents, dtype=float),
    }
    for scheme in SCHEMES:
        at = [_measured(pairs, exponent, scheme, batch) for exponent in exponents]
        arrays |= {f"{name}_{scheme}": np.array([of[name] for of in at]) for name in at[0]}

    arrays["batch_sizes"] = np.arange(1, largest_batch + 1)
    for scheme in BATCH_SCALED:
        cosines = [_cosine(pairs, drawn_exponent, scheme, int(n)) for n in arrays["batch_sizes"]]
        arrays[f"by_batch_{scheme}"] = np.array(cosines)
    others = [draw((patches,) * classes, seed + 1 + other) for other in range(problems)]
    numbers = {
        "drawn_exponent": drawn_exponent,
        "monte_carlo": _monte_carlo(pairs, drawn_exponent, batch, draws, seed),
        "unequal": _unequal(draw(unequal, seed), exponents),
        "problems": [
            {"scheme": scheme, "exponent": exponent, **_spread(others, exponent, scheme, batch)}
            for scheme in SCHEMES
            for exponent in spread_exponents
        ],
    }
    return numbers, arrays


def _measured(pairs: Pairs, exponent: float, scheme: str, batch: int) -> dict[str, object]:
    got, needed = coefficients(pairs, exponent, scheme, batch), pairs.distance ** (exponent - 1)
    share, right = (_by_class(pairs, c) / c.sum() for c in (got, needed))
    alpha = (exponent + 1) / 2
    goal, expected = (c @ pairs.gradients["distance"] for c in (needed, got))
    goal = goal * alpha / len(needed)
    drawn, weight = probabilities(pairs, exponent, scheme), weights(pairs, exponent, scheme)
    return {
        "factor": share / right,
        "cosine": cosine(expected, goal),
        "length": float(expected @ goal / (goal @ goal)),
        "hinge": _hinge_cosine(pairs, got, alpha),
        "effective": float((drawn @ weight) ** 2 / (drawn @ weight**2)),
    }


def coefficients(pairs: Pairs, exponent: float, scheme: str, batch: int) -> np.ndarray:
    """c_q with E[(1/n) Σ w ∇L] = Σ_q c_q ∇L_q over the draw of a batch of n pairs, (Q,).

    Args:
        pairs: all Q pairs.
        exponent: 2α − 1.
        scheme: of `SCHEMES`.
        batch: n; matters where weights are scaled by the batch's mean.

    Raises:
        ValueError: an unknown scheme.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; there are: {', '.join(SCHEMES)}")
    drawn, weight = probabilities(pairs, exponent, scheme), weights(pairs, exponent, scheme)
    return _batch_scaled(pairs, drawn, weight, batch) if scheme in BATCH_SCALED else drawn * weight


def probabilities(pairs: Pairs, exponent: float, scheme: str) -> np.ndarray:
    """P(q), (Q,): of Alg. 1 a random class, a random anchor of it, and Eq. 13 within the class; of
    Eq. 12 with one normaliser for all pairs."""
    powers = pairs.distance**exponent
    if scheme == ONE_Z:
        return powers / powers.sum()
    of_anchor = np.bincount(pairs.anchor, powers)[pairs.anchor]
    return powers / of_anchor / (len(pairs.sizes) * np.array(pairs.sizes)[pairs.class_of])


def weights(pairs: Pairs, exponent: float, scheme: str) -> np.ndarray:
    """w_q before any scaling by the batch, (Q,)."""
    if scheme == "per class, none":
        return np.ones_like(pairs.distance)
    if BATCH_SCALED.get(scheme, scheme) in ("raw", ONE_Z):
        return 1 / pairs.distance
    return np.bincount(pairs.anchor, pairs.distance**exponent)[pairs.anchor] / pairs.distance


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Of the angle between two vectors."""
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def _batch_scaled(pairs: Pairs, drawn: np.ndarray, weight: np.ndarray, batch: int) -> np.ndarray:
    """E[(1/n) Σ_j n w_j/Σw 1(q_j = q)] over batches of n distinct classes, every one enumerated."""
    members = [np.flatnonzero(pairs.class_of == c) for c in range(len(pairs.sizes))]
    within = drawn * len(pairs.sizes)
    chosen = list(combinations(range(len(members)), batch))
    total = np.zeros_like(drawn)
    for group in chosen:
        inside = [members[c] for c in group]
        chance = reduce(np.multiply.outer, (within[of] for of in inside))
        mass = reduce(np.add.outer, (weight[of] for of in inside))
        for place, of in enumerate(inside):
            others = tuple(axis for axis in range(batch) if axis != place)
            total[of] += weight[of] * (chance / mass).sum(axis=others)
    return total / len(chosen)


def _by_class(pairs: Pairs, values: np.ndarray) -> np.ndarray:
    return np.bincount(pairs.class_of, values)


def _cosine(pairs: Pairs, exponent: float, scheme: str, batch: int) -> float:
    gradients = pairs.gradients["distance"]
    got = coefficients(pairs, exponent, scheme, batch) @ gradients
    return cosine(got, pairs.distance ** (exponent - 1) @ gradients)


def _hinge_cosine(pairs: Pairs, got: np.ndarray, alpha: float) -> float:
    loss, gradients = pairs.losses["hinge"], pairs.gradients["hinge"]
    # A pair with zero hinge has zero gradient; for α < 1 its power would still be infinite.
    needed = np.power(loss, alpha - 1, out=np.zeros_like(loss), where=loss > 0)
    return cosine(got @ gradients, needed @ gradients)


def _monte_carlo(pairs: Pairs, exponent: float, batch: int, draws: int, seed: int) -> list[dict]:
    """Batches of the library's own sampler and weights; all classes are of one size."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(draws, len(pairs.sizes), generator=generator).argsort(dim=1)[:, :batch]
    patch = order.reshape(-1, 1) * pairs.sizes[0] + torch.arange(pairs.sizes[0])
    counts = torch.full((len(patch),), pairs.sizes[0])
    pool = Pool(patch, torch.zeros(patch.shape), torch.ones_like(patch, dtype=torch.bool), counts)
    sampler = adasample.build(distance=euclidean.build(power=2), lam=exponent)
    sampler.observe(None, torch.ones(1, dtype=torch.float64))
    descriptors = torch.from_numpy(pairs.descriptors)
    choice = sampler.choose(pool, lambda: descriptors[patch], generator)

    number = np.full((len(pairs.descriptors),) * 2, -1)
    number[pairs.anchor, pairs.positive] = np.arange(len(pairs.anchor))
    rows = torch.arange(len(patch))
    drawn = number[patch[rows, choice.anchor].numpy(), patch[rows, choice.positive].numpy()]
    gradients = pairs.gradients["distance"][drawn].reshape(draws, batch, -1)
    goal = pairs.distance ** (exponent - 1) @ pairs.gradients["distance"]
    found = []
    for scale in ("batch_mean", "raw", "class"):
        weigh = torch.vmap(partial(inverse_distance, scale=scale))
        weight = weigh(choice.distance.view(draws, batch), choice.log_normaliser.view(draws, batch))
        each = (weight.numpy()[:, :, None] * gradients).mean(axis=1)
        mean, error = each.mean(axis=0), sem(each)
        exact = coefficients(pairs, exponent, scale, batch) @ pairs.gradients["distance"]
        found.append(
            {
                "scheme": scale,
                "largest_z": float(np.abs((mean - exact) / error).max()),
                "components": len(mean),
                "cosine": cosine(exact, goal),
                "cosine_drawn": cosine(mean, goal),
            }
        )
    return found


def _spread(problems: Sequence[Pairs], exponent: float, scheme: str, batch: int) -> dict[str, float]:
    cosines = [_cosine(pairs, exponent, scheme, batch) for pairs in problems]
    quantiles = np.quantile(cosines, (0, 0.5, 1)).tolist()
    return dict(zip(("lowest", "median", "highest"), quantiles, strict=True))


def _unequal(pairs: Pairs, exponents: Sequence[float]) -> list[dict]:
    gradients, rows = pairs.gradients["distance"], []
    for exponent in exponents:
        by_class = coefficients(pairs, exponent, "class, raw", 1)
        schemes = {
            ONE_Z: coefficients(pairs, exponent, ONE_Z, 1),
            "class, raw": by_class,
            "class, raw, times k": by_class * np.array(pairs.sizes)[pairs.class_of],
        }
        goal = pairs.distance ** (exponent - 1) @ gradients
        for name, c in schemes.items():
            rows.append({"scheme": name, "exponent": exponent, "cosine": cosine(c @ gradients, goal)})
    return rows
