"""A network's descriptors of n matching pairs, and the triplets from which losses are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from lib.losses.negatives import Negatives


@dataclass(frozen=True)
class Descriptions:
    """Descriptors of n matching pairs; index 0 holds the anchors, 1 the positives.

    Attributes:
        raw: (2, n, k) float32, before normalisation or head; used by R_L2 and L2-Net's loss.
        value: (2, n, k) float32, the descriptors that the loss differentiates: of unit length, or
            tanh values of a binary head.
        binary: (2, n, k) without gradient, the signs that are compared at test in place of `value`;
            None where `value` itself is compared.
        maps: intermediate feature maps, (2, n, …) each, from networks that return them.
    """

    raw: Tensor
    value: Tensor
    binary: Tensor | None = None
    maps: tuple[Tensor, ...] = ()

    @property
    def code(self) -> Tensor:
        """The descriptors compared at test, on which negatives are mined: (2, n, k) without gradient."""
        return self.value.detach() if self.binary is None else self.binary

    def as_compared(self) -> Descriptions:
        """Return the same pairs with `code` as their `value`."""
        return replace(self, value=self.code, binary=None)


@dataclass(frozen=True)
class Triplets:
    """n matching pairs, each with a negative.

    Attributes:
        descriptions: descriptors of the pairs, for losses that use the whole batch; None in
            triplets that `drawn` makes for losses of distances alone.
        positive: (n,) distances of the matching pairs; TCDesc mixes a topology distance into them.
        negative: (n,) distances to the negatives.
        negatives: which patches the negatives are; None in triplets that `drawn` makes.
        mined: (n,) positive − negative on the codes, without gradient; DSM's histogram counts these.
    """

    descriptions: Descriptions | None
    positive: Tensor
    negative: Tensor
    negatives: Negatives | None
    mined: Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Convert values of any shape to float32, or leave them if they are wider.

    Half precision, in which autocast computes, has too few digits for sums and products.
    """
    return values.to(torch.promote_types(values.dtype, torch.float32))


def drawn(positive: Tensor, negative: Tensor) -> Triplets:
    """Return triplets with given distances (n,), for a loss that uses nothing else."""
    return Triplets(None, positive, negative, None, (positive - negative).detach())


def descriptions(
    model: nn.Module | type[nn.Module], output: Tensor | tuple[Tensor, ...]
) -> Descriptions:
    """Return the descriptors of n pairs from a network's output.

    Args:
        model: the network or its class. Its ``normalise`` maps raw descriptors (m, k) to those that the
            loss differentiates; if it is binary, its ``code`` maps these to the signs compared at test.
        output: output of ``model.raw`` for 2n patches, the anchors first: raw descriptors (2n, k) of
            any floating-point type, or a tuple of them and feature maps (2n, …).
    """
    raw, *maps = output if isinstance(output, tuple) else (output,)
    # Autocast leaves the raw descriptors in half precision, and regularisers square them.
    raw = at_least_float32(raw)
    value = model.normalise(raw)
    binary = model.code(value.detach()) if hasattr(model, "code") else None

    def sides(tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (2, -1))

    return Descriptions(
        sides(raw), sides(value), None if binary is None else sides(binary), tuple(map(sides, maps))
    )
