"""A scene prepared once: its model, its keypoints, and which of them meet when carried between views.

The model is as given, triangulated from known poses, or mapped by COLMAP.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pycolmap

from lib.data import colmap
from lib.data.cameras import read_strecha_cameras
from lib.data.images import read_grey, read_image
from lib.data.scenes.correspondences import Scene, carried
from lib.data.scenes.places import CAMERAS, FEWEST_IMAGES, IMAGES, SPARSE, image_files
from lib.data.scenes.views import FEWEST_POINTS, views_of
from lib.data.synthetic.scenes import CONTRAST, SMALLEST_SCALE
from lib.features.keypoints import Keypoints, dog_keypoints, one_a_place
from lib.features.patches import PATCH_WIDTH

# Px. A model that explains its own images has some tenths.
LARGEST_ERROR = 2.0
# Of a view, the strongest.
MOST_KEYPOINTS = 4000
_MODEL, _ARRAYS = "model", "carried.npz"
_COLUMNS = ("position", "scale", "orientation")


def reconstruction(scene: Path, work: Path) -> pycolmap.Reconstruction:
    """The cameras, poses and sparse points of a scene, checked against its images, or none at all.

    Args:
        scene: the folder: ``images`` with ``sparse``, with ``cameras``, or alone.
        work: an existing empty folder for COLMAP's database and models.

    Raises:
        FileNotFoundError: images are missing that the model names, or a camera of an image.
        ValueError: a damaged model, a camera model that pycolmap does not know, images of
            another size than the model's, or poses that contradict the images.
    """
    images = {path.name: path for path in image_files(scene)}
    sparse, cameras, photographs = scene / SPARSE, scene / CAMERAS, scene / IMAGES
    if sparse.is_dir():
        folder = sparse if list(sparse.glob("cameras.*")) else sparse / "0"
        try:
            model = pycolmap.Reconstruction(folder)
        except (ValueError, RuntimeError, IndexError) as error:
            raise ValueError(f"{folder} is no COLMAP model that pycolmap reads ({error})") from error
    elif cameras.is_dir():
        posed = colmap.posed_model(read_strecha_cameras(images.values(), cameras))
        model, explained = colmap.triangulated(posed, photographs, work)
        if explained < colmap.LEAST_EXPLAINED:
            raise ValueError(f"{cameras} contradicts the images: {explained:.0%} of matches explained")
    else:
        model = colmap.mapped_photographs(photographs, list(images), work)
    for image in map(model.image, model.reg_image_ids()):
        if image.name not in images:
            raise FileNotFoundError(f"{photographs / image.name} is missing, which the model names")
        size = read_image(images[image.name], header_only=True).size
        stated = image.camera.width, image.camera.height
        if size != stated or not image.camera.mean_focal_length() > 0:
            raise ValueError(f"{images[image.name]} is {size} px and fits no camera of {stated} px")
    model.update_point_3d_errors()
    if not (error := model.compute_mean_reprojection_error()) < LARGEST_ERROR:
        raise ValueError(f"{scene}: poses contradict the images: mean error {error:.1f} px")
    return model


def prepare(source: Path, folder: Path) -> None:
    """Prepare a scene: its model, its keypoints, and which of them meet.

    Args:
        source: the scene's folder.
        folder: an existing empty one.

    Raises:
        FileNotFoundError, ValueError: as `reconstruction`, or too few images have a pose.
    """
    (folder / _MODEL).mkdir()
    with tempfile.TemporaryDirectory(dir=folder) as work:
        model = reconstruction(source, Path(work))
    model.write(folder / _MODEL)
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
    """The strongest DoG keypoints of a (H, W) uint8 image whose patches lie wholly inside it."""
    keypoints = one_a_place(dog_keypoints(grey, CONTRAST, SMALLEST_SCALE))
    radius = keypoints.scale[:, None] * PATCH_WIDTH / 2
    last = np.array(grey.shape[::-1]) - 1
    inside = (keypoints.position >= radius) & (keypoints.position <= last - radius)
    return keypoints[inside.all(axis=1)][:MOST_KEYPOINTS]


def open_scene(source: Path, folder: Path) -> Scene:
    """A scene that `prepare` has prepared."""
    views = tuple(views_of(pycolmap.Reconstruction(folder / _MODEL)))
    images = tuple(source / IMAGES / view.name for view in views)
    left_out = tuple(path.name for path in image_files(source) if path not in images)
    with np.load(folder / _ARRAYS) as arrays:
        keypoints = Keypoints(*(arrays[name] for name in _COLUMNS))
        carried_over = arrays["view"], arrays["points"], pd.DataFrame(arrays["pairs"])
    return Scene(source.name, images, views, left_out, keypoints, *carried_over)
