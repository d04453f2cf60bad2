"""Probe: informativeness and its substitutes (AdaSample, Sec. 4.2, Eq. 2, 7, 22 to 24, Fig. 3).

Informativeness is the norm of a sample's gradient with respect to all parameters of the real network
(Eq. 2), here one gradient per sample. The paper replaces it by the norm at the network's output, up to
a constant (Eq. 23), and that by the matching distance (Eq. 24); all three are recorded.

A sample is a class's anchor with one of its candidates. Training's mining finds its negative, with this
candidate as the class's positive and one pair of each other class, whose positive is drawn at random
once for all. The negative is then held fixed. So nothing else differs among the candidates of a class,
and only the network differs among stages. Networks are in evaluation mode: batch statistics would tie
the samples of a batch together, and dropout would add its own noise. Before the first step, the running
statistics of batch norms come from no data (means of 0, variances of 1), and a network evaluated with
them is not the one that training begins with. At that stage they are taken from the batch's candidates.
"""

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

from lib.analysis.training_batch import SEED, array, at_stages, draw, unit, with_statistics
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.losses.descriptions import drawn
from lib.objective import Objective
from lib.objective import build as build_objective
from lib.samplers.adasample import anchor_distances
from lib.samplers.candidates import uniform_below

CLASSES = 32
# Triplets described at once: what fits a core's cache, and what fills a GPU.
CHUNK = {"cpu": 16, "cuda": 256}


class Samples(NamedTuple):
    """Triplets whose gradients are computed.

    Attributes:
        images: (m, 3, 1, 32, 32) of anchor, positive and negative, 0 to 255.
        near_anchor: (m,) bool, whether the negative's distance is to the anchor, else to the positive.
        found: (m,) bool, false where every candidate was taken for a false negative.
    """

    images: Tensor
    near_anchor: Tensor
    found: Tensor


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Compute gradient norms of the candidates of C = 32 classes at each of S stages of training.

    The batch is as large as training's, and C is no larger than it. Of the c slots of a class (15 with
    ``*``), the anchor's and empty ones hold NaN.

    Args:
        subject: a trained network.
        train_set: the set it was trained on.

    Returns:
        "stage" (S,) float32, fractions of training; (S, C, c) float32: "distance" d(x_i, x_i0) at
        power 1, by the recipe's distance, "loss", unweighted, and "full", the norm of its gradient with
        respect to all parameters; (S, C, c) float16: "near_anchor", 1 where the negative's distance is
        to the anchor, 0 where it is to the positive; "output", the norm at the descriptors of the
        triplet before normalisation; "differences" and "sphere", the norms at the positive's unit
        descriptor, in all directions with the loss written in ‖x − y‖, and along the sphere;
        "originals" (C,) int16, the number of a class's slots, the first ones, that hold patches of the
        set itself, the rest being generated (``*``).
    """
    generator = torch.Generator().manual_seed(SEED)
    batch = draw(subject, train_set, generator)
    objective = build_objective(subject.recipe, subject.device)
    step = 1 + uniform_below(batch.pool.counts.cpu() - 1, generator).to(batch.anchor.device)
    others = (batch.anchor + step) % batch.pool.counts
    described = batch.shuffled(generator)

    def at_stage(_: float, network: nn.Module) -> dict[str, np.ndarray]:
        model = with_statistics(network, described)
        raw = batch.raw_descriptors(model)
        far = anchor_distances(batch.pool, unit(model, raw), batch.anchor, objective.distance)[:CLASSES]
        candidates = far.isfinite().nonzero()
        members, sides = [], []
        for row, slot in candidates.tolist():
            positives = others.clone()
            positives[row] = slot
            mined = objective.triplets(batch.pairs(model, raw, positives)).negatives
            side, other = divmod(int(mined.patch[row]), len(others))
            negative = (other, int((batch.anchor, positives)[side][other]))
            members.append([(row, int(batch.anchor[row])), (row, slot), negative])
            sides.append((int(mined.query[row]) < len(others), bool(mined.found[row])))
        patches = torch.tensor(members, device=raw.device).unbind(-1)
        samples = Samples(batch.images[patches], *torch.tensor(sides, device=raw.device).unbind(-1))
        measured = output_norms(objective, model, raw[patches], samples)
        measured["full"] = per_sample_gradient_norms(model, objective, samples)
        measured["near_anchor"] = samples.near_anchor.float()
        arrays = {"distance": array(far).astype(np.float32)}
        for name, values in measured.items():
            laid_out = values.new_full(far.shape, torch.nan)
            laid_out[candidates.unbind(1)] = values
            kind = np.float32 if name in ("loss", "full") else np.float16
            arrays[name] = array(laid_out).astype(kind)
        return arrays

    originals = batch.pool.originals[:CLASSES].short()
    return at_stages(subject.networks, at_stage, originals=originals)


def triplet_losses(
    objective: Objective,
    descriptors: Tensor,
    near_anchor: Tensor,
    found: Tensor,
    differences: bool = False,
) -> Tensor:
    """Compute the loss of each triplet by itself, (m,), without pair weights and regularisers.

    Args:
        objective: one whose loss depends on a triplet's distances alone.
        descriptors: (m, 3, k) of anchor, positive and negative, of unit length.
        near_anchor, found: as in `Samples`.
        differences: whether distances are written in ‖x − y‖, with s = 1 − ‖x − y‖² / 2, as printed in
            Eq. 14; else in inner products s = x·y, as in training. On unit descriptors both give the
            same numbers; their gradients are the same along the sphere and differ across it.
    """
    anchor, positive, negative = descriptors.unbind(-2)
    query = torch.where(near_anchor[:, None], anchor, positive)
    distances = []
    for x, y in ((anchor, positive), (query, negative)):
        inner = 1 - (x - y).square().sum(-1) / 2 if differences else (x * y).sum(-1)
        distances.append(objective.distance.of_similarity(inner))
    d_pos, d_neg = distances
    return objective.loss(drawn(d_pos, torch.where(found, d_neg, objective.distance.maximum)))


def per_sample_gradient_norms(
    model: nn.Module, objective: Objective, samples: Samples, chunk: int | None = None
) -> Tensor:
    """Compute ‖∇_θ L‖₂ of each triplet (Eq. 2), θ being all parameters of the network.

    One backward pass for many triplets gives the gradients at the convolutions' outputs. From these and
    its inputs, a convolution's own backward pass gives each triplet's gradient with respect to the
    convolution's weights.

    Args:
        model: maps images (n, 1, 32, 32) to unit descriptors, in evaluation mode; all of its parameters
            are weights of convolutions.
        objective: gives the `triplet_losses`.
        samples: m triplets.
        chunk: triplets described at once; None takes what suits the device.

    Returns:
        (m,) norms.

    Raises:
        ValueError: the model is in training mode, where samples of a batch depend on each other, or it
            has other parameters.
    """
    model = copy.deepcopy(model)
    calls, squares = [], []
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    if model.training or len(layers) < len(list(model.parameters())):
        raise ValueError("give a network of weights of convolutions alone, in evaluation mode")
    for layer in layers:
        layer.register_forward_hook(lambda *call: calls.append(call))
    chunk = chunk or CHUNK[samples.images.device.type]
    for images, *sides in zip(*(values.split(chunk) for values in samples), strict=True):
        calls.clear()
        described = model(images.flatten(0, 1)).unflatten(0, (-1, 3))
        losses = triplet_losses(objective, described, *sides)
        gradients = torch.autograd.grad(losses.sum(), [output for *_, output in calls])
        squares.append(
            sum(
                _squared_norms(layer, maps, slopes)
                for (layer, (maps,), _), slopes in zip(calls, gradients, strict=True)
            )
        )
    return torch.cat(squares).sqrt()


@torch.no_grad()
def _squared_norms(layer: nn.Conv2d, maps: Tensor, slopes: Tensor) -> Tensor:
    """Compute (m,) ‖∂L/∂weight‖² of triplets from a layer's input (3m, …) and its output's gradient."""
    options = layer.stride, layer.padding, layer.dilation, layer.groups
    gradients = (
        conv2d_weight(triplet, layer.weight.shape, slope, *options)
        for triplet, slope in zip(maps.split(3), slopes.split(3), strict=True)
    )
    return torch.stack([gradient.square().sum() for gradient in gradients])


def output_norms(
    objective: Objective, model: nn.Module, raw: Tensor, samples: Samples
) -> dict[str, Tensor]:
    """Compute norms of the loss's gradient at the network's output.

    Args:
        objective: gives the loss.
        model: normalises the descriptors.
        raw: (m, 3, k) descriptors of the triplets before normalisation.
        samples: the m triplets.

    Returns:
        "loss", "output", "differences" and "sphere" as in `probe`, (m,) each.
    """
    _, *sides = samples
    before = raw.detach().requires_grad_()
    losses = triplet_losses(objective, unit(model, before), *sides)
    (at_raw,) = torch.autograd.grad(losses.sum(), before)
    leaf = unit(model, raw).detach().requires_grad_()
    through = triplet_losses(objective, leaf, *sides, differences=True)
    (at_unit,) = torch.autograd.grad(through.sum(), leaf)
    at_positive, positive = at_unit[:, 1], leaf.detach()[:, 1]
    across = (at_positive * positive).sum(-1, keepdim=True)
    return {
        "loss": losses.detach(),
        "output": at_raw.flatten(1).norm(dim=-1),
        "differences": at_positive.norm(dim=-1),
        "sphere": (at_positive - across * positive).norm(dim=-1),
    }
