"""A small differentiable problem with classes of patches, in which every pair can be enumerated.

Descriptors are x = W X / ‖W X‖ of inputs X, so that θ = W. A sample of AdaSample's Sec. 3.2 is an anchor
and a positive of one class; its loss is the squared matching distance, or the hinge of Eq. 14 with a
negative chosen beforehand, which makes the loss the pair's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Pairs:
    """All Q pairs of an anchor and another patch of its class, at one θ.

    Attributes:
        descriptors: (P, k) of all patches, unit length, float64.
        sizes: patches of each class, which lie side by side.
        class_of, anchor, positive: (Q,) the class, and the two patches.
        distance: (Q,) Euclidean matching distance d.
        losses: (Q,) by kind: "distance", d²; "hinge", max(t + d² − d_neg², 0) with t = 1.
        gradients: (Q, dim θ) by kind.
    """

    descriptors: np.ndarray
    sizes: tuple[int, ...]
    class_of: np.ndarray
    anchor: np.ndarray
    positive: np.ndarray
    distance: np.ndarray
    losses: dict[str, np.ndarray]
    gradients: dict[str, np.ndarray]


def draw(sizes: Sequence[int], seed: int, inputs: int = 6, outputs: int = 4) -> Pairs:
    """A problem whose classes differ in how far apart their patches lie, by a factor of five.

    Args:
        sizes: patches of each class, 2 or more each; two classes or more.
        seed: of NumPy's generator.
        inputs, outputs: lengths of X and of the descriptor.

    Raises:
        ValueError: fewer than two classes, or a class without a pair.
    """
    if len(sizes) < 2 or min(sizes) < 2:
        raise ValueError(f"two classes of two patches or more are needed, got sizes {list(sizes)}")
    random = np.random.default_rng(seed)
    of_patch = np.repeat(np.arange(len(sizes)), sizes)
    spread = np.geomspace(0.2, 1.0, len(sizes))[of_patch, None]
    centres = random.normal(size=(len(sizes), inputs))[of_patch]
    patches = torch.from_numpy(centres + spread * random.normal(size=(len(of_patch), inputs)))
    weights = torch.from_numpy(random.normal(size=(outputs, inputs)))

    same = of_patch[:, None] == of_patch[None, :]
    anchor, positive = np.nonzero(same & ~np.eye(len(of_patch), dtype=bool))

    def described(weights: Tensor) -> Tensor:
        return torch.nn.functional.normalize(patches @ weights.mT, dim=1)

    def squared(x: Tensor, first: np.ndarray, second: np.ndarray) -> Tensor:
        return ((x[first] - x[second]) ** 2).sum(1)

    with torch.no_grad():
        apart = torch.cdist(described(weights), described(weights)).numpy()
    # The negative of a pair: the patch of another class that is closest to its anchor.
    negative = np.where(same, np.inf, apart).argmin(axis=1)[anchor]

    def distance(weights: Tensor) -> Tensor:
        return squared(described(weights), anchor, positive)

    def hinge(weights: Tensor) -> Tensor:
        return (1 + distance(weights) - squared(described(weights), anchor, negative)).clamp(min=0)

    kinds = {"distance": distance, "hinge": hinge}
    jacobians = {kind: torch.func.jacrev(of)(weights).flatten(1) for kind, of in kinds.items()}
    return Pairs(
        descriptors=described(weights).numpy(),
        sizes=tuple(sizes),
        class_of=of_patch[anchor],
        anchor=anchor,
        positive=positive,
        distance=distance(weights).sqrt().numpy(),
        losses={kind: of(weights).numpy() for kind, of in kinds.items()},
        gradients={kind: jacobian.numpy() for kind, jacobian in jacobians.items()},
    )
