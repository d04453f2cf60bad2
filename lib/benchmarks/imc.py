"""The image matching challenge of 2020 (Jin et al., IJCV 2020): stereo, multi-view, mAA at 10 degrees.

As its benchmark's code has it: 2,048 keypoints at most, mutual nearest neighbours under a ratio test.
The keypoints are Key.Net's, HyNet's choice, where its checkpoint lies beside the scenes, and else DoG's.
Stereo: a fundamental matrix by DEGENSAC (Chum et al., CVPR 2005), or by OpenCV's USAC where
`pydegensac` is not installed, made an essential one by the known intrinsics, gives the relative pose of
each pair with enough in common. Multi-view: COLMAP's model of a subset, with intrinsics that it has to
find, gives those of all its pairs. A pair's error is the larger of the angles of rotation and of
translation; the mAA is the mean over 1 to 10 degrees of the share of pairs below.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import cv2
import numpy as np
import pandas as pd
import pycolmap

from lib.benchmarks.sfm import Pair, features, matched, rotation_angle, sparse_model
from lib.benchmarks.subject import Subject
from lib.data.views import View, relative_pose
from lib.data.whole_images import ChallengeScene
from lib.features.description import Features
from lib.features.detectors import Detector

MOST_KEYPOINTS = 2048
# Of the benchmark's example for DEGENSAC; HyNet states none.
RATIO = 0.9
INLIER, CONFIDENCE, MOST_DRAWS = 0.5, 0.999999, 100_000
FEWEST = 8
LARGEST = 10
# COLMAP's guess of a focal length of which an image says nothing, in longer sides.
FOCAL_GUESS = 1.2
# Pairs of a scene, of both tasks together, that are reported singly, so that records stay small.
MOST_SINGLE = 400
# Degrees of rotation and of translation; what a pair is given of which no pose is found.
Errors = tuple[float, float]
LOST = (np.inf, np.inf)
DEGENSAC = importlib.util.find_spec("pydegensac") is not None


def measure(subject: Subject, test_set: Sequence[ChallengeScene]) -> dict[str, float]:
    """The mean average accuracy of poses, in percent.

    Args:
        subject: what describes.
        test_set: the scenes.

    Returns:
        "stereo" and "multiview", the means over the scenes of "stereo.SCENE" and "multiview.SCENE", and
        "average", the mean of the two; "matches" and "inliers", means of a pair of stereo; "registered",
        the share in percent of a subset's images that are in its model; "degensac", 1 where it was that
        and 0 where it was USAC; "keynet", 1 where keypoints are Key.Net's and 0 where they are DoG's. Of
        scenes with few pairs also "stereo.SCENE.A-B" and "multiview.SCENE.SUBSET.A-B", the accuracy of a
        single pair, its photographs and the subset by their places in the scene's order, from 0.

    Raises:
        FileNotFoundError, ValueError: as `lib.benchmarks.sfm.features`, or the checkpoint is not
            Key.Net's.
    """
    scenes, single = {}, {}
    for scene in test_set:
        scenes[scene.name], errors = _scene(subject, scene)
        if len(errors) <= MOST_SINGLE:
            single |= {name: round(100 * mean_average_accuracy([e])) for name, e in errors.items()}
    numbers = {f"{key}.{name}": scenes[name][key] for name in scenes for key in scenes[name]}
    numbers |= pd.DataFrame(scenes).mean(axis=1).to_dict()
    numbers["average"] = (numbers["stereo"] + numbers["multiview"]) / 2
    numbers |= {"degensac": float(DEGENSAC), "keynet": float(test_set[0].keynet is not None)}
    return numbers | {name: float(accuracy) for name, accuracy in single.items()}


def _scene(subject: Subject, scene: ChallengeScene) -> tuple[dict[str, float], dict[str, Errors]]:
    """The numbers of a scene, and by name the errors of its single pairs."""
    images = {name: view.path for name, view in scene.views.items()}
    kind = "dog" if scene.keynet is None else "keynet"
    described = features(subject, images, Detector(kind, most=MOST_KEYPOINTS, weights=scene.keynet))
    of_bags = {pair for bag in scene.bags for pair in combinations(bag, 2)}
    matches = matched(described, sorted({*scene.pairs, *of_bags}), RATIO)
    number = {name: number for number, name in enumerate(scene.views)}
    inliers, single = [], {}
    for first, second in scene.pairs:
        here, there = matches[first, second].T
        positions = described[first].position[here], described[second].position[there]
        error, kept = stereo(scene.views[first], scene.views[second], *positions)
        inliers.append(kept)
        single[f"stereo.{scene.name}.{number[first]}-{number[second]}"] = error
    errors = list(single.values())
    by_size: dict[int, list[float]] = {}
    registered = []
    for index, bag in enumerate(scene.bags):
        of_bag, share = _multiview(scene, bag, described, matches)
        by_size.setdefault(len(bag), []).append(mean_average_accuracy(of_bag))
        registered.append(share)
        for (first, second), error in zip(combinations(bag, 2), of_bag, strict=True):
            single[f"multiview.{scene.name}.{index}.{number[first]}-{number[second]}"] = error
    numbers = {
        "stereo": 100 * mean_average_accuracy(errors),
        "multiview": 100 * np.mean([np.mean(accuracies) for accuracies in by_size.values()]),
        "matches": np.mean([len(matches[pair]) for pair in scene.pairs]),
        "inliers": np.mean(inliers),
        "registered": 100 * np.mean(registered),
    }
    return {name: float(number) for name, number in numbers.items()}, single


def stereo(first: View, second: View, here: np.ndarray, there: np.ndarray) -> tuple[Errors, int]:
    """The errors in degrees of the pose that matched places (M, 2) give, and how many were kept."""
    if len(here) < FEWEST:
        return LOST, 0
    here, there = np.ascontiguousarray(here, float), np.ascontiguousarray(there, float)
    fundamental, kept = _fundamental(here, there)
    if fundamental is None or kept.sum() < FEWEST:
        return LOST, int(kept.sum())
    essential = second.intrinsics.T @ fundamental @ first.intrinsics
    rays = [
        (places[kept] - view.intrinsics[:2, 2]) / np.diag(view.intrinsics)[:2]
        for view, places in ((first, here), (second, there))
    ]
    _, rotation, translation, _ = cv2.recoverPose(essential, *rays)
    return pose_error(relative_pose(first, second), (rotation, translation[:, 0])), int(kept.sum())


def _fundamental(here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """(3, 3) and (M,) bool, the inliers."""
    limits = INLIER, CONFIDENCE, MOST_DRAWS
    if DEGENSAC:
        # No requirement: its wheel does not install everywhere.
        find = importlib.import_module("pydegensac").findFundamentalMatrix
        checks = {"symmetric_error_check": True, "enable_degeneracy_check": True}
        matrix, kept = find(here, there, *limits, error_type="sampson", **checks, seed=0)
    else:
        matrix, kept = cv2.findFundamentalMat(here, there, cv2.USAC_DEFAULT, *limits)
    kept = np.zeros(len(here), bool) if kept is None else np.asarray(kept, bool).reshape(-1)
    return (None if matrix is None or np.shape(matrix) != (3, 3) else np.asarray(matrix)), kept


def _multiview(
    scene: ChallengeScene,
    bag: Sequence[str],
    described: Mapping[str, Features],
    matches: Mapping[Pair, np.ndarray],
) -> tuple[list[Errors], float]:
    """The errors of a subset's pairs by the model of its images, and the share of these that it has.

    COLMAP's importer guesses the focal lengths.
    """
    pairs, cameras = list(combinations(bag, 2)), {}
    for number, name in enumerate(bag, 1):
        size = described[name].size
        lens = (FOCAL_GUESS * max(size), *size)
        cameras[name] = pycolmap.Camera.create_from_model_name(number, "SIMPLE_RADIAL", *lens)
    positions = {name: described[name].position for name in bag}
    model = sparse_model(positions, {pair: matches[pair] for pair in pairs}, cameras)
    posed: dict[str, View] = {}
    for number in [] if model is None else model.reg_image_ids():
        image = model.image(number)
        rigid = image.cam_from_world()
        pose = {"rotation": rigid.rotation.matrix(), "translation": np.array(rigid.translation)}
        posed[image.name] = replace(scene.views[image.name], **pose)
    errors = [
        pose_error(*(relative_pose(*map(views.get, pair)) for views in (scene.views, posed)))
        if posed.keys() >= {*pair}
        else LOST
        for pair in pairs
    ]
    return errors, len(posed) / len(bag)


Pose = tuple[np.ndarray, np.ndarray]


def pose_error(known: Pose, found: Pose) -> Errors:
    """Degrees between two rotations (3, 3), and between the lines of two translations (3,).

    A translation's length is not told by two views, nor, in the benchmark, its sense.
    """
    a, b = known[1], found[1]
    across, along = np.linalg.norm(np.cross(a, b)), abs(a @ b)
    return rotation_angle(known[0] @ found[0].T), float(np.degrees(np.arctan2(across, along)))


def mean_average_accuracy(errors: Sequence[Errors], largest: int = LARGEST) -> float:
    """The mean over 1, 2, …, `largest` degrees of the share of pairs whose error is below.

    Args:
        errors: of each pair, its two angles in degrees, of which the larger counts; infinite where there
            is no pose.
        largest: degrees; an error of exactly so many counts as below, as in the benchmark's histogram.
    """
    worst = np.max(errors, axis=1)
    below = [(worst < degrees).mean() for degrees in range(1, largest)]
    return float(np.mean([*below, (worst <= largest).mean()]))
