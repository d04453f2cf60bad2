"""Keypoint detectors for whole images; each keypoint has an ellipse around it.

Differences of Gaussians are OpenCV's SIFT, or COLMAP's at its own thresholds; BRISK is OpenCV's.
Hessian, Harris, affine shape (Baumberg, CVPR 2000) and orientation (Lowe, IJCV 2004, Sec. 5) are
kornia's. So is Key.Net (Barroso-Laguna et al., ICCV 2019), whose checkpoint comes from outside.
Coordinates are x right and y down, with the first pixel's centre at 0, 0.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

# If pycolmap is loaded before Pillow, Pillow's PNGs corrupt the heap (pycolmap 4.2.1 brings a zlib).
import PIL.Image  # noqa: F401
import torch
from kornia import feature
from torch import Tensor, nn

from lib.features.keypoints import Keypoints, dog_keypoints, from_opencv, one_a_place

KINDS = ("dog", "colmap", "hessian", "harris", "brisk", "keynet")
# Radians. Programs give orientations from 0 to 2π or from -π to π; larger numbers are degrees.
_MOST_TURNED = 4 * np.pi
# Half a Key.Net patch is 22 px at the level where its keypoint is found, as in kornia. Here these px are
# the usual magnification, 6 times the keypoint's scale.
KEYNET_SCALE = 22.0 / 6.0
# Half widths of the windows for affine shape and orientation, in scales of the keypoint: kornia's own,
# and three standard deviations of Lowe's window.
SHAPE_WINDOW = 6.0
ORIENTATION_WINDOW = 4.5
# Iterations of affine shape adaptation.
AFFINE_STEPS = 4
# Largest ratio of an ellipse's long to its short axis; longer ellipses lie along edges.
MOST_ELONGATED = 6.0
# Lowest responses of kornia's measures, which have no bound of their own: far below that of one grey
# level, and far above the rounding error in an image of one colour.
SMALLEST = {"hessian": 1e-11, "harris": 1e-20, "keynet": 0.0}
# Smallest side of an image, px; detectors' windows do not fit into smaller ones.
SMALLEST_SIDE = 16
_AT_ONCE = 2048
# OpenCV's size of a keypoint in BRISK's finest layer, px, and the scale that stands for it here, Lowe's
# finest. A patch is then 22 px wide there, about as wide as BRISK's own pattern.
BRISK_SIZE = 12.0
BRISK_SCALE = 1.6


@dataclass(frozen=True)
class Regions:
    """Keypoints of one image with the ellipses around them, in the precision of kornia's detectors.

    Attributes:
        maps: (N, 2, 3) float32, local affine frames. Column 2 is the keypoint's position, px. A frame
            maps the unit disc to the ellipse of one scale (a Gaussian's standard deviation) around the
            keypoint, and the disc's x axis to the direction of the patch's x axis.
        scores: (N,) float32, the detector's response, unitless; the strongest first.
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
        """(N,) radius of the disc that has the ellipse's area, px."""
        return np.sqrt(np.abs(np.linalg.det(self.maps[:, :, :2])))


def regions(keypoints: Keypoints) -> Regions:
    """Return discs at keypoints; keypoints without a response are taken as sorted by strength.

    Raises:
        ValueError: a scale is not finite and above 0, or orientations are no radians;
            `lib.features.patches.extract` checks the rest.
    """
    # Checked here, since a frame does not tell a negative scale from half a turn.
    positive = np.isfinite(keypoints.scale) & (keypoints.scale > 0)
    if wrong := np.count_nonzero(~positive):
        raise ValueError(f"{wrong} of {len(keypoints)} keypoints have a scale that is not above 0")
    farthest = np.abs(keypoints.orientation).max(initial=0)
    if farthest > _MOST_TURNED:
        raise ValueError(f"orientations are radians, got {farthest:g}: convert degrees with np.deg2rad")
    response = keypoints.response
    scores = np.arange(len(keypoints), 0, -1) if response is None else response
    return Regions(keypoints.discs(1.0).astype(np.float32), scores.astype(np.float32))


@dataclass(frozen=True)
class Detector:
    """Settings of a keypoint detector.

    Attributes:
        kind: one of `KINDS`.
        affine: whether each keypoint gets an affine shape; otherwise its ellipse is a disc.
        most: how many keypoints of an image are kept, the strongest.
        upright: whether patches stay as the image is, instead of turned to the dominant gradient.
        contrast: threshold below which OpenCV drops a difference of Gaussians; the other kinds have
            none, or one of their own.
        weights: the file of a checkpoint, for Key.Net only.

    Raises:
        ValueError: the kind is unknown, `most` is below 1, Key.Net has no weights, or another kind does.
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
    """Detect keypoints in a (H, W) uint8 image, the strongest first; there may be none.

    As in OpenCV and COLMAP, a DoG keypoint with several dominant gradients is returned once for each,
    unless it gets an affine shape or `upright` is set.

    Raises:
        FileNotFoundError: the file of Key.Net's weights is missing.
        ValueError: the file does not hold Key.Net's weights; the message names the file.
    """
    if min(image.shape) < SMALLEST_SIDE:
        return Regions(np.empty((0, 2, 3), np.float32), np.empty(0, np.float32))
    grey = as_tensor(image)
    oriented = detector.kind in ("dog", "colmap", "brisk")
    detected = _oriented_discs(image, detector) if oriented else _maxima(grey, detector)
    if detector.affine:
        shape = feature.LAFAffineShapeEstimator(preserve_orientation=False)
        maps = _adapted(detected.maps, grey, shape, SHAPE_WINDOW, AFFINE_STEPS)
        axes = np.linalg.svd(maps[:, :, :2], compute_uv=False)
        kept = axes[:, 0] <= MOST_ELONGATED * axes[:, 1]
        detected, oriented = Regions(maps[kept], detected.scores[kept]), False
    if not detector.upright and not oriented:
        maps = _adapted(detected.maps, grey, feature.LAFOrienter(), ORIENTATION_WINDOW)
        detected = replace(detected, maps=maps)
    return detected


def brisk_keypoints(image: np.ndarray, most: int) -> Keypoints:
    """Detect BRISK's corners (Leutenegger et al., ICCV 2011) with OpenCV, the strongest first.

    The threshold is 30 grey levels, in three octaves and halfway between them, as OpenCV has it. Corners
    around which BRISK's pattern does not fit into the image are left out. OpenCV's positions are about
    0.1 px too far left and up in the mean: those in an image turned by half a turn, turned back, lie
    about 0.2 px further right and down.

    Args:
        image: (H, W) uint8.
        most: how many keypoints are kept.
    """
    brisk = cv2.xfeatures2d.BRISK_create(thresh=30, octaves=3)
    keypoints = from_opencv(brisk.detect(image, None))[:most]
    size = 2 * keypoints.scale
    return replace(keypoints, scale=BRISK_SCALE * size / BRISK_SIZE)


def colmap_sift(image: np.ndarray) -> tuple[Keypoints, np.ndarray]:
    """Find keypoints and descriptors by COLMAP's SIFT (Lowe, IJCV 2004) in pycolmap, the largest first.

    All settings are COLMAP's own: differences of Gaussians above 0.02 / 3 of the grey range, an edge
    ratio below 10, four octaves of three levels from the doubled image on, at most two orientations per
    place, root descriptors, and 8192 keypoints. The last bound is soft. COLMAP takes the octaves' levels
    from the coarsest on, and takes the level that passes the bound whole, so that a detailed image has
    half as many keypoints again. The function runs on one thread of the CPU.

    Args:
        image: (H, W) uint8.

    Returns:
        N keypoints, with the first pixel's centre at 0, 0, and (N, 128) float32 descriptors, of unit
        length except for COLMAP's rounding to bytes. The response is the scale, since COLMAP reports
        none and keeps the largest. A place with two orientations is returned twice.
    """
    # Imported here, since pycolmap replaces the caller's SIGTERM handler.
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    extractor = pycolmap.FeatureExtractor.create(options, pycolmap.Device.cpu)
    detected, descriptors = extractor.extract_from_uint8_array(np.ascontiguousarray(image))
    rows = [(k.x, k.y, k.compute_scale(), k.compute_orientation()) for k in detected]
    x, y, scale, orientation = np.array(rows, float).reshape(-1, 4).T
    # COLMAP's first pixel has its centre at 0.5, 0.5.
    keypoints = Keypoints(np.column_stack([x, y]) - 0.5, scale, orientation, scale)
    order = np.lexsort((orientation, y, x, -scale))
    return keypoints[order], descriptors.data[order].astype(np.float32) / 512


def oriented(image: np.ndarray, keypoints: Keypoints, window: float = ORIENTATION_WINDOW) -> Keypoints:
    """Turn keypoints to the highest peak of the gradient directions around them (Lowe's method).

    Args:
        image: (H, W) uint8.
        keypoints: N keypoints of orientation 0.
        window: half the width of the square that is looked at, three standard deviations of its
            weights, in scales of the keypoint.
    """
    windows = keypoints.discs(window).astype(np.float32)
    turned = _adapted(windows, as_tensor(image), feature.LAFOrienter(), window=1.0)
    x_axis = turned[:, :, 0].astype(float)
    return replace(keypoints, orientation=np.arctan2(x_axis[:, 1], x_axis[:, 0]))


def as_tensor(image: np.ndarray) -> Tensor:
    """Convert a (H, W) uint8 image to a (1, 1, H, W) float32 tensor with values from 0 to 1."""
    return torch.from_numpy(np.array(image)).float()[None, None] / 255


def _oriented_discs(image: np.ndarray, detector: Detector) -> Regions:
    """Detect DoG, COLMAP or BRISK keypoints; without orientations, each place is returned once."""
    if detector.kind == "dog":
        keypoints = dog_keypoints(image, detector.contrast)
    elif detector.kind == "colmap":
        keypoints, _ = colmap_sift(image)
    else:
        keypoints = brisk_keypoints(image, detector.most)
    if detector.affine or detector.upright:
        keypoints = one_a_place(keypoints)
        keypoints = replace(keypoints, orientation=np.zeros(len(keypoints)))
    return regions(keypoints)[: detector.most]


def _maxima(grey: Tensor, detector: Detector) -> Regions:
    """Detect maxima of the Hessian's determinant, Harris' measure or Key.Net's over place and scale."""
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
        if detector.kind == "keynet":
            # In an image that was reduced by a factor f, kornia takes pixel u for f u of the full one.
            # Pixel centres are at f u + (f − 1) / 2.
            factor = feature.get_laf_scale(maps)[..., 0] / KEYNET_SCALE
            maps[..., 2] += (factor - 1) / 2
    # If there are fewer maxima than asked for, kornia fills up the rest.
    filled = scores[0] > SMALLEST[detector.kind]
    return Regions(maps[0][filled].numpy(), scores[0][filled].numpy())


def _load(network: nn.Module, path: Path) -> None:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        # In the published file the weights are one entry of a dict.
        network.load_state_dict(content.get("state_dict", content))
    except (pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} does not hold the weights of kornia's Key.Net: {error!r}") from error


def _adapted(
    maps: np.ndarray, grey: Tensor, module: nn.Module, window: float, steps: int = 1
) -> np.ndarray:
    """Change frames by one of kornia's modules, some at a time; return (N, 2, 3) float32.

    Args:
        maps: the frames.
        grey: (1, 1, H, W) image.
        module: changes frames, taking them as windows of the image.
        window: half a window's width in scales of its keypoint.
        steps: how often to apply the module.
    """
    parts = []
    with torch.inference_mode():
        for frames in torch.from_numpy(maps)[None].split(_AT_ONCE, dim=1) if len(maps) else ():
            windows = feature.scale_laf(frames, window)
            for _ in range(steps):
                windows = module(windows, grey)
            parts.append(feature.scale_laf(windows, 1 / window)[0])
    return torch.cat(parts).numpy() if parts else maps
