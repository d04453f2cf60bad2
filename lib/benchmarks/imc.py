"""The image matching challenge of 2020 (Jin et al., IJCV 2020): stereo, multi-view, mAA at 10 degrees.

As in the benchmark's code, at most 2,048 keypoints are matched: mutual nearest neighbours that pass a
ratio test. Keypoints are Key.Net's, as in HyNet, if its checkpoint lies next to the scenes; else DoG's.
Stereo: DEGENSAC (Chum et al., CVPR 2005), or OpenCV's USAC if `pydegensac` is not installed, finds a
fundamental matrix of each pair with enough in common. With the known intrinsics it becomes an essential
matrix, which gives the relative pose; as in the benchmark's code, only points nearer than 50 baselines
tell which of its four poses is meant. Multi-view: COLMAP's model of a subset, with intrinsics that it
has to find, gives the relative poses of all its pairs. A pair's error is the larger of the angles of
rotation and of translation; the mAA is the mean over 1 to 10 degrees of the share of pairs below.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import cv2
import numpy as np
import pandas as pd
import pycolmap
from scipy.spatial.transform import Rotation

from lib.benchmarks.sfm import Pair, features, matched, sparse_model
from lib.benchmarks.subject import Subject
from lib.data.cameras import Camera
from lib.data.whole_images import ChallengeScene
from lib.features.detectors import Detector

MOST_KEYPOINTS = 2048
# From the benchmark's example for DEGENSAC; HyNet states no ratio.
RATIO = 0.9
INLIER, CONFIDENCE, MOST_DRAWS = 0.5, 0.999999, 100_000
FEWEST = 8
LARGEST = 10
_TOO_FAR = (
    "no point of a pair of images is nearer than 50 times the distance between its cameras, so that its "
    "pose is one of four by chance, as in the benchmark's code"
)
DEGENSAC = importlib.util.find_spec("pydegensac") is not None


def measure(subject: Subject, test_set: Sequence[ChallengeScene]) -> dict[str, float]:
    """Compute the mean average accuracy of poses, in percent.

    Args:
        subject: the descriptor.
        test_set: the scenes.

    Returns:
        "stereo" and "multiview", the means over scenes of "stereo.SCENE" and "multiview.SCENE", and
        "average", the mean of the two; "matches" and "inliers", means per stereo pair; "registered", the
        percentage of a subset's images that are in its model; "degensac", 1 for DEGENSAC and 0 for USAC;
        "keynet", 1 for Key.Net's keypoints and 0 for DoG's.

    Raises:
        FileNotFoundError, ValueError: as `lib.benchmarks.sfm.features`, or the checkpoint is not
            Key.Net's.
    """
    scenes = {scene.name: _scene(subject, scene) for scene in test_set}
    numbers = {f"{key}.{name}": scenes[name][key] for name in scenes for key in scenes[name]}
    numbers |= pd.DataFrame(scenes).mean(axis=1).to_dict()
    numbers["average"] = (numbers["stereo"] + numbers["multiview"]) / 2
    return numbers | {"degensac": float(DEGENSAC), "keynet": float(test_set[0].keynet is not None)}


def _scene(subject: Subject, scene: ChallengeScene) -> dict[str, float]:
    kind = "dog" if scene.keynet is None else "keynet"
    detector = Detector(kind, most=MOST_KEYPOINTS, weights=scene.keynet)
    described = {name: features(subject, path, detector) for name, path in scene.images.items()}
    bag_pairs = {pair for bag in scene.bags for pair in combinations(bag, 2)}
    matches = matched(described, sorted({*scene.pairs, *bag_pairs}), RATIO)
    positions = {name: image.position for name, image in described.items()}
    results = []
    for first, second in scene.pairs:
        rows, columns = matches[first, second].T
        ends = positions[first][rows], positions[second][columns]
        results.append(stereo(scene.cameras[first], scene.cameras[second], *ends))
    errors, inliers = zip(*results, strict=True)
    bags = [(len(bag), *multiview(scene, bag, positions, matches)) for bag in scene.bags]
    subsets = pd.DataFrame(bags, columns=["size", "accuracy", "registered"])
    return {
        "stereo": 100 * mean_average_accuracy(errors),
        "multiview": 100 * subsets.groupby("size")["accuracy"].mean().mean(),
        "matches": np.mean([len(matches[pair]) for pair in scene.pairs]),
        "inliers": np.mean(inliers),
        "registered": 100 * subsets["registered"].mean(),
    }


def stereo(first: Camera, second: Camera, here: np.ndarray, there: np.ndarray) -> tuple[float, int]:
    """Return the pose error of matched positions (M, 2) in degrees, infinite if they give no pose, and
    the number of inliers. Warns if all points are too far away to tell four poses apart."""
    if len(here) < FEWEST:
        return np.inf, 0
    here, there = np.ascontiguousarray(here, float), np.ascontiguousarray(there, float)
    limits = INLIER, CONFIDENCE, MOST_DRAWS
    if DEGENSAC:
        # Not a requirement: its wheel does not install everywhere.
        find = importlib.import_module("pydegensac").findFundamentalMatrix
        checks = {"symmetric_error_check": True, "enable_degeneracy_check": True}
        fundamental, kept = find(here, there, *limits, error_type="sampson", **checks, seed=0)
    else:
        fundamental, kept = cv2.findFundamentalMat(here, there, cv2.USAC_DEFAULT, *limits)
    kept = np.flatnonzero(0 if kept is None else kept)
    if np.shape(fundamental) != (3, 3) or len(kept) < FEWEST:
        return np.inf, len(kept)
    essential = second.intrinsics.T @ fundamental @ first.intrinsics
    rays = [
        (positions[kept] - camera.intrinsics[:2, 2]) / np.diag(camera.intrinsics)[:2]
        for camera, positions in ((first, here), (second, there))
    ]
    in_front, rotation, translation, _ = cv2.recoverPose(essential, *rays)
    if not in_front:
        warnings.warn(_TOO_FAR, stacklevel=2)
    return pose_error(relative_pose(first, second), (rotation, translation[:, 0])), len(kept)


def multiview(
    scene: ChallengeScene,
    bag: Sequence[str],
    positions: Mapping[str, np.ndarray],
    matches: Mapping[Pair, np.ndarray],
) -> tuple[float, float]:
    """Return the mean average accuracy of a subset's pairs in the model of its images, and the share of
    images in the model, 0 to 1. COLMAP's importer guesses the focal lengths."""
    cameras, pairs = {}, list(combinations(bag, 2))
    for number, name in enumerate(bag, 1):
        cameras[name] = pycolmap.infer_camera_from_image(scene.images[name])
        cameras[name].camera_id = number
    model = sparse_model(positions, {pair: matches[pair] for pair in pairs}, cameras)
    poses = {image.name: image.cam_from_world() for image in map(model.image, model.reg_image_ids())}
    errors = np.full(len(pairs), np.inf)
    for index, (first, second) in enumerate(pairs):
        if {first, second} <= poses.keys():
            relative = poses[second] * poses[first].inverse()
            known = relative_pose(scene.cameras[first], scene.cameras[second])
            errors[index] = pose_error(known, (relative.rotation.matrix(), relative.translation))
    return mean_average_accuracy(errors), len(poses) / len(bag)


Pose = tuple[np.ndarray, np.ndarray]


def relative_pose(first: Camera, second: Camera) -> Pose:
    """Return the rotation (3, 3) and translation (3,) from the first camera's frame to the second's."""
    rotation = second.rotation @ first.rotation.T
    return rotation, second.translation - rotation @ first.translation


def pose_error(known: Pose, found: Pose) -> float:
    """Return the larger angle in degrees: between two rotations (3, 3), or between the lines of two
    translations (3,).

    Two views do not determine a translation's length, and the benchmark ignores its sign. Where one
    translation is zero and the other is not, the error is at least 90 degrees; a pose with NaN has NaN.
    """
    (rotation, a), (other, b) = known, found
    turned = Rotation.from_matrix(rotation @ other.T).magnitude()
    shifted = np.arctan2(np.linalg.norm(np.cross(a, b)), abs(a @ b))
    # A translation of zero has no direction, so it is no estimate of one.
    if np.any(a) != np.any(b):
        shifted = np.pi / 2
    return float(np.degrees(np.maximum(turned, shifted)))


def mean_average_accuracy(errors: Sequence[float]) -> float:
    """Average the share of pairs with a smaller error over thresholds of 1, 2, …, `LARGEST` degrees.

    Args:
        errors: of each pair, degrees, as from `pose_error`; infinite if there is no pose. An error of
            exactly `LARGEST` counts as smaller, as in the benchmark's histogram.

    Raises:
        ValueError: there is more than one error a pair.
    """
    if np.ndim(errors) != 1:
        raise ValueError(f"one error a pair, the larger of two, got shape {np.shape(errors)}")
    counts, _ = np.histogram(errors, bins=np.arange(LARGEST + 1))
    return float(counts.cumsum().mean() / len(errors))
