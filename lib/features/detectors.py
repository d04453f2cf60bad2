"""Interest points of an image, and patches sampled around them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from lib.data.synthetic.geometry import local_affine

_SAMPLED_AT_ONCE = 512


@dataclass(frozen=True)
class Keypoints:
    """Interest points of one image.

    Attributes:
        position: (N, 2) float64, px.
        scale: (N,) float64, standard deviation of the keypoint's Gaussian, px.
        orientation: (N,) float64, radians from +x towards +y.
    """

    position: np.ndarray
    scale: np.ndarray
    orientation: np.ndarray

    def __len__(self) -> int:
        return len(self.scale)

    def __getitem__(self, index: np.ndarray | slice) -> Keypoints:
        return type(self)(*(getattr(self, field.name)[index] for field in fields(self)))

    def discs(self, magnification: float) -> np.ndarray:
        """(N, 2, 3) affine maps that carry the unit disc to discs of so many scales' radius, px."""
        radius = magnification * self.scale
        cosine, sine = radius * np.cos(self.orientation), radius * np.sin(self.orientation)
        x, y = self.position.T
        return np.array([[cosine, -sine, x], [sine, cosine, y]]).transpose(2, 0, 1).copy()


def dog_keypoints(image: np.ndarray, contrast: float) -> tuple[Keypoints, np.ndarray]:
    """SIFT's differences of Gaussians (Lowe, IJCV 2004) by OpenCV, the strongest first.

    A place with several dominant gradients is there once for each. Of two with the same response the
    order is that of place, scale and orientation, since OpenCV's own depends on how its threads finish.

    Args:
        image: (H, W) uint8.
        contrast: OpenCV's contrast threshold, of which it takes a third for each level of an octave.

    Returns:
        N keypoints and their (N,) float64 responses.
    """
    import cv2

    # Otherwise OpenCV doubles the image with a shift, and all keypoints lie 0.25 px right and below.
    found = cv2.SIFT_create(contrastThreshold=contrast, enable_precise_upscale=True).detect(image, None)
    found = sorted(found, key=lambda k: (-k.response, k.pt, k.size, k.angle))
    rows = np.array([(*k.pt, k.size / 2, k.angle, k.response) for k in found], float).reshape(-1, 5)
    return Keypoints(rows[:, :2], rows[:, 2], np.deg2rad(rows[:, 3])), rows[:, 4]


def sample(
    image: np.ndarray, homography: np.ndarray, regions: np.ndarray, side: int, border: int
) -> np.ndarray:
    """Patches of an image at regions of the reference, bicubic.

    The image is blurred before it is sampled more coarsely than its pixels, in half octaves. How
    coarsely is taken at the middle of the patch, as the mean over directions.

    Args:
        image: (H, W) uint8.
        homography: (3, 3), from the reference to the image.
        regions: (N, 2, 3), maps of the unit disc to pixels of the reference; the centres of a patch's
            outermost pixels lie on the square around the disc.
        side: of a patch, px.
        border: OpenCV's rule for what lies outside the image.

    Returns:
        (N, side, side) uint8.
    """
    import cv2

    ends = np.linspace(-1, 1, side)
    grid = np.stack([*np.meshgrid(ends, ends), np.ones((side, side))]).reshape(3, -1)
    at_middle = local_affine(homography, regions[:, :, 2]) @ regions[:, :, :2]
    step = 2 * np.sqrt(np.abs(np.linalg.det(at_middle))) / (side - 1)
    projective = homography[:, :2] @ regions + homography[:, 2:] * [0, 0, 1]
    level = np.maximum(np.floor(2 * np.log2(step)), 0).astype(int)
    patches = np.empty((len(step), side, side), np.uint8)
    for half_octave in np.unique(level):
        coarse = 2.0 ** (half_octave / 2)
        source = image
        if coarse > 1:
            source = cv2.GaussianBlur(image, (0, 0), 0.5 * np.sqrt(coarse**2 - 1))
        members = np.flatnonzero(level == half_octave)
        for start in range(0, len(members), _SAMPLED_AT_ONCE):
            chosen = members[start : start + _SAMPLED_AT_ONCE]
            points = projective[chosen] @ grid
            x, y = ((points[:, axis] / points[:, 2]).astype(np.float32) for axis in (0, 1))
            sampled = cv2.remap(source, x, y, cv2.INTER_CUBIC, borderMode=border)
            patches[chosen] = sampled.reshape(-1, side, side)
    return patches
