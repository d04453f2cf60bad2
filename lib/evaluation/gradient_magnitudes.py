"""Probe: |∂L/∂θ| of a trained network's triplets, by the angle of the positive and of the negative.

Normalisation divides what comes through an angle θ by ‖x‖, so that |∂L/∂θ| = ‖x‖ ‖∂L/∂x‖ of a descriptor
x before normalisation (HyNet, Eq. 3 and 4), L being a pair's own loss, w_i included and regularisers
left out. A loss listens to both angles, and some to the whole batch. So beside the triplets stand curves
as of `lib.theory.gradient_magnitudes`, at these triplets in place of a made-up state.

Pairs are drawn at random, AdaSample's too: what differs at an angle is the loss. Networks are in
evaluation mode, at the end of training.
"""

import copy
import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from lib import parts
from lib.data.patchset import PatchSet
from lib.descriptions import descriptions
from lib.evaluation.subject import Subject
from lib.evaluation.triplets_in_batch import draw_images
from lib.objective import Objective
from lib.objective import build as build_objective
from lib.recipes import Recipe, part
from lib.theory.gradient_magnitudes import by_angle, slopes
from lib.theory.loss_shapes import Case

BATCHES, BINS, POINTS = 30, 36, 90
# Of what lies in a bin, in percent.
SPREAD = (10, 90)


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Magnitudes by angle in 30 batches of the size of training's, B = 36 bins of 5 degrees.

    Args:
        subject: a trained network whose loss is of the distances of triplets.
        train_set: the set it was trained on.

    Returns:
        "edges" (B + 1,) float32, radians from 0 to π; for both kinds, "positive" and "negative":
        "count_…" (B,) int32, "mean_…" (B,) and "spread_…" (B, 2) float32, the 10th and 90th percentile,
        NaN in empty bins; and "curve_…" (P,) float32, the magnitude at angles as those of the
        computation, the other angle at the triplets' mean.

    Raises:
        ValueError: the subject was not trained, or the set cannot fill a batch.
    """
    if subject.recipe is None or not subject.stages:
        raise ValueError("this descriptor was not trained, so it has no gradients")
    blind = replace(subject, recipe=replace(subject.recipe, sampler=part("random_pair")))
    pairs = subject.record["config"]["profile"]["budget"]["batch_pairs"]
    drawn = draw_images(blind, train_set, [pairs] * BATCHES)
    model = subject.stages[max(subject.stages, key=float)]
    objective = build_objective(subject.recipe)
    case, loss = case_of(subject.recipe, objective), objective.loss
    batches = [distances(objective, model, images) for images in drawn]
    state = torch.cat(batches)
    # What a loss knows of earlier batches, it knows of these.
    for batch in batches:
        slopes(case, loss, batch, state)
    found = torch.cat([slopes(case, copy.deepcopy(loss), of, state) for of in batches], dim=1)
    _, curves = by_angle(case, loss, state, POINTS)
    edges = np.linspace(0, math.pi, BINS + 1)
    arrays = {"edges": edges.astype(np.float32)}
    angles = 2 * (state.T / 2).asin()
    for kind, angle, value in zip(curves, angles.numpy(), found.numpy(), strict=True):
        of_kind = {**_binned(angle, value, edges), "curve": curves[kind].astype(np.float32)}
        arrays |= {f"{name}_{kind}": of for name, of in of_kind.items()}
    return arrays


def case_of(recipe: Recipe, objective: Objective) -> Case:
    """A recipe's loss with its distance and, where pairs have weights, the distance of w_i = 1/d."""
    weighed = recipe.pair_weight is not None
    drawn_by = parts.build("distance", recipe.sampler.options["distance"]) if weighed else None
    return Case("", "", lambda: objective.loss, objective.distance, drawn_by)


@torch.no_grad()
def distances(objective: Objective, model: nn.Module, images: Tensor) -> Tensor:
    """(n, 2) Euclidean d_pos and d_neg of a batch's n pairs as mined, float64, 0.01 to 1.99."""
    of = descriptions(model, model.raw(images))
    mined = objective.triplets(of).negatives
    sides = of.value, of.value.flatten(0, 1)[torch.stack([mined.query, mined.patch])]
    lengths = [(x - y).double().norm(dim=1) for x, y in sides]
    return torch.stack(lengths, dim=1).clamp(0.01, 1.99).cpu()


def _binned(angle: np.ndarray, value: np.ndarray, edges: np.ndarray) -> dict[str, np.ndarray]:
    groups = [value[np.digitize(angle, edges[1:-1]) == number] for number in range(len(edges) - 1)]
    of_groups = [[of.mean(), *np.percentile(of, SPREAD)] if len(of) else [np.nan] * 3 for of in groups]
    mean, *spread = np.array(of_groups, np.float32).T
    count = np.array([len(of) for of in groups], np.int32)
    return {"count": count, "mean": mean, "spread": np.stack(spread, axis=1)}
