"""What must hold of every network that describes patches."""

import torch
from torch import nn


def check_patch_without_contrast(network: nn.Module, value: float) -> None:
    """Grey patches of one value have finite descriptors, with finite gradients."""
    flat = torch.full((2, 1, 32, 32), value, requires_grad=True)
    described = network(flat)
    described.sum().backward()
    assert torch.isfinite(described).all()
    assert torch.isfinite(flat.grad).all()
