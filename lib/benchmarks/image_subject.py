"""What describes whole images and no patches, under evaluation."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lib.benchmarks.subject import Subject
from lib.features.keypoints import Keypoints


@dataclass(frozen=True)
class ImageSubject(Subject):
    """A descriptor that comes with its detector.

    Attributes:
        of_image: from (H, W) uint8 to its N keypoints, the strongest first, and (N, k) float32
            descriptors.
    """

    of_image: Callable[[np.ndarray], tuple[Keypoints, np.ndarray]] | None = None
