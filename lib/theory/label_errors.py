"""What carrying keypoints over costs, on synthetic scenes with relief whose truth is known.

A labelled pair is wrong if the regions that its patches show overlap by less than half under the true
map, or if what the one shows is hidden from the other.
"""

import tempfile
from itertools import permutations, product
from pathlib import Path

import numpy as np

from lib.data.hpatches.jitter import overlaps
from lib.data.scenes.correspondences import Carried, Tolerance, classes, matches
from lib.data.scenes.prepared import Scene, open_scene, prepare
from lib.data.scenes.views import carry, lift
from lib.data.synthetic.allotment import SCENES, packaged_photographs
from lib.data.synthetic.scenes import Site
from lib.data.synthetic.walls import truly_carried, write_relief
from lib.features.patches import PATCH_WIDTH
from lib.theory import Computed

TOLERANCES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
# Of a facet, in its widths: none, that of a facade, and that of a rough wall.
DEPTHS = (0.0, 0.06, 0.15)
SEEDS = (0, 1, 2)
LEAST_OVERLAP = 0.5
_PHOTOGRAPHS = 3


def compute() -> Computed:
    """Wrong pairs by relief and tolerance, and what carrying gets wrong in px.

    Returns:
        "rows", one a relief, seed and tolerance: as of `labels`, with the "relief", the "seed", and the
        "bias" of the wall, the larger median of the two coordinates of carrying's error (px). No arrays.
    """
    rows = []
    photographs = [photo for scene in SCENES[1:] for photo in packaged_photographs()[scene]]
    for depth, seed in product(DEPTHS, SEEDS):
        with tempfile.TemporaryDirectory() as name:
            folder, made = Path(name, "scene"), Path(name, "made")
            made.mkdir()
            site = write_relief(folder, photographs[:_PHOTOGRAPHS], seed, depth)
            prepare(folder, made)
            scene = open_scene(folder, made)
            wall = {"relief": depth, "seed": seed, "bias": _bias(site, scene)}
            rows += [wall | row for row in labels(site, scene)]
    return {"rows": rows}, {}


def _bias(site: Site, scene: Scene) -> float:
    errors = []
    for first, second in permutations(range(len(scene.views)), 2):
        keypoints = scene.carried.keypoints[scene.carried.view == first]
        there, visible = carry(lift(scene.views[first], keypoints), scene.views[second])
        true, _, seen = truly_carried(site, first, second, keypoints)
        errors.append((there.position - true.position)[visible & seen])
    return float(np.abs(np.median(np.concatenate(errors), axis=0)).max())


def labels(site: Site, scene: Scene) -> list[dict[str, float]]:
    """By tolerance "px" how many "classes" there are, and of their pairs how many are "right" and, in
    percent, "wrong"."""
    rows, carried = [], scene.carried
    for pixels in TOLERANCES:
        label = classes(carried, Tolerance(pixels))
        pairs = matches(carried, Tolerance(pixels))[["first", "second"]].to_numpy()
        ends = label[pairs]
        labelled = pairs[(ends[:, 0] >= 0) & (ends[:, 0] == ends[:, 1])]
        right = int((_true_overlaps(site, carried, labelled) >= LEAST_OVERLAP).sum())
        wrong = 100 * (1 - right / len(labelled))
        rows.append({"px": pixels, "classes": int(label.max()) + 1, "right": right, "wrong": wrong})
    return rows


def _true_overlaps(site: Site, carried: Carried, pairs: np.ndarray) -> np.ndarray:
    """(M,) how much the regions that patches show overlap under the true map, of pairs (M, 2) of
    keypoints; 0 where what the first shows is hidden from the other view."""
    overlap, views = np.zeros(len(pairs)), carried.view[pairs]
    for one, other in np.unique(views, axis=0):
        rows = np.flatnonzero((views == (one, other)).all(axis=1))
        keypoints, detected = (carried.keypoints[end] for end in pairs[rows].T)
        moved, affine, seen = truly_carried(site, one, other, keypoints)
        # Where the detected region is the unit disc.
        linear = affine * (keypoints.scale / detected.scale)[:, None, None]
        shift = (moved.position - detected.position) / (PATCH_WIDTH / 2 * detected.scale)[:, None]
        maps = np.concatenate([linear, shift[:, :, None]], axis=2)
        overlap[rows[seen]] = overlaps(maps[seen])
    return overlap
