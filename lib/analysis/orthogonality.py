"""Probe: how orthogonal the gradients of feature maps are to the maps (HyNet, Sec. 2.2 and 3.3).

A layer with the same output for c f as for f, for any c > 0, has ∂L/∂f ⊥ f. FRN divides a map by its
root mean square; instance norm subtracts a map's mean and divides by its deviation. Both are such layers
for each map, up to their ε. Batch norm is one for a channel's maps of the whole batch together, not for
each of them, and not at all in evaluation mode.

Maps are the outputs of convolutions, which are the input of all of these norms. As in training, networks
are in training mode, with dropout and each batch's own statistics, but in float32.
"""

from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.analysis.training_batch import draw_images, in_training_mode
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.losses.descriptions import descriptions
from lib.objective import build as build_objective

BATCHES = 4
# Percentiles of |cos|.
PERCENTILES = (50, 90)


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Compute |cos| between maps and gradients at the end of training, by layer.

    The C layers are the convolutions whose maps have more than one pixel, in order. Gradients are those
    of training's total loss, regularisers included; maps without a gradient are left out.

    Args:
        subject: a network trained on random pairs.
        train_set: the set it was trained on.

    Returns:
        float32, the median, the 90th percentile, and the number of values that each |cos| is computed
        from: "map" (C, 3) over the maps of all patches and channels, and "channel" (C, 3) over channels,
        a batch's maps taken together. Percentiles are NaN where nothing has a gradient.
    """
    drawn = draw_images(subject, train_set, [subject.batch_pairs] * BATCHES)
    objective = build_objective(subject.recipe, subject.device)
    *_, last = subject.networks.values()
    outputs: list[Tensor] = []
    batches = []
    with in_training_mode(last, drawn[0].device) as model:
        for layer in model.modules():
            if isinstance(layer, nn.Conv2d):
                layer.register_forward_hook(lambda *call: outputs.append(call[2]))
        for images in drawn:
            outputs.clear()
            described = descriptions(model, model.raw(images))
            maps = [output for output in outputs if output[0, 0].numel() > 1]
            total = objective.total(objective.loss(objective.triplets(described)), described)
            batches.append(list(zip(maps, torch.autograd.grad(total, maps), strict=True)))
    rows: dict[str, list[list[float]]] = {"map": [], "channel": []}
    flat = {"map": lambda maps: maps.flatten(0, 1), "channel": lambda maps: maps.transpose(0, 1)}
    for layer, (name, as_rows) in product(zip(*batches, strict=True), flat.items()):
        pairs = [[as_rows(maps).flatten(1) for maps in both] for both in layer]
        values = torch.cat([cosines(*both) for both in pairs]).cpu().numpy()
        percentiles = np.percentile(values, PERCENTILES) if len(values) else [np.nan] * 2
        rows[name].append([*percentiles, pairs[0][0].shape[1]])
    return {name: np.array(values, np.float32) for name, values in rows.items()}


def cosines(rows: Tensor, gradient: Tensor) -> Tensor:
    """Compute |cos| in float64 between rows (m, k) and their gradients, for the rows that have one."""
    rows, gradient = rows.detach().double(), gradient.double()
    some = (rows.norm(dim=1) > 0) & (gradient.norm(dim=1) > 0)
    return F.cosine_similarity(rows[some], gradient[some], dim=1, eps=0.0).abs()
