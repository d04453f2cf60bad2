"""Errors of keypoints that a scene's surface carries into another view. They need no descriptor.

A fifth of the sparse points is left out, and the others span the surfaces. Each observation of a
left-out point is carried into the other views that observe it. SIFT has matched all of these points;
elsewhere a surface may be worse.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
from scipy.spatial import cKDTree

from lib.benchmarks.subject import Subject
from lib.data.scenes.correspondences import Scene, Tolerance, classes
from lib.data.scenes.sets import SHOWN, TRAINING
from lib.data.scenes.views import carry, lift
from lib.features.keypoints import Keypoints

# One point in this many is left out.
LEFT_OUT = 5
# Largest distance between a keypoint and an observation, px.
TRACKED = 2.0


def measure(subject: Subject, test_set: Sequence[Scene]) -> dict[str, float]:
    """Measure the errors of carrying, and count what a place's scenes hold.

    Args:
        subject: ignored; every metric is passed one.
        test_set: the scenes of a place.

    Returns:
        "median" in px; "beyond.{px}" in percent, for the tolerances `SHOWN`; "seen", percent of the
        left-out observations that are carried at all; counts of "images", of images "left_out" of the
        models, of "sparse_points" and of "keypoints"; in percent, the keypoints "on_surface", those
        "tracked" (`tracked`), and "labelled_tracked", the tracked ones of those labelled at training's
        tolerance.
    """
    errors = np.concatenate(list(map(_errors, test_set)))
    carried = errors[np.isfinite(errors)]
    on_surface = np.isfinite(np.concatenate([scene.points[:, 0] for scene in test_set]))
    near = np.concatenate(list(map(tracked, test_set)))
    labels = np.concatenate([classes(scene, Tolerance(TRAINING)) for scene in test_set])
    return {
        "median": np.median(carried),
        **{f"beyond.{pixels:g}": 100 * (carried > pixels).mean() for pixels in SHOWN},
        "seen": 100 * len(carried) / len(errors),
        "images": sum(len(scene.views) for scene in test_set),
        "left_out": sum(len(scene.left_out) for scene in test_set),
        "sparse_points": sum(len(np.unique(_points(scene), axis=0)) for scene in test_set),
        "keypoints": len(near),
        "on_surface": 100 * on_surface.mean(),
        "tracked": 100 * near.mean(),
        "labelled_tracked": 100 * near[labels >= 0].mean(),
    }


def tracked(scene: Scene) -> np.ndarray:
    """Return (N,) bool: which keypoints lie within `TRACKED` px of a sparse point their view observes.

    The surface is made of these points, which SIFT has matched, so labels lean towards such keypoints.
    """
    near = np.empty(len(scene.view_ids), bool)
    for index, view in enumerate(scene.views):
        members = scene.view_ids == index
        near[members] = cKDTree(view.observed).query(scene.keypoints.position[members])[0] <= TRACKED
    return near


def _points(scene: Scene) -> np.ndarray:
    return np.concatenate([view.points for view in scene.views])


def _errors(scene: Scene) -> np.ndarray:
    """Return (E,) px errors of each left-out observation carried to each other one; NaN if invisible."""
    _, track = np.unique(_points(scene), axis=0, return_inverse=True)
    away = np.random.default_rng(0).permutation(track.max() + 1) % LEFT_OUT == 0
    tracks = np.split(track, np.cumsum([len(view.points) for view in scene.views])[:-1])
    spanned, held = [], []
    for view, own in zip(scene.views, tracks, strict=True):
        kept = ~away[own]
        spanned.append(replace(view, points=view.points[kept], observed=view.observed[kept]))
        held.append((own[~kept], view.observed[~kept]))
    errors = []
    for first, second in permutations(range(len(spanned)), 2):
        (here, positions), (there, others) = held[first], held[second]
        _, one, other = np.intersect1d(here, there, return_indices=True)
        keypoints = Keypoints(positions[one], np.ones(len(one)), np.zeros(len(one)))
        lifted = lift(spanned[first], keypoints)
        carried, visible = carry(keypoints, lifted, spanned[second])
        error = np.linalg.norm(carried.position - others[other], axis=1)
        errors.append(np.where(visible, error, np.nan))
    return np.concatenate(errors)
