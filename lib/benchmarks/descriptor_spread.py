"""How widely descriptors spread over the sphere at each stage of training; a collapse would show here.

The network's last batch norm gives every coordinate unit variance over a batch whatever is learned, so
a single coordinate shows no collapse. The number of directions with variance can still shrink. It is
measured by the effective rank, the exponential of the entropy of the covariance's normalised
eigenvalues (Roy and Vetterli, EUSIPCO 2007): 1 if all descriptors lie on one line, and k if they spread
equally in all k directions.
"""

import numpy as np

from lib.benchmarks.subject import Subject, describe
from lib.data.patchset import PatchSet

PATCHES = 1000
SEED = 0


def measure(subject: Subject, test_set: PatchSet) -> dict[str, float]:
    """Measure the spread at each kept stage, on up to 1,000 patches of different points.

    Args:
        subject: a network with stages; without stages, nothing is measured.
        test_set: P patches of points.

    Returns:
        By stage ("0.0", …): "effective_rank.{stage}" in 1…k, "first_share.{stage}" the share of the
        variance along its first direction, 0 to 1, and "mean_cosine.{stage}" the mean cosine between
        descriptors of different points, −1 to 1.
    """
    _, first = np.unique(test_set.point_ids, return_index=True)
    taken = np.random.default_rng(SEED).permutation(first)[:PATCHES]
    patches, numbers = test_set.patches[np.sort(taken)], {}
    for stage, network in subject.stages.items():
        described = describe(network, patches, subject.device)
        if described.dtype == np.uint8:
            described = 2.0 * np.unpackbits(described, axis=1) - 1
        described = described.astype(np.float64)
        lengths = np.linalg.norm(described, axis=1, keepdims=True)
        # Unit descriptors keep every digit; TFeat's and bits do not have unit length.
        if not np.allclose(lengths, 1, atol=1e-4):
            described /= lengths
        numbers |= {f"{name}.{stage}": value for name, value in spread(described).items()}
    return numbers


def spread(descriptors: np.ndarray) -> dict[str, float]:
    """Compute the three numbers of m ≥ 2 unit descriptors (m, k) of different points.

    Descriptors that are all equal have rank 1 and a first share of 1.
    """
    m = len(descriptors)
    sum_of_all = descriptors.sum(axis=0)
    cosine = (sum_of_all @ sum_of_all - np.square(descriptors).sum()) / (m * (m - 1))
    values = np.linalg.svd(descriptors - descriptors.mean(axis=0), compute_uv=False) ** 2
    shares = values / values.sum() if values.sum() > 1e-12 * m else np.eye(len(values))[0]
    entropy = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
    return {
        "effective_rank": float(np.exp(entropy)),
        "first_share": float(shares[0]),
        "mean_cosine": float(cosine),
    }
