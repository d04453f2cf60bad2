"""Prepare a scene once: its model, its keypoints, and which of them meet when carried between views.

The model is given, triangulated from known poses, or mapped by COLMAP. The patches of a place's prepared
scenes are written in PhotoTour's own layout, with two lists of test pairs.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pycolmap

from lib.data import colmap
from lib.data.cameras import read_strecha_cameras
from lib.data.images import read_grey
from lib.data.patchset import LabelledPairs
from lib.data.phototour import MATCHES, write_pairs, write_patches
from lib.data.scenes.correspondences import Scene, Tolerance, carried, classes
from lib.data.scenes.fit import LEAST_SHARE, shares_that_fit
from lib.data.scenes.places import CAMERAS, FEWEST_IMAGES, IMAGES, SPARSE, image_files
from lib.data.scenes.views import FEWEST_POINTS, angles_between, views_of
from lib.features.keypoints import Keypoints, dog_keypoints, one_a_place
from lib.features.patches import PATCH_WIDTH

# Px. A model that fits its images has a mean error of some tenths.
LARGEST_ERROR = 2.0
# Least contrast and scale (px) of a view's DoG keypoints, and how many of the strongest are kept.
CONTRAST, SMALLEST_SCALE = 0.01, 1.5
MOST_KEYPOINTS = 4000
# A second match file, with the two views of each class that are farthest apart by viewing angle.
WIDE_PAIRS = "wide.txt"
# Test pairs of each kind in a match file, at most. FPR95 takes all non-matching pairs, not these.
MOST_PAIRS = 50_000
FEWEST_CLASSES = 200
MODEL, _ARRAYS = "model", "carried.npz"
_COLUMNS = ("position", "scale", "orientation")


def reconstruction(scene: Path, work: Path) -> pycolmap.Reconstruction:
    """Return a scene's cameras, poses and sparse points, checked against its images, or an empty model.

    Args:
        scene: the scene's folder, which holds ``images`` alone or with ``sparse`` or ``cameras``.
        work: an existing empty folder for COLMAP's database and models.

    Raises:
        FileNotFoundError: an image that the model names, or the camera of an image, is missing.
        ValueError: the model is damaged or has no points with tracks, pycolmap does not know its camera
            model, two photographs are copies, images have another size than the model's, or
            poses contradict the images.
    """
    images = {path.name: path for path in image_files(scene)}
    sparse, cameras, photographs = scene / SPARSE, scene / CAMERAS, scene / IMAGES
    if sparse.is_dir():
        model = _largest_model(sparse)
        if not model.compute_num_observations():
            raise ValueError(f"{sparse} holds a model without points, or whose points have no tracks")
        # A copy that the model leaves out does no harm.
        named = {image.name for image in model.images.values()}
        _check_copies(path for name, path in images.items() if name in named)
    elif cameras.is_dir():
        posed = colmap.posed_model(read_strecha_cameras(images.values(), cameras))
        _check_copies(images.values())
        model, explained = colmap.triangulated(posed, photographs, work)
        if explained < colmap.LEAST_EXPLAINED:
            raise ValueError(f"{cameras} contradicts the images: {explained:.0%} of matches explained")
    else:
        _check_copies(images.values())
        model = colmap.mapped_photographs(photographs, list(images), work)
    for image in map(model.image, model.reg_image_ids()):
        if image.name not in images:
            why = f"{photographs / image.name} is missing, which the model names"
            if "/" in image.name:
                why += (
                    f"; {IMAGES} has no folders: put all photographs into {IMAGES} itself, give the "
                    "model's images these names (`image.name` in pycolmap) and write it again"
                )
            raise FileNotFoundError(why)
        colmap.check_size(images[image.name], image.camera)
        if not image.camera.mean_focal_length() > 0:
            kind = image.camera.model.name
            raise ValueError(f"{images[image.name]} is of a camera without a focal length, {kind}")
    model.update_point_3d_errors()
    if not (error := model.compute_mean_reprojection_error()) < LARGEST_ERROR:
        raise ValueError(f"{scene}: poses contradict the images: mean error {error:.1f} px")
    if sparse.is_dir():
        shares = shares_that_fit(model, images)
        if wrong := sorted(name for name, share in shares.items() if share < LEAST_SHARE):
            raise ValueError(
                f"{sparse} is of other pixels: a point looks no more like itself than like others in "
                f"{', '.join(wrong)}, or in images beside; were they renamed, turned or cropped?"
            )
    return model


def _check_copies(images: Iterable[Path]) -> None:
    """Refuse photographs with equal pixels, whose patches would be matching pairs without a difference.

    Grey values are compared, since patches show nothing else: bytes of copies differ as soon as one has
    been given a rating or another format. Reading them takes a small part of the time that mapping does.

    Raises:
        ValueError: two photographs are copies, or as `read_grey`.
    """
    known: dict[tuple[object, ...], Path] = {}
    for path in images:
        grey = read_grey(path, orientation="stored")
        first = known.setdefault((grey.shape, hashlib.sha256(grey).digest()), path)
        if first != path:
            raise ValueError(f"{first} and {path.name} are copies of one photograph: take one away")


def _largest_model(sparse: Path) -> pycolmap.Reconstruction:
    """Read a folder's model; of several in folders of their own, the one with the most images.

    COLMAP numbers its models in the order in which it began them, so 1 may hold more images than 0.
    """
    folders = [sparse]
    if not list(sparse.glob("cameras.*")):
        folders = sorted({cameras.parent for cameras in sparse.glob("*/cameras.*")}) or [sparse]
    models = []
    for folder in folders:
        try:
            models.append(pycolmap.Reconstruction(folder))
        except (ValueError, RuntimeError, IndexError) as error:
            raise ValueError(f"{folder} is no COLMAP model that pycolmap reads ({error})") from error
    return max(models, key=lambda model: model.num_reg_images())


def prepare(source: Path, folder: Path) -> None:
    """Prepare a scene: write its model, its keypoints, and which of them meet.

    Args:
        source: the scene's folder.
        folder: an existing empty folder to write to.

    Raises:
        FileNotFoundError, ValueError: as `reconstruction`, or too few images have a pose.
    """
    (folder / MODEL).mkdir()
    with tempfile.TemporaryDirectory(dir=folder) as work:
        model = reconstruction(source, Path(work))
    model.write(folder / MODEL)
    views = views_of(model)
    if len(views) < FEWEST_IMAGES:
        raise ValueError(f"{source}: {len(views)} images see {FEWEST_POINTS} points or more: too few")
    files = [source / IMAGES / view.name for view in views]
    keypoints = [keypoints_of(read_grey(file, orientation="stored")) for file in files]
    points, pairs = carried(views, keypoints)
    arrays = {name: np.concatenate([getattr(k, name) for k in keypoints]) for name in _COLUMNS}
    arrays["view"] = np.repeat(np.arange(len(views)), list(map(len, keypoints)))
    np.savez(folder / _ARRAYS, points=points, pairs=pairs.to_records(index=False), **arrays)


def keypoints_of(grey: np.ndarray) -> Keypoints:
    """Detect a (H, W) uint8 image's strongest DoG keypoints whose patches lie wholly inside it."""
    keypoints = one_a_place(dog_keypoints(grey, CONTRAST, SMALLEST_SCALE))
    radius = keypoints.scale[:, None] * PATCH_WIDTH / 2
    last = np.array(grey.shape[::-1]) - 1
    inside = (keypoints.position >= radius) & (keypoints.position <= last - radius)
    return keypoints[inside.all(axis=1)][:MOST_KEYPOINTS]


def open_scene(source: Path, folder: Path) -> Scene:
    """Open a scene that `prepare` has prepared."""
    views = tuple(views_of(pycolmap.Reconstruction(folder / MODEL)))
    images = tuple(source / IMAGES / view.name for view in views)
    left_out = tuple(path.name for path in image_files(source) if path not in images)
    with np.load(folder / _ARRAYS) as arrays:
        keypoints = Keypoints(*(arrays[name] for name in _COLUMNS))
        carried_over = arrays["view"], arrays["points"], pd.DataFrame(arrays["pairs"])
    return Scene(source.name, images, views, left_out, keypoints, *carried_over)


def write_images(folder: Path, scenes: Sequence[Scene]) -> None:
    """Write the patches of all keypoints of scenes, an array a scene, so that they are cut once."""
    for scene in scenes:
        np.save(folder / f"{scene.name}.npy", scene.patches(np.arange(len(scene.view_ids))))


def write_place(
    folder: Path,
    scenes: Sequence[Scene],
    tolerance: Tolerance,
    most_classes: int | None = None,
    seed: int = 0,
) -> None:
    """Write a place as a patch set.

    Args:
        folder: made if missing.
        scenes: the place's scenes, no two of which show the same thing.
        tolerance: tolerance within which keypoints show one point.
        most_classes: of more classes, so many are drawn once and kept; None keeps all.
        seed: seed of that draw and of the test pairs.

    Raises:
        ValueError: too few classes for test pairs; the message names the scenes.
    """
    views, columns = [], []
    rng = np.random.default_rng(seed)
    labels = _drawn([classes(scene, tolerance) for scene in scenes], most_classes, rng)

    def cut_scenes() -> Iterator[tuple[np.ndarray, ...]]:
        for scene, label in zip(scenes, labels, strict=True):
            keypoints = np.lexsort((scene.view_ids, label))
            keypoints = keypoints[label[keypoints] >= 0]
            image_ids = scene.view_ids[keypoints] + len(views)
            columns.append((image_ids, scene.points[keypoints]))
            frames = scene.keypoints[keypoints]
            frames = np.column_stack([frames.position, frames.orientation, np.log2(frames.scale)])
            yield scene.patches(keypoints), label[keypoints], image_ids, frames
            views.extend(scene.views)

    point_ids = write_patches(folder, cut_scenes())
    if (count := point_ids.max(initial=-1) + 1) < FEWEST_CLASSES:
        names = ", ".join(scene.name for scene in scenes)
        raise ValueError(f"{names}: {count} points are seen twice, {FEWEST_CLASSES} are needed")
    image_ids, points = map(np.concatenate, zip(*columns, strict=True))
    first, second = within_points(point_ids)
    means = pd.DataFrame(points).groupby(point_ids).transform("mean").to_numpy()
    angles = pd.Series(angles_between(views, image_ids[first], image_ids[second], means[first]))
    widest = angles.groupby(point_ids[first]).idxmax().to_numpy()
    shuffled = rng.permutation(len(first)), rng.permutation(widest)
    for file, matching in zip((MATCHES, WIDE_PAIRS), shuffled, strict=True):
        chosen = matching[:MOST_PAIRS]
        left, right = non_matching(point_ids, len(chosen), rng)
        match = np.arange(2 * len(chosen)) < len(chosen)
        pairs = LabelledPairs(np.r_[first[chosen], left], np.r_[second[chosen], right], match)
        write_pairs(folder, pairs, point_ids, file)


def _drawn(labels: Sequence[np.ndarray], most: int | None, rng: np.random.Generator) -> list[np.ndarray]:
    """Number the classes of several scenes from 0 on, and draw some of them if there are too many.

    Args:
        labels: for each scene, the class of each keypoint, from 0, or −1 for none.
        most: how many classes to keep; None keeps all.
        rng: for the draw.

    Returns:
        For each scene, the class of each keypoint, or −1.
    """
    counts = [label.max(initial=-1) + 1 for label in labels]
    kept = np.ones(sum(counts), bool)
    if most is not None and len(kept) > most:
        kept[rng.permutation(len(kept))[most:]] = False
    # The last entry is that of −1, no class.
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    starts = np.cumsum([0, *counts])
    return [
        number[np.where(label >= 0, label + start, -1)]
        for label, start in zip(labels, starts, strict=False)
    ]


def within_points(point_ids: np.ndarray) -> np.ndarray:
    """Return all (2, M) matching pairs: each patch with every later one of its point.

    A point's patches follow each other.
    """
    starts = np.flatnonzero(np.r_[True, point_ids[1:] != point_ids[:-1]])
    sizes = np.diff(np.r_[starts, len(point_ids)])
    pairs = [start + np.triu_indices(size, 1) for start, size in zip(starts, sizes, strict=True)]
    return np.concatenate(pairs, axis=1)


def non_matching(point_ids: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw (2, count) pairs of patches of different points that use every patch about equally often."""
    pairs = np.empty((2, 0), int)
    while pairs.shape[1] < count:
        shuffled = np.stack([rng.permutation(len(point_ids)) for _ in range(2)])
        pairs = np.c_[pairs, shuffled[:, np.not_equal(*point_ids[shuffled])]]
    return pairs[:, :count]
