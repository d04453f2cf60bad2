"""AdaSample's Eq. 10: is the drawn and weighted gradient one of (1/K) Σ L_i^α?

Eq. 9 asks for p_i w_i ∝ L_i^(α−1) over all samples. Eq. 12 takes p_i ∝ d^(2α−1) and w_i ∝ 1/d, which is
that for L = d² if the p_i share one normaliser. Alg. 1 normalises them within a class and for one
anchor: there p_i w_i = L_i^(α−1) / Z with a Z of its own for each anchor. Expectations are enumerated
exactly: they are sums of c_q ∇L_q over all pairs q, so a scheme is its coefficients c_q. The same is
then drawn at random with the library's own sampler and weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations

import numpy as np
import torch
from scipy.stats import sem
from torch import Tensor

from lib.distances import euclidean
from lib.pair_weights.inverse_distance import inverse_distance
from lib.samplers import adasample
from lib.samplers.candidates import Pool
from lib.theory import EXPONENTS, Computed

# Lengths of an input and of a descriptor.
INPUTS, OUTPUTS = 6, 4
# Form of w_i by the name it has here; all but the first with Alg. 1's probabilities.
ONE_Z = "one Z, 1/d"
SCHEMES = (ONE_Z, "per class, none", "raw", "batch_mean", "class, raw", "class")
BATCH_SCALED = {"batch_mean": "raw", "class": "class, raw"}
# Of the Monte Carlo check and of the curve over batch sizes.
DRAWN_EXPONENT = 10
# Classes, and patches of each; pairs a batch where weights are scaled to a batch mean of 1, and of the
# largest batch of the curve over batch sizes.
CLASSES, PATCHES, BATCH, LARGEST_BATCH = 8, 3, 4, 6


@dataclass(frozen=True)
class Pairs:
    """All Q pairs of an anchor and another patch of its class, at one θ.

    Attributes:
        descriptors: (P, k) of all patches, unit length, float64.
        sizes: (C,) patches of each class, which lie side by side.
        class_of, anchor, positive: (Q,) the class, and the two patches.
        distance: (Q,) Euclidean matching distance d.
        gradients: (Q, dim θ) of d².
        hinge, hinge_gradients: (Q,) max(1 + d² − d_neg², 0), and (Q, dim θ) of it.
    """

    descriptors: np.ndarray
    sizes: np.ndarray
    class_of: np.ndarray
    anchor: np.ndarray
    positive: np.ndarray
    distance: np.ndarray
    gradients: np.ndarray
    hinge: np.ndarray
    hinge_gradients: np.ndarray


def compute(exponents: Sequence[float] = EXPONENTS, draws: int = 20_000) -> Computed:
    """What each scheme's expectation is, beside what Eq. 10 says.

    Args:
        exponents: 2α − 1 = λ / L_avg, E of them.
        draws: batches of the Monte Carlo check.

    Returns:
        Numbers: "monte_carlo", rows of "scheme", "largest_z" (of the components of mean gradient minus
        exact expectation over standard error), "cosine" and "cosine_drawn". Arrays: "class_distance"
        (N,), mean matching distance; "exponents" (E,), and for each scheme the arrays of `expectation`,
        e.g. "cosine_<scheme>" (E,); "batch_sizes" (B,) and "by_batch_<scheme>" (B,), cosines at the
        drawn exponent.
    """
    pairs = draw((PATCHES,) * CLASSES, seed=0)
    arrays = {
        "class_distance": np.bincount(pairs.class_of, pairs.distance) / (PATCHES * (PATCHES - 1)),
        "exponents": np.array(exponents, dtype=float),
        "batch_sizes": np.arange(1, LARGEST_BATCH + 1),
    }
    for scheme in SCHEMES:
        rows = [expectation(pairs, exponent, scheme, BATCH) for exponent in exponents]
        arrays |= {f"{name}_{scheme}": np.array([row[name] for row in rows]) for name in rows[0]}
    for scheme in BATCH_SCALED:
        rows = [expectation(pairs, DRAWN_EXPONENT, scheme, size) for size in arrays["batch_sizes"]]
        arrays[f"by_batch_{scheme}"] = np.array([row["cosine"] for row in rows])
    return {"monte_carlo": _monte_carlo(pairs, draws)}, arrays


def draw(sizes: Sequence[int], seed: int) -> Pairs:
    """A problem whose classes differ in how far apart their patches lie, by a factor of five.

    Descriptors are x = W X / ‖W X‖ of inputs X, so that θ = W. A pair's negative is the patch of another
    class that is closest to its anchor; it is chosen once, which makes the hinge the pair's own.

    Args:
        sizes: patches of each class, 2 or more each; two classes or more.
        seed: of NumPy's generator.
    """
    random = np.random.default_rng(seed)
    class_of = np.repeat(np.arange(len(sizes)), sizes)
    spread = np.geomspace(0.2, 1.0, len(sizes))[class_of, None]
    centres = random.normal(size=(len(sizes), INPUTS))[class_of]
    patches = torch.from_numpy(centres + spread * random.normal(size=(len(class_of), INPUTS)))
    theta = torch.from_numpy(random.normal(size=(OUTPUTS, INPUTS)))
    same = class_of[:, None] == class_of
    anchor, positive = np.nonzero(same & ~np.eye(len(class_of), dtype=bool))

    def squared(theta: Tensor, other: np.ndarray) -> Tensor:
        x = torch.nn.functional.normalize(patches @ theta.mT, dim=1)
        return ((x[anchor] - x[other]) ** 2).sum(1)

    def hinge(theta: Tensor) -> Tensor:
        return (1 + squared(theta, positive) - squared(theta, negative)).clamp(min=0)

    described = torch.nn.functional.normalize(patches @ theta.mT, dim=1)
    apart = torch.cdist(described, described).numpy()
    negative = np.where(same, np.inf, apart).argmin(axis=1)[anchor]
    losses = (lambda theta: squared(theta, positive), hinge)
    gradients, hinge_gradients = (torch.func.jacrev(loss)(theta).flatten(1).numpy() for loss in losses)
    return Pairs(
        *(described.numpy(), np.array(sizes), class_of[anchor], anchor, positive),
        *(squared(theta, positive).sqrt().numpy(), gradients, hinge(theta).numpy(), hinge_gradients),
    )


def expectation(pairs: Pairs, exponent: float, scheme: str, batch: int) -> dict[str, object]:
    """What the expectation of a scheme is at an exponent 2α − 1, beside Eq. 10's ∇ (1/K) Σ L^α, L = d².

    Returns:
        "cosine" of the two; "length" of the first along the second, over the second; "hinge", the cosine
        with the hinge of Eq. 14 as L; "effective", E[w]² / E[w²], the fraction of a batch that the
        weights leave; "factor" (N,), a class's share of the weight over the share that Eq. 9 gives it.
    """
    got, needed = coefficients(pairs, exponent, scheme, batch), pairs.distance ** (exponent - 1)
    share, right = (np.bincount(pairs.class_of, c) / c.sum() for c in (got, needed))
    alpha, hinge = (exponent + 1) / 2, pairs.hinge
    expected, goal = got @ pairs.gradients, needed @ pairs.gradients * alpha / len(needed)
    # A pair with zero hinge has zero gradient; for α < 1 its power would still be infinite.
    by_hinge = np.power(hinge, alpha - 1, out=np.zeros_like(hinge), where=hinge > 0)
    drawn, weight = drawn_and_weighted(pairs, exponent, scheme)
    return {
        "factor": share / right,
        "cosine": cosine(expected, goal),
        "length": float(expected @ goal / (goal @ goal)),
        "hinge": cosine(got @ pairs.hinge_gradients, by_hinge @ pairs.hinge_gradients),
        "effective": float((drawn @ weight) ** 2 / (drawn @ weight**2)),
    }


def coefficients(pairs: Pairs, exponent: float, scheme: str, batch: int) -> np.ndarray:
    """c_q with E[(1/n) Σ w ∇L] = Σ_q c_q ∇L_q over the draw of a batch of n pairs, (Q,).

    Where weights are scaled to a mean of 1, every batch of n distinct classes is enumerated:
    E[(1/n) Σ_j n w_j/Σw 1(q_j = q)].

    Args:
        pairs: all Q pairs.
        exponent: 2α − 1.
        scheme: of `SCHEMES`.
        batch: n; matters where weights are scaled by the batch's mean.
    """
    drawn, weight = drawn_and_weighted(pairs, exponent, scheme)
    if scheme not in BATCH_SCALED:
        return drawn * weight
    within, total = drawn * len(pairs.sizes), np.zeros_like(drawn)
    by_class = [np.flatnonzero(pairs.class_of == c) for c in range(len(pairs.sizes))]
    groups = list(combinations(by_class, batch))
    for group in groups:
        chance = reduce(np.multiply.outer, (within[members] for members in group))
        mass = reduce(np.add.outer, (weight[members] for members in group))
        for axis, members in enumerate(group):
            others = tuple(other for other in range(batch) if other != axis)
            total[members] += weight[members] * (chance / mass).sum(axis=others)
    return total / len(groups)


def drawn_and_weighted(pairs: Pairs, exponent: float, scheme: str) -> tuple[np.ndarray, np.ndarray]:
    """P(q) and w_q before any scaling by the batch, (Q,) each.

    P is of Alg. 1 a random class, a random anchor of it, and Eq. 13 within the class; of Eq. 12 it has
    one normaliser for all pairs.
    """
    d, powers = pairs.distance, pairs.distance**exponent
    if scheme == ONE_Z:
        return powers / powers.sum(), 1 / d
    z, k = np.bincount(pairs.anchor, powers)[pairs.anchor], pairs.sizes[pairs.class_of]
    weights = {"per class, none": np.ones_like(d), "raw": 1 / d, "class, raw": z / d}
    return powers / z / (len(pairs.sizes) * k), weights[BATCH_SCALED.get(scheme, scheme)]


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Of the angle between two vectors."""
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def _monte_carlo(pairs: Pairs, draws: int) -> list[dict]:
    """Batches of the library's own sampler and weights; all classes are of one size."""
    generator = torch.Generator().manual_seed(0)
    order = torch.rand(draws, len(pairs.sizes), generator=generator).argsort(dim=1)[:, :BATCH]
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
    anchor, positive = patch[rows, choice.anchor], patch[rows, choice.positive]
    gradients = pairs.gradients[number[anchor, positive]].reshape(draws, BATCH, -1)
    goal, results = pairs.distance ** (DRAWN_EXPONENT - 1) @ pairs.gradients, []
    for scheme in ("batch_mean", "raw", "class"):
        weigh = torch.vmap(partial(inverse_distance, scale=scheme))
        weight = weigh(choice.distance.view(draws, BATCH), choice.log_normaliser.view(draws, BATCH))
        by_batch = (weight.numpy()[:, :, None] * gradients).mean(axis=1)
        mean = by_batch.mean(axis=0)
        exact = coefficients(pairs, DRAWN_EXPONENT, scheme, BATCH) @ pairs.gradients
        row = {"scheme": scheme, "largest_z": float(np.abs((mean - exact) / sem(by_batch)).max())}
        results.append({**row, "cosine": cosine(exact, goal), "cosine_drawn": cosine(mean, goal)})
    return results
