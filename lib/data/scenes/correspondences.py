"""Which keypoints of a scene's views show one point: carried over, within a tolerance, mutually.

Keypoints are found in each view by itself, and tracks of a structure-from-motion model make no labels:
they hold what SIFT has matched already. Surfaces are spanned by such tracks, though, and are most
precise near them, so that keypoints there are labelled more often than others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from lib.data.scenes.views import View, carry, lift
from lib.features.keypoints import Keypoints


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
    lifted = [lift(view, some) for view, some in zip(views, keypoints, strict=True)]
    parts = []
    for source, target in product(range(len(views)), repeat=2):
        if source == target:
            there, seen = keypoints[source], np.ones(counts[source], bool)
        else:
            there, seen = carry(lifted[source], views[target])
        near = near_pairs(there[seen], keypoints[target], GUARD * UBC.position)
        near = near[UBC.admits(near, GUARD)]
        near["source"] = np.flatnonzero(seen)[near["source"]] + starts[source]
        near["target"] += starts[target]
        parts.append(near[near["source"] != near["target"]])
    columns = zip(*((k.position, k.scale, k.orientation) for k in keypoints), strict=True)
    return Carried(
        Keypoints(*map(np.concatenate, columns)),
        np.repeat(np.arange(len(views)), counts),
        np.concatenate([surface.points for surface in lifted]),
        pd.concat(parts, ignore_index=True),
    )


def near_pairs(there: Keypoints, detected: Keypoints, reach: float) -> pd.DataFrame:
    """Pairs of carried keypoints and detected ones within so many px, with what lies between them.

    Returns:
        The columns of `Carried.pairs`, by source and then by target.
    """
    near = cKDTree(detected.position).query_ball_point(there.position, reach, return_sorted=True)
    source = np.repeat(np.arange(len(there)), [len(row) for row in near])
    target = np.array([index for row in near for index in row], int)
    turn = detected.orientation[target] - there.orientation[source]
    columns = {
        "source": source,
        "target": target,
        "position": np.linalg.norm(detected.position[target] - there.position[source], axis=1),
        "octaves": np.abs(np.log2(detected.scale[target] / there.scale[source])),
        "angle": np.abs((turn + np.pi) % (2 * np.pi) - np.pi),
    }
    return pd.DataFrame(columns)


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
    first, second = np.sort(pairs[["source", "target"]].to_numpy(), axis=1).T
    pairs = pd.DataFrame({"first": first, "second": second, "distance": pairs["position"]})
    pairs = pairs[scene.view[first] != scene.view[second]]
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
    pairs = list(matches(scene, tolerance)[["first", "second"]].itertuples(index=False, name=None))
    mutual = set(pairs)
    united = {index: [index] for pair in pairs for index in pair}
    for first, second in pairs:
        one, other = united[first], united[second]
        if one is not other and all((min(ends), max(ends)) in mutual for ends in product(one, other)):
            one += other
            united |= dict.fromkeys(other, one)
    label = np.full(len(scene.view), -1)
    groups = {min(members): members for members in united.values() if len(members) > 1}
    for number, smallest in enumerate(sorted(groups)):
        label[groups[smallest]] = number
    kept = _apart(scene, label, tolerance)
    # The last is of keypoints without a class.
    renumbered = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return renumbered[label]


def _apart(scene: Carried, label: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    """(C,) bool: classes that stay, of those of most keypoints first, none near another that does."""
    near = scene.pairs[tolerance.admits(scene.pairs, GUARD)]
    ends = label[near[["source", "target"]].to_numpy()]
    ends = ends[(ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])]
    rivals = defaultdict(list)
    for one, other in np.unique(np.concatenate([ends, ends[:, ::-1]]), axis=0).tolist():
        rivals[one].append(other)
    sizes = np.bincount(label[label >= 0], minlength=label.max() + 1)
    kept = np.ones(len(sizes), bool)
    for index in np.argsort(-sizes, kind="stable").tolist():
        if kept[index]:
            kept[rivals[index]] = False
    return kept
