"""Probe: the distances of the hardest triplets of a training batch (DSM, Fig. 1).

Distances are those compared at test: a binary descriptor's are between its signs. Networks are in
evaluation mode; before the first step, their batch norms take the statistics of the batch.

The larger a batch, the closer its hardest negatives. So the same pairs are mined twice: in batches of
training's size, and all in one batch, of the paper's 1024 pairs if the set has as many classes.
"""

import numpy as np
import torch
from torch import Tensor, nn

from lib.analysis.training_batch import at_stages, draw_images, with_statistics
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.losses.descriptions import Descriptions, descriptions
from lib.objective import build as build_objective

MOST = 1024


@torch.no_grad()
def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Compute the distances of the triplets of T pairs at each of S stages of training.

    T is the largest multiple of n, the pairs in a training batch, up to 1024 and up to the number of
    classes in the set, but at least n. Each pair is of a different class.

    Args:
        subject: a network trained on random pairs.
        train_set: the set it was trained on.

    Returns:
        "stage" (S,) float32, fractions of training; "batch_pairs" () int32, n; (S, T) float16, at power
        1: "positive" d_pos, "negative" d_neg mined among the n pairs of its batch (batches follow one
        another), and "negative_of_all" mined among all T.
    """
    n = subject.batch_pairs
    total = n * max(1, min(MOST, len(np.unique(train_set.point_ids))) // n)
    [images] = draw_images(subject, train_set, [total])
    batches = [some.flatten(0, 1) for some in images.unflatten(0, (2, -1)).split(n, dim=1)]
    objective = build_objective(subject.recipe, subject.device)

    def at_stage(_: float, network: nn.Module) -> dict[str, Tensor]:
        model = with_statistics(network, batches)
        codes = [descriptions(model, model.raw(some)).code for some in batches]
        mined = [Descriptions(code, code) for code in (*codes, torch.cat(codes, dim=1))]
        *batched, whole = map(objective.triplets, mined)
        distances = {
            "positive": torch.cat([triplets.positive for triplets in batched]),
            "negative": torch.cat([triplets.negative for triplets in batched]),
            "negative_of_all": whole.negative,
        }
        return {name: objective.distance.root(far).half() for name, far in distances.items()}

    return at_stages(subject.networks, at_stage, batch_pairs=np.int32(n))
