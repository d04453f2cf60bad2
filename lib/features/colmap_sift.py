"""COLMAP's SIFT (Lowe, IJCV 2004) by pycolmap: keypoints of a whole image and their descriptors.

All thresholds are COLMAP's own: differences of Gaussians above 0.02 / 3 of the grey range, an edge ratio
below 10, four octaves of three levels from the doubled image on, two orientations a place at most, root
descriptors, and 8192 keypoints. That bound is soft: octaves' levels are taken from the coarsest on, and
the one that passes it is taken whole, so that a detailed image has half as many again.
"""

import numpy as np

# Where pycolmap is loaded before Pillow, Pillow's PNGs corrupt the heap (pycolmap 4.2.1 brings a zlib).
import PIL.Image  # noqa: F401

from lib.features.keypoints import Keypoints

# COLMAP's first pixel has its centre at 0.5, 0.5.
_HALF_PIXEL = 0.5


def extract(image: np.ndarray) -> tuple[Keypoints, np.ndarray]:
    """Keypoints with their descriptors, the largest first, on one thread of the CPU.

    Args:
        image: (H, W) uint8.

    Returns:
        N keypoints, the first pixel's centre at 0, 0, whose response is their scale, since COLMAP tells
        none and keeps the largest; a place with two orientations is there twice. And (N, 128) float32
        descriptors, of unit length but for COLMAP's rounding to bytes.
    """
    # Loaded here, since it puts a handler of SIGTERM in the place of one's own.
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    extractor = pycolmap.FeatureExtractor.create(options, pycolmap.Device.cpu)
    detected, descriptors = extractor.extract_from_uint8_array(np.ascontiguousarray(image))
    rows = [(k.x, k.y, k.compute_scale(), k.compute_orientation()) for k in detected]
    x, y, scale, orientation = np.array(rows, float).reshape(-1, 4).T
    keypoints = Keypoints(np.column_stack([x, y]) - _HALF_PIXEL, scale, orientation, scale)
    order = np.lexsort((orientation, y, x, -scale))
    return keypoints[order], descriptors.data[order].astype(np.float32) / 512
