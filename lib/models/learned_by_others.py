"""Descriptors that others trained and that OpenCV contains: VGG and BinBoost.

VGG learns pooling regions and a projection by convex optimisation (Simonyan, Vedaldi and Zisserman, PAMI
2014), BinBoost learns its bits by boosting (Trzcinski, Christoudias, Fua and Lepetit, CVPR 2013). Both
papers train on UBC PhotoTour. OpenCV's documentation does not say what its weights were trained on, so
on UBC's sets they may have seen what they are tested on.
"""

import cv2
from torch import Tensor, nn

from lib.models.handcrafted import describe_by_opencv

# OpenCV's numbers of the descriptors with 120 dimensions and, as DSM's Table 1 prints, with 64 bits.
_VGG_120, _BINBOOST_64 = 100, 300
# The side of the window that both sample, px.
_WINDOW = 64


class OpenCvDescriptor(nn.Module):
    """A descriptor of OpenCV whose window is the whole 64×64 patch, upright.

    Args:
        kind: "vgg", 120 numbers; or "binboost", 64 bits.

    Raises:
        ValueError: the kind is another one.
    """

    input_size = _WINDOW

    def __init__(self, kind: str):
        super().__init__()
        # At a scale factor of 1, a keypoint's size is the side of its window.
        makers = {
            "vgg": lambda: cv2.xfeatures2d.VGG_create(desc=_VGG_120, scale_factor=1.0),
            "binboost": lambda: cv2.xfeatures2d.BoostDesc_create(desc=_BINBOOST_64, scale_factor=1.0),
        }
        if kind not in makers:
            raise ValueError(f"unknown descriptor {kind!r}; there are: {', '.join(makers)}")
        self.extractor = makers[kind]()
        # OpenCV's windows extend from 32 px before the keypoint to 31 px behind it.
        self.keypoint = cv2.KeyPoint(_WINDOW // 2, _WINDOW // 2, _WINDOW, 0)

    def forward(self, patches: Tensor) -> Tensor:
        """Describe grey patches (n, 1, 64, 64), 0 to 255 or 0 to 1: (n, 120) float32, or bits (n, 64),
        bool; on the CPU."""
        return describe_by_opencv(self.extractor, self.keypoint, patches)
