"""Convert a batch of stored 64×64 patches to the network's input, with rotations, turns and flips.

A 32×32 input is the patch halved by 2×2 means. For a rotated patch (AdaSample's ``*``) the means are
taken at every position and sampled bilinearly at the rotated centres, with the border reflected; at
angle zero this equals the plain halving. A 64×64 input (for central-surround towers) is the patch
itself; rotated patches are sampled in the same way.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

PATCH_SIZE = 64
INPUT_SIZE = 32
# Which of the square's eight symmetries, as `cut` numbers them, each released code draws from. Each is
# repeated in proportion to its probability.
_SYMMETRIES = {
    # All eight, equally likely.
    "square": tuple(range(8)),
    # A transpose and a left-right flip, independently (HardNet).
    "transpose_flip": (0, 3, 4, 5),
    # Any quarter turn, then no flip, left-right or up-down, a third each (DSM).
    "turn_then_flip": (0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7),
    # A turn by 90, 180 or 270 degrees with p = 1/2, then an up-down flip with p = 1/2 (HyNet).
    "half_turned": (0, 0, 0, 1, 2, 3, 6, 6, 6, 5, 4, 7),
}


@dataclass(frozen=True)
class Turns:
    """Flips and quarter turns (``+``): one of the square's symmetries at random.

    Attributes:
        shared: whether all patches of a class get the same symmetry; otherwise each gets its own.
        among: which symmetries are drawn, and how often: "square", "transpose_flip",
            "turn_then_flip" or "half_turned".
    """

    shared: bool = True
    among: str = "square"

    def __post_init__(self) -> None:
        if self.among not in _SYMMETRIES:
            raise ValueError(f"among must be one of {', '.join(_SYMMETRIES)}, got {self.among!r}")

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Draw symmetries, (n, c) int64 in 0…7, for a pool of n classes and c candidates."""
        n, c = shape
        known = torch.tensor(_SYMMETRIES[self.among], device=generator.device)
        drawn = torch.randint(
            len(known), (n, 1 if self.shared else c), generator=generator, device=generator.device
        )
        return known[drawn].expand(n, c)


def cut(patches: Tensor, angle: Tensor, turn: Tensor | None = None, size: int = INPUT_SIZE) -> Tensor:
    """Return the network's input for a batch of patches.

    Args:
        patches: (m, 64, 64) uint8.
        angle: (m,) radians, counter-clockwise as seen.
        turn: (m,) int64 in 0…7: quarter turns are turn mod 4, after a left-right flip if turn ≥ 4;
            None for no turns or flips.
        size: side of the input, 32 or 64.

    Returns:
        (m, 1, size, size) float32, 0 to 255.

    Raises:
        ValueError: ``size`` is neither 32 nor 64.
    """
    if size not in (INPUT_SIZE, PATCH_SIZE):
        raise ValueError(f"the input is {INPUT_SIZE} or {PATCH_SIZE} pixels wide, got {size}")
    turned = angle != 0
    if turned.any():
        images = torch.empty(len(patches), 1, size, size, device=patches.device)
        images[~turned] = _upright(patches[~turned], size)
        images[turned] = _rotated(patches[turned], angle[turned], size)
    else:
        images = _upright(patches, size)
    return images if turn is None else _symmetry(images, turn)


def _upright(patches: Tensor, size: int) -> Tensor:
    return _means(patches, step=2) if size == INPUT_SIZE else patches[:, None].float()


def _means(patches: Tensor, step: int) -> Tensor:
    # Sums of four bytes are exact in 16 bits and several times as fast as pooling in float32.
    whole = patches.short()
    rows = whole[:, :-1:step] + whole[:, 1::step]
    sums = rows[:, :, :-1:step] + rows[:, :, 1::step]
    return sums[:, None].float() / 4


def _rotated(patches: Tensor, angle: Tensor, size: int) -> Tensor:
    pixels = _means(patches, step=1) if size == INPUT_SIZE else patches[:, None].float()
    cos, sin = angle.cos(), angle.sin()
    zero = torch.zeros_like(cos)
    # The 63×63 means span −31 to 31 pixels about the centre, and so does the 32×32 output, in steps
    # of 2. With corners aligned both are [−1, 1], as are the 64×64 pixels and their output.
    matrix = torch.stack([cos, -sin, zero, sin, cos, zero], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(matrix, [len(patches), 1, size, size], align_corners=True)
    return F.grid_sample(pixels, grid, padding_mode="reflection", align_corners=True)


def _symmetry(images: Tensor, turn: Tensor) -> Tensor:
    size = images.shape[-1]
    index = torch.arange(size * size, device=images.device).view(size, size)
    symmetries = [
        torch.rot90(start, quarter).flatten() for start in (index, index.flip(1)) for quarter in range(4)
    ]
    source = torch.stack(symmetries)[turn]
    return images.flatten(1).gather(1, source).view_as(images)
