"""HyNet's R_L2 (Eq. 5): matching descriptors should have the same length before normalisation."""

from collections.abc import Callable

from torch import Tensor

from lib.descriptions import Descriptions

# Added under the root of a length, whose gradient at zero is infinite (authors' code).
EPSILON = 1e-6


def build(weight: float = 0.1, reduction: str = "mean") -> Callable[[Descriptions], Tensor]:
    """Build the regulariser, (‖x‖ − ‖x⁺‖)² of raw descriptors.

    Args:
        weight: γ of Eq. 7.
        reduction: "mean" over pairs (Eq. 5), or "sum" as in the authors' code.

    Returns:
        A function from described pairs to a scalar. It raises FloatingPointError if a raw descriptor
        is zero, because it has no direction to compare.

    Raises:
        ValueError: the reduction is unknown.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'mean' or 'sum', got {reduction!r}")

    def norm(described: Descriptions) -> Tensor:
        squares = described.raw.square().sum(dim=-1)
        zeros = int((squares.detach() == 0).sum())
        if zeros:
            raise FloatingPointError(
                f"{zeros} raw descriptors are zero and have no direction: the network collapsed; "
                "take a lower learning rate"
            )
        anchors, positives = (squares + EPSILON).sqrt()
        differences = (anchors - positives).square()
        return weight * (differences.mean() if reduction == "mean" else differences.sum())

    return norm
