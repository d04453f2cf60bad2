"""HyNet and L2-Net layer by layer, as the modules have them (HyNet, Sec. 3.3, Fig. 3)."""

import numpy as np
import torch
from torch import Tensor, nn

from lib.models import hynet, l2net

# By key of records: HyNet, its body with the other norms (Table 3), and what HardNet and SOSNet train.
NETWORKS = {
    "hynet": ("HyNet", lambda width: hynet.build(width=width, norm="frn")),
    "hynet_bn": ("HyNet, BN", lambda width: hynet.build(width=width, norm="batch")),
    "hynet_in": ("HyNet, IN", lambda width: hynet.build(width=width, norm="instance")),
    "l2net": ("L2-Net", lambda width: l2net.build(width=width)),
}


def compute(width: float = 1.0) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Layers, shapes and parameters of each of `NETWORKS`.

    Args:
        width: share of the inner channels; 1 is the published network.

    Returns:
        Numbers: "networks", rows of "key", "label", "convolutional" (weights of convolutions, without
        biases), "parameters" (all of them) and "layers", in the order in which a patch passes them: rows
        of "name" (its class), "parameters" (its own) and "shape" (of its output, channels, height and
        width; or the length of the descriptor). No arrays.
    """
    rows = []
    for key, (label, build) in NETWORKS.items():
        model = build(width).eval()
        kernels = [of.weight for of in model.modules() if isinstance(of, nn.Conv2d)]
        rows.append(
            {
                "key": key,
                "label": label,
                "convolutional": sum(of.numel() for of in kernels),
                "parameters": sum(of.numel() for of in model.parameters()),
                "layers": layers(model),
            }
        )
    return {"networks": rows}, {}


def layers(model: nn.Module) -> list[dict[str, object]]:
    """The layers that a patch passes, as `compute` lists them; those that hold others are not listed."""
    passed: list[dict[str, object]] = []

    def note(layer: nn.Module, _: tuple, output: Tensor) -> None:
        own = sum(of.numel() for of in layer.parameters())
        shape = list(output.shape[1:])
        passed.append({"name": type(layer).__name__, "parameters": own, "shape": shape})

    inner = [layer for layer in model.modules() if not any(layer.children())]
    hooks = [layer.register_forward_hook(note) for layer in inner]
    # With gradients: without, HyNet runs FRN and TLU as one, and neither would be seen.
    model(torch.rand(1, 1, model.input_size, model.input_size))
    for hook in hooks:
        hook.remove()
    return passed
