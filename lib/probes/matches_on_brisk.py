"""Probe: matches between images on BRISK's keypoints, as TCDesc's Figure 2 has them of learned ones."""

import numpy as np

from lib.benchmarks.image_matches import image_matches
from lib.benchmarks.subject import Subject
from lib.data.hpatches.homographies import ImageSequences
from lib.features.detectors import brisk_keypoints


def probe(subject: Subject, images: ImageSequences) -> dict[str, np.ndarray]:
    """As `lib.benchmarks.image_matches.image_matches`."""
    return image_matches(subject, images, brisk_keypoints)
