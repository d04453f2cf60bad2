"""COLMAP's SIFT as a model: ETH's benchmark of structure from motion has it as its row "SIFT"."""

import numpy as np
from torch import Tensor, nn

from lib.features.colmap_sift import extract
from lib.features.keypoints import Keypoints


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
