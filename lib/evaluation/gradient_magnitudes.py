"""Probe: ‖x‖ ‖∂L/∂x‖ before normalisation, by the angle to the positive and by that to the negative.

L is a pair's own loss, w_i included, and x a descriptor of it; the gradient is asked for through x's
positive alone, and through its negative alone. Regularisers are left out. Normalisation divides what
comes through an angle θ by ‖x‖, so that ‖x‖ ‖∂L/∂x‖ = |∂L/∂θ|, however long x is (HyNet, Eq. 3 and 4).
A loss listens to both angles, and some to the whole batch. So beside the measured means stand curves:
one angle goes through all its values, the other is the batch's mean.

Pairs are drawn at random, AdaSample's too: what differs at an angle is the loss. Networks are in
evaluation mode, at the end of training.
"""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from lib import parts
from lib.data.patchset import PatchSet
from lib.descriptions import Descriptions, Triplets, descriptions
from lib.distances import Distance
from lib.evaluation.subject import Subject
from lib.evaluation.triplets_in_batch import draw_images
from lib.objective import Objective
from lib.objective import build as build_objective
from lib.recipes import Recipe, part
from lib.samplers.candidates import Choice
from lib.theory.gradient_magnitudes import by_angle
from lib.theory.loss_shapes import Case

BATCHES = 30
BINS = 36
POINTS = 90
# Of what is measured in a bin, in percent.
SPREAD = (10, 90)


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Magnitudes by angle in 30 batches of the size of training's, B = 36 bins of 5 degrees.

    Args:
        subject: a trained network whose loss is of the distances of triplets.
        train_set: the set it was trained on.

    Returns:
        "edges" (B + 1,) float32, radians from 0 to π; for both kinds, "positive" and "negative":
        "count_…" (B,) int32, "mean_…" (B,) and "spread_…" (B, 2) float32, the 10th and 90th percentile,
        NaN in empty bins; "theta" (P,) float32, and "curve_…" (P,) float32, the magnitude there with
        the other angle at the batches' mean; "means" (2,) float32, those of the two angles' distances
        as angles.

    Raises:
        ValueError: the subject was not trained, or the set cannot fill a batch.
    """
    if subject.recipe is None or not subject.stages:
        raise ValueError("this descriptor was not trained, so it has no gradients")
    recipe = subject.recipe
    blind = replace(subject, recipe=replace(recipe, sampler=part("random_pair")))
    pairs = subject.record["config"]["profile"]["budget"]["batch_pairs"]
    drawn = draw_images(blind, train_set, [pairs] * BATCHES)
    model = subject.stages[max(subject.stages, key=float)]
    with torch.no_grad():
        described = [descriptions(model, model.raw(images)) for images in drawn]
    objective = build_objective(recipe, subject.device)
    weighing = Weighing.of(recipe)
    # What a loss knows of earlier batches, it knows of these.
    batches = [(of, objective.triplets(of)) for of in described]
    for _, triplets in batches:
        objective.loss(triplets)
    found = [measured(objective, weighing, model, *batch) for batch in batches]
    angles, values = (torch.cat(of, dim=1).cpu().numpy() for of in zip(*found, strict=True))
    edges = np.linspace(0, math.pi, BINS + 1)
    arrays = {"edges": edges.astype(np.float32)}
    for kind, angle, value in zip(("positive", "negative"), angles, values, strict=True):
        arrays |= {f"{name}_{kind}": of for name, of in _binned(angle, value, edges).items()}
    case = Case("", "", lambda: objective.loss, objective.distance, weighing.drawn_by)
    state = torch.from_numpy(2 * np.sin(angles.T / 2))
    theta, curves = by_angle(case, objective.loss, state, POINTS)
    arrays |= {f"curve_{kind}": of for kind, of in curves.items()}
    arrays |= {"theta": theta, "means": 2 * np.arcsin(state.mean(dim=0).numpy() / 2)}
    return {name: of if of.dtype == np.int32 else of.astype(np.float32) for name, of in arrays.items()}


@dataclass(frozen=True)
class Weighing:
    """The weights w_i of a recipe's pairs, by the distance of its sampler; 1 where it has none.

    Attributes:
        weigh: from a sampler's choice to weights (n,), or None.
        drawn_by: that distance, or None.
    """

    weigh: object | None
    drawn_by: Distance | None

    @classmethod
    def of(cls, recipe: Recipe) -> "Weighing":
        """Those of a recipe."""
        if recipe.pair_weight is None:
            return cls(None, None)
        drawn_by = parts.build("distance", recipe.sampler.options["distance"])
        return cls(parts.build("pair_weight", recipe.pair_weight), drawn_by)

    def __call__(self, of: Descriptions) -> Tensor | float:
        """(n,) of pairs that were drawn at random."""
        if self.weigh is None:
            return 1.0
        places = torch.arange(of.value.shape[1])
        return self.weigh(Choice(places, places, self.drawn_by.paired(*of.value)))


def measured(
    objective: Objective, weighing: Weighing, model: nn.Module, of: Descriptions, triplets: Triplets
) -> tuple[Tensor, Tensor]:
    """‖x‖ ‖∂L/∂x‖ by the angle that it comes through, at anchors and at what negatives were mined for.

    Args:
        objective: whose loss it is; the state that the loss keeps stays.
        weighing: of its pairs.
        model: whose normalisation it is.
        of: n pairs.
        triplets: of these.

    Returns:
        (2, n) angles of positives and negatives, radians, and (2, n) magnitudes.
    """
    both, mined = of.raw.flatten(0, 1), triplets.negatives
    # A descriptor of its own for each side of each triplet, though several show one patch.
    positive = of.raw.clone().requires_grad_()
    negative = both[torch.stack([mined.query, mined.patch])].clone().requires_grad_()
    sides = [model.normalise(each.flatten(0, 1)).unflatten(0, (2, -1)) for each in (positive, negative)]
    d_pos, d_neg = (objective.distance.paired(*each) for each in sides)
    d_neg = torch.where(mined.found, d_neg, torch.full_like(d_neg, objective.distance.maximum))
    losses = copy.deepcopy(objective.loss)(replace(triplets, positive=d_pos, negative=d_neg)) * weighing(
        of
    )
    gradients = torch.autograd.grad(losses.sum(), [positive, negative])
    values = [
        g[0].norm(dim=1) * x[0].norm(dim=1) for g, x in zip(gradients, (positive, negative), strict=True)
    ]
    angles = [2 * ((u - v).norm(dim=1).double() / 2).clamp(max=1).asin() for u, v in sides]
    return torch.stack(angles).detach(), torch.stack(values).double().detach()


def _binned(angle: np.ndarray, value: np.ndarray, edges: np.ndarray) -> dict[str, np.ndarray]:
    place = np.digitize(angle, edges[1:-1])
    groups = [value[place == number] for number in range(len(edges) - 1)]
    return {
        "count": np.array([len(of) for of in groups], np.int32),
        "mean": np.array([of.mean() if len(of) else np.nan for of in groups]),
        "spread": np.array([np.percentile(of, SPREAD) if len(of) else [np.nan] * 2 for of in groups]),
    }
