"""Probe: how alike the neighbourhoods of matching descriptors are, and some of them in a plane (TCDesc,
Fig. 1).

k = 16 and the weights, linear combinations, are TCDesc's, whatever the network was trained with.
Networks are in evaluation mode; before the first step, their batch norms take the batches' statistics.
"""

import numpy as np
import torch
from torch import Tensor, nn

from lib.analysis.training_batch import at_stages, draw_images, with_statistics
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.losses.descriptions import descriptions
from lib.losses.topology import matches, topology_distance
from lib.losses.topology_weights import linear_combination, nearest

NEIGHBOURS = 16
BATCHES = 4
# Pairs whose neighbourhoods are plotted: the first ones of the first batch, so that none is picked.
DRAWN = 3


@torch.no_grad()
def probe(subject: Subject, data: PatchSet) -> dict[str, np.ndarray]:
    """Compare neighbourhoods within batches of training's size at each of S stages of training.

    Args:
        subject: a network trained on random pairs, in batches of n, 17 or more.
        data: set that classes are drawn from, trained on or not.

    Returns:
        "stage" (S,) float32, fractions of training; for 4 n pairs, (S, 4 n) float16: "matched", the
        share of matched neighbours (Eq. 11's m / k), and the distances "topology" d_T (Eq. 8) and
        "euclidean"; "unshared" (S,) float32, the mean d_T that the same weights would give if no
        neighbour were shared, its largest value. For the first 3 pairs at the end of training: "near"
        (3, 2, k) int16, the pairs that are neighbours of the anchor and of the positive, nearest first;
        "plane" (3, 2, n, 2) float16, all anchors and positives in the first two principal components of
        the pair and its neighbours in both sets; "explained" (3,) float16, the share of their variance
        that these components explain.
    """
    batches = draw_images(subject, data, [subject.batch_pairs] * BATCHES)

    def codes_and_neighbours(network: nn.Module) -> list[tuple[Tensor, Tensor]]:
        model = with_statistics(network, batches)
        codes = [descriptions(model, model.raw(images)).code.float() for images in batches]
        return [(c, torch.stack([nearest(side, NEIGHBOURS) for side in c])) for c in codes]

    def at_stage(_: float, network: nn.Module) -> dict[str, Tensor]:
        by_batch = [_compared(code, near) for code, near in codes_and_neighbours(network)]
        matched, topology, euclidean, unshared = map(torch.cat, zip(*by_batch, strict=True))
        return {
            "matched": matched.half(),
            "topology": topology.half(),
            "euclidean": euclidean.half(),
            "unshared": unshared.mean(),
        }

    *_, last = subject.networks.values()
    code, near = codes_and_neighbours(last)[0]
    planes, explained = zip(*(_plane(code, near, pair) for pair in range(DRAWN)), strict=True)
    drawn = {"plane": torch.stack(planes).half(), "explained": torch.stack(explained).half()}
    near = near[:, :DRAWN].transpose(0, 1).short()
    return at_stages(subject.networks, at_stage, **drawn, near=near)


def _compared(code: Tensor, near: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return m / k, d_T, the Euclidean distance and (‖T^a‖₁ + ‖T^p‖₁) / k, (n,) each, of pairs (2, n, d)
    with neighbours (2, n, k)."""
    weights = [
        linear_combination(side, side[neighbours]) for side, neighbours in zip(code, near, strict=True)
    ]
    matched = matches(code, near) / NEIGHBOURS
    topology = topology_distance(*weights, near)
    euclidean = (code[0] - code[1]).norm(dim=1)
    unshared = sum(weight.abs().sum(1) for weight in weights) / NEIGHBOURS
    return matched, topology, euclidean, unshared


def _plane(code: Tensor, near: Tensor, pair: int) -> tuple[Tensor, Tensor]:
    """Return (2, n, 2) descriptors in the plane of a pair and its neighbours, and the variance share."""
    among = torch.cat([code[side, [pair, *near[side, pair].tolist()]] for side in (0, 1)])
    middle = among.mean(0)
    _, spread, components = torch.linalg.svd(among - middle, full_matrices=False)
    variance = spread.square()
    return (code - middle) @ components[:2].T, variance[:2].sum() / variance.sum()
