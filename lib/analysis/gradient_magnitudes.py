"""Probe: ‖x‖ ‖∂L/∂x‖ of a trained network's triplets, by the angle of the positive and of the negative.

x is a descriptor before normalisation and L the loss of its pair, with w_i and without regularisers.
Normalisation divides the gradient through an angle θ by ‖x‖, so by HyNet's Eq. 3 and 4 the product is
|∂L/∂θ|; here autograd computes it at x. One patch of a pair is in both distances of the triplet;
gradients are taken at the pair's other patch and at the negative. A loss depends on both angles, and
some losses on the whole batch. So curves as in `lib.analysis.loss_shapes.by_angle` are given too,
computed at these triplets instead of at a made-up state.

Pairs are drawn at random, for AdaSample too, so that only the loss differs at an angle. Networks are in
evaluation mode, at the end of training.
"""

import copy
import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from lib import parts
from lib.analysis.loss_shapes import Case, by_angle
from lib.analysis.training_batch import draw_images
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.losses.descriptions import descriptions
from lib.losses.pair_weights import inverse_distance
from lib.objective import Objective
from lib.objective import build as build_objective
from lib.recipes import Recipe, part

BATCHES = 30
BINS = 36
# Angles of a curve.
POINTS = 90
# Percentiles of the values in a bin.
SPREAD = (10, 90)


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Compute magnitudes by angle in 30 batches of training's size, in B = 36 bins of 5 degrees.

    Args:
        subject: a trained network whose loss depends on the distances of triplets.
        train_set: the set it was trained on.

    Returns:
        "edges" (B + 1,) float32, radians from 0 to π; for both kinds, "positive" and "negative":
        "count_…" (B,) int32, "mean_…" (B,) and "spread_…" (B, 2) float32, the 10th and 90th percentile,
        NaN in empty bins; and "curve_…" (P,) float32, |∂L/∂θ| at the angles of `by_angle`, with the
        other distance at the triplets' mean.
    """
    blind = replace(subject, recipe=replace(subject.recipe, sampler=part("random_pair")))
    drawn = draw_images(blind, train_set, [subject.batch_pairs] * BATCHES)
    *_, model = subject.networks.values()
    with torch.no_grad():
        raws = [model.raw(images).cpu() for images in drawn]
    objective = build_objective(subject.recipe)
    case = case_of(subject.recipe, objective)
    # A loss that follows earlier batches follows these.
    for raw in raws:
        objective.loss(objective.triplets(descriptions(model, raw)))
    angles, values = torch.cat([magnitudes(case, objective, model, raw) for raw in raws], dim=2)
    state = (2 * (angles.double() / 2).sin()).clamp(0.01, 1.99).T
    _, curves = by_angle(case, state, POINTS)
    edges = np.linspace(0, math.pi, BINS + 1)
    arrays = {"edges": edges.astype(np.float32)}
    for kind, angle, value in zip(curves, angles.numpy(), values.numpy(), strict=True):
        groups = [value[np.digitize(angle, edges[1:-1]) == number] for number in range(BINS)]
        rows = [[v.mean(), *np.percentile(v, SPREAD)] if len(v) else [np.nan] * 3 for v in groups]
        table = np.array(rows, np.float32)
        arrays[f"count_{kind}"] = np.array([len(group) for group in groups], np.int32)
        arrays[f"mean_{kind}"] = table[:, 0]
        arrays[f"spread_{kind}"] = table[:, 1:]
        arrays[f"curve_{kind}"] = curves[kind].float().numpy()
    return arrays


def case_of(recipe: Recipe, objective: Objective) -> Case:
    """Return a recipe's loss with its distance and, if pairs are weighted, the distance of w_i = 1/d."""
    weighed = recipe.pair_weight is not None
    drawn_by = parts.build("distance", recipe.sampler.options["distance"]) if weighed else None
    return Case("", objective.loss, objective.distance, drawn_by)


def magnitudes(case: Case, objective: Objective, model: nn.Module, raw: Tensor) -> Tensor:
    """Compute θ and ‖x‖ ‖∂L/∂x‖ of a batch, each (2, n): at positives and at negatives.

    Args:
        case: the recipe's; its loss is copied, not changed.
        objective: the recipe's, which mines the negatives.
        model: normalises the descriptors.
        raw: (2n, k) descriptors before normalisation, anchors first.
    """
    n = len(raw) // 2
    mined = objective.triplets(descriptions(model, raw))
    own, negative = mined.negatives.query, mined.negatives.patch
    # A separate row for each side of each triplet, though several may show one patch.
    leaf = raw[torch.stack([own, (own + n) % (2 * n), negative])].requires_grad_()
    unit = model.normalise(leaf.flatten(0, 1)).unflatten(0, (3, n))
    d_pos, d_neg = case.distance.paired(unit[0], unit[1:])
    d_neg = torch.where(mined.negatives.found, d_neg, case.distance.maximum)
    losses = copy.deepcopy(case.loss)(replace(mined, positive=d_pos, negative=d_neg))
    if case.drawn_by is not None:
        d = case.drawn_by.paired(unit[0], unit[1])
        losses = losses * inverse_distance(d, None, scale="batch_mean")
    (gradient,) = torch.autograd.grad(losses.sum(), leaf)
    with torch.no_grad():
        distances = (unit[0] - unit[1:]).norm(dim=2)
        theta = 2 * (distances / 2).clamp(max=1).asin()
        products = leaf.norm(dim=2) * gradient.norm(dim=2)
        return torch.stack([theta, products[1:]])
