"""Matches between two images of a plane, right or wrong by its homography (TCDesc, Fig. 2).

A module without `probe`; those that have one differ in the detector. Matched are keypoints that are each
other's nearest by their descriptors.
"""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from lib.benchmarks.subject import Subject
from lib.data.hpatches.homographies import HomographySequence
from lib.data.hpatches.images import MATCHED, ImageSequences
from lib.data.synthetic.detection import cut
from lib.data.synthetic.geometry import transfer
from lib.features.detectors import Keypoints

# From an image and a number to so many keypoints of it at most.
Detect = Callable[[np.ndarray, int], Keypoints]
MOST = 300
# Px in the other image up to which a match is right.
RIGHT = 3.0
# Pairs of images of a kind, illumination and viewpoint, whose matches are kept to be drawn.
DRAWN = 2


def image_matches(subject: Subject, images: ImageSequences, detect: Detect) -> dict[str, np.ndarray]:
    """Matches of a descriptor between two images of each sequence.

    Returns:
        By sequence, S of them in the order of their names: "name" (S,) text, "right" and "matches" (S,)
        int32. Of the first and the last of each kind, or the only one: "of" (M,) int32, a match's
        sequence, "places" (M, 4) float32, x and y in either image, px, and "is_right" (M,) bool.
    """
    sequences = sorted(images.sequences, key=lambda of: of.name)
    kinds = [[n for n, of in enumerate(sequences) if of.name.startswith(kind)] for kind in ("i_", "v_")]
    drawn = {n for of in kinds for n in (*of[: DRAWN - 1], *of[-1:])}
    found = [_matched(subject, sequence, detect) for sequence in sequences]
    kept = [(n, *found[n]) for n in sorted(drawn)]
    return {
        "name": np.array([sequence.name for sequence in sequences]),
        "right": np.array([is_right.sum() for _, is_right in found], np.int32),
        "matches": np.array([len(is_right) for _, is_right in found], np.int32),
        "of": np.repeat([n for n, *_ in kept], [len(of) for *_, of in kept]).astype(np.int32),
        "places": np.concatenate([places for _, places, _ in kept]).astype(np.float32),
        "is_right": np.concatenate([is_right for *_, is_right in kept]),
    }


def _matched(
    subject: Subject, sequence: HomographySequence, detect: Detect
) -> tuple[np.ndarray, np.ndarray]:
    """(m, 4) places of matches in both images, and (m,) whether each is right."""
    greys = [sequence.grey(index) for index in MATCHED]
    points = [detect(grey, MOST) for grey in greys]
    if not all(map(len, points)):
        return np.empty((0, 4)), np.empty(0, bool)
    described = [subject.describe(cut(*of)) for of in zip(greys, points, strict=True)]
    apart = cdist(*described)
    nearest = apart.argmin(1)
    mutual = np.flatnonzero(apart.argmin(0)[nearest] == np.arange(len(nearest)))
    first, second = points[0].position[mutual], points[1].position[nearest[mutual]]
    carried = transfer(sequence.homographies[MATCHED[1] - 1], first)
    away = np.linalg.norm(carried - second, axis=1)
    return np.hstack([first, second]), away <= RIGHT
