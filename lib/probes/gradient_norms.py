"""Probe: informativeness and what stands in for it (AdaSample, Sec. 4.2, Eq. 2, 7, 22 to 24, Fig. 3).

Informativeness is the norm of a sample's gradient by all parameters of the real network (Eq. 2), here
by torch.func, one gradient a sample. The paper replaces it by the norm at the network's output, up to
a constant (Eq. 23), and that by the matching distance (Eq. 24); all three are recorded.

A sample is a class's anchor with one of its candidates. Its negative is the one that training's mining
finds when this candidate is the class's positive and each other class has one pair, whose positive
was drawn at random once for all; it is then held fixed. So among the candidates of a class nothing
else differs, and among stages only the network does. Networks are in evaluation mode: batch statistics
would tie the samples of a batch together, and dropout would add its own noise. Before the first step,
the running statistics of batch norms are those of no data, means of 0 and variances of 1, and evaluated
with them the network is another than the one that training begins with. There they are taken from the
candidates of the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.descriptions import drawn
from lib.objective import Objective
from lib.objective import build as build_objective
from lib.probes.training_batch import TrainingBatch, draw, unit, with_statistics
from lib.samplers.adasample import anchor_distances
from lib.samplers.candidates import uniform_below

SEED = 0
CLASSES = 32
# Gradients held at once, each as large as the network: what a core's cache bears, and what fills a GPU.
CHUNK = {"cpu": 16, "cuda": 256}
# From unit descriptors (3, k) of anchor, positive and negative, and (), bool, whether the negative was
# mined for the anchor and whether one was found at all, to a loss ().
TripletLoss = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Samples:
    """Triplets whose gradients are asked for.

    Attributes:
        images: (m, 3, 1, 32, 32) of anchor, positive and negative, 0 to 255.
        near_anchor: (m,) bool, whether the negative is held apart from the anchor, else from the
            positive.
        found: (m,) bool, false where every candidate was taken for a false negative.
    """

    images: Tensor
    near_anchor: Tensor
    found: Tensor

    def __len__(self) -> int:
        return len(self.images)


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Gradient norms at each stage of training, S of them, of the candidates of C = 32 classes.

    The batch is as large as training's and C is no more than that. Of the c places of a class (15
    with ``*``) the anchor's holds NaN, as do empty ones.

    Args:
        subject: a trained network.
        train_set: the set it was trained on.

    Returns:
        "stage" (S,) float32, fractions of training; (S, C, c) float32: "distance" d(x_i, x_i0) at
        power 1, by the recipe's distance, "loss", unweighted, and "full", the norm of its gradient
        by all parameters; (S, C, c) float16: "near_anchor" (1 where the negative is held apart from
        the anchor, 0 from the positive), "products" and "differences", the norms at the positive's
        unit descriptor with the loss written through inner products x·y and through ‖x − y‖;
        (S, C, c, 3) float16: "sphere", the norms at the unit descriptors of anchor, positive and
        negative along the sphere they lie on, and "raw", those before normalisation; "originals" (C,)
        int16, how many of a class's places, the first ones, hold patches of the set itself, the rest
        being generated (``*``).

    Raises:
        ValueError: the subject was not trained.
    """
    generator = torch.Generator().manual_seed(SEED)
    batch = draw(subject, train_set, generator)
    objective = build_objective(subject.recipe, subject.device)
    step = 1 + uniform_below(batch.pool.counts.cpu() - 1, generator).to(batch.anchor.device)
    others = (batch.anchor + step) % batch.pool.counts
    described = batch.shuffled(generator)
    by_stage = [
        _at_stage(objective, with_statistics(subject.stages[stage], described), batch, others)
        for stage in sorted(subject.stages, key=float)
    ]
    small = {"near_anchor", "products", "differences", "sphere", "raw"}
    arrays = {
        name: np.stack([of[name] for of in by_stage]).astype(np.float16 if name in small else np.float32)
        for name in by_stage[0]
    }
    once = {
        "stage": np.array(sorted(map(float, subject.stages)), dtype=np.float32),
        "originals": batch.pool.originals[:CLASSES].short().cpu().numpy(),
    }
    return once | arrays


def _at_stage(
    objective: Objective, model: nn.Module, batch: TrainingBatch, others: Tensor
) -> dict[str, np.ndarray]:
    raw = batch.raw_descriptors(model)
    far = anchor_distances(batch.pool, unit(model, raw), batch.anchor, objective.distance)[:CLASSES]
    rows, places = far.isfinite().nonzero(as_tuple=True)
    members, near_anchor, found = _with_negatives(objective, model, raw, batch, others, rows, places)
    samples = Samples(batch.images[members.unbind(-1)], near_anchor, found)
    measured = output_norms(objective, model, raw[members.unbind(-1)], samples)
    measured["full"] = per_sample_gradient_norms(model, triplet_loss(objective), samples)
    measured["near_anchor"] = near_anchor.float()

    arrays = {"distance": far.cpu().numpy()}
    for name, values in measured.items():
        laid = values.new_full((*far.shape, *values.shape[1:]), torch.nan)
        laid[rows, places] = values
        arrays[name] = laid.cpu().numpy()
    return arrays


def _with_negatives(
    objective: Objective,
    model: nn.Module,
    raw: Tensor,
    batch: TrainingBatch,
    others: Tensor,
    rows: Tensor,
    places: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """(m, 3, 2) class and place of each triplet's patches, and its ``near_anchor`` and ``found``."""
    n = len(batch.anchor)
    members, near_anchor, found = [], [], []
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        positives = others.clone()
        positives[row] = place
        mined = objective.triplets(batch.pairs(model, raw, positives)).negatives
        side, other = divmod(int(mined.patch[row]), n)
        negative = (other, int((batch.anchor, positives)[side][other]))
        members.append([(row, int(batch.anchor[row])), (row, place), negative])
        near_anchor.append(int(mined.query[row]) < n)
        found.append(bool(mined.found[row]))
    device = raw.device
    return (
        torch.tensor(members, device=device),
        torch.tensor(near_anchor, device=device),
        torch.tensor(found, device=device),
    )


def triplet_loss(objective: Objective, *, through: str = "products") -> TripletLoss:
    """The loss of a single triplet, without pair weights and regularisers.

    Args:
        objective: one whose loss is of the distances of a triplet alone.
        through: "products" writes distances by inner products s = x·y, as training does;
            "differences" by ‖x − y‖, with s = 1 − ‖x − y‖² / 2, as Eq. 14 is printed. On unit
            descriptors both are the same numbers; their gradients are the same along the sphere
            and differ across it.

    Raises:
        ValueError: ``through`` is neither.
    """
    distance = objective.distance
    products = {
        "products": lambda x, y: (x * y).sum(-1),
        "differences": lambda x, y: 1 - (x - y).square().sum(-1) / 2,
    }
    if through not in products:
        raise ValueError(f"through must be 'products' or 'differences', got {through!r}")
    product = products[through]

    def loss(descriptors: Tensor, near_anchor: Tensor, found: Tensor) -> Tensor:
        anchor, positive, negative = descriptors.unbind(-2)
        query = torch.where(near_anchor, anchor, positive)
        d_pos = distance.of_similarity(product(anchor, positive))
        d_neg = distance.of_similarity(product(query, negative))
        d_neg = torch.where(found, d_neg, torch.full_like(d_neg, distance.maximum))
        return objective.loss(drawn(d_pos[None], d_neg[None]))[0]

    return loss


def per_sample_gradient_norms(
    model: nn.Module, loss: TripletLoss, samples: Samples, chunk: int | None = None
) -> Tensor:
    """‖∇_θ L‖₂ of each triplet (Eq. 2), θ all parameters of the network, by vmap of grad.

    Args:
        model: from images (3, 1, 32, 32) to unit descriptors, in evaluation mode.
        loss: of a triplet's descriptors.
        samples: m of them.
        chunk: gradients held at once; None takes what suits the device.

    Returns:
        (m,) norms.

    Raises:
        ValueError: the model is in training mode, where samples of a batch depend on each other.
    """
    if model.training:
        raise ValueError("per-sample gradients need the model in evaluation mode; call model.eval()")
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def sample_loss(weights: dict, images: Tensor, near_anchor: Tensor, found: Tensor) -> Tensor:
        return loss(functional_call(model, weights, (images,)), near_anchor, found)

    def norm(images: Tensor, near_anchor: Tensor, found: Tensor) -> Tensor:
        gradients = grad(sample_loss)(parameters, images, near_anchor, found)
        return sum(g.square().sum() for g in gradients.values()).sqrt()

    chunk = chunk or CHUNK[samples.images.device.type]
    return vmap(norm, chunk_size=chunk)(samples.images, samples.near_anchor, samples.found)


def output_norms(
    objective: Objective, model: nn.Module, raw: Tensor, samples: Samples
) -> dict[str, Tensor]:
    """Norms of the loss's gradient at the network's output.

    Args:
        objective: whose loss it is.
        model: whose normalisation it is.
        raw: (m, 3, k) descriptors of the triplets before normalisation.
        samples: their sides.

    Returns:
        "loss" (m,); "raw" and "sphere" (m, 3), before normalisation and along the unit sphere;
        "products" and "differences" (m,), at the positive's unit descriptor in all directions, see
        `triplet_loss`.
    """
    sides = samples.near_anchor, samples.found
    before = raw.detach().requires_grad_()
    losses = vmap(triplet_loss(objective))(unit(model, before), *sides)
    (at_raw,) = torch.autograd.grad(losses.sum(), before)
    measured = {"loss": losses.detach(), "raw": at_raw.norm(dim=-1)}
    descriptors = unit(model, raw).detach()
    for through in ("products", "differences"):
        leaf = descriptors.clone().requires_grad_()
        losses_there = vmap(triplet_loss(objective, through=through))(leaf, *sides)
        (at_unit,) = torch.autograd.grad(losses_there.sum(), leaf)
        measured[through] = at_unit[:, 1].norm(dim=-1)
    across = (at_unit * descriptors).sum(-1, keepdim=True)
    measured["sphere"] = (at_unit - across * descriptors).norm(dim=-1)
    return measured
