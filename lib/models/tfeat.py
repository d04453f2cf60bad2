"""TFeat (Balntas et al., BMVC 2016): two convolutions and a fully connected layer, tanh throughout.

The layers and their names are those of the PyTorch model that the authors published
(``features.N``, ``descr.0``), so that their checkpoints load strictly. The descriptor is not normalised.
HardTFeat is the same network trained with HardNet's loss, by HardNet's authors.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from lib.models.l2net import check_side, standardise

DESCRIPTOR_LENGTH = 128
_MAP = 8  # side of the last map of a 32×32 patch: (32 - 6) / 2 - 5


class TFeat(nn.Module):
    """Network from a 32×32 patch to a descriptor of length 128, each value between -1 and 1.

    Args:
        width: share of the inner channels; 1 is the published network. The output keeps its length.
    """

    input_size = 32

    def __init__(self, width: float = 1.0):
        super().__init__()
        first, second = (round(width * channels) for channels in (32, 64))
        self.features = nn.Sequential(
            nn.InstanceNorm2d(1, affine=False, track_running_stats=False),
            nn.Conv2d(1, first, 7),
            nn.Tanh(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 6),
            nn.Tanh(),
        )
        self.descr = nn.Sequential(nn.Linear(second * _MAP**2, DESCRIPTOR_LENGTH), nn.Tanh())

    def raw(self, patches: Tensor) -> Tensor:
        """Descriptors (n, 128) of grey patches (n, 1, 32, 32).

        The first layer scales each patch to zero mean and unit (biased) variance, so that 0 to 255 and
        0 to 1 give the same descriptor, except for the 1e-5 that it adds to the variance.

        Raises:
            ValueError: patches have another size.
        """
        check_side(patches, self.input_size)
        return self.descr(self.features(patches).flatten(1))

    @staticmethod
    def normalise(raw: Tensor) -> Tensor:
        """The raw descriptors (n, 128) unchanged, in float32 whatever the network computed in."""
        return raw.float()

    def forward(self, patches: Tensor) -> Tensor:
        """Descriptors (n, 128), not of unit length, of grey patches (n, 1, 32, 32) on any scale."""
        return self.normalise(self.raw(patches))


class HardTFeat(nn.Module):
    """TFeat's layers as HardNet's authors use them, with HardNet's input and unit descriptors."""

    input_size = 32

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(*TFeat().features[1:])
        last = nn.Conv2d(64, DESCRIPTOR_LENGTH, _MAP)
        self.classifier = nn.Sequential(nn.Dropout(0.1), last, nn.Tanh())

    def forward(self, patches: Tensor) -> Tensor:
        """Unit descriptors (n, 128) of grey patches (n, 1, 32, 32) on any scale.

        Raises:
            ValueError: patches have another size.
        """
        check_side(patches, self.input_size)
        return F.normalize(self.classifier(self.features(standardise(patches))).flatten(1), dim=1)
