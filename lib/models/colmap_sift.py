"""COLMAP's SIFT as a model: ETH's benchmark of structure from motion has it as its row "SIFT"."""

from torch import Tensor, nn

from lib.features.detectors import colmap_sift


class ColmapSift(nn.Module):
    """COLMAP's SIFT as what is evaluated on whole images; it describes no patches."""

    of_image = staticmethod(colmap_sift)

    def forward(self, patches: Tensor) -> Tensor:
        """Refused.

        Raises:
            TypeError: always.
        """
        raise TypeError("COLMAP's SIFT describes whole images and no patches: measure it by sfm alone")


build = ColmapSift
