"""L2-Net (Tian et al., CVPR 2017) as HardNet and DSM train it: the network of all papers but HyNet.

The state dict has the layout of the checkpoints that HardNet's authors published
(``features.N.weight``, batch norms without affine parameters), which load into it strictly.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DESCRIPTOR_LENGTH = 128


class L2Net(nn.Module):
    """Seven convolutions from a 32×32 patch to a unit descriptor of length 128.

    Args:
        width: share of the inner channels; 1 is the published network. The output keeps its length.
        dropout: dropout rate before the last convolution; 0.3 in HardNet's code, 0.1 in DSM's.
    """

    input_size = 32

    def __init__(self, width: float = 1.0, dropout: float = 0.3):
        super().__init__()
        c32, c64, c128 = (round(width * channels) for channels in (32, 64, 128))
        layers: list[nn.Module] = []
        incoming = 1
        for outgoing, stride in ((c32, 1), (c32, 1), (c64, 2), (c64, 1), (c128, 2), (c128, 1)):
            layers += [
                nn.Conv2d(incoming, outgoing, 3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(outgoing, affine=False),
                nn.ReLU(),
            ]
            incoming = outgoing
        layers += [
            nn.Dropout(dropout),
            nn.Conv2d(incoming, DESCRIPTOR_LENGTH, 8, bias=False),
            nn.BatchNorm2d(DESCRIPTOR_LENGTH, affine=False),
        ]
        self.features = nn.Sequential(*layers)
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):
                nn.init.orthogonal_(layer.weight, gain=0.6)

    def raw(self, patches: Tensor) -> Tensor:
        """Descriptors (n, 128) before normalisation, of grey patches (n, 1, 32, 32) on any scale.

        Raises:
            ValueError: patches have another size.
        """
        check_side(patches, self.input_size)
        return self.features(standardise(patches)).flatten(1)

    @staticmethod
    def normalise(raw: Tensor) -> Tensor:
        """Unit descriptors (n, 128), in float32 whatever the network computed in."""
        return F.normalize(raw.float(), dim=1)

    def forward(self, patches: Tensor) -> Tensor:
        """Unit descriptors (n, 128) of grey patches (n, 1, 32, 32) on any scale."""
        return self.normalise(self.raw(patches))


def check_side(patches: Tensor, side: int) -> None:
    """Refuse patches of another size than a network takes. Of larger ones, L2-Net's last layer would
    give a vector for each place, longer than a descriptor.

    Args:
        patches: (n, 1, h, w).
        side: px that h and w must be.

    Raises:
        ValueError: they are not.
    """
    if patches.shape[2:] != (side, side):
        given = " by ".join(map(str, patches.shape[2:]))
        raise ValueError(
            f"the network takes patches of {side} by {side} px, got {given}: resize them, as "
            "lib.features.networks.patch_descriptors does"
        )


def standardise(patches: Tensor) -> Tensor:
    """Scale each patch (n, 1, h, w) to L2-Net's input: zero mean, unit (unbiased) standard deviation."""
    std, mean = torch.std_mean(patches, dim=(1, 2, 3), keepdim=True)
    return (patches - mean) / (std + 1e-7)
