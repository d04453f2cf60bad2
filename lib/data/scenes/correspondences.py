"""Which keypoints of a scene's views show one point: carried over, within a tolerance, mutually.

Keypoints are found in each view by itself, and tracks of a structure-from-motion model make no labels:
they hold what SIFT has matched already. Surfaces are spanned by such tracks, though, and are most
precise near them, so that keypoints there are labelled more often than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.spatial import cKDTree

from lib.data.images import read_grey
from lib.data.scenes.views import View, carry, lift
from lib.features.keypoints import Keypoints
from lib.features.patches import PATCH, cut


@dataclass(frozen=True)
class Tolerance:
    """How far a keypoint may lie from one that is carried to it.

    Attributes:
        position: px.
        octaves: of the scale.
        angle: of the orientation, radians.
    """

    position: float
    octaves: float = 0.25
    angle: float = np.pi / 8

    def admits(self, pairs: pd.DataFrame, times: float = 1.0) -> np.ndarray:
        """(M,) bool: which `Scene.pairs` are within so many times the tolerance."""
        limits = times * np.array([self.position, self.octaves, self.angle])
        return (pairs[["position", "octaves", "angle"]] <= limits).to_numpy().all(axis=1)


# UBC's own (Brown, Hua and Winder, PAMI 2011).
UBC = Tolerance(5.0)
# Two classes closer than so many tolerances never form a negative.
GUARD = 2.0


@dataclass(frozen=True)
class Scene:
    """A scene's views with their keypoints, and which of these lie near each other once carried over.

    Attributes:
        name: of its folder.
        images: files, one a view.
        views: V of them, by name.
        left_out: names of images that the model has no pose of, or no points in.
        keypoints: of all views, one view's behind another's; N in all.
        view_ids: (N,) int64, the view of each.
        points: (N, 3) float64 in the world, NaN where the view knows no surface.
        pairs: a row for each keypoint "source" that comes near a keypoint "target" of another view, or
            lies near one of its own: their indices, and what lies between them in "position" (px),
            "octaves" and "angle" (radians). Near is `GUARD` times the largest tolerance, `UBC`.
    """

    name: str
    images: tuple[Path, ...]
    views: tuple[View, ...]
    left_out: tuple[str, ...]
    keypoints: Keypoints
    view_ids: np.ndarray
    points: np.ndarray
    pairs: pd.DataFrame

    def grey(self, view: int) -> np.ndarray:
        """(H, W) uint8, the pixels of a view as they are stored, as COLMAP has them too."""
        return read_grey(self.images[view], orientation="stored")

    def patches(self, keypoints: np.ndarray) -> np.ndarray:
        """(n, 64, 64) uint8 of keypoints by their indices, (n,), each cut from its own view."""
        patches = np.empty((len(keypoints), PATCH, PATCH), np.uint8)
        for view in np.unique(self.view_ids[keypoints]):
            members = self.view_ids[keypoints] == view
            patches[members] = cut(self.grey(view), self.keypoints[keypoints[members]])
        return patches


def carried(views: Sequence[View], keypoints: Sequence[Keypoints]) -> tuple[np.ndarray, pd.DataFrame]:
    """Carry every view's keypoints into every other view.

    Args:
        views: V of them.
        keypoints: found in each of these.

    Returns:
        `Scene.points` and `Scene.pairs`.
    """
    starts = np.cumsum([0, *map(len, keypoints)])
    lifted = list(map(lift, views, keypoints))
    parts = []
    for source, target in product(range(len(views)), repeat=2):
        moved, visible = keypoints[source], np.ones(len(keypoints[source]), bool)
        if source != target:
            moved, visible = carry(moved, lifted[source], views[target])
        near = _near_pairs(moved[visible], keypoints[target])
        near["source"] = np.flatnonzero(visible)[near["source"]] + starts[source]
        near["target"] += starts[target]
        parts.append(near[near["source"] != near["target"]])
    points = np.concatenate([surface[0] for surface in lifted])
    return points, pd.concat(parts, ignore_index=True)


def _near_pairs(moved: Keypoints, detected: Keypoints) -> pd.DataFrame:
    """Pairs of carried keypoints and detected ones, as `Scene.pairs`, by source and then by target."""
    trees = cKDTree(moved.position), cKDTree(detected.position)
    near = trees[0].sparse_distance_matrix(trees[1], GUARD * UBC.position, output_type="ndarray")
    pairs = pd.DataFrame(near).set_axis(["source", "target", "position"], axis=1)
    pairs = pairs.sort_values(["source", "target"], ignore_index=True)
    source, target = pairs["source"], pairs["target"]
    turn = detected.orientation[target] - moved.orientation[source]
    pairs["octaves"] = np.abs(np.log2(detected.scale[target] / moved.scale[source]))
    pairs["angle"] = np.abs((turn + np.pi) % (2 * np.pi) - np.pi)
    return pairs[UBC.admits(pairs, GUARD)]


def matches(scene: Scene, tolerance: Tolerance) -> pd.DataFrame:
    """Mutual pairs: each keypoint, carried into the other's view, is within the tolerance of the other.

    Args:
        scene: the scene.
        tolerance: `UBC` at most.

    Returns:
        "first" and "second", indices of keypoints of different views, the first below the second, and
        "distance", the larger of the two in px; by distance.
    """
    pairs = scene.pairs[tolerance.admits(scene.pairs)]
    first, second = np.sort(pairs[["source", "target"]].to_numpy(), axis=1).T
    pairs = pd.DataFrame({"first": first, "second": second, "distance": pairs["position"]})
    pairs = pairs[scene.view_ids[first] != scene.view_ids[second]]
    both = pairs.groupby(["first", "second"])["distance"].agg(["size", "max"])
    both = both[both["size"] == 2]["max"].rename("distance").reset_index()
    return both.sort_values(["distance", "first", "second"], ignore_index=True)


def classes(scene: Scene, tolerance: Tolerance) -> np.ndarray:
    """Which keypoints show one point.

    Classes are united in order of distance, and only where every keypoint of one matches every keypoint
    of the other, so that all pairs of a class are within the tolerance and no view has two. Of classes
    in each other's guard zone those of more keypoints stay, so that no two that are left are so close.

    Args:
        scene: the scene.
        tolerance: `UBC` at most.

    Returns:
        (N,) int64, a keypoint's class, 0 to C − 1 in order of their first keypoints; −1 for those of
        none.
    """
    pairs = list(matches(scene, tolerance)[["first", "second"]].itertuples(index=False, name=None))
    mutual = set(pairs)
    united = {index: [index] for pair in pairs for index in pair}
    for first, second in pairs:
        one, other = united[first], united[second]
        if one is not other and all((min(ends), max(ends)) in mutual for ends in product(one, other)):
            one += other
            united |= dict.fromkeys(other, one)
    groups = {min(members): members for members in united.values() if len(members) > 1}
    near = scene.pairs[tolerance.admits(scene.pairs, GUARD)]
    count = len(scene.view_ids)
    guarded = coo_array((np.ones(len(near)), (near["source"], near["target"])), (count, count)).tocsr()
    guarded += guarded.T
    closed, kept = np.zeros(count, bool), []
    for smallest in sorted(groups, key=lambda smallest: (-len(groups[smallest]), smallest)):
        if not closed[groups[smallest]].any():
            closed[guarded[groups[smallest]].indices] = True
            kept.append(smallest)
    label = np.full(count, -1)
    for number, smallest in enumerate(sorted(kept)):
        label[groups[smallest]] = number
    return label
