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

# Lengths of X and of the descriptor.
INPUTS, OUTPUTS = 6, 4


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


def draw(sizes: Sequence[int], seed: int) -> Pairs:
    """A problem whose classes differ in how far apart their patches lie, by a factor of five.

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
    same = class_of[:, None] == class_of[None, :]
    anchor, positive = np.nonzero(same & ~np.eye(len(class_of), dtype=bool))

    def descriptors(theta: Tensor) -> Tensor:
        return torch.nn.functional.normalize(patches @ theta.mT, dim=1)

    # The negative of a pair: the patch of another class that is closest to its anchor.
    apart = torch.cdist(descriptors(theta), descriptors(theta)).numpy()
    negative = np.where(same, np.inf, apart).argmin(axis=1)[anchor]

    def squared(theta: Tensor, other: np.ndarray) -> Tensor:
        x = descriptors(theta)
        return ((x[anchor] - x[other]) ** 2).sum(1)

    def hinge(theta: Tensor) -> Tensor:
        return (1 + squared(theta, positive) - squared(theta, negative)).clamp(min=0)

    kinds = {"distance": lambda theta: squared(theta, positive), "hinge": hinge}
    return Pairs(
        descriptors=descriptors(theta).numpy(),
        sizes=tuple(sizes),
        class_of=class_of[anchor],
        anchor=anchor,
        positive=positive,
        distance=squared(theta, positive).sqrt().numpy(),
        losses={kind: loss(theta).numpy() for kind, loss in kinds.items()},
        gradients={k: torch.func.jacrev(loss)(theta).flatten(1).numpy() for k, loss in kinds.items()},
    )
