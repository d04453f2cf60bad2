"""Which keypoints of a scene's views show one point: carried over, within a tolerance, mutually.

Keypoints are found in each view by itself, and tracks of a structure-from-motion model make no labels:
they hold what SIFT has matched already. Surfaces are spanned by such tracks, though, and are most
precise near them, so that keypoints there are labelled more often than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from lib.data.scenes.views import View, carry, lift
from lib.features.detectors import Keypoints


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
        """(M,) bool: which pairs of `Carried` are within so many times the tolerance."""
        limits = {"position": self.position, "octaves": self.octaves, "angle": self.angle}
        return np.all([pairs[name] <= times * limit for name, limit in limits.items()], axis=0)


# UBC's own (Brown, Hua and Winder, PAMI 2011).
UBC = Tolerance(5.0)
# Two classes closer than so many tolerances never form a negative.
GUARD = 2.0


@dataclass(frozen=True)
class Carried:
    """A scene's keypoints, and which of them lie near each other once carried into other views.

    Attributes:
        keypoints: of all V views, one view's behind another's; N in all.
        view: (N,) int64, the view of each.
        points: (N, 3) float64 in the world, NaN where the view knows no surface.
        pairs: a row for each keypoint "source" that comes near a keypoint "target" of another view, or
            lies near one of its own: their indices, and what lies between them in "position" (px),
            "octaves" and "angle" (radians). Near is `GUARD` times the largest tolerance, `UBC`.
    """

    keypoints: Keypoints
    view: np.ndarray
    points: np.ndarray
    pairs: pd.DataFrame


def carried(views: Sequence[View], keypoints: Sequence[Keypoints]) -> Carried:
    """Carry every view's keypoints into every other view.

    Args:
        views: V of them.
        keypoints: found in each of these.
    """
    counts = [len(some) for some in keypoints]
    starts = np.cumsum([0, *counts])
    trees = [cKDTree(some.position) for some in keypoints]
    surfaces = [lift(view, some) for view, some in zip(views, keypoints, strict=True)]
    parts = []
    for source, surface in enumerate(surfaces):
        for target, view in enumerate(views):
            if source == target:
                there, seen = keypoints[source], np.ones(counts[source], bool)
            else:
                there, seen = carry(surface, view)
            near = _near(there[seen], keypoints[target], trees[target])
            near["source"] = np.flatnonzero(seen)[near["source"]] + starts[source]
            near["target"] += starts[target]
            parts.append(near[near["source"] != near["target"]])
    return Carried(
        Keypoints(*(np.concatenate([getattr(some, field) for some in keypoints]) for field in _FIELDS)),
        np.repeat(np.arange(len(views)), counts),
        np.concatenate([surface.points for surface in surfaces]),
        pd.concat(parts, ignore_index=True),
    )


_FIELDS = ("position", "scale", "orientation")


def _near(there: Keypoints, found: Keypoints, tree: cKDTree) -> pd.DataFrame:
    """Pairs of carried keypoints and those found that lie within the largest guard zone."""
    near = tree.query_ball_point(there.position, GUARD * UBC.position, return_sorted=True)
    source = np.repeat(np.arange(len(there)), [len(row) for row in near])
    target = np.array([index for row in near for index in row], int)
    turn = found.orientation[target] - there.orientation[source]
    pairs = pd.DataFrame(
        {
            "source": source,
            "target": target,
            "position": np.linalg.norm(found.position[target] - there.position[source], axis=1),
            "octaves": np.abs(np.log2(found.scale[target] / there.scale[source])),
            "angle": np.abs((turn + np.pi) % (2 * np.pi) - np.pi),
        }
    )
    return pairs[UBC.admits(pairs, GUARD)]


def matches(scene: Carried, tolerance: Tolerance) -> pd.DataFrame:
    """Mutual pairs: each keypoint, carried into the other's view, is within the tolerance of the other.

    Args:
        scene: the scene.
        tolerance: `UBC` at most.

    Returns:
        "first" and "second", indices of keypoints of different views, the first below the second, and
        "distance", the larger of the two in px; by distance.
    """
    pairs = scene.pairs[tolerance.admits(scene.pairs)]
    source, target = pairs["source"].to_numpy(), pairs["target"].to_numpy()
    pairs = pd.DataFrame(
        {
            "first": np.minimum(source, target),
            "second": np.maximum(source, target),
            "distance": pairs["position"],
        }
    )[scene.view[source] != scene.view[target]]
    both = pairs.groupby(["first", "second"])["distance"].agg(["size", "max"])
    both = both[both["size"] == 2]["max"].rename("distance").reset_index()
    return both.sort_values(["distance", "first", "second"], ignore_index=True)


def classes(scene: Carried, tolerance: Tolerance) -> np.ndarray:
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
    matched = matches(scene, tolerance)
    pairs = list(zip(matched["first"].tolist(), matched["second"].tolist(), strict=True))
    mutual, root = set(pairs), list(range(len(scene.view)))
    members = {index: [index] for pair in pairs for index in pair}
    for pair in pairs:
        large, small = sorted((root[index] for index in pair), key=lambda r: -len(members[r]))
        crossing = ((one, other) for one in members[large] for other in members[small])
        if large != small and all((min(ends), max(ends)) in mutual for ends in crossing):
            members[large] += members.pop(small)
            for index in members[large]:
                root[index] = large
    label = np.full(len(scene.view), -1)
    united = sorted(
        (sorted(some) for some in members.values() if len(some) > 1), key=lambda some: some[0]
    )
    for number, some in enumerate(united):
        label[some] = number
    kept = _apart(scene, label, tolerance)
    renumbered = np.full(len(united) + 1, -1)
    renumbered[np.flatnonzero(kept)] = np.arange(kept.sum())
    return renumbered[label]


def _apart(scene: Carried, label: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    """(C,) bool: classes that stay, of those of most keypoints first, none near another that does."""
    near = scene.pairs[tolerance.admits(scene.pairs, GUARD)]
    ends = np.sort(label[near[["source", "target"]].to_numpy()], axis=1)
    ends = np.unique(ends[(ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])], axis=0)
    rivals: dict[int, list[int]] = {}
    for one, other in ends.tolist():
        rivals.setdefault(one, []).append(other)
        rivals.setdefault(other, []).append(one)
    sizes = np.bincount(label[label >= 0], minlength=label.max() + 1)
    kept = np.ones(len(sizes), bool)
    for index in np.argsort(-sizes, kind="stable").tolist():
        if kept[index]:
            kept[rivals.get(index, [])] = False
    return kept
