"""FPR95 and norms when the exposure of every pair's second patch is changed (HyNet, Sec. 3.1).

Patches stay 8-bit images: grey levels are rounded and clipped to 0 to 255. Apart from that, a
gain c has no effect: HyNet's input layer divides a patch by its root mean square, and L2-Net's input
subtracts its mean and divides by its deviation, so both give the same for c p as for p, up to their ε.
An offset passes HyNet's input layer, but not L2-Net's. A gamma passes both.
"""

from copy import copy

import numpy as np
import torch
from torch import Tensor, nn

from lib.benchmarks.fpr95 import fpr95
from lib.benchmarks.subject import Subject, describe, distances_between
from lib.data.patchset import PatchSet

GAINS, OFFSETS, GAMMAS = (0.5, 1.4), (-20, 20), (0.5, 1.5)
UNCHANGED = "none"


def changes() -> dict[str, np.ndarray]:
    """Return a (256,) uint8 lookup table of grey levels for each change by name; no change is first."""
    level = np.arange(256.0)
    becomes = {
        UNCHANGED: level,
        **{f"gain_{gain:g}": gain * level for gain in GAINS},
        **{f"offset_{offset:+d}": level + offset for offset in OFFSETS},
        **{f"gamma_{gamma:g}": 255 * (level / 255) ** gamma for gamma in GAMMAS},
    }
    return {name: grey.round().clip(0, 255).astype(np.uint8) for name, grey in becomes.items()}


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """Measure FPR95 and norms on a set's labelled pairs under each of `changes`.

    Args:
        subject: a trained network that normalises its descriptors.
        test_set: with labelled pairs of both kinds.

    Returns:
        For each change by name: "fpr95.…" in percent; "ratio_spread.…", the standard deviation over
        matching pairs of ln(‖x‖ / ‖x⁺‖), with norms before normalisation and the second patch changed;
        and "norm_shift.…", the median |ln| of the factor that the change applies to the second norm, 0
        for no change.
    """
    model = subject.stages[max(subject.stages, key=float)]
    pairs, numbers = test_set.pairs, {}
    used_first, first = np.unique(pairs.first, return_inverse=True)
    used_second, second = np.unique(pairs.second, return_inverse=True)
    raw_first = _raw(model, test_set.patches[used_first], subject.device)
    x, norms_first = model.normalise(raw_first).double().numpy(), raw_first.norm(dim=1)
    first_of_matching, second_of_matching = first[pairs.match], second[pairs.match]
    unchanged = None
    for name, becomes in changes().items():
        raw = _raw(model, becomes[test_set.patches[used_second]], subject.device)
        norms = raw.norm(dim=1)
        unchanged = norms if unchanged is None else unchanged
        y = model.normalise(raw).double().numpy()
        distances = distances_between(x, y, (first, second))
        ratio = (norms_first[first_of_matching] / norms[second_of_matching]).log()
        numbers[f"fpr95.{name}"] = fpr95(distances, pairs.match).expected
        numbers[f"ratio_spread.{name}"] = float(ratio.std(correction=0))
        numbers[f"norm_shift.{name}"] = float((norms / unchanged).log().abs().median())
    return numbers


def _raw(model: nn.Module, patches: np.ndarray, device: str) -> Tensor:
    """Return descriptors (m, k) float32 before normalisation, on the CPU."""
    raw = copy(model)
    # Only the copy skips normalisation.
    raw.normalise = lambda output: output
    return torch.from_numpy(describe(raw, patches, device))
