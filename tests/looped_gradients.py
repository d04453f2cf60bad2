"""Per-sample gradients by one backward pass each, for `lib.analysis.gradient_norms` to match."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lib.analysis.gradient_norms import Samples, triplet_losses
from lib.objective import Objective


def looped_gradient_norms(model: nn.Module, objective: Objective, samples: Samples) -> Tensor:
    """Return ‖∇_θ L‖₂ of each triplet, one backward pass each."""
    parameters = list(model.parameters())
    norms = []
    for images, near_anchor, has_negative in zip(*samples, strict=True):
        loss = triplet_losses(objective, model(images)[None], near_anchor[None], has_negative[None])[0]
        gradients = torch.autograd.grad(loss, parameters)
        norms.append(sum(g.square().sum() for g in gradients).sqrt())
    return torch.stack(norms)
