"""AdaSample's Eq. 10: is the expected sampled and weighted gradient that of (1/K) Σ L_i^α?

Eq. 9 asks for p_i w_i ∝ L_i^(α−1) over all samples. Eq. 12 takes p_i ∝ d^(2α−1) and w_i ∝ 1/d, which
satisfies Eq. 9 for L = d² if the p_i share one normaliser. Alg. 1 normalises them within a class and for
one anchor, so that p_i w_i = L_i^(α−1) / Z with a separate Z for each anchor. Expectations are
enumerated exactly, as sums of P(q) w_q ∇L_q over all pairs q. Weights scaled to a batch mean of 1 have
the same expected direction as unscaled ones, up to a bias that vanishes as batches grow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from lib.analysis import EXPONENTS, Computed

# Lengths of an input and of a descriptor; number of classes, and of patches in each.
INPUTS = 6
OUTPUTS = 4
CLASSES = 8
PATCHES = 3
# Forms of sampling and weighting: how p_i is normalised, and w_i.
ONE_Z = "one Z (Eq. 9), 1/d"
UNWEIGHTED = "Z per class, no weight"
RAW = "Z per class, 1/d (raw)"
Z_OVER_D = "Z per class, Z/d"
FORMS = (ONE_Z, UNWEIGHTED, RAW, Z_OVER_D)


@dataclass(frozen=True)
class Pairs:
    """All Q pairs of an anchor and another patch of its class, at one θ.

    Attributes:
        descriptors: (P, k) of all patches, unit length, float64.
        sizes: (C,) number of patches in each class; the patches of a class are adjacent.
        class_of, anchor, positive: (Q,) the class and the two patches of each pair.
        distance: (Q,) Euclidean matching distance d.
        gradients: (Q, dim θ) gradients of d².
    """

    descriptors: np.ndarray
    sizes: np.ndarray
    class_of: np.ndarray
    anchor: np.ndarray
    positive: np.ndarray
    distance: np.ndarray
    gradients: np.ndarray


def compute(exponents: Sequence[float] = EXPONENTS) -> Computed:
    """Compare the expectation of each form with Eq. 10.

    Args:
        exponents: values of 2α − 1 = λ / L_avg, E of them.

    Returns:
        Numbers: "rows", one for each form of `FORMS` and "exponent", with the numbers of `expectation`.
        Arrays: "class_distance" (N,), mean matching distance, and "factor" (F, E, N), a class's share of
        the weight over the share that Eq. 9 gives it.
    """
    pairs = draw((PATCHES,) * CLASSES, seed=0)
    rows = []
    factor = np.empty((len(FORMS), len(exponents), CLASSES))
    for (f, form), (e, exponent) in product(enumerate(FORMS), enumerate(exponents)):
        row, factor[f, e] = expectation(pairs, exponent, form)
        rows.append({"form": form, "exponent": exponent, **row})
    distance = np.bincount(pairs.class_of, pairs.distance) / (PATCHES * (PATCHES - 1))
    return {"rows": rows}, {"class_distance": distance, "factor": factor}


def draw(sizes: Sequence[int], seed: int) -> Pairs:
    """Draw a problem in which the distances between a class's patches differ by class, up to fivefold.

    Descriptors are x = W X / ‖W X‖ for inputs X, with θ = W.

    Args:
        sizes: patches in each class, 2 or more each; two classes or more.
        seed: seed of NumPy's generator.
    """
    random = np.random.default_rng(seed)
    class_of = np.repeat(np.arange(len(sizes)), sizes)
    spread = np.geomspace(0.2, 1.0, len(sizes))[class_of, None]
    centres = random.normal(size=(len(sizes), INPUTS))[class_of]
    patches = torch.from_numpy(centres + spread * random.normal(size=(len(class_of), INPUTS)))
    theta = torch.from_numpy(random.normal(size=(OUTPUTS, INPUTS)))
    anchor, positive = np.nonzero((class_of[:, None] == class_of) & ~np.eye(len(class_of), dtype=bool))

    def described(theta: Tensor) -> Tensor:
        return torch.nn.functional.normalize(patches @ theta.mT, dim=1)

    def squared(theta: Tensor) -> Tensor:
        x = described(theta)
        return ((x[anchor] - x[positive]) ** 2).sum(1)

    return Pairs(
        descriptors=described(theta).numpy(),
        sizes=np.array(sizes),
        class_of=class_of[anchor],
        anchor=anchor,
        positive=positive,
        distance=squared(theta).sqrt().numpy(),
        gradients=torch.func.jacrev(squared)(theta).flatten(1).numpy(),
    )


def expectation(pairs: Pairs, exponent: float, form: str) -> tuple[dict[str, float], np.ndarray]:
    """Compare a form's expectation at an exponent 2α − 1 with Eq. 10's ∇ (1/K) Σ L^α, L = d².

    Returns:
        "cosine" of the angle between the two; "length", the first projected on the second, over the
        length of the second; "effective", E[w]² / E[w²], the effective fraction of a batch under the
        weights. Then (N,), each class's share of the weight over the share that Eq. 9 gives it.
    """
    drawn, weight = drawn_and_weighted(pairs, exponent, form)
    got = drawn * weight
    needed = pairs.distance ** (exponent - 1)
    share = np.bincount(pairs.class_of, got) / got.sum()
    right = np.bincount(pairs.class_of, needed) / needed.sum()
    expected = got @ pairs.gradients
    goal = needed @ pairs.gradients * (exponent + 1) / 2 / len(needed)
    along = expected @ goal / np.linalg.norm(goal)
    row = {
        "cosine": float(along / np.linalg.norm(expected)),
        "length": float(along / np.linalg.norm(goal)),
        "effective": float(got.sum() ** 2 / (got @ weight)),
    }
    return row, share / right


def drawn_and_weighted(pairs: Pairs, exponent: float, form: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sampling probabilities P(q) and the weights w_q, (Q,) each.

    With Alg. 1, P draws a random class, a random anchor in it, and a positive by Eq. 13 within the
    class. With Eq. 12, P has one normaliser for all pairs.
    """
    d = pairs.distance
    powers = d**exponent
    if form == ONE_Z:
        return powers / powers.sum(), 1 / d
    z = np.bincount(pairs.anchor, powers)[pairs.anchor]
    k = pairs.sizes[pairs.class_of]
    weights = {UNWEIGHTED: np.ones_like(d), RAW: 1 / d, Z_OVER_D: z / d}
    return powers / z / (len(pairs.sizes) * k), weights[form]
