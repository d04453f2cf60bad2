"""A place's patches in PhotoTour's own layout, with its two lists of test pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.patchset import LabelledPairs
from lib.data.phototour import MATCHES, write_pairs, write_patches
from lib.data.scenes.correspondences import Scene, Tolerance, classes
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
    views, columns = [], []

    def cut_scenes() -> Iterator[tuple[np.ndarray, ...]]:
        points = 0
        for scene in scenes:
            label = classes(scene, tolerance)
            keypoints = np.lexsort((scene.view_ids, label))
            keypoints = keypoints[label[keypoints] >= 0]
            image_ids = scene.view_ids[keypoints] + len(views)
            columns.append((image_ids, scene.points[keypoints]))
            frames = scene.keypoints[keypoints]
            frames = np.column_stack([frames.position, frames.orientation, np.log2(frames.scale)])
            yield scene.patches(keypoints), label[keypoints] + points, image_ids, frames
            points += label.max(initial=-1) + 1
            views.extend(scene.views)

    point_ids = write_patches(folder, cut_scenes())
    if (count := point_ids.max(initial=-1) + 1) < FEWEST_CLASSES:
        names = ", ".join(scene.name for scene in scenes)
        raise ValueError(f"{names}: {count} points are seen twice, {FEWEST_CLASSES} are needed")
    image_ids, points = map(np.concatenate, zip(*columns, strict=True))
    first, second = within_points(point_ids)
    means = pd.DataFrame(points).groupby(point_ids).transform("mean").to_numpy()
    angles = pd.Series(angles_between(views, image_ids[first], image_ids[second], means[first]))
    widest = angles.groupby(point_ids[first]).idxmax().to_numpy()
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(first)), rng.permutation(widest)
    for file, matching in zip((MATCHES, WIDE_PAIRS), shuffled, strict=True):
        chosen = matching[:MATCHING]
        others = min(NON_MATCHING, len(point_ids) * (len(point_ids) - 1) // 4)
        left, right = non_matching(point_ids, others, rng)
        match = np.arange(len(chosen) + others) < len(chosen)
        pairs = LabelledPairs(np.r_[first[chosen], left], np.r_[second[chosen], right], match)
        write_pairs(folder, pairs, point_ids, file)
