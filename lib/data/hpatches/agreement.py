"""Whether the images of a homography sequence agree with its homographies.

A sequence from outside may have images that were resized after its homographies were measured, files in
another order, or homographies that lead to the first image. Its patches then show other spots than they
should, without any sign of it but low scores: SIFT's matching of one sequence fell from 87 to 56% when
its images were halved.

The reference and each other image are matched by SIFT (Lowe, IJCV 2004), and a homography is fitted to
the matches by MAGSAC++ (Barath et al., CVPR 2020). A pair contradicts its homography if the fit explains
several times as many matches, and more than chance does. Pairs that are hard to match give few matches,
and therefore pass, as do images that show nothing in common. So do images and homographies that fit each
other although both are wrong: resized images of a still camera still fit the identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import cv2
import numpy as np

from lib.data.hpatches.homographies import HomographySequence
from lib.data.images import reduced
from lib.features.keypoints import transfer
from lib.features.matches import match

# Larger images are reduced to this longest side, px. Their strongest keypoints, and the ratio test.
LONGEST_SIDE, FEATURES, RATIO = 1024, 4000, 0.8
# Largest distance between a match and where a homography carries it, px of the reduced image.
PIXELS = 5.0
# A contradiction is a fit to so many matches, and to so many times those of the given homography.
# Unrelated images have fits to at most 8. In the 50 pairs of Oxford's 8 sequences and two of HPatches' a
# fit to 20 or more has at most 1.56 times as many (boat's last pair; 1.22 without it).
FEWEST, TIMES = 20, 3.0
# A reason is named if its homography explains this share of the matches that the fit explains.
_EXPLAINED = 0.7
_TRIALS, _CONFIDENCE = 10_000, 0.999
# Factors by which images may have been resized, 0.5% apart.
_FACTORS = 2.0 ** np.linspace(-3, 3, 833)


@dataclass(frozen=True)
class _Pair:
    """The matches of the reference with another image.

    Attributes:
        first, second: (N, 2) float64, positions in the two images as stored, px.
        reach: largest distance at which a match is explained, px of the other image.
    """

    first: np.ndarray
    second: np.ndarray
    reach: float

    def errors(self, homography: np.ndarray) -> np.ndarray:
        """Return how far from its other end each match is carried, at most `reach`; (N,) px."""
        # A match on the homography's horizon is carried to infinity.
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.linalg.norm(transfer(homography, self.first) - self.second, axis=1)
        return np.fmin(error, self.reach)

    def explained(self, homography: np.ndarray) -> int:
        """Return how many matches a homography carries to within `reach` of their other end."""
        return int((self.errors(homography) < self.reach).sum())


def check_agreement(sequence: HomographySequence) -> None:
    """Refuse a sequence with an image that contradicts its homography.

    This takes two to five seconds on a core, for images of half a megapixel. OpenCV's random generator
    is seeded.

    Raises:
        ValueError: an image contradicts its homography. The message names the one with the most matches
            against it, the numbers of matches, and what would explain them. Or an image cannot be read.
    """
    contradictions = []
    for index, pair in enumerate(_matched(sequence)):
        given, fitted = pair.explained(sequence.homographies[index]), _fitted(pair)
        if fitted >= max(FEWEST, TIMES * given):
            contradictions.append((fitted, given, index, pair))
    if contradictions:
        fitted, given, index, worst = max(contradictions, key=lambda found: found[0])
        pairs = {index: pair for *_, index, pair in contradictions}
        why = _reason(sequence.homographies, pairs, sum(found[0] for found in contradictions))
        raise ValueError(
            f"{sequence.folder}: {sequence.images[index + 1].name} contradicts its homography. Of its "
            f"{len(worst.first)} matches with {sequence.images[0].name}, {given} agree with it and "
            f"{fitted} with another one. {why}"
        )


def _matched(sequence: HomographySequence) -> Iterator[_Pair]:
    """Yield the matches of the reference with each other image."""
    positions, descriptors, _ = _described(sequence.grey(0))
    for index in range(1, len(sequence.images)):
        others, columns, pixel = _described(sequence.grey(index))
        matches = match(descriptors, columns, ratio=RATIO)
        yield _Pair(positions[matches.first], others[matches.second], PIXELS * pixel)


def _described(grey: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Find an image's strongest SIFT keypoints, in an order that does not depend on OpenCV's threads.

    Returns:
        (n, 2) positions, px of the image as given; (n, 128) descriptors; and how many of these px are a
        pixel of the reduced image.
    """
    small = reduced(grey, LONGEST_SIDE)
    sift = cv2.SIFT_create(FEATURES, enable_precise_upscale=True)
    found, descriptors = sift.detectAndCompute(small, None)
    if descriptors is None:
        return np.empty((0, 2)), np.empty((0, 128), np.float32), 1.0
    keypoints = np.array([(*keypoint.pt, keypoint.size, keypoint.angle) for keypoint in found])
    order = np.lexsort(keypoints.T)
    stretch = np.divide(grey.shape[::-1], small.shape[::-1])
    return (keypoints[order, :2] + 0.5) * stretch - 0.5, descriptors[order], float(stretch.max())


def _fitted(pair: _Pair) -> int:
    """Fit a homography to matches and return how many it explains; 0 if there are too few."""
    if len(pair.first) < FEWEST:
        return 0
    cv2.setRNGSeed(0)
    ends, method = (pair.first, pair.second), cv2.USAC_MAGSAC
    fit, _ = cv2.findHomography(*ends, method, pair.reach, None, _TRIALS, _CONFIDENCE)
    return 0 if fit is None else pair.explained(fit)


def _reason(homographies: np.ndarray, pairs: Mapping[int, _Pair], fitted: int) -> str:
    """Return what explains most of the matches that contradict, or that nothing known here does.

    Args:
        homographies: (5, 3, 3), those of the sequence.
        pairs: the matches of the images that contradict theirs, by the homography's index.
        fitted: how many of these matches a fit to each image explains.
    """
    inverses = {n: np.linalg.inv(homographies[n]) for n in pairs}
    others = {n: max(np.delete(homographies, n, axis=0), key=pairs[n].explained) for n in pairs}
    reasons = [
        ("Inverses agree: the homographies lead to the first image, so invert them.", inverses),
        ("Those of other images agree: put the files in order.", others),
    ]
    for factor in _FACTORS:
        grow, shrink = np.diag([factor, factor, 1.0]), np.diag([1.0, 1.0, factor])
        size = f"about {factor:.2f} times the size that the homographies were measured at"
        reasons += [
            (f"All images have {size}.", {n: grow @ homographies[n] @ shrink for n in pairs}),
            (f"The first image has {size}.", {n: homographies[n] @ shrink for n in pairs}),
            (f"Not the first image, but this has {size}.", {n: grow @ homographies[n] for n in pairs}),
        ]
    # By their errors, since several factors that are alike may explain as many matches.
    why, likely = min(
        reasons, key=lambda reason: sum(pairs[n].errors(h).sum() for n, h in reason[1].items())
    )
    explained = sum(pairs[n].explained(homography) for n, homography in likely.items())
    return why if explained >= _EXPLAINED * fitted else "Neither their size nor their order explains it."
