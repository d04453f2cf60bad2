"""Small inputs for the golden values of measures, made of random numbers, and descriptors that need no
network, so that the values depend on the measures alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import cv2
import known_cameras
import known_scenes
import numpy as np
from small_files import write_oxford_sequence

from lib.benchmarks.sfm import ImageSubject
from lib.benchmarks.subject import Subject
from lib.data.colmap import posed_model
from lib.data.hpatches.homographies import HomographySequence, read_homography_sequence
from lib.data.hpatches.tasks import HPatchesSplit, Tasks
from lib.data.patchset import LabelledPairs, PatchSet
from lib.data.scenes.correspondences import Scene, carried
from lib.data.scenes.views import carry, lift
from lib.data.whole_images import ChallengeScene, City, EthScene, PatchPair, Query
from lib.features.keypoints import Keypoints

PROJECTION = np.random.default_rng(7).choice([-1.0, 1.0], (256, 32))


def patch_set(seed: int, classes: int, shift: float = 0.04, noise: float = 6.0) -> PatchSet:
    """Return shifted, noisy views of random blobs, 2 and 5 patches of a point in turn.

    Args:
        seed: seed of NumPy's generator.
        classes: number of points.
        shift: standard deviation of the shifts, in half patches.
        noise: standard deviation of the noise, in grey levels.
    """
    rng = np.random.default_rng(seed)
    counts = np.where(np.arange(classes) % 2, 5, 2)
    y, x = np.mgrid[-1:1:64j, -1:1:64j]
    patches = []
    for count in counts:
        centres, sizes = rng.uniform(-0.8, 0.8, (6, 2)), rng.uniform(0.1, 0.4, 6)
        greys = rng.uniform(-70, 70, 6)
        for _ in range(count):
            dx, dy = rng.normal(0, shift, 2)
            apart = [(x - a - dx) ** 2 + (y - b - dy) ** 2 for a, b in centres]
            blobs = sum(g * np.exp(-d / s**2) for g, d, s in zip(greys, apart, sizes, strict=True))
            patches.append(128 + blobs + rng.normal(0, noise, (64, 64)))
    ids = np.repeat(np.arange(classes), counts)
    return PatchSet("golden", np.clip(patches, 0, 255).astype(np.uint8), ids, None, None)


def labelled_set() -> PatchSet:
    """Return a patch set with all pairs of a point, and four times as many other ones."""
    made, rng = patch_set(1, 60, shift=0.1, noise=30.0), np.random.default_rng(2)
    first, second = np.array(list(combinations(range(len(made.patches)), 2))).T
    match = made.point_ids[first] == made.point_ids[second]
    other = rng.permutation(np.flatnonzero(~match))[: 4 * match.sum()]
    taken = np.sort(np.concatenate([np.flatnonzero(match), other]))
    return replace(made, pairs=LabelledPairs(first[taken], second[taken], match[taken]))


def projected(patches: np.ndarray) -> np.ndarray:
    """Return unit descriptors (m, 32) of patches (m, 64, 64): a projection of their 16×16 cells.

    All sums are of whole numbers or of 256ths, so they are exact in any order.
    """
    cells = patches.reshape(-1, 16, 4, 16, 4).astype(float).sum(axis=(2, 4)).reshape(-1, 256)
    values = (cells - cells.mean(axis=1, keepdims=True)) @ PROJECTION
    lengths = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
    return (values / np.maximum(lengths, 1e-6)).astype(np.float32)


@dataclass(frozen=True)
class Patches65:
    """A sequence of HPatches' release in memory: 16 files of the same 24 spots, jittered by level."""

    name: str
    kind: str
    seed: int
    count: int = 24

    def patches(self, file: str) -> np.ndarray:
        """Return (24, 65, 65) uint8."""
        level = {"r": 0.0, "e": 0.4, "h": 0.8, "t": 1.2}[file[0]]
        spots = patch_set(self.seed, self.count, shift=0.0, noise=0.0)
        spots = spots.patches[np.unique(spots.point_ids, return_index=True)[1]].astype(float)
        rng = np.random.default_rng([self.seed, *file.encode()])
        jittered = [
            np.roll(spot, tuple(rng.integers(-9, 10, 2) * level // 1), axis=(0, 1)) for spot in spots
        ]
        noisy = np.clip(jittered + rng.normal(0, 5 + 30 * level, spots.shape), 0, 255)
        return np.pad(noisy, ((0, 0), (0, 1), (0, 1)), mode="edge").astype(np.uint8)


def hpatches_split() -> HPatchesSplit:
    """Return three sequences of 24 spots, with 60 pairs of each kind, 30 queries and 50 distractors."""
    sequences = tuple(
        Patches65(f"{kind[0]}_{name}", kind, seed)
        for seed, (name, kind) in enumerate(
            [("a", "viewpoint"), ("b", "illumination"), ("c", "viewpoint")]
        )
    )
    rng, pairs = np.random.default_rng(3), {}
    for kind in ("positives", "intra", "inter"):
        sequence, patch = rng.integers(0, 3, (2, 60)), rng.integers(0, 24, 60)
        images = np.array([rng.permutation(5)[:2] for _ in range(60)])
        other = (sequence[0] + rng.integers(1, 3, 60)) % 3 if kind == "inter" else sequence[0]
        moved = patch if kind == "positives" else (patch + rng.integers(1, 24, 60)) % 24
        ends = [(sequence[0], images[:, 0], patch), (other, images[:, 1], moved)]
        pairs[kind] = np.stack([np.stack(end, axis=1) for end in ends], axis=1)
    every = np.stack(np.meshgrid(np.arange(3), np.arange(24), indexing="ij"), axis=-1).reshape(-1, 2)
    queries, distractors = (rng.permutation(every)[:n] for n in (30, 50))
    return HPatchesSplit("golden", sequences, Tasks(**pairs, queries=queries, distractors=distractors))


def w1bs_pairs() -> dict[tuple[str, str], PatchPair]:
    """Return three pairs of two subsets, 30 patches of 41 px a side."""
    pairs = {}
    for seed, key in enumerate([("A", "one"), ("A", "two"), ("G", "one")]):
        made = patch_set(10 + seed, 30, shift=0.12, noise=30.0)
        first = np.unique(made.point_ids, return_index=True)[1]
        pairs[key] = made.patches[first, 11:52, 11:52], made.patches[first + 1, 11:52, 11:52]
    return pairs


def homography_sequences(folder: Path) -> list[HomographySequence]:
    """Write two sequences of a texture in Oxford's layout, a blur and a viewpoint, and open them."""
    rng, sequences = np.random.default_rng(4), []
    for name in ("blur_cloth", "viewpoint_cloth"):
        image = cv2.GaussianBlur(rng.uniform(0, 255, (200, 240)), (0, 0), 1.8)
        image = cv2.normalize(image, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
        images, homographies = [image], []
        for number in range(1, 6):
            strength = number if name.startswith("viewpoint") else 0
            homography = np.eye(3)
            homography[0, 1], homography[1, 0] = 0.03 * strength, -0.02 * strength
            homography[:2, 2] = 2 * strength, -strength
            homography[2, 0] = 2e-5 * strength
            view = cv2.warpPerspective(image, homography, (240, 200), flags=cv2.INTER_LINEAR)
            if not strength:
                view = cv2.GaussianBlur(view, (0, 0), 0.4 * number)
            images.append(view)
            homographies.append(homography)
        write_oxford_sequence(folder / name, images, homographies)
        sequences.append(read_homography_sequence(folder / name))
    return sequences


def scene() -> known_scenes.Marked:
    """Return three views of a plane with noisy sparse points and noisy keypoints on it."""
    rng = np.random.default_rng(5)
    views = [
        replace(view, observed=view.observed + rng.normal(0, 1.2, view.observed.shape))
        for view in known_scenes.plane_views()
    ]
    spots = known_scenes.keypoints(known_scenes.grid(28))
    keypoints = []
    for view in views:
        moved, visible = spots, np.ones(len(spots), bool)
        if view is not views[0]:
            moved, visible = carry(spots, lift(views[0], spots), view)
        shown = moved[np.flatnonzero(visible)]
        position = shown.position + rng.normal(0, 0.7, shown.position.shape)
        keypoints.append(replace(shown, position=position))
    points, pairs = carried(views, keypoints)
    view_ids = np.repeat(np.arange(len(views)), list(map(len, keypoints)))
    fields = (
        np.concatenate([getattr(each, name) for each in keypoints])
        for name in ("position", "scale", "orientation")
    )
    images = tuple(Path(view.name) for view in views)
    return known_scenes.Marked(
        "golden", images, tuple(views), ("0009.png",), Keypoints(*fields), view_ids, points, pairs
    )


def numbered_keypoints(made: Scene) -> Subject:
    """Return descriptors of a scene's keypoints: their points in the world, with noise, in 24 waves."""
    rng = np.random.default_rng(6)
    waves = np.sin(np.nan_to_num(made.points) @ rng.normal(0, 3, (3, 24)) + rng.uniform(0, 6, 24))
    described = (waves + rng.normal(0, 0.55, waves.shape)).round(3).astype(np.float32)
    return Subject(lambda patches: described[known_scenes.numbers(patches)])


@dataclass(frozen=True)
class Pictured:
    """Points in a cube as photographed by cameras on an arc.

    Attributes:
        images: image files by name; each is grey, of a level that is the camera's number.
        subject: the points' pixels in each image with noise, and their descriptors; a tenth are wrong.
    """

    images: dict[str, Path]
    subject: ImageSubject


def pictured(folder: Path, count: int = 5) -> Pictured:
    """Photograph 120 points with the first cameras of `known_cameras`."""
    folder.mkdir(parents=True)
    rng, world = np.random.default_rng(8), known_cameras.points(120)
    own = rng.normal(0, 1, (120, 16))
    images, seen = {}, []
    for number, camera in enumerate(known_cameras.cameras(count)):
        name = f"{number:04}"
        images[name] = folder / f"{name}.png"
        cv2.imwrite(str(images[name]), np.full((camera.height, camera.width), number, np.uint8))
        position = known_cameras.project(camera, world) + rng.normal(0, 0.3, (120, 2))
        described = own + rng.normal(0, 0.35, own.shape)
        wrong = rng.random(120) < 0.1
        described[wrong] = rng.permutation(described[wrong])
        keypoints = Keypoints(position, np.full(120, 2.0), np.zeros(120))
        seen.append((keypoints, described.astype(np.float32)))
    return Pictured(images, ImageSubject(projected, of_image=lambda grey: seen[grey[0, 0]]))


def eth_scenes(made: Pictured) -> list[EthScene]:
    """Return one scene with known cameras and poses."""
    cameras = known_cameras.cameras(len(made.images))
    known = posed_model(dict(zip(made.images, cameras, strict=True)))
    calibrated = {image.name: image.camera for image in known.images.values()}
    return [EthScene("golden", made.images, calibrated, known)]


def challenge_scenes(made: Pictured) -> list[ChallengeScene]:
    """Return one scene with all pairs, two subsets of three photographs and one of all."""
    names = sorted(made.images)
    cameras = dict(zip(names, known_cameras.cameras(len(names)), strict=True))
    pairs = tuple((second, first) for first, second in combinations(names, 2))
    bags = (tuple(names[:3]), tuple(names[2:]), tuple(names))
    return [ChallengeScene("golden", made.images, cameras, pairs, bags)]


def cities(folder: Path) -> tuple[dict[str, City], ImageSubject]:
    """Return two cities of 12 photographs of three landmarks among clutter, and their features."""
    rng, made, seen = np.random.default_rng(9), {}, []
    for city in ("oxford5k", "paris6k"):
        (folder / city).mkdir(parents=True)
        landmarks = [(rng.uniform(-80, 80, (50, 2)), rng.normal(0, 1, (50, 16))) for _ in range(3)]
        images, boxes = {}, {}
        for number in range(12):
            name, (layout, own) = f"{number:02}", landmarks[number % 3]
            images[name] = folder / city / f"{name}.png"
            cv2.imwrite(str(images[name]), np.full((300, 400), len(seen), np.uint8))
            turn, size = rng.uniform(-0.3, 0.3), rng.uniform(0.7, 1.3)
            cosine, sine = size * np.cos(turn), size * np.sin(turn)
            middle = rng.uniform((150, 120), (250, 180))
            position = layout @ np.array([[cosine, -sine], [sine, cosine]]).T + middle
            boxes[name] = (*position.min(axis=0), *position.max(axis=0))
            clutter = rng.uniform((0, 0), (400, 300), (60, 2))
            described = np.concatenate([own + rng.normal(0, 0.9, own.shape), rng.normal(0, 1, (60, 16))])
            scale, orientation = np.full(110, 2.0 * size), np.full(110, turn)
            keypoints = Keypoints(np.concatenate([position, clutter]), scale, orientation)
            seen.append((keypoints, described.astype(np.float32)))
        made[city] = City(images, tuple(_queries(list(images), boxes)))
    return made, ImageSubject(projected, of_image=lambda grey: seen[grey[0, 0]])


def _queries(names: Sequence[str], boxes: dict[str, tuple[float, ...]]) -> list[Query]:
    """Return a query for each landmark; its last photograph counts as junk."""
    queries = []
    for landmark in range(3):
        first, *others, last = names[landmark::3]
        good, ok = frozenset(others[:1]), frozenset(others[1:])
        queries.append(Query(f"tower_{landmark}", first, boxes[first], good, ok, frozenset([last])))
    return queries
