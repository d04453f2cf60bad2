"""What HPatches' own code does not see in its input: homographies that point the other way, and ties."""

from dataclasses import replace

import cv2
import numpy as np

from lib.data.hpatches.descriptors import Descriptors
from lib.data.hpatches.homographies import HomographySequence
from lib.data.hpatches.release import FILES

# Of images before they are compared, px; correlation by which the better direction of homographies is.
_BLUR, _CLEAR = (9, 9), 0.2


def leads_to_the_first(sequence: HomographySequence) -> bool:
    """Whether a sequence's images fit the first one clearly better by the inverted homographies, by the
    mean correlation of what both show."""
    reference, correlations = cv2.blur(sequence.grey(0), _BLUR), []
    for index, homography in enumerate(sequence.homographies, 1):
        image = cv2.blur(sequence.grey(index), _BLUR)
        for direction in (homography, np.linalg.inv(homography)):
            size, flags = reference.shape[::-1], cv2.WARP_INVERSE_MAP
            carried = cv2.warpPerspective(image, direction, size, flags=flags)
            seen = (carried > 0).astype(np.uint8)
            correlations.append(cv2.computeECC(reference, carried, seen) if seen.any() else 0.0)
    as_given, inverted = np.nanmean(np.reshape(correlations, (-1, 2)), axis=0)
    return bool(inverted > as_given + _CLEAR)


def views_last(descriptors: Descriptors) -> Descriptors:
    """The same, but of what is equally far from a patch, other patches come before its own views, where
    the benchmark ranks its views first: all but references are moved so little that no other order
    changes."""
    views = [np.arange(len(FILES) * count) >= count for count in descriptors.counts]
    values = descriptors.values.astype(np.float32)
    farther = np.float32(1e-6 * abs(values).max()) * np.concatenate(views)
    return replace(descriptors, values=np.column_stack([values, farther]))
