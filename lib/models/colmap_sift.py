"""COLMAP's SIFT as a model: the row "SIFT" of ETH's benchmark of structure from motion."""

from torch import Tensor, nn

from lib.features.detectors import colmap_sift


class ColmapSift(nn.Module):
    """COLMAP's SIFT, which is evaluated on whole images and describes no patches."""

    of_image = staticmethod(colmap_sift)

    def forward(self, patches: Tensor) -> Tensor:
        """Refuse to describe patches.

        Raises:
            TypeError: always.
        """
        raise TypeError("COLMAP's SIFT describes whole images and no patches: measure it by sfm alone")


build = ColmapSift
