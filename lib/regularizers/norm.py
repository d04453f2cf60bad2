"""HyNet's R_L2 (Eq. 5): matching descriptors should have the same length before normalisation."""

from collections.abc import Callable

from torch import Tensor

from lib.descriptions import Descriptions

# Under the root of a length, whose gradient at zero is infinite (authors' code).
EPSILON = 1e-6


def build(weight: float = 0.1, reduction: str = "mean") -> Callable[[Descriptions], Tensor]:
    """The regulariser, (‖x‖ − ‖x⁺‖)² of raw descriptors.

    Args:
        weight: γ of Eq. 7.
        reduction: "mean" over pairs (Eq. 5) or "sum", as the authors' code has it.

    Returns:
        A function of described pairs, giving a scalar. It raises FloatingPointError where a raw
        descriptor is zero, which has no direction to compare.

    Raises:
        ValueError: another reduction.
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
