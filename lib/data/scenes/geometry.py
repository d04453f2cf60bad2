"""A scene's cameras and sparse points: as given, triangulated from known poses, or mapped by COLMAP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pycolmap

from lib.data import colmap
from lib.data.images import read_image
from lib.data.scenes.places import CAMERAS, IMAGES, SPARSE, image_files
from lib.data.strecha import read_strecha_cameras

# Px. A model that explains its own images has some tenths.
LARGEST_ERROR = 2.0


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
        model = colmap.read_model(sparse if list(sparse.glob("cameras.*")) else sparse / "0")
    elif cameras.is_dir():
        posed = colmap.posed_model(read_strecha_cameras(images.values(), cameras))
        model, explained = colmap.triangulated(posed, photographs, work)
        if explained < colmap.LEAST_EXPLAINED:
            raise ValueError(f"{cameras} contradicts the images: {explained:.0%} of matches explained")
    else:
        mapped = colmap.mapped_photographs(photographs, list(images), work)
        model = mapped or pycolmap.Reconstruction()
    _check(scene, model, images)
    return model


def _check(scene: Path, model: pycolmap.Reconstruction, images: Mapping[str, Path]) -> None:
    for image in map(model.image, model.reg_image_ids()):
        if image.name not in images:
            raise FileNotFoundError(f"{scene / IMAGES / image.name} is missing, which the model names")
        size = read_image(images[image.name], header_only=True).size
        stated = image.camera.width, image.camera.height
        if size != stated or not image.camera.mean_focal_length() > 0:
            raise ValueError(f"{images[image.name]} is {size} px and fits no camera of {stated} px")
    model.update_point_3d_errors()
    if not (error := model.compute_mean_reprojection_error()) < LARGEST_ERROR:
        raise ValueError(f"{scene}: poses contradict the images: mean error {error:.1f} px")
