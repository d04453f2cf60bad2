"""COLMAP's SIFT (Lowe, IJCV 2004) by pycolmap: keypoints of a whole image and their descriptors.

ETH's benchmark of structure from motion takes its keypoints, and its row "SIFT" their descriptors. All
thresholds are COLMAP's own: differences of Gaussians above 0.02 / 3 of the grey range, an edge ratio
below 10, four octaves of three levels from the doubled image on, two orientations a place at most, root
descriptors, and 8192 keypoints. That bound is soft: octaves' levels are taken from the coarsest on, and
the one that passes it is taken whole, so that a detailed image has half as many again.
"""

from __future__ import annotations

import numpy as np

# Pillow before pycolmap: see `lib.matching`.
import PIL.Image  # noqa: F401
from torch import Tensor, nn

from lib.features.detectors import Keypoints

# COLMAP's first pixel has its centre at 0.5, 0.5.
_HALF_PIXEL = 0.5


def extract(image: np.ndarray) -> tuple[Keypoints, np.ndarray]:
    """Keypoints with their descriptors, the largest first, on one thread of the CPU.

    Args:
        image: (H, W) uint8.

    Returns:
        N keypoints, the first pixel's centre at 0, 0; a place with two orientations is there twice. And
        (N, 128) float32 descriptors, of unit length but for COLMAP's rounding to bytes.
    """
    # Loaded here, since it puts a handler of SIGTERM in the place of one's own.
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    extractor = pycolmap.FeatureExtractor.create(options, pycolmap.Device.cpu)
    found, descriptors = extractor.extract_from_uint8_array(np.ascontiguousarray(image))
    rows = np.array([(k.x, k.y, k.compute_scale(), k.compute_orientation()) for k in found], float)
    x, y, scale, orientation = rows.reshape(-1, 4).T
    keypoints = Keypoints(np.column_stack([x, y]) - _HALF_PIXEL, scale, orientation)
    order = np.lexsort((orientation, y, x, -scale))
    return keypoints[order], descriptors.data[order].astype(np.float32) / 512


class ColmapSift(nn.Module):
    """COLMAP's SIFT as what is evaluated on whole images; it describes no patches."""

    def of_image(self, image: np.ndarray) -> tuple[Keypoints, np.ndarray]:
        """`extract`."""
        return extract(image)

    def forward(self, patches: Tensor) -> Tensor:
        """Refused.

        Raises:
            TypeError: always.
        """
        raise TypeError("COLMAP's SIFT describes whole images and no patches: measure it by sfm alone")


def build() -> ColmapSift:
    """COLMAP's SIFT; see `ColmapSift`."""
    return ColmapSift()
