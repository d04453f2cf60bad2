"""A network's descriptors of n matching pairs, and the triplets of which losses are taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor, nn

from lib.negatives import Negatives


@dataclass(frozen=True)
class Descriptions:
    """Descriptors of n matching pairs; index 0 holds the anchors, 1 the positives.

    Attributes:
        raw: (2, n, k) float32, before normalisation or head; what R_L2 and L2-Net's loss look at.
        value: (2, n, k) float32, what the loss differentiates: of unit length, or tanh of a binary
            head.
        binary: (2, n, k) without gradient, the signs that are compared at test in place of `value`;
            None where `value` itself is compared.
        maps: intermediate feature maps, (2, n, …) each, from networks that hand them out.
    """

    raw: Tensor
    value: Tensor
    binary: Tensor | None = None
    maps: tuple[Tensor, ...] = ()

    @property
    def code(self) -> Tensor:
        """(2, n, k) without gradient, what is compared at test, and so what negatives are mined on."""
        return self.value.detach() if self.binary is None else self.binary

    def as_compared(self) -> Descriptions:
        """The same pairs with their code as the value."""
        return replace(self, value=self.code, binary=None)


@dataclass(frozen=True)
class Triplets:
    """n matching pairs, each with a negative.

    Attributes:
        descriptions: of the pairs, for losses of the whole batch; None where a loss of distances alone
            is drawn.
        positive: (n,) distances of the pairs; TCDesc mixes a topology distance into them.
        negative: (n,) distances to the negatives.
        negatives: whose negatives they are and which, or None; L_B takes s and d of one negative.
        mined: (n,) positive − negative on the codes, without gradient; DSM's histogram is of them.
    """

    descriptions: Descriptions | None
    positive: Tensor
    negative: Tensor
    negatives: Negatives | None
    mined: Tensor


def drawn(positive: Tensor, negative: Tensor) -> Triplets:
    """Triplets of given distances (n,), to draw a loss that looks at nothing else."""
    return Triplets(None, positive, negative, None, (positive - negative).detach())


def descriptions(model: nn.Module, output: Tensor | tuple[Tensor, ...]) -> Descriptions:
    """The descriptors of n pairs, from a network's output.

    Args:
        model: with ``normalise``, from raw descriptors (m, k) to what the loss differentiates, and,
            if it is binary, ``code``, from those to what is compared at test.
        output: of ``model.raw`` for 2n patches, the anchors first: raw descriptors (2n, k), of any
            floating-point type, or a tuple that begins with them and goes on with feature maps
            (2n, …).
    """
    raw, *maps = output if isinstance(output, tuple) else (output,)
    # Regularisers square what autocast has left in half precision.
    raw = raw.float()
    value = model.normalise(raw)
    binary = model.code(value.detach()) if hasattr(model, "code") else None

    def sides(tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (2, -1))

    return Descriptions(
        sides(raw), sides(value), None if binary is None else sides(binary), tuple(map(sides, maps))
    )
