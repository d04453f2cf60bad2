"""ETH's structure-from-motion benchmark (Schönberger et al., CVPR 2017), as in HyNet's Table 2.

As in the benchmark, COLMAP's keypoints of every image are described. All pairs of images are matched as
in its code: mutual nearest neighbours, ratio 0.8, at least 15 matches. COLMAP verifies the matches and
builds models; the numbers are those of the largest. Dense points are not measured: they need patch match
stereo, which COLMAP has for CUDA alone. If poses are known, as for Fountain and Herzjesu, the model is
laid on them, and the errors of its cameras are measured too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pycolmap
from scipy.spatial.transform import Rotation

from lib.benchmarks.subject import Subject
from lib.data.colmap import DATABASE, HALF_PIXEL, mapped, verify, write_database
from lib.data.images import read_grey
from lib.data.whole_images import EthScene
from lib.features.detectors import Detector, Regions, detect
from lib.features.detectors import regions as own_regions
from lib.features.keypoints import Keypoints
from lib.features.matches import match
from lib.features.patches import Features, image_features
from lib.files import state

# All keypoints that COLMAP keeps.
DETECTOR = Detector("colmap", most=20_000)
RATIO = 0.8
# Matches of a pair before verification; a pair with fewer is dropped.
FEWEST_MATCHES = 15
# Images are read as stored, because calibrations hold for that orientation.
STORED = "stored"
# Share of the cameras' mean distance from their centre within which a camera supports a similarity.
_NEAR = 0.1


@dataclass(frozen=True)
class ImageSubject(Subject):
    """A descriptor with its own detector: it describes whole images instead of patches.

    Attributes:
        of_image: maps an (H, W) uint8 image to its N keypoints, the strongest first, and their (N, k)
            float32 descriptors.
    """

    of_image: Callable[[np.ndarray], tuple[Keypoints, np.ndarray]] | None = None


def measure(subject: Subject, test_set: list[EthScene]) -> dict[str, float]:
    """Compute statistics of the models built from a descriptor's matches.

    Args:
        subject: the descriptor.
        test_set: the scenes.

    Returns:
        "STATISTIC.SCENE" for the statistics "keypoints", the mean per image, "images", those registered,
        "sparse_points", "observations", "track_length" in images and "reprojection_error" in px; where
        poses are known also the medians over registered images of "rotation_error" in degrees and of
        "position_error" in percent of the known cameras' mean distance from their centre. "STATISTIC"
        is the mean over scenes. A statistic is left out if a scene's model is too small for it, and so
        is then its mean, which would cover the easy scenes alone.

    Raises:
        FileNotFoundError, ValueError: as `features`.
    """
    scenes = {scene.name: _scene(subject, scene) for scene in test_set}
    numbers = {f"{key}.{name}": scenes[name][key] for name in scenes for key in scenes[name]}
    return numbers | pd.DataFrame(scenes).mean(axis=1, skipna=False).dropna().to_dict()


def _scene(subject: Subject, scene: EthScene) -> dict[str, float]:
    described = {name: features(subject, path, DETECTOR) for name, path in scene.images.items()}
    positions = {name: image.position for name, image in described.items()}
    matches = matched(described, combinations(described, 2), RATIO)
    model = sparse_model(positions, matches, scene.cameras)
    numbers = {"keypoints": np.mean([len(xy) for xy in positions.values()]), **statistics(model)}
    if scene.known is not None:
        numbers |= pose_errors(model, scene.known)
    return {name: float(number) for name, number in numbers.items()}


def features(subject: Subject, path: Path, detector: Detector) -> Features:
    """Detect and describe an image's keypoints; an `ImageSubject` uses its own detector.

    Raises:
        FileNotFoundError, ValueError: the image is missing or cannot be read; the message names it.
    """
    grey = read_grey(path, orientation=STORED)
    if isinstance(subject, ImageSubject):
        keypoints, descriptors = subject.of_image(grey)
        return Features(*vars(own_regions(keypoints)).values(), descriptors, grey.shape[::-1])
    return image_features(grey, regions(path, detector), subject.describe)


def regions(path: Path, detector: Detector) -> Regions:
    """Detect an image's keypoints, which do not depend on the descriptor: a process does so once, and
    again if the file has changed."""
    return _regions(path, state(path), detector)


@lru_cache(maxsize=4096)
def _regions(path: Path, _state: tuple, detector: Detector) -> Regions:
    return detect(read_grey(path, orientation=STORED), detector)


Pair = tuple[str, str]


def matched(
    described: Mapping[str, Features], pairs: Iterable[Pair], ratio: float
) -> dict[Pair, np.ndarray]:
    """Match pairs of images: (M, 2) int64 keypoints each, mutual nearest within the ratio test."""
    matches = {}
    for first, second in pairs:
        both = match(described[first].descriptors, described[second].descriptors, ratio=ratio)
        matches[first, second] = np.column_stack([both.first, both.second])
    return matches


def sparse_model(
    positions: Mapping[str, np.ndarray],
    matches: Mapping[Pair, np.ndarray],
    cameras: Mapping[str, pycolmap.Camera],
) -> pycolmap.Reconstruction:
    """Build the largest model of COLMAP's incremental mapping.

    Args:
        positions: (N, 2) positions of keypoints by image, the first pixel's centre at 0, 0.
        matches: as returned by `matched`.
        cameras: the camera of each image; images with one camera number share it. Cameras are refined.
            Images without a camera are left out.

    Returns:
        The model; an empty one if no two images could be put together.
    """
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, DATABASE)
        numbers = write_database(database, cameras)
        with pycolmap.Database.open(database) as opened:
            for image, number in numbers.items():
                opened.write_keypoints(number, positions[image].astype(np.float32) + HALF_PIXEL)
            for (first, second), rows in matches.items():
                if len(rows) >= FEWEST_MATCHES:
                    opened.write_matches(numbers[first], numbers[second], rows.astype(np.uint32))
        verify(database)
        return mapped(database, Path(folder))


def statistics(model: pycolmap.Reconstruction) -> dict[str, float]:
    """Return a model's statistics as in `measure`; without points, those about points are missing."""
    numbers = {
        "images": model.num_reg_images(),
        "sparse_points": model.num_points3D(),
        "observations": model.compute_num_observations(),
    }
    if model.num_points3D():
        numbers["track_length"] = model.compute_mean_track_length()
        numbers["reprojection_error"] = model.compute_mean_reprojection_error()
    return numbers


def pose_errors(model: pycolmap.Reconstruction, known: pycolmap.Reconstruction) -> dict[str, float]:
    """Measure how far a model's cameras are from known ones, once it is laid on them.

    A similarity lays their centres on each other; cameras that are far off do not affect it. Rotations
    are compared after the mean rotation between the supporting cameras: where these stand nearly in
    line, the similarity hardly knows how the model is turned about that line.

    Args:
        model: is moved and scaled in place.
        known: a model with the true poses of all images, by name.

    Returns:
        "rotation_error" and "position_error", medians as in `measure`; nothing if no similarity fits
        three cameras.
    """
    registered = [model.image(number) for number in model.reg_image_ids()]
    known_images = [known.find_image_with_name(image.name) for image in registered]
    centres = _centres(known.images.values())
    spread = np.linalg.norm(centres - centres.mean(axis=0), axis=1).mean()
    near = pycolmap.RANSACOptions(max_error=_NEAR * spread, random_seed=0)
    laid = pycolmap.estimate_sim3d_robust(_centres(registered), _centres(known_images), near)
    if laid is None:
        return {}
    model.transform(laid["tgt_from_src"])
    shifts = np.linalg.norm(_centres(registered) - _centres(known_images), axis=1)
    # From the model's axes to the known ones, by each camera.
    turns = Rotation.from_matrix(
        [
            _rotation(known_image).T @ _rotation(image)
            for image, known_image in zip(registered, known_images, strict=True)
        ]
    )
    apart = (turns[laid["inlier_mask"]].mean().inv() * turns).magnitude()
    return {
        "rotation_error": np.degrees(np.median(apart)),
        "position_error": 100 * np.median(shifts) / spread,
    }


def _rotation(image: pycolmap.Image) -> np.ndarray:
    return image.cam_from_world().rotation.matrix()


def _centres(images: Iterable[pycolmap.Image]) -> np.ndarray:
    return np.array([image.projection_center() for image in images]).reshape(-1, 3)
