"""Probe: matches between images on SIFT's own keypoints, differences of Gaussians (TCDesc, Fig. 2)."""

import numpy as np

from lib.analysis.matches_on_brisk import image_matches
from lib.benchmarks.subject import Subject
from lib.data.hpatches.homographies import HomographySequence
from lib.features.keypoints import Keypoints, dog_keypoints, one_a_place

# OpenCV's default.
CONTRAST = 0.04


def probe(subject: Subject, images: list[HomographySequence]) -> dict[str, np.ndarray]:
    """Return `lib.analysis.matches_on_brisk.image_matches` on SIFT's keypoints."""
    return image_matches(subject, images, detect)


def detect(image: np.ndarray, most: int) -> Keypoints:
    """Detect SIFT's strongest keypoints, at most ``most``, the strongest first."""
    return one_a_place(dog_keypoints(image, CONTRAST))[:most]
