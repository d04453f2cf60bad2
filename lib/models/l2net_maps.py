"""L2-Net as its own authors train it (Tian et al., CVPR 2017): it returns feature maps for their loss.

Their loss uses the maps after the first and after the last batch norm. As in their description code
(yuruntian/L2-Net, ``cal_L2Net_des.m``), the mean image of the train set is subtracted before each patch
is scaled to zero mean and unit deviation. Here that image is the mean of all patches seen in training so
far, kept in a buffer like the batch norms' running statistics.
"""

import torch
from torch import Tensor

from lib.models.l2net import L2Net, check_side, standardise


class L2NetMaps(L2Net):
    """Network from a 32×32 patch to a unit descriptor of length 128.

    Args:
        width: share of the inner channels, as in `L2Net`.
        dropout: dropout rate before the last convolution; the paper has none.
    """

    def __init__(self, width: float = 1.0, dropout: float = 0.0):
        super().__init__(width, dropout)
        self.register_buffer("mean_image", torch.zeros(1, 1, self.input_size, self.input_size))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def raw(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Descriptors and maps of grey patches (n, 1, 32, 32) on any one scale.

        Returns:
            (n, 128) before normalisation; (n, c, 32, 32) after the first batch norm, before its ReLU;
            (n, 128, 1, 1) after the last batch norm, the descriptors again.

        Raises:
            ValueError: patches have another size.
        """
        check_side(patches, self.input_size)
        if self.training:
            with torch.no_grad():
                self.batches += 1
                self.mean_image.lerp_(patches.mean(dim=0, keepdim=True), 1 / self.batches)
        first = self.features[:2](standardise(patches - self.mean_image))
        last = self.features[2:](first)
        return last.flatten(1), first, last

    def forward(self, patches: Tensor) -> Tensor:
        """Unit descriptors (n, 128) of grey patches (n, 1, 32, 32)."""
        return self.normalise(self.raw(patches)[0])
