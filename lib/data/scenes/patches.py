"""A place's patches in PhotoTour's own layout, with its two lists of test pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.patchset import LabelledPairs
from lib.data.phototour import MATCHES, write_pairs, write_patches
from lib.data.scenes.correspondences import Tolerance, classes
from lib.data.scenes.prepared import Scene
from lib.data.scenes.views import angles_between
from lib.data.synthetic.scenes import non_matching, within_points

# Besides PhotoTour's match file, of each class the two views farthest apart by viewing angle.
WIDE_PAIRS = "wide.txt"
MATCHING, NON_MATCHING = 50_000, 2_000_000
FEWEST_CLASSES = 200


def write_place(folder: Path, scenes: Sequence[Scene], tolerance: Tolerance, seed: int = 0) -> None:
    """Write a place as a set of patches.

    Args:
        folder: made if missing.
        scenes: of the place, none of which shows what another does.
        tolerance: up to which keypoints show one point.
        seed: of the pairs drawn.

    Raises:
        ValueError: too few classes for test pairs; the message names the scenes.
    """
    labels = [classes(scene.carried, tolerance) for scene in scenes]
    names = ", ".join(scene.name for scene in scenes)
    if (count := sum(int(label.max(initial=-1)) + 1 for label in labels)) < FEWEST_CLASSES:
        raise ValueError(f"{names}: {count} points are seen twice, {FEWEST_CLASSES} are needed")
    angles: list[np.ndarray] = []

    def cut_scenes() -> Iterator[tuple[np.ndarray, ...]]:
        images = points = 0
        for scene, label in zip(scenes, labels, strict=True):
            keypoints = np.lexsort((scene.carried.view, label))
            keypoints = keypoints[label[keypoints] >= 0]
            point, image = label[keypoints], scene.carried.view[keypoints]
            angles.append(_angles(scene, keypoints, point))
            frames = scene.carried.keypoints[keypoints]
            columns = [frames.position, frames.orientation, np.log2(frames.scale)]
            yield scene.patches(keypoints), point + points, image + images, np.column_stack(columns)
            points += int(label.max(initial=-1)) + 1
            images += len(scene.views)

    ids = write_patches(folder, cut_scenes())
    first, second = within_points(ids)
    by_point = pd.DataFrame({"point": ids[first], "angle": np.concatenate(angles)}).groupby("point")
    widest = by_point["angle"].idxmax().to_numpy()
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(first)), rng.permutation(widest)
    for file, matching in zip((MATCHES, WIDE_PAIRS), shuffled, strict=True):
        chosen = matching[:MATCHING]
        others = min(NON_MATCHING, len(ids) * (len(ids) - 1) // 4)
        left, right = non_matching(ids, others, rng)
        match = np.arange(len(chosen) + others) < len(chosen)
        pairs = LabelledPairs(np.r_[first[chosen], left], np.r_[second[chosen], right], match)
        write_pairs(folder, pairs, ids, file)


def _angles(scene: Scene, keypoints: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Viewing angles (radians) of all pairs of patches within points, in `within_points`' order."""
    seen = pd.DataFrame(scene.carried.points[keypoints]).groupby(point).transform("mean").to_numpy()
    first, second = within_points(point)
    view = scene.carried.view[keypoints]
    return angles_between(scene.views, view[first], view[second], seen[first])
