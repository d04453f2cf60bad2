"""What carrying keypoints over costs, on synthetic scenes with relief whose truth is known.

A labelled pair is wrong if the regions that its patches show overlap by less than half under the true
map, or if what the one shows is hidden from the other. A pair is missed if its regions overlap by half
or more, each is the other's best, their orientations agree, and it has no label: it was not matched, or
its class gave way to another in its guard zone.
"""

import tempfile
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.hpatches.jitter import overlaps
from lib.data.scenes.correspondences import Carried, Tolerance, classes, matches, near_pairs
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
# Px between the ends of a pair that may be missed.
_REACH = 16.0
_PHOTOGRAPHS = 3


def compute() -> Computed:
    """Wrong and missed pairs by relief and tolerance, and what carrying gets wrong in px.

    Returns:
        "{wrong|missed}/{depth}/{px}/{seed}" in percent, "{classes|right}/{depth}/{px}/{seed}" counts of
        classes and of right labelled pairs; "{x|y}/{depth}/{seed}", the medians of the coordinates of
        carrying's error (px). No arrays.
    """
    numbers = {}
    photographs = [photo for scene in SCENES[1:] for photo in packaged_photographs()[scene]]
    for depth, seed in product(DEPTHS, SEEDS):
        with tempfile.TemporaryDirectory() as name:
            folder, made = Path(name, "scene"), Path(name, "made")
            made.mkdir()
            site = write_relief(folder, photographs[:_PHOTOGRAPHS], seed, depth)
            prepare(folder, made)
            scene = open_scene(folder, made)
            for (counted, *pixels), value in (_bias(site, scene) | _labels(site, scene)).items():
                key = (counted, f"{depth:g}", *(f"{px:g}" for px in pixels), f"{seed}")
                numbers["/".join(key)] = float(value)
    return numbers, {}


def _bias(site: Site, scene: Scene) -> dict[tuple[str], float]:
    errors = []
    for first, second in permutations(range(len(scene.views)), 2):
        keypoints = scene.carried.keypoints[scene.carried.view == first]
        there, visible = carry(lift(scene.views[first], keypoints), scene.views[second])
        true, _, seen = truly_carried(site, first, second, keypoints)
        errors.append((there.position - true.position)[visible & seen])
    x, y = np.median(np.concatenate(errors), axis=0)
    return {("x",): x, ("y",): y}


def _labels(site: Site, scene: Scene) -> dict[tuple[str, float], float]:
    near = _true_overlaps(site, scene.carried)
    overlap = near.set_index(["first", "second"])["overlap"]
    best = near[near["turned"] & (near["overlap"] >= LEAST_OVERLAP)].sort_values("overlap")
    by_first = best.drop_duplicates(["first", "other"], keep="last")
    by_second = best.drop_duplicates(["second", "one"], keep="last")
    true = pd.MultiIndex.from_frame(pd.merge(by_first, by_second)[["first", "second"]])
    numbers = {}
    for pixels in TOLERANCES:
        label = classes(scene.carried, Tolerance(pixels))
        matched = matches(scene.carried, Tolerance(pixels))[["first", "second"]]
        ends = label[matched.to_numpy()]
        labelled = pd.MultiIndex.from_frame(matched[(ends[:, 0] >= 0) & (ends[:, 0] == ends[:, 1])])
        right = (overlap.reindex(labelled).fillna(0.0) >= LEAST_OVERLAP).sum()
        numbers["wrong", pixels] = 100 * (1 - right / len(labelled))
        numbers["missed", pixels] = 100 * (1 - true.isin(labelled).mean())
        numbers["classes", pixels] = label.max() + 1
        numbers["right", pixels] = right
    return numbers


def _true_overlaps(site: Site, carried: Carried) -> pd.DataFrame:
    """Pairs of keypoints of two views near each other under the true map, and how their regions overlap.

    Regions are what patches show; "turned" says that the orientations agree as `Tolerance` asks.
    """
    parts = []
    by_view = [np.flatnonzero(carried.view == view) for view in range(carried.view.max() + 1)]
    for (one, here), (other, there) in combinations(enumerate(by_view), 2):
        keypoints, detected = carried.keypoints[here], carried.keypoints[there]
        moved, affine, seen = truly_carried(site, one, other, keypoints)
        near = near_pairs(moved[seen], detected, _REACH)
        first, second = np.flatnonzero(seen)[near["source"]], near["target"].to_numpy()
        # Where the detected region is the unit disc.
        scale = detected.scale[second]
        linear = affine[first] * (keypoints.scale[first] / scale)[:, None, None]
        shift = (moved.position[first] - detected.position[second]) / (PATCH_WIDTH / 2 * scale)[:, None]
        overlap = overlaps(np.concatenate([linear, shift[:, :, None]], axis=2))
        pairs = {"first": here[first], "second": there[second], "one": one, "other": other}
        turned = near["angle"].to_numpy() <= Tolerance(0).angle
        parts.append(pd.DataFrame({**pairs, "overlap": overlap, "turned": turned}))
    return pd.concat(parts, ignore_index=True)
