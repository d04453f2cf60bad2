"""CS-L2-Net (Tian et al., CVPR 2017): two L2-Nets, one of the whole patch and one of its centre.

As in its authors' description code (yuruntian/L2-Net, ``cal_L2Net_des.m``), the surround is the 64×64
patch at half its size, here by 2×2 means and there by MATLAB's bicubic ``imresize``; the centre is rows
and columns 17 to 48, counted from 1, as they are; each tower subtracts a mean image of its own. The
paper fine-tunes the central tower with the surround fixed; here both learn together from scratch.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.models.l2net_maps import L2NetMaps

_MIDDLE = slice(16, 48)


class CSL2Net(nn.Module):
    """From a 64×64 patch to a unit descriptor of length 256, the surround's half first.

    Args:
        width: share of the inner channels of either tower.
        dropout: before the last convolution of either tower.
    """

    input_size = 64

    def __init__(self, width: float = 1.0, dropout: float = 0.0):
        super().__init__()
        self.surround = L2NetMaps(width, dropout)
        self.centre = L2NetMaps(width, dropout)

    def raw(self, patches: Tensor) -> tuple[Tensor, ...]:
        """Descriptors and maps of grey patches (n, 1, 64, 64) on any one scale.

        Returns:
            (n, 256) before normalisation; the surround's first and last map, the centre's.
        """
        surround, *around = self.surround.raw(F.avg_pool2d(patches, 2))
        centre, *within = self.centre.raw(patches[:, :, _MIDDLE, _MIDDLE])
        return torch.cat([surround, centre], dim=1), *around, *within

    def normalise(self, raw: Tensor) -> Tensor:
        """Unit descriptors (n, 256) of which each tower has half, in float32.

        The authors concatenate two unit descriptors; the root of 2 changes no order of distances.
        """
        towers = raw.float().unflatten(1, (2, -1))
        return F.normalize(towers, dim=2).flatten(1) / math.sqrt(2)

    def forward(self, patches: Tensor) -> Tensor:
        """Unit descriptors (n, 256) of grey patches (n, 1, 64, 64)."""
        return self.normalise(self.raw(patches)[0])


# Makes a freshly initialised one.
build = CSL2Net
