"""Hamming distance D = (k − x·y) / 2 of codes of k values (DSM, Eq. 3).

For signs it counts those that differ. For values between −1 and 1, such as those of tanh, it replaces
that count where a gradient is needed (Sec. 3.2). It has no root, so its gradient is finite.
"""

from dataclasses import dataclass

from torch import Tensor

from lib.distances import Distance


@dataclass(frozen=True)
class Hamming(Distance):
    """The Hamming distance, a `Distance` that ignores the squared norms.

    Attributes:
        length: k, the number of bits.
    """

    length: int = 256

    def paired(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the same as `Distance.paired`, after checking the length.

        Raises:
            ValueError: the codes have another length.
        """
        self._check(x)
        return super().paired(x, y)

    def matrix(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the same as `Distance.matrix`, after checking the length.

        Raises:
            ValueError: the codes have another length.
        """
        self._check(x)
        return super().matrix(x, y)

    def _check(self, codes: Tensor) -> None:
        if codes.shape[-1] != self.length:
            raise ValueError(
                f"codes of {codes.shape[-1]} values, but the distance is of {self.length} bits"
            )


def build(scale: str = "2D/k", length: int = 256) -> Distance:
    """Hamming distance of signs −1 and 1, or of values between them.

    Args:
        scale: "2D/k", 0 to 2, as DSM's loss takes it; "D/k", 0 to 1, as its loss with a static margin
            does; or "bits", 0 to k.
        length: k, a multiple of 8.

    Raises:
        ValueError: an unknown scale, or a length that cannot be packed into bytes.
    """
    maxima = {"2D/k": 2.0, "D/k": 1.0, "bits": float(length)}
    if scale not in maxima:
        raise ValueError(f"scale must be one of {', '.join(maxima)}, got {scale!r}")
    if length < 8 or length % 8:
        raise ValueError(f"length must be a multiple of 8, so that bits fill bytes, got {length}")
    maximum = maxima[scale]

    def between(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        # (k − x·y) / 2 is at most k.
        return (length - inner) * (maximum / (2 * length))

    return Hamming(between, power=1, maximum=maximum, length=length)
