"""How far keypoints are off that a scene's surface carries into another view. Of the data alone.

A fifth of the sparse points is left out, surfaces are spanned by the others, and where a view observes
one left out is carried to the other views that observe it. These points are what SIFT has matched:
elsewhere a surface may be worse.
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
from scipy.spatial import cKDTree

from lib.benchmarks.subject import Subject
from lib.data.scenes.correspondences import Tolerance, classes
from lib.data.scenes.prepared import Scene
from lib.data.scenes.sets import SHOWN, TRAINING, SceneImages
from lib.data.scenes.views import carry, lift
from lib.features.keypoints import Keypoints

# One of so many points is left out.
LEFT_OUT = 5
# Px between a keypoint and an observation.
TRACKED = 2.0


def measure(subject: Subject, place: SceneImages) -> dict[str, float]:
    """Errors of carrying, and counts of a place's scenes.

    Args:
        subject: ignored; every metric is passed one.
        place: its images.

    Returns:
        "median" in px; "beyond.{px}" in percent, for the tolerances `SHOWN`; "seen", percent of the
        observations left out that are carried at all; counts of "images", of images "left_out" of the
        models, of "sparse_points" and of "keypoints"; in percent, the keypoints "on_surface", those
        "tracked" (`tracked`), and of the labelled ones at the tolerance of training "labelled_tracked".
    """
    errors = np.concatenate([_errors(scene) for scene in place.scenes])
    carried = errors[np.isfinite(errors)]
    points = np.concatenate([scene.carried.points[:, 0] for scene in place.scenes])
    near = np.concatenate([tracked(scene) for scene in place.scenes])
    labels = [classes(scene.carried, Tolerance(TRAINING)) for scene in place.scenes]
    return {
        "median": float(np.median(carried)),
        **{f"beyond.{pixels:g}": float(100 * (carried > pixels).mean()) for pixels in SHOWN},
        "seen": float(100 * len(carried) / len(errors)),
        "images": sum(len(scene.views) for scene in place.scenes),
        "left_out": sum(len(scene.left_out) for scene in place.scenes),
        "sparse_points": sum(len(np.unique(_points(scene), axis=0)) for scene in place.scenes),
        "keypoints": len(points),
        "on_surface": float(100 * np.isfinite(points).mean()),
        "tracked": float(100 * near.mean()),
        "labelled_tracked": float(100 * near[np.concatenate(labels) >= 0].mean()),
    }


def tracked(scene: Scene) -> np.ndarray:
    """(N,) bool: which keypoints lie within `TRACKED` px of where their view observes a sparse point.

    There SIFT has matched what the surface is made of, so that labels lean towards them.
    """
    near = []
    for index, view in enumerate(scene.views):
        keypoints = scene.carried.keypoints.position[scene.carried.view == index]
        near.append(cKDTree(view.observed).query(keypoints)[0] <= TRACKED)
    return np.concatenate(near)


def _points(scene: Scene) -> np.ndarray:
    return np.concatenate([view.points for view in scene.views])


def _errors(scene: Scene) -> np.ndarray:
    """(E,) px of each observation left out carried to each other; NaN where it is not visible there."""
    _, track = np.unique(_points(scene), axis=0, return_inverse=True)
    away = np.random.default_rng(0).permutation(track.max() + 1) % LEFT_OUT == 0
    tracks = np.split(track, np.cumsum([len(view.points) for view in scene.views])[:-1])
    spanned, held = [], []
    for view, own in zip(scene.views, tracks, strict=True):
        kept = ~away[own]
        spanned.append(replace(view, points=view.points[kept], observed=view.observed[kept]))
        held.append((own[~kept], view.observed[~kept]))
    errors = [np.empty(0)]
    for first, second in permutations(range(len(spanned)), 2):
        (here, positions), (there, others) = held[first], held[second]
        _, one, other = np.intersect1d(here, there, return_indices=True)
        keypoints = Keypoints(positions[one], np.ones(len(one)), np.zeros(len(one)))
        carried, visible = carry(lift(spanned[first], keypoints), spanned[second])
        error = np.linalg.norm(carried.position - others[other], axis=1)
        errors.append(np.where(visible, error, np.nan))
    return np.concatenate(errors)
