"""Detectors of keypoints in whole images, each keypoint with the ellipse around it.

Differences of Gaussians are OpenCV's SIFT, or COLMAP's at its own thresholds
(`lib.features.colmap_sift`); Hessian and Harris, affine shape (Baumberg, CVPR 2000) and orientation
(Lowe, IJCV 2004, Sec. 5) are kornia's, and so is Key.Net (Barroso-Laguna et al., ICCV 2019), whose
checkpoint comes from outside; BRISK is `lib.features.brisk`, since OpenCV 5 has none.
Coordinates are x right and y down, the first pixel's centre at 0, 0.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from kornia import feature
from torch import Tensor, nn

from lib.features import colmap_sift
from lib.features.brisk import brisk_corners
from lib.features.keypoints import Keypoints, dog_keypoints, one_a_place

KINDS = ("dog", "colmap", "hessian", "harris", "brisk", "keynet")
# Half a Key.Net patch is 22 px of the level where its keypoint is found, as kornia has it; here that is
# the usual magnification of a scale.
KEYNET_SCALE = 22.0 / 6.0
# Half the width of the windows that shape and orientation are taken of, in scales of the keypoint:
# kornia's own, and three of the standard deviations that Lowe's window has.
SHAPE_WINDOW = 6.0
ORIENTATION_WINDOW = 4.5
# Of the adaptation of a shape to what is seen through it.
AFFINE_STEPS = 4
# Long side of an ellipse by its short one; a longer one lies along an edge.
MOST_ELONGATED = 6.0
# Of kornia's measures, which have no bound of their own: far below those of one grey level, and far
# above what rounding leaves of an image of one colour.
SMALLEST = {"hessian": 1e-11, "harris": 1e-20, "keynet": 0.0}
# Px of a side below which the windows of detectors have no room.
SMALLEST_SIDE = 16
_AT_ONCE = 2048


@dataclass(frozen=True)
class Regions:
    """Keypoints of one image with the ellipses around them, in the precision of kornia's detectors.

    Attributes:
        maps: (N, 2, 3) float32, local affine frames: column 2 is the keypoint's position, px, and the
            unit disc is carried to the ellipse of one scale (a Gaussian's standard deviation) around
            it, its x axis to where the patch's x axis points.
        scores: (N,) float32, the detector's response, in no unit; the strongest first.
    """

    maps: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.maps)

    def __getitem__(self, index: np.ndarray | slice) -> Regions:
        return Regions(self.maps[index], self.scores[index])

    @property
    def position(self) -> np.ndarray:
        """(N, 2) x and y, px."""
        return self.maps[:, :, 2]

    @property
    def scale(self) -> np.ndarray:
        """(N,) of the disc that is as large as the ellipse, px."""
        return np.sqrt(np.abs(np.linalg.det(self.maps[:, :, :2])))


def regions(keypoints: Keypoints) -> Regions:
    """Discs at keypoints, which without a response are taken to be in order of strength."""
    response = keypoints.response
    scores = np.arange(len(keypoints), 0, -1) if response is None else response
    return Regions(keypoints.discs(1.0).astype(np.float32), scores.astype(np.float32))


@dataclass(frozen=True)
class Detector:
    """What finds keypoints.

    Attributes:
        kind: of `KINDS`.
        affine: whether each gets an affine shape; else its ellipse is a disc.
        most: how many of an image are kept, the strongest.
        upright: whether patches stay as the image is, instead of turned to the dominant gradient.
        contrast: below which OpenCV drops a difference of Gaussians; the other kinds have none, or
            one of their own.
        weights: the file of a checkpoint, of Key.Net and of no other kind.

    Raises:
        ValueError: another kind, none asked for, or weights with a kind that has none.
    """

    kind: str = "dog"
    affine: bool = False
    most: int = 2048
    upright: bool = False
    contrast: float = 0.04
    weights: Path | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if (self.kind == "keynet") != (self.weights is not None):
            raise ValueError("keynet needs a file of its weights, and no other detector takes one")
        if self.most < 1:
            raise ValueError(f"most must be 1 or more, got {self.most}")


def detect(image: np.ndarray, detector: Detector) -> Regions:
    """Keypoints of a (H, W) uint8 image, the strongest first; none where it has none.

    As in OpenCV and COLMAP, a DoG keypoint with several dominant gradients is there once for each,
    unless it gets an affine shape.

    Raises:
        FileNotFoundError: the file of Key.Net's weights is missing.
        ValueError: it does not hold these; the message names it.
    """
    if min(image.shape) < SMALLEST_SIDE:
        return Regions(np.empty((0, 2, 3), np.float32), np.empty(0, np.float32))
    grey = as_tensor(image)
    oriented = detector.kind in ("dog", "colmap", "brisk")
    detected = _oriented_discs(image, detector) if oriented else _maxima(grey, detector)
    if detector.affine:
        detected = replace(detected, maps=_by_parts(detected.maps, lambda maps: _shaped(maps, grey)))
        axes = np.linalg.svd(detected.maps[:, :, :2], compute_uv=False)
        detected, oriented = detected[axes[:, 0] <= MOST_ELONGATED * axes[:, 1]], False
    if not detector.upright and not oriented:
        detected = replace(detected, maps=_by_parts(detected.maps, lambda maps: _turned(maps, grey)))
    return detected


def brisk_keypoints(image: np.ndarray, most: int) -> Keypoints:
    """BRISK's corners with Lowe's orientation instead of that of BRISK's own pattern."""
    return oriented(image, brisk_corners(image, most))


def oriented(image: np.ndarray, keypoints: Keypoints) -> Keypoints:
    """Keypoints turned to the highest peak of the gradient directions around them (Lowe's method).

    Args:
        image: (H, W) uint8.
        keypoints: N of them, of orientation 0.
    """
    orient, grey = feature.LAFOrienter(), as_tensor(image)
    windows = keypoints.discs(ORIENTATION_WINDOW).astype(np.float32)
    x_axis = _by_parts(windows, lambda maps: orient(maps, grey))[:, :, 0].astype(float)
    return replace(keypoints, orientation=np.arctan2(x_axis[:, 1], x_axis[:, 0]))


def as_tensor(image: np.ndarray) -> Tensor:
    """(1, 1, H, W) float32, 0 to 1, of a (H, W) uint8 image."""
    return torch.from_numpy(np.ascontiguousarray(image)).float()[None, None] / 255


def _oriented_discs(image: np.ndarray, detector: Detector) -> Regions:
    """DoG, COLMAP's or BRISK's keypoints; where orientations are not wanted each place once."""
    if detector.kind == "dog":
        keypoints = dog_keypoints(image, detector.contrast)
    elif detector.kind == "colmap":
        keypoints, _ = colmap_sift.extract(image)
    else:
        keypoints = brisk_keypoints(image, detector.most)
    if detector.affine or detector.upright:
        keypoints = one_a_place(keypoints)
        keypoints = replace(keypoints, orientation=np.zeros(len(keypoints)))
    return regions(keypoints)[: detector.most]


def _maxima(grey: Tensor, detector: Detector) -> Regions:
    """Maxima over place and scale of the Hessian's determinant, of Harris' measure, or of Key.Net's."""
    if detector.kind == "keynet":
        config = feature.keynet.get_default_detector_config() | {"s_mult": KEYNET_SCALE}
        config = {**feature.keynet.keynet_default_config, "Detector_conf": config}
        search = feature.KeyNetDetector(False, detector.most, config).eval()
        _load(search.model, detector.weights)
    else:
        measure = feature.BlobHessian() if detector.kind == "hessian" else feature.CornerHarris(0.04)
        search = feature.ScaleSpaceDetector(detector.most, mr_size=1.0, resp_module=measure)
    with torch.inference_mode():
        maps, scores = search(grey)
    # Where there are fewer maxima than asked for, the rest is filled up.
    filled = scores[0] > SMALLEST[detector.kind]
    return Regions(maps[0][filled].numpy(), scores[0][filled].numpy())


def _load(network: nn.Module, path: Path) -> None:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        # As published they are a part of the file.
        network.load_state_dict(content.get("state_dict", content))
    except (pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} does not hold the weights of kornia's Key.Net: {error!r}") from error


def _by_parts(maps: np.ndarray, change: Callable[[Tensor], Tensor]) -> np.ndarray:
    """(N, 2, 3) float32 frames changed by one of kornia's modules, some at a time."""
    with torch.inference_mode():
        parts = torch.from_numpy(maps)[None].split(_AT_ONCE, dim=1)
        changed = [change(part) for part in parts if part.shape[1]]
    return torch.cat(changed, dim=1)[0].numpy() if changed else maps


def _shaped(maps: Tensor, grey: Tensor) -> Tensor:
    estimate = feature.LAFAffineShapeEstimator(preserve_orientation=False)
    maps = feature.scale_laf(maps, SHAPE_WINDOW)
    for _ in range(AFFINE_STEPS):
        maps = estimate(maps, grey)
    return feature.scale_laf(maps, 1 / SHAPE_WINDOW)


def _turned(maps: Tensor, grey: Tensor) -> Tensor:
    turned = feature.LAFOrienter()(feature.scale_laf(maps, ORIENTATION_WINDOW), grey)
    return feature.scale_laf(turned, 1 / ORIENTATION_WINDOW)
