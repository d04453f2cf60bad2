"""Probe: the moving histogram of DSM's loss, and the weights it gives, during training (Fig. 3).

At each stage, one network builds the histogram over 30 batches drawn as in training; in the end the
first batch counts 4%. In training itself, the network changes by ten steps or so while the histogram is
built; that histogram is saved with the weights. As in training, networks are in training mode, with
dropout and each batch's own statistics, but in float32 whatever the precision of training.
"""

import numpy as np
import torch
from scipy import stats
from torch import nn

from lib.analysis.training_batch import SEED, at_stages, draw_images, in_training_mode
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.losses.descriptions import descriptions
from lib.objective import build as build_objective

BATCHES = 30
# The test of a Gaussian: triplets at most, and samples drawn.
TESTED = 2048
SAMPLES = 499


@torch.no_grad()
def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Compute the histogram of B bins and a batch of n triplets at each of S stages of training.

    Values are those that the histogram counts: d_pos − d_neg unless the recipe says otherwise.

    Args:
        subject: a network trained with the histogram form of DSM's loss.
        train_set: the set it was trained on.

    Returns:
        "stage" (S,) float32, fractions of training; "edges" (B + 1,) float32, half a bin around each
        node; "cdf" (S, B + 1) float32, the share of triplets below each edge, 0 first and 1 last; its
        differences are the bins; (S,) float32: "mean" and "deviation" of the histogram, "p", the p-value
        of the hypothesis that the triplets are a sample of a Gaussian (Lilliefors' test by simulation on
        up to 2048 of them, 0.002 at least; it ignores that those of a batch share negatives), and
        "hardest" and "easiest", the largest and the smallest weight of a batch, averaged over batches;
        "values" and "weights" (S, n) float16 of the last batch.
    """
    drawn = draw_images(subject, train_set, [subject.batch_pairs] * BATCHES)

    def at_stage(_: float, network: nn.Module) -> dict[str, np.ndarray]:
        objective = build_objective(subject.recipe, subject.device)
        loss = objective.loss
        batches = []
        with in_training_mode(network, drawn[0].device) as training:
            for images in drawn:
                triplets = objective.triplets(descriptions(training, training.raw(images)))
                values = loss.values(triplets)
                loss.update(values)
                batches.append(torch.stack([values, loss.weights(values)]))
        values, weights = torch.stack(batches, dim=1).cpu().numpy()
        histogram = loss.histogram.double().cpu().numpy()
        nodes = np.linspace(-loss.extent, loss.extent, len(histogram))
        half = nodes[1] / 2 - nodes[0] / 2
        mean = histogram @ nodes
        tested = values.ravel()[:TESTED].astype(np.float64)
        fit = stats.goodness_of_fit(stats.norm, tested, statistic="ks", n_mc_samples=SAMPLES, rng=SEED)
        numbers = {
            "edges": np.append(nodes - half, nodes[-1] + half),
            "cdf": np.append(0.0, histogram.cumsum()).clip(max=1),
            "mean": mean,
            "deviation": np.sqrt(histogram @ (nodes - mean) ** 2),
            "p": fit.pvalue,
            "hardest": weights.max(axis=1).mean(),
            "easiest": weights.min(axis=1).mean(),
        }
        last = {"values": values[-1].astype(np.float16), "weights": weights[-1].astype(np.float16)}
        return {name: np.asarray(value, np.float32) for name, value in numbers.items()} | last

    arrays = at_stages(subject.networks, at_stage)
    return arrays | {"edges": arrays["edges"][0]}
