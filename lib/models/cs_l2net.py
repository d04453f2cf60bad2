"""CS-L2-Net (Tian et al., CVPR 2017): two L2-Nets, one for the whole patch and one for its centre.

As in the authors' description code (yuruntian/L2-Net, ``cal_L2Net_des.m``), the surround is the 64×64
patch at half its size, and the centre is rows and columns 17 to 48, counted from 1, at full size. The
patch is halved by 2×2 means here and by MATLAB's bicubic ``imresize`` there. Each tower subtracts its
own mean image. The paper fine-tunes the central tower with the surround fixed; here both learn together
from scratch.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.models.l2net import check_side
from lib.models.l2net_maps import L2NetMaps

_MIDDLE = slice(16, 48)


class CSL2Net(nn.Module):
    """Network from a 64×64 patch to a unit descriptor of length 256, the surround's half first.

    Args:
        width: share of the inner channels of each tower.
        dropout: dropout rate before the last convolution of each tower.
    """

    input_size = 64

    def __init__(self, width: float = 1.0, dropout: float = 0.0):
        super().__init__()
        self.surround = L2NetMaps(width, dropout)
        self.centre = L2NetMaps(width, dropout)

    def raw(self, patches: Tensor) -> tuple[Tensor, ...]:
        """Descriptors and maps of grey patches (n, 1, 64, 64) on any one scale.

        Returns:
            (n, 256) before normalisation; the surround's first and last map, then the centre's.

        Raises:
            ValueError: patches have another size.
        """
        check_side(patches, self.input_size)
        surround, *around = self.surround.raw(F.avg_pool2d(patches, 2))
        centre, *within = self.centre.raw(patches[:, :, _MIDDLE, _MIDDLE])
        return torch.cat([surround, centre], dim=1), *around, *within

    @staticmethod
    def normalise(raw: Tensor) -> Tensor:
        """Unit descriptors (n, 256), half from each tower, in float32.

        The authors concatenate two unit descriptors; dividing by √2 does not reorder distances.
        """
        towers = raw.float().unflatten(1, (2, -1))
        return F.normalize(towers, dim=2).flatten(1) / math.sqrt(2)

    def forward(self, patches: Tensor) -> Tensor:
        """Unit descriptors (n, 256) of grey patches (n, 1, 64, 64)."""
        return self.normalise(self.raw(patches)[0])
