"""The errors that a detector makes in other views, and which keypoints have room and contrast.

In the PhotoTour sets interest points count as views of one 3D point when they lie within 5 px, 0.25
octaves and pi / 8 of where it projects (Brown, Hua and Winder, PAMI 2011): what is left of these errors
is drawn here.
"""

import numpy as np
from scipy.spatial import cKDTree

from lib.features.keypoints import Keypoints
from lib.features.patches import cut

# Standard deviations of a detector's errors in another view: of either coordinate in scales of the
# keypoint, of the scale in octaves, of the orientation; then the largest of the last two.
POSITION_ERROR, OCTAVE_ERROR, ORIENTATION_ERROR = 0.45, 0.12, np.deg2rad(8)
LARGEST_OCTAVE_ERROR = 0.25
LARGEST_ORIENTATION_ERROR = np.pi / 8


def spread_out(keypoints: Keypoints, distance: float) -> np.ndarray:
    """Indices of keypoints kept so that none has an earlier one within `distance` scales of it.

    Two keypoints far apart in scale (over an octave) do not crowd each other.
    """
    kept = np.ones(len(keypoints), bool)
    reach = distance * keypoints.scale
    octave = np.log2(keypoints.scale)
    near = cKDTree(keypoints.position).query_ball_point(keypoints.position, reach)
    for index, others in enumerate(near):
        if any(o < index and kept[o] and abs(octave[o] - octave[index]) < 1 for o in others):
            kept[index] = False
    return np.flatnonzero(kept)


def disturb(keypoints: Keypoints, rng: np.random.Generator) -> Keypoints:
    """Keypoints as a real detector finds them: moved, scaled and turned a little."""
    n = len(keypoints)

    def limited(deviation: float, largest: float) -> np.ndarray:
        return np.clip(deviation * rng.standard_normal(n), -largest, largest)

    shift = POSITION_ERROR * rng.standard_normal((n, 2)) * keypoints.scale[:, None]
    octaves = limited(OCTAVE_ERROR, LARGEST_OCTAVE_ERROR)
    turn = limited(ORIENTATION_ERROR, LARGEST_ORIENTATION_ERROR)
    return Keypoints(
        keypoints.position + shift, keypoints.scale * 2.0**octaves, keypoints.orientation + turn
    )


def contrast(image: np.ndarray, keypoints: Keypoints) -> np.ndarray:
    """(N,) standard deviation of grey values in the middle of each patch, finer noise smoothed away.

    Without contrast no detector would have found the point: it is overexposed, or lost in the dark.
    """
    coarse = cut(image, keypoints, side=16)[:, 4:12, 4:12]
    return coarse.std(axis=(1, 2))
