"""Probe: matches between two images of a plane, right or wrong by its homography (TCDesc, Fig. 2).

Keypoints are BRISK's; TCDesc's Figure 2 uses learned ones. Keypoints match if their descriptors are each
other's nearest.
"""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from lib.benchmarks.subject import Subject
from lib.data.hpatches.homographies import MATCHED, HomographySequence
from lib.features.detectors import brisk_keypoints
from lib.features.keypoints import Keypoints, transfer
from lib.features.patches import cut

# From an image and a number to at most that many keypoints.
Detect = Callable[[np.ndarray, int], Keypoints]
MOST = 300
# Largest error of a right match, px in the other image.
RIGHT = 3.0
# Pairs of images of each kind, illumination and viewpoint, whose matches are kept for plots.
DRAWN = 2


def probe(subject: Subject, images: list[HomographySequence]) -> dict[str, np.ndarray]:
    """Return `image_matches` on BRISK's keypoints."""
    return image_matches(subject, images, brisk_keypoints)


def image_matches(
    subject: Subject, images: list[HomographySequence], detect: Detect
) -> dict[str, np.ndarray]:
    """Match two images of each sequence by a descriptor.

    Returns:
        For S sequences in the order of their names: "name" (S,) text, "right" and "matches" (S,) int32
        counts. For the first and the last sequence of each kind, or the only one: "of" (M,) int32, the
        index of a match's sequence, "places" (M, 4) float32, x and y in each image, px, and "is_right"
        (M,) bool.
    """

    def matched(sequence: HomographySequence) -> tuple[np.ndarray, np.ndarray]:
        """Return (m, 4) positions of matches in both images, and (m,) whether each is right."""
        greys = [sequence.grey(index) for index in MATCHED]
        keypoints = [detect(grey, MOST) for grey in greys]
        if not all(map(len, keypoints)):
            return np.empty((0, 4)), np.empty(0, bool)
        distances = cdist(*map(subject.describe, map(cut, greys, keypoints)))
        nearest = distances.argmin(1)
        mutual = np.flatnonzero(distances.argmin(0)[nearest] == np.arange(len(nearest)))
        first, second = keypoints[0].position[mutual], keypoints[1].position[nearest[mutual]]
        carried = transfer(sequence.homographies[MATCHED[1] - 1], first)
        return np.hstack([first, second]), np.linalg.norm(carried - second, axis=1) <= RIGHT

    sequences = sorted(images, key=lambda sequence: sequence.name)
    names = [sequence.name for sequence in sequences]
    kinds = [[n for n, name in enumerate(names) if name.startswith(kind)] for kind in ("i_", "v_")]
    drawn = sorted({n for kind in kinds for n in (*kind[: DRAWN - 1], *kind[-1:])})
    positions, is_right = zip(*map(matched, sequences), strict=True)
    counts = np.array([len(right) for right in is_right], np.int32)
    return {
        "name": np.array(names),
        "right": np.array([right.sum() for right in is_right], np.int32),
        "matches": counts,
        "of": np.repeat(drawn, counts[drawn]).astype(np.int32),
        "places": np.concatenate([positions[n] for n in drawn]).astype(np.float32),
        "is_right": np.concatenate([is_right[n] for n in drawn]),
    }
