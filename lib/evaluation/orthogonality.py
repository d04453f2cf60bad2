"""Probe: how orthogonal gradients are to the feature maps they are of (HyNet, Sec. 2.2 and 3.3).

A layer that gives c f the output that it gives f, for any c > 0, has ∂L/∂f ⊥ f. FRN divides a map by its
root mean square, and instance norm a map less its mean by its deviation; both do so map by map, but for
their ε. Batch norm does it for a channel's maps of the whole batch together, not for each of them, and
in evaluation mode not at all.

Maps are what convolutions give, which is where all of these norms take their input. As in training,
networks are in training mode, with dropout and each batch's own statistics, but in float32.
"""

import copy
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.data.patchset import PatchSet
from lib.descriptions import descriptions
from lib.evaluation.subject import Subject
from lib.evaluation.triplets_in_batch import SEED, draw_images
from lib.objective import Objective
from lib.objective import build as build_objective

BATCHES = 4
# Of |cos|, in percent.
PERCENTILES = (50, 90)


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """|cos| between maps and gradients at each stage of training, S of them, by layer.

    The C layers are the convolutions whose maps have more than one pixel, in order. Gradients are of all
    that training minimises, regularisers too; maps without any are left out.

    Args:
        subject: a network trained on random pairs.
        train_set: the set it was trained on.

    Returns:
        "stage" (S,) float32, fractions of training; float32, median and 90th percentile: "map" (S, C, 2)
        over the maps of all patches and channels, "channel" (S, C, 2) over channels, the maps of a batch
        taken together, and over descriptors before their normalisation "descriptor" (S, 2) and, of the
        triplet loss without regularisers, "descriptor_of_triplets" (S, 2). NaN where nothing has a
        gradient.

    Raises:
        ValueError: the subject was not trained on random pairs, or the set cannot fill a batch.
    """
    pairs = _batch_pairs(subject)
    drawn = draw_images(subject, train_set, [pairs] * BATCHES)
    stages = sorted(subject.stages, key=float)
    by_stage = [_at_stage(subject, subject.stages[stage], drawn) for stage in stages]
    arrays = {name: np.stack([of[name] for of in by_stage]) for name in by_stage[0]}
    return {"stage": np.array(list(map(float, stages)), np.float32)} | arrays


def _batch_pairs(subject: Subject) -> int:
    if subject.recipe is None or not subject.stages:
        raise ValueError("this descriptor was not trained, so it has no gradients")
    return subject.record["config"]["profile"]["budget"]["batch_pairs"]


def _at_stage(subject: Subject, model: nn.Module, drawn: Sequence[Tensor]) -> dict[str, np.ndarray]:
    objective = build_objective(subject.recipe, subject.device)
    model, device = copy.deepcopy(model).train(), drawn[0].device
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device]):
        torch.manual_seed(SEED)
        of_batches = [_in_batch(objective, model, images) for images in drawn]
    names = ("descriptor", "descriptor_of_triplets")
    every = {name: _percentiles([of[name] for of in of_batches]) for name in names}
    layers = range(len(of_batches[0]["map"]))
    for name in ("map", "channel"):
        by_layer = [_percentiles([of[name][layer] for of in of_batches]) for layer in layers]
        every[name] = np.stack(by_layer)
    return every


def _in_batch(objective: Objective, model: nn.Module, images: Tensor) -> dict[str, object]:
    maps: list[Tensor] = []
    convolutions = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    hooks = [layer.register_forward_hook(lambda *of: maps.append(of[2])) for layer in convolutions]
    raw = model.raw(images)
    for hook in hooks:
        hook.remove()
    maps = [some for some in maps if some[0, 0].numel() > 1]
    of = descriptions(model, raw)
    losses = objective.loss(objective.triplets(of))
    gradients = torch.autograd.grad(objective.total(losses, of), [raw, *maps], retain_graph=True)
    (of_triplets,) = torch.autograd.grad(losses.mean(), raw)
    of_maps = list(zip(maps, gradients[1:], strict=True))
    return {
        "descriptor": cosines(raw, gradients[0]),
        "descriptor_of_triplets": cosines(raw, of_triplets),
        "map": [cosines(f.flatten(0, 1).flatten(1), g.flatten(0, 1).flatten(1)) for f, g in of_maps],
        "channel": [cosines(*(each.transpose(0, 1).flatten(1) for each in both)) for both in of_maps],
    }


def cosines(of: Tensor, gradient: Tensor) -> Tensor:
    """|cos| in float64 between rows (m, k) and their gradients, of the rows that have one."""
    of, gradient = of.detach().double(), gradient.double()
    some = (of.norm(dim=1) > 0) & (gradient.norm(dim=1) > 0)
    return F.cosine_similarity(of[some], gradient[some], dim=1, eps=0.0).abs()


def _percentiles(of: Sequence[Tensor]) -> np.ndarray:
    values = torch.cat(list(of)).cpu().numpy()
    found = np.percentile(values, PERCENTILES) if len(values) else np.full(len(PERCENTILES), np.nan)
    return found.astype(np.float32)
