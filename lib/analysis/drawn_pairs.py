"""Probe: AdaSample's two-stage pipeline on real classes (Fig. 1): candidates, p_i, positive, negative.

At three moments of training, the probe gives the probabilities of Eq. 13 among the candidates of a few
classes, the positive drawn with them, and the negative mined in the batch (Eq. 14). Classes, candidates
and anchors are drawn once, so only the network and the exponent λ / L_avg differ between the moments.
"""

import numpy as np
import torch
from torch import nn

from lib import parts
from lib.analysis.training_batch import SEED, at_stages, draw, unit, with_statistics
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.objective import build as build_objective
from lib.samplers.adasample import anchor_distances, log_probabilities

CLASSES = 6


def probe(subject: Subject, train_set: PatchSet) -> dict[str, np.ndarray]:
    """Draw pairs as AdaSample would at the first, the middle and the last kept stage of training.

    Args:
        subject: a network trained with AdaSample.
        train_set: the set it was trained on.

    Returns:
        "stage" (3,) float32, fractions of training; "exponent" (3,) float32, λ / L_avg at those
        moments, 0 before the first loss; "images" (C, c, 32, 32) uint8, at most c candidates of each of
        the first C = 6 classes of the batch, zero at empty slots; "generated" (C, c) bool, which
        candidates are turned copies; "anchor" (C,) int16, the slot of the anchor; (3, C, c) float32:
        "distance" to the anchor at power 1, by the sampler's distance, and "probability", NaN at the
        anchor and at empty slots; "positive" (3, C) int16, the slot drawn; "negative" (3, C, 32, 32)
        uint8, the patch mined; "near_anchor" (3, C) bool, whether the negative was mined for the anchor
        (else for the positive); "found" (3, C) bool, whether there was a negative.
    """
    generator = torch.Generator().manual_seed(SEED)
    batch = draw(subject, train_set, generator)
    distance = parts.build("sampler", subject.recipe.sampler).distance
    objective = build_objective(subject.recipe, subject.device)
    n = len(batch.anchor)
    images = batch.images[:, :, 0].round().clamp(0, 255).byte()
    candidates = batch.shuffled(generator)

    steps = np.asarray(subject.curves["step"])

    def at_stage(stage: float, network: nn.Module) -> dict[str, object]:
        # Exponent of the last recorded step up to the stage; before the first loss, draws are uniform.
        passed = int((steps <= stage * steps[-1] + 1e-6).sum())
        exponent = float([0.0, *subject.curves["exponent"]][passed])
        model = with_statistics(network, candidates)
        raw = batch.raw_descriptors(model)
        far = anchor_distances(batch.pool, unit(model, raw), batch.anchor, distance)
        logits, _ = log_probabilities(far, torch.tensor(exponent, device=far.device))
        drawn = torch.multinomial(logits.exp().cpu(), 1, generator=generator)
        positive = drawn.squeeze(1).to(far.device)
        pair = torch.stack([batch.anchor, positive])
        mined = objective.triplets(batch.pairs(model, raw, positive)).negatives
        side, other = mined.patch // n, mined.patch % n
        shown = {
            "distance": far,
            "probability": logits.exp().where(far.isfinite(), torch.nan),
            "positive": positive.short(),
            "negative": images[other, pair[side, other]],
            "near_anchor": mined.query < n,
            "found": mined.found,
        }
        return {"exponent": np.float32(exponent)} | {name: v[:CLASSES] for name, v in shown.items()}

    slot = torch.arange(batch.pool.valid.shape[1], device=subject.device)
    once = {
        "images": images * batch.pool.valid[:, :, None, None],
        "generated": batch.pool.valid & (slot >= batch.pool.originals[:, None]),
        "anchor": batch.anchor.short(),
    }
    networks = subject.networks
    first, *_, last = networks
    middle = min(networks, key=lambda stage: abs(stage - 0.5))
    stages = {stage: networks[stage] for stage in (first, middle, last)}
    return at_stages(stages, at_stage, **{name: values[:CLASSES] for name, values in once.items()})
