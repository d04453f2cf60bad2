"""Probe: the moving histogram of DSM's loss, and the weights it gives, through training (Fig. 3).

It is the histogram of a network at a stage, over batches drawn as training draws them: 30 of them, after
which the first counts 4%. In training itself the network moves on while the histogram is built, by ten
steps or so; what training kept of it lies beside the weights. As in training, networks are in training
mode, with dropout and each batch's own statistics, but in float32 whatever the precision of training.
"""

import numpy as np
import torch
from scipy import stats
from torch import nn

from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.descriptions import descriptions
from lib.objective import build as build_objective
from lib.probes.training_batch import SEED, at_stages, draw_images, in_training_mode

BATCHES = 30
# Triplets at most, and samples drawn, of the test whether they are Gaussian.
TESTED, SAMPLES = 2048, 499


@torch.no_grad()
def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """The histogram of B bins at each stage of training, S of them, and a batch of n triplets.

    Values are what the histogram is of, d_pos − d_neg unless the recipe says otherwise.

    Args:
        subject: a network trained with DSM's loss in the form of a histogram.
        train_set: the set it was trained on.

    Returns:
        "stage" (S,) float32, fractions of training; "edges" (B + 1,) float32, half a bin around each
        node; "cdf" (S, B + 1) float32, the share of triplets below each edge, 0 first and 1 last, whose
        differences are the bins; (S,) float32: "mean" and "deviation" of the histogram, "p" of the
        hypothesis that the triplets are a sample of a Gaussian (Lilliefors' test by simulation on up to
        2048 of them, 0.002 at least; it does not know that those of a batch share negatives), and
        "hardest" and "easiest", the largest and the smallest weight of a batch, means over the batches;
        (S, n) float16 of the last batch: "values" and "weights".
    """
    drawn = draw_images(subject, train_set, [subject.batch_pairs] * BATCHES)

    def at_stage(_: float, network: nn.Module) -> dict[str, np.ndarray]:
        objective, batches = build_objective(subject.recipe, subject.device), []
        loss = objective.loss
        with in_training_mode(network, drawn[0].device) as training:
            for images in drawn:
                triplets = objective.triplets(descriptions(training, training.raw(images)))
                # What the loss returns is not wanted: with each batch it builds its histogram further.
                loss(triplets)
                values = loss.values(triplets)
                batches.append(torch.stack([values, loss.weights(values)]))
        values, weights = torch.stack(batches, dim=1).cpu().numpy()
        histogram = loss.histogram.double().cpu().numpy()
        nodes = np.linspace(-loss.extent, loss.extent, len(histogram))
        mean, half = histogram @ nodes, nodes[1] / 2 - nodes[0] / 2
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
