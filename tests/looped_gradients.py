"""Per-sample gradients by one backward pass each, for `lib.probes.gradient_norms` to match."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lib.objective import Objective
from lib.probes.gradient_norms import Samples, triplet_losses


def looped_gradient_norms(model: nn.Module, objective: Objective, samples: Samples) -> Tensor:
    """‖∇_θ L‖₂ of each triplet, one backward pass after the other."""
    parameters = list(model.parameters())
    norms = []
    for images, near_anchor, found in zip(*samples, strict=True):
        alone = triplet_losses(objective, model(images)[None], near_anchor[None], found[None])[0]
        gradients = torch.autograd.grad(alone, parameters)
        norms.append(sum(g.square().sum() for g in gradients).sqrt())
    return torch.stack(norms)
