"""AdaSample's Eq. 10: is the drawn and weighted gradient one of (1/K) Σ L_i^α?

Eq. 9 asks for p_i w_i ∝ L_i^(α−1) over all samples. Eq. 12 takes p_i ∝ d^(2α−1) and w_i ∝ 1/d, which is
that for L = d² if the p_i share one normaliser. Alg. 1 normalises them within a class and for one
anchor: there p_i w_i = L_i^(α−1) / Z with a Z of its own for each anchor. Expectations are enumerated
exactly: they are sums of c_q ∇L_q over all pairs q, so a scheme is its coefficients c_q. The same is
then drawn at random with the library's own sampler and weights.
"""

from collections.abc import Sequence
from functools import partial, reduce
from itertools import combinations, product

import numpy as np
import torch
from scipy.stats import sem

from lib.distances import euclidean
from lib.pair_weights.inverse_distance import inverse_distance
from lib.samplers import adasample
from lib.samplers.candidates import Pool
from lib.theory import EXPONENTS, Computed
from lib.theory.small_classes import Pairs, draw

# Form of w_i by the name it has here; all but the first with Alg. 1's probabilities.
ONE_Z = "one Z, 1/d"
SCHEMES = (ONE_Z, "per class, none", "raw", "batch_mean", "class, raw", "class")
BATCH_SCALED = {"batch_mean": "raw", "class": "class, raw"}
# Of the Monte Carlo check and of the curve over batch sizes; those of the spread over problems.
DRAWN_EXPONENT, SPREAD_EXPONENTS = 10, (10, 20, 50)
# Class sizes of a second problem; patches a class of all others.
UNEQUAL, PATCHES = (2, 3, 4, 5, 2, 3, 4, 5), 3


def compute(
    classes: int = 8,
    exponents: Sequence[float] = EXPONENTS,
    batch: int = 4,
    largest_batch: int = 6,
    draws: int = 20_000,
    problems: int = 20,
) -> Computed:
    """What each scheme's expectation is, beside what Eq. 10 says.

    Args:
        classes: N, of 3 patches each.
        exponents: 2α − 1 = λ / L_avg, E of them.
        batch: pairs a batch, where weights are scaled to a batch mean of 1.
        largest_batch: of the curve over batch sizes.
        draws: batches of the Monte Carlo check.
        problems: how many others, for the spread over problems.

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
    pairs, *others = (draw((PATCHES,) * classes, seed) for seed in range(1 + problems))
    sizes = np.arange(1, largest_batch + 1)
    arrays = {
        "class_distance": np.bincount(pairs.class_of, pairs.distance) / (PATCHES * (PATCHES - 1)),
        "exponents": np.array(exponents, dtype=float),
    }
    for scheme in SCHEMES:
        rows = [_expected(pairs, exponent, scheme, batch) for exponent in exponents]
        arrays |= {f"{name}_{scheme}": np.array([row[name] for row in rows]) for name in rows[0]}
    arrays["batch_sizes"] = sizes
    for scheme in BATCH_SCALED:
        cosines = [_cosine(pairs, DRAWN_EXPONENT, scheme, int(size)) for size in sizes]
        arrays[f"by_batch_{scheme}"] = np.array(cosines)
    spread = []
    for scheme, exponent in product(SCHEMES, SPREAD_EXPONENTS):
        cosines = [_cosine(other, exponent, scheme, batch) for other in others]
        ends = zip(("lowest", "median", "highest"), np.quantile(cosines, (0, 0.5, 1)), strict=True)
        spread.append({"scheme": scheme, "exponent": exponent} | {k: float(v) for k, v in ends})
    numbers = {
        "drawn_exponent": DRAWN_EXPONENT,
        "monte_carlo": _monte_carlo(pairs, batch, draws),
        "unequal": _unequal(exponents),
        "problems": spread,
    }
    return numbers, arrays


def _expected(pairs: Pairs, exponent: float, scheme: str, batch: int) -> dict[str, object]:
    got, needed = coefficients(pairs, exponent, scheme, batch), pairs.distance ** (exponent - 1)
    share, right = (np.bincount(pairs.class_of, c) / c.sum() for c in (got, needed))
    alpha = (exponent + 1) / 2
    goal, expected = (c @ pairs.gradients["distance"] for c in (needed, got))
    goal = goal * alpha / len(needed)
    hinge = pairs.losses["hinge"]
    # A pair with zero hinge has zero gradient; for α < 1 its power would still be infinite.
    by_hinge = np.power(hinge, alpha - 1, out=np.zeros_like(hinge), where=hinge > 0)
    drawn, weight = probabilities(pairs, exponent, scheme), weights(pairs, exponent, scheme)
    return {
        "factor": share / right,
        "cosine": cosine(expected, goal),
        "length": float(expected @ goal / (goal @ goal)),
        "hinge": cosine(*(c @ pairs.gradients["hinge"] for c in (got, by_hinge))),
        "effective": float((drawn @ weight) ** 2 / (drawn @ weight**2)),
    }


def coefficients(pairs: Pairs, exponent: float, scheme: str, batch: int) -> np.ndarray:
    """c_q with E[(1/n) Σ w ∇L] = Σ_q c_q ∇L_q over the draw of a batch of n pairs, (Q,).

    Args:
        pairs: all Q pairs.
        exponent: 2α − 1.
        scheme: of `SCHEMES`.
        batch: n; matters where weights are scaled by the batch's mean.
    """
    drawn, weight = probabilities(pairs, exponent, scheme), weights(pairs, exponent, scheme)
    return _batch_scaled(pairs, drawn, weight, batch) if scheme in BATCH_SCALED else drawn * weight


def probabilities(pairs: Pairs, exponent: float, scheme: str) -> np.ndarray:
    """P(q), (Q,): of Alg. 1 a random class, a random anchor of it, and Eq. 13 within the class; of
    Eq. 12 with one normaliser for all pairs."""
    powers = pairs.distance**exponent
    if scheme == ONE_Z:
        return powers / powers.sum()
    normaliser = np.bincount(pairs.anchor, powers)[pairs.anchor]
    return powers / normaliser / (len(pairs.sizes) * np.array(pairs.sizes)[pairs.class_of])


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
    groups = list(combinations(members, batch))
    total = np.zeros_like(drawn)
    for group in groups:
        chance = reduce(np.multiply.outer, (within[pairs_of_class] for pairs_of_class in group))
        mass = reduce(np.add.outer, (weight[pairs_of_class] for pairs_of_class in group))
        for axis, pairs_of_class in enumerate(group):
            others = tuple(other for other in range(batch) if other != axis)
            total[pairs_of_class] += weight[pairs_of_class] * (chance / mass).sum(axis=others)
    return total / len(groups)


def _cosine(pairs: Pairs, exponent: float, scheme: str, batch: int) -> float:
    gradients = pairs.gradients["distance"]
    got = coefficients(pairs, exponent, scheme, batch) @ gradients
    return cosine(got, pairs.distance ** (exponent - 1) @ gradients)


def _monte_carlo(pairs: Pairs, batch: int, draws: int) -> list[dict]:
    """Batches of the library's own sampler and weights; all classes are of one size."""
    generator = torch.Generator().manual_seed(0)
    order = torch.rand(draws, len(pairs.sizes), generator=generator).argsort(dim=1)[:, :batch]
    patch = order.reshape(-1, 1) * PATCHES + torch.arange(PATCHES)
    counts = torch.full((len(patch),), PATCHES)
    pool = Pool(patch, torch.zeros(patch.shape), torch.ones_like(patch, dtype=torch.bool), counts)
    sampler = adasample.build(distance=euclidean.build(power=2), lam=DRAWN_EXPONENT)
    sampler.observe(None, torch.ones(1, dtype=torch.float64))
    descriptors = torch.from_numpy(pairs.descriptors)
    choice = sampler.choose(pool, lambda: descriptors[patch], generator)

    number = np.full((len(pairs.descriptors),) * 2, -1)
    number[pairs.anchor, pairs.positive] = np.arange(len(pairs.anchor))
    rows = torch.arange(len(patch))
    drawn = number[patch[rows, choice.anchor].numpy(), patch[rows, choice.positive].numpy()]
    all_gradients = pairs.gradients["distance"]
    gradients = all_gradients[drawn].reshape(draws, batch, -1)
    goal = pairs.distance ** (DRAWN_EXPONENT - 1) @ all_gradients
    results = []
    for scheme in ("batch_mean", "raw", "class"):
        weigh = torch.vmap(partial(inverse_distance, scale=scheme))
        weight = weigh(choice.distance.view(draws, batch), choice.log_normaliser.view(draws, batch))
        by_batch = (weight.numpy()[:, :, None] * gradients).mean(axis=1)
        mean = by_batch.mean(axis=0)
        exact = coefficients(pairs, DRAWN_EXPONENT, scheme, batch) @ all_gradients
        results.append(
            {
                "scheme": scheme,
                "largest_z": float(np.abs((mean - exact) / sem(by_batch)).max()),
                "components": len(mean),
                "cosine": cosine(exact, goal),
                "cosine_drawn": cosine(mean, goal),
            }
        )
    return results


def _unequal(exponents: Sequence[float]) -> list[dict]:
    pairs, rows = draw(UNEQUAL, seed=0), []
    gradients = pairs.gradients["distance"]
    for exponent in exponents:
        schemes = {name: coefficients(pairs, exponent, name, 1) for name in (ONE_Z, "class, raw")}
        schemes["class, raw, times k"] = schemes["class, raw"] * np.array(pairs.sizes)[pairs.class_of]
        goal = pairs.distance ** (exponent - 1) @ gradients
        for name, c in schemes.items():
            rows.append({"scheme": name, "exponent": exponent, "cosine": cosine(c @ gradients, goal)})
    return rows
