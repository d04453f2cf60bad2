"""HyNet and L2-Net layer by layer, as their modules implement them (HyNet, Sec. 3.3, Fig. 3)."""

import torch
from torch import nn

from lib.analysis import Computed
from lib.models import hynet, l2net

NETWORKS = {"HyNet": hynet.HyNet, "L2-Net": l2net.L2Net}


def compute(width: float = 1.0) -> Computed:
    """List layers, shapes and parameters of HyNet and of L2-Net, which HardNet and SOSNet train.

    Args:
        width: fraction of the inner channels; 1 is the published network.

    Returns:
        Numbers: "networks", rows with "label", "convolutional" (number of convolution weights, without
        biases), "parameters" (number of all parameters) and "layers", in forward order: rows with "name"
        (the layer's class), "parameters" (its own) and "shape" (of its output: channels, height and
        width, or the length of the descriptor). No arrays.
    """
    networks = []
    for label, build in NETWORKS.items():
        model = build(width=width).eval()
        passed = []
        for layer in model.modules():
            if not any(layer.children()):
                layer.register_forward_hook(lambda *call, passed=passed: passed.append(call))
        # Keep gradients on: without them HyNet fuses FRN and TLU, and the hooks would see neither.
        model(torch.rand(1, 1, model.input_size, model.input_size))
        layers = [
            {"name": type(layer).__name__, "parameters": _size(layer), "shape": list(output.shape[1:])}
            for layer, _, output in passed
        ]
        convolutions = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
        networks.append(
            {
                "label": label,
                "convolutional": sum(layer.weight.numel() for layer in convolutions),
                "parameters": _size(model),
                "layers": layers,
            }
        )
    return {"networks": networks}, {}


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
