"""HyNet (Tian et al., NeurIPS 2020; Sec. 3.3): L2-Net's convolutions, each map normalised by FRN.

The state dict has the layout of the checkpoints that the authors published (``layer1.0.weight``,
``layer1.1.tau``, …), which load into it strictly. With batch norm it has that of their ``L2Net`` class.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from lib.models.frn import FRN, TLU, Fused
from lib.models.l2net import check_side

DESCRIPTOR_LENGTH = 128
# Added to each value before the descriptor is scaled to unit length (authors' code).
EPSILON = 1e-10
NORMS = {"frn": FRN, "batch": nn.BatchNorm2d, "instance": nn.InstanceNorm2d}


class HyNet(nn.Module):
    """Seven convolutions from a 32×32 patch to a unit descriptor of length 128.

    The paper does not state which layers surround batch or instance norm in its ablation. The last norm
    is a batch norm without affine parameters in all forms (Sec. 3.3).

    Args:
        width: share of the inner channels; 1 is the published network. The output keeps its length.
        norm: norm of the six inner maps: "frn", "batch" or "instance".
        dropout: dropout rate before the last convolution.
        around: the other layers. "hynet": an FRN and a TLU at the input, TLUs, affine norms, and biases
            except in the last convolution. "l2net", the authors' class of that name, not for FRN: an
            instance norm at the input, ReLUs, no affine parameters and no biases. None: "hynet" for
            FRN, else "l2net".

    Raises:
        KeyError: the norm is unknown.
        ValueError: ``around`` is unknown, or "l2net" with FRN, which needs affine parameters.
    """

    input_size = 32

    def __init__(
        self, width: float = 1.0, norm: str = "frn", dropout: float = 0.3, around: str | None = None
    ):
        super().__init__()
        c32, c64, c128 = (round(width * channels) for channels in (32, 64, 128))
        if around not in (None, "hynet", "l2net") or (norm, around) == ("frn", "l2net"):
            raise ValueError(f"around is 'hynet', or 'l2net' but for FRN, got {around!r}")
        full = (around or ("hynet" if norm == "frn" else "l2net")) == "hynet"
        # An FRN is always affine.
        affine = {} if norm == "frn" else {"affine": full}
        incoming, first = 1, [FRN(1), TLU(1)] if full else [nn.InstanceNorm2d(1)]
        sizes = ((c32, 1), (c32, 1), (c64, 2), (c64, 1), (c128, 2), (c128, 1))
        for number, (outgoing, stride) in enumerate(sizes, 1):
            convolution = nn.Conv2d(incoming, outgoing, 3, stride=stride, padding=1, bias=full)
            norm_and_unit = NORMS[norm](outgoing, **affine), TLU(outgoing) if full else nn.ReLU()
            self.add_module(f"layer{number}", Fused(*first, convolution, *norm_and_unit))
            incoming, first = outgoing, []
        self.layer7 = nn.Sequential(
            nn.Dropout(dropout),
            nn.Conv2d(incoming, DESCRIPTOR_LENGTH, 8, bias=False),
            nn.BatchNorm2d(DESCRIPTOR_LENGTH, affine=False),
        )

    def raw(self, patches: Tensor) -> Tensor:
        """Descriptors (n, 128) before normalisation, of grey patches (n, 1, 32, 32) of 0 to 255.

        The patches' offset matters to "hynet", which subtracts no mean; their scale matters to neither.

        Raises:
            ValueError: patches have another size.
        """
        check_side(patches, self.input_size)
        maps = patches
        for layer in self.children():
            maps = layer(maps)
        return maps.flatten(1)

    @staticmethod
    def normalise(raw: Tensor) -> Tensor:
        """Unit descriptors (n, 128), in float32 whatever the network computed in."""
        return F.normalize(raw.float() + EPSILON, dim=1)

    def forward(self, patches: Tensor) -> Tensor:
        """Unit descriptors (n, 128) of grey patches (n, 1, 32, 32) of 0 to 255."""
        return self.normalise(self.raw(patches))
