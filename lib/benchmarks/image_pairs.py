"""Matching between photographs of a place: average precision, by tolerance and by viewing angle.

In each pair of images, the queries are the keypoints of the first that match one of the second by
geometry. The answer to a query is the nearest descriptor among all keypoints of the second. The query's
position there is known, so every keypoint elsewhere is a wrong answer, whatever is known about it.
Keypoints in the query's guard zone, other than its own match, are neither right nor wrong and are left
out. Answers are ranked by distance, as in HPatches' matching (`lib.benchmarks.hpatches`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lib.benchmarks.carrying_error import tracked
from lib.benchmarks.ranking import average_precision
from lib.benchmarks.subject import Subject
from lib.data.scenes.correspondences import GUARD, Scene, Tolerance, matches
from lib.data.scenes.sets import SHOWN
from lib.data.scenes.views import angles_between

# Queries of a pair of images; fewer say little.
FEWEST_QUERIES = 20
# Thirds of a place's pairs of images, by their median viewing angle.
THIRDS = ("narrow", "middle", "wide")
DRAWS = 2000
# How far the mean descriptor may be from zero, in standard deviations of the descriptors, before
# products lose digits that matter. Networks and SIFT are below 3, grey values about 6.
_LARGEST_OFFSET = 10


def measure(subject: Subject, test_set: Sequence[Scene]) -> dict[str, float]:
    """Compute the average precision of matching, the mean over pairs of images.

    Args:
        subject: the descriptor.
        test_set: the scenes of a place.

    Returns:
        In percent, for the tolerances `SHOWN` in px: "ap.{px}", with "ap.{px}.low" and "….high", a 95%
        interval by resampling images; "ap.{px}.{narrow|middle|wide}", by thirds of the pairs;
        "ap.{px}.untracked", of the queries that are not `tracked`. "queries.{px}" and "pairs" are
        counts. All tolerances use the same pairs: those with enough queries at the smallest.
        "angle.{narrow|middle|wide}" is a third's mean viewing angle in degrees. With too few pairs of
        images, nothing is measured.
    """
    rows = pd.concat([_scene(subject, scene) for scene in test_set], ignore_index=True)
    pair = ["scene", "first", "second"]
    pairs = rows[(rows["pixels"] == min(SHOWN)) & (rows["queries"] >= FEWEST_QUERIES)]
    if len(pairs) < len(THIRDS):
        return {}
    third = pd.qcut(pairs["angle"].rank(method="first"), len(THIRDS), labels=THIRDS)
    pairs = pairs.assign(third=third.astype(str))
    numbers = {"pairs": len(pairs)}
    numbers |= {f"angle.{name}": some["angle"].mean() for name, some in pairs.groupby("third")}
    for pixels, some in rows.merge(pairs[[*pair, "third"]], on=pair).groupby("pixels"):
        ap = f"ap.{pixels:g}"
        low, high = _interval(some)
        numbers |= {ap: some["ap"].mean(), f"{ap}.low": low, f"{ap}.high": high}
        numbers[f"{ap}.untracked"] = some["untracked"].mean()
        numbers[f"queries.{pixels:g}"] = some["queries"].sum()
        thirds = some.groupby("third")["ap"].mean()
        numbers |= {f"{ap}.{name}": mean for name, mean in thirds.items()}
    return {name: float(number) for name, number in numbers.items() if np.isfinite(number)}


def _scene(subject: Subject, scene: Scene) -> pd.DataFrame:
    """Return a row for each tolerance and pair of images: AP of all queries and of those not `tracked`,
    percent (NaN for too few), the number of queries, and their median viewing angle in degrees."""
    rows, near_track = [], tracked(scene)
    views = [np.flatnonzero(scene.view_ids == view) for view in range(len(scene.views))]
    described = np.concatenate([subject.describe(scene.patches(keypoints)) for keypoints in views])
    # Of bits a 0 or 1 each.
    is_bits = described.dtype == np.uint8
    numbers = np.unpackbits(described, axis=1) if is_bits else _without_offset(described)
    descriptors = torch.from_numpy(numbers.astype(np.float32))
    for pixels in SHOWN:
        matched = matches(scene, Tolerance(pixels))
        first, second = matched[["first", "second"]].to_numpy().T
        matched[["one", "other"]] = ends = scene.view_ids[np.column_stack([first, second])]
        matched["angle"] = np.degrees(angles_between(scene.views, *ends.T, scene.points[first]))
        guard = scene.pairs[Tolerance(pixels).admits(scene.pairs, GUARD)]
        near = dict(list(guard.groupby([scene.view_ids[guard[end]] for end in ("source", "target")])))
        for (one, other), some in matched.groupby(["one", "other"]):
            # Sorted by distance, so the nearest of a query's matches is kept.
            some = some.drop_duplicates("first")
            queries, targets = some["first"].tolist(), some["second"].tolist()
            every = torch.cdist(descriptors[queries], descriptors[views[other]])
            # Keypoints in a query's guard zone, other than its own match, are left out.
            zones = near[one, other].merge(some, left_on="source", right_on="first")
            zones = zones[zones["target"] != zones["second"]]
            asked = pd.Index(queries).get_indexer(zones["source"])
            every[asked, np.searchsorted(views[other], zones["target"])] = torch.inf
            distances, answers = every.min(dim=1)
            right = torch.from_numpy(views[other][answers] == targets)
            away, untracked = torch.from_numpy(~near_track[queries]), np.nan
            if (count := int(away.sum())) >= FEWEST_QUERIES:
                untracked = 100 * float(average_precision(distances[away], right[away], count))
            ap = 100 * float(average_precision(distances, right, len(queries)))
            angle = some["angle"].median()
            rows.append((scene.name, pixels, one, other, ap, untracked, len(queries), angle))
    columns = ["scene", "pixels", "first", "second", "ap", "untracked", "queries", "angle"]
    return pd.DataFrame(rows, columns=columns)


def _without_offset(descriptors: np.ndarray) -> np.ndarray:
    """Return descriptors (n, k) without the offset that all share, if it is large against their spread.

    torch.cdist takes squared distances as differences of products, in which a large offset drowns them.
    Other descriptors stay as they are, to the bit.
    """
    centre = descriptors.mean(axis=0, dtype=np.float64)
    spread = descriptors.var(axis=0, dtype=np.float64).sum()
    is_large = (centre**2).sum() > _LARGEST_OFFSET**2 * spread
    return descriptors - centre if is_large else descriptors


def _interval(pairs: pd.DataFrame) -> tuple[float, float]:
    """Return a 95% interval of the mean AP over resampled images: a pair weighs the product of draws."""
    rng = np.random.default_rng(0)
    names = [pairs["scene"] + "/" + pairs[end].astype(str) for end in ("first", "second")]
    images, ends = np.unique(np.concatenate(names), return_inverse=True)
    first, second = np.split(ends, 2)
    drawn = rng.multinomial(len(images), np.full(len(images), 1 / len(images)), DRAWS)
    weight = drawn[:, first] * drawn[:, second]
    weight = weight[weight.sum(axis=1) > 0]
    means = weight @ pairs["ap"].to_numpy() / weight.sum(axis=1)
    return tuple(np.percentile(means, [2.5, 97.5]))
