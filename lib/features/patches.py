"""Patches of images and their descriptors.

`sample` cuts the patches of data sets: exactly through a homography. `extract` cuts patches at
the ellipses of whole images: from a pyramid, as kornia and published pipelines do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from kornia.feature import extract_patches_simple, get_laf_scale, scale_laf
from kornia.geometry.transform import pyrdown

from lib.arrays import as_array
from lib.features.detectors import Detector, Regions, as_tensor, detect
from lib.features.grey_values import as_grey
from lib.features.keypoints import Keypoints, local_affine

# Side of a patch, px, as in UBC PhotoTour.
PATCH = 64
# Width of a data set's patch, in standard deviations of the keypoint's Gaussian.
PATCH_WIDTH = 14.0
# Half a patch's width in `extract`, in keypoint scales; DSM's "magnification factor" (Sec. 5.4).
MAGNIFICATION = 6.0
# How far from the centres of the outermost pixels a keypoint may lie, px: their outer edges are half a
# pixel away, and programs that place the first centre at 0.5 shift a keypoint by as much.
_BEYOND = 1.0
_SAMPLED_AT_ONCE = 512
# Few enough that a core's cache holds their grids; kornia's own function makes all grids at once.
_EXTRACTED_AT_ONCE = 64
# From (m, 64, 64) uint8 patches to (m, k) float32, or to (m, k / 8) uint8 of packed bits.
Describe = Callable[[np.ndarray], np.ndarray]


def as_image(image: np.ndarray) -> np.ndarray:
    """Return an image as (H, W) uint8 grey values, the form that everything here takes.

    Args:
        image: (H, W) uint8, or floating point from 0 to 1 or from 0 to 255.

    Raises:
        ValueError: it has colours, another type or other values.
    """
    image = as_array(image)
    if image.ndim != 2:
        raise ValueError(
            f"an image is (H, W) of grey values, got {image.shape}: convert colours to grey, as "
            "lib.data.images.read_grey does"
        )
    return as_grey(image, "an image")


def as_patches(patches: np.ndarray) -> np.ndarray:
    """Return patches as (m, 64, 64) uint8 grey values, the form that everything here takes.

    Patches of another side, such as HPatches' 65 px, are resized, and a warning says so.

    Args:
        patches: (m, S, S) or (m, 1, S, S) uint8, or floating point from 0 to 1 or from 0 to 255.

    Raises:
        ValueError: they have another shape, type or other values.
    """
    patches = as_array(patches)
    squares = patches[:, 0] if patches.ndim == 4 and patches.shape[1] == 1 else patches
    if squares.ndim != 3 or squares.shape[1] != squares.shape[2] or not squares.shape[1]:
        raise ValueError(f"patches are (m, S, S) or (m, 1, S, S) of grey values, got {patches.shape}")
    grey = as_grey(squares, "patches")
    side = grey.shape[1]
    if side == PATCH:
        return grey
    warnings.warn(f"patches of {side} px are resized to {PATCH} px", stacklevel=2)
    rule = cv2.INTER_AREA if side > PATCH else cv2.INTER_LINEAR
    resized = [cv2.resize(patch, (PATCH, PATCH), interpolation=rule) for patch in grey]
    return np.array(resized, np.uint8).reshape(-1, PATCH, PATCH)


def sample(
    image: np.ndarray,
    homography: np.ndarray,
    regions: np.ndarray,
    side: int,
    border: int,
    interpolation: int = cv2.INTER_CUBIC,
) -> np.ndarray:
    """Cut patches of an image at regions of the reference.

    An image that is sampled more coarsely than its pixels is first blurred, in steps of half an octave.
    The sampling step is taken at the middle of the patch, as the mean over directions.

    Args:
        image: (H, W) uint8.
        homography: (3, 3), from the reference to the image.
        regions: (N, 2, 3), maps from the unit disc to pixels of the reference; the centres of a patch's
            outermost pixels lie on the square around the disc.
        side: of a patch, px.
        border: OpenCV's rule for pixels outside the image.
        interpolation: OpenCV's rule between pixels.

    Returns:
        (N, side, side) uint8.
    """
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
            sampled = cv2.remap(source, x, y, interpolation, borderMode=border)
            patches[chosen] = sampled.reshape(-1, side, side)
    return patches


def cut(image: np.ndarray, keypoints: Keypoints, side: int = PATCH) -> np.ndarray:
    """Cut patches turned to their keypoint's orientation, `PATCH_WIDTH` of its scales wide.

    Args:
        image: (H, W) uint8.
        keypoints: N keypoints.
        side: of a patch, px.

    Returns:
        (N, side, side) uint8; pixels outside the image are mirrored at its border.
    """
    discs = keypoints.discs(PATCH_WIDTH * (1 - 1 / side) / 2)
    return sample(image, np.eye(3), discs, side, cv2.BORDER_REFLECT_101)


def extract(image: np.ndarray, regions: Regions, magnification: float = MAGNIFICATION) -> np.ndarray:
    """Cut patches turned and stretched so that each keypoint's ellipse becomes a disc of one size.

    They equal those of `kornia.feature.extract_patches_from_pyramid`, but take a third of its time.

    Args:
        image: (H, W) uint8.
        regions: N regions.
        magnification: half a patch's width in scales of its keypoint.

    Returns:
        (N, 64, 64) uint8; pixels outside the image repeat the nearest one inside.

    Raises:
        ValueError: a frame is not finite or has no area, or a keypoint lies outside the image.
    """
    _check(regions, image.shape)
    patches = np.empty((len(regions), PATCH, PATCH), np.uint8)
    with torch.inference_mode():
        levels = [as_tensor(image)]
        while min(levels[-1].shape[2:]) // 2 >= PATCH:
            levels.append(pyrdown(levels[-1]))
        maps = scale_laf(torch.from_numpy(regions.maps)[None], float(magnification))
        octaves = (2 * get_laf_scale(maps) / PATCH).log2().flatten()
        level_of_patch = octaves.clamp(0, len(levels) - 1).long()
        # Pixels are squares, so the first pixel's centre, at 0, is half a pixel inside at every level.
        half = torch.tensor([0.0, 0.0, 0.5])
        for index, level in enumerate(levels):
            shrunk = torch.tensor(level.shape[:1:-1]) / torch.tensor(levels[0].shape[:1:-1])
            for members in (level_of_patch == index).nonzero().flatten().split(_EXTRACTED_AT_ONCE):
                frames = (maps[:, members] + half) * shrunk[:, None] - half
                values = extract_patches_simple(level, frames, PATCH)[0, :, 0]
                patches[members.numpy()] = (255 * values).round().clamp(0, 255).byte().numpy()
    return patches


def _check(regions: Regions, shape: tuple[int, int]) -> None:
    """Refuse keypoints that no patch of an image of this shape, (H, W), can belong to."""
    finite = np.isfinite(regions.maps).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(
            f"{np.count_nonzero(~finite)} of {len(finite)} keypoints have a position, scale or "
            "orientation that is not finite"
        )
    if flat := np.count_nonzero(regions.scale == 0):
        raise ValueError(f"{flat} of {len(regions)} keypoints have a scale of 0")
    height, width = shape
    x, y = regions.position.T
    inside_x = (x >= -_BEYOND) & (x <= width - 1 + _BEYOND)
    inside_y = (y >= -_BEYOND) & (y <= height - 1 + _BEYOND)
    inside = inside_x & inside_y
    if not inside.all():
        raise ValueError(
            f"{np.count_nonzero(~inside)} of {len(inside)} keypoints lie outside the image, which has "
            f"{width} by {height} px: were they found in an image of another size?"
        )


@dataclass(frozen=True)
class Features(Regions):
    """Keypoints of an image with their descriptors.

    Attributes:
        maps, scores: of N keypoints, as in `Regions`.
        descriptors: (N, k) float32, or (N, k / 8) uint8 of bits packed by `np.packbits`.
        size: width and height of the image, px.
    """

    descriptors: np.ndarray
    size: tuple[int, int]


def image_features(
    image: np.ndarray,
    keypoints: Regions | Detector,
    describe: Describe,
    magnification: float = MAGNIFICATION,
) -> Features:
    """Detect keypoints in an image, unless they are given, and describe them.

    Args:
        image: (H, W) uint8.
        keypoints: given ones (`lib.features.detectors.regions`), or the detector that finds them.
        describe: turns patches into descriptors.
        magnification: half a patch's width in scales of its keypoint.

    Returns:
        The features; without keypoints they are empty, with descriptors of shape (0, k).

    Raises:
        ValueError: as `extract`.
    """
    regions = detect(image, keypoints) if isinstance(keypoints, Detector) else keypoints
    patches = extract(image, regions, magnification)
    # Without keypoints, one empty patch shows how long a descriptor is.
    described = describe(patches if len(patches) else np.zeros((1, PATCH, PATCH), np.uint8))
    return Features(*vars(regions).values(), described[: len(patches)], image.shape[::-1])
