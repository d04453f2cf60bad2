"""Correspondences in a scene: keypoints that, carried over, agree mutually within a tolerance.

Keypoints are detected in each view separately. The tracks of a structure-from-motion model do not serve
as labels, because they hold only what SIFT has already matched. However, surfaces are spanned by these
tracks and are most precise near them, so keypoints there are labelled more often than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """Largest difference between a detected keypoint and one carried to it.

    Attributes:
        position: of position, px.
        octaves: of scale, octaves.
        angle: of orientation, radians.
    """

    position: float
    octaves: float = 0.25
    angle: float = np.pi / 8

    def admits(self, pairs: pd.DataFrame, times: float = 1.0) -> np.ndarray:
        """Return which `Scene.pairs` are within `times` the tolerance, (M,) bool."""
        limits = times * np.array([self.position, self.octaves, self.angle])
        return (pairs[["position", "octaves", "angle"]] <= limits).to_numpy().all(axis=1)


# UBC PhotoTour's own tolerance (Brown, Hua and Winder, PAMI 2011).
UBC = Tolerance(5.0)
# Two classes closer than this many tolerances never form a negative.
GUARD = 2.0


@dataclass(frozen=True)
class Scene:
    """A scene's views with their keypoints, and pairs of keypoints that are near once carried over.

    Attributes:
        name: the folder's name.
        images: image files, one per view.
        views: V views, ordered by name.
        left_out: names of images that have no pose in the model, or too few points.
        keypoints: N keypoints of all views, one view after another, each view's strongest first.
        view_ids: (N,) int64, the view of each keypoint.
        points: (N, 3) float64 in the world, NaN where the view has no surface.
        pairs: a row for each keypoint "source" that lies near a keypoint "target" of another view once
            carried over, or of its own view: their indices, and their differences in "position" (px),
            "octaves" and "angle" (radians). Near is `GUARD` times the largest tolerance, `UBC`.
        kept: (N, 64, 64) uint8, the keypoints' patches if they were cut before.
    """

    name: str
    images: tuple[Path, ...]
    views: tuple[View, ...]
    left_out: tuple[str, ...]
    keypoints: Keypoints
    view_ids: np.ndarray
    points: np.ndarray
    pairs: pd.DataFrame
    kept: np.ndarray | None = None

    def grey(self, view: int) -> np.ndarray:
        """Read a view's pixels as stored, which is how COLMAP has them too; (H, W) uint8."""
        return read_grey(self.images[view], orientation="stored")

    def patches(self, keypoints: np.ndarray) -> np.ndarray:
        """Cut the patches (n, 64, 64) uint8 of keypoints given by index (n,), each from its own view, or
        return those that are kept."""
        if self.kept is not None:
            return self.kept[keypoints]
        patches = np.empty((len(keypoints), PATCH, PATCH), np.uint8)
        for view in np.unique(self.view_ids[keypoints]):
            members = self.view_ids[keypoints] == view
            patches[members] = cut(self.grey(view), self.keypoints[keypoints[members]])
        return patches


def reduced(scene: Scene, most_views: int | None, most_keypoints: int | None) -> Scene:
    """Return a scene with its first views, by name, and with the strongest keypoints of each.

    Photographs with consecutive names mostly overlap, unlike ones that are spread evenly.

    Args:
        scene: the scene.
        most_views, most_keypoints: how many views, and keypoints of a view, to keep; None keeps all.
    """
    ranks = pd.Series(scene.view_ids).groupby(scene.view_ids).cumcount().to_numpy()
    kept = np.ones(len(ranks), bool)
    if most_views is not None:
        kept &= scene.view_ids < most_views
    if most_keypoints is not None:
        kept &= ranks < most_keypoints
    numbers = np.cumsum(kept) - 1
    ends = ["source", "target"]
    pairs = scene.pairs[kept[scene.pairs["source"]] & kept[scene.pairs["target"]]].reset_index(drop=True)
    return replace(
        scene,
        images=scene.images[:most_views],
        views=scene.views[:most_views],
        keypoints=scene.keypoints[kept],
        view_ids=scene.view_ids[kept],
        points=scene.points[kept],
        pairs=pairs.assign(**{end: numbers[pairs[end]] for end in ends}),
    )


def carried(views: Sequence[View], keypoints: Sequence[Keypoints]) -> tuple[np.ndarray, pd.DataFrame]:
    """Carry every view's keypoints into every other view.

    Args:
        views: V views.
        keypoints: the keypoints of each view.

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
    """Return pairs of carried and detected keypoints, as in `Scene.pairs`, by source, then target."""
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
    """Return mutual pairs: each keypoint, carried into the other's view, is within the tolerance there.

    Args:
        scene: the scene.
        tolerance: `UBC` at most.

    Returns:
        "first" and "second", indices of keypoints of different views, the first below the second, and
        "distance", the larger of the pair's two distances in px. Rows are sorted by distance.
    """
    pairs = scene.pairs[tolerance.admits(scene.pairs)]
    first, second = np.sort(pairs[["source", "target"]].to_numpy(), axis=1).T
    pairs = pd.DataFrame({"first": first, "second": second, "distance": pairs["position"]})
    pairs = pairs[scene.view_ids[first] != scene.view_ids[second]]
    both = pairs.groupby(["first", "second"])["distance"].agg(["size", "max"])
    both = both[both["size"] == 2]["max"].rename("distance").reset_index()
    return both.sort_values(["distance", "first", "second"], ignore_index=True)


def classes(scene: Scene, tolerance: Tolerance) -> np.ndarray:
    """Group keypoints that show the same point into classes.

    Classes are united in order of distance, and only if every keypoint of one matches every keypoint of
    the other. So all pairs of a class are within the tolerance, and no view has two of its keypoints. Of
    classes in each other's guard zone, the one with more keypoints stays, so that no two remaining
    classes are that close.

    Args:
        scene: the scene.
        tolerance: `UBC` at most.

    Returns:
        (N,) int64, each keypoint's class, 0 to C − 1 in order of the classes' first keypoints; −1 for
        keypoints in no class.
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
