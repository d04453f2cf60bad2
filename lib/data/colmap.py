"""COLMAP (Schönberger and Frahm, CVPR 2016) through pycolmap: cameras, databases, matches and models.

Everything runs from one seed, and on one thread where the number of threads would change the bits of the
result. In COLMAP, the first pixel's centre is at 0.5, 0.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path

import numpy as np
import pycolmap

from lib.data.cameras import Camera
from lib.data.images import read_image

HALF_PIXEL = 0.5
DATABASE = "database.db"
# Otherwise COLMAP logs every step to stderr.
pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
# Fewest images for COLMAP to keep a further model; its default of 10 is too many for a small folder.
# COLMAP always keeps its first model, so models of two images occur.
SMALLEST_MODEL = 3
# Least share of verified matches that points triangulated from given poses must explain; they explain
# about 0.8 if the poses fit.
LEAST_EXPLAINED = 0.3
_VERIFICATION = pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0})
# Pixels within which a match counts as at rest, as in COLMAP.
_AT_REST = _VERIFICATION.stationary_matches_max_error
# A pair of images has moved if a quarter of its matches have moved by more, px.
_MOVED = 20.0


def posed_model(cameras: Mapping[str, Camera]) -> pycolmap.Reconstruction:
    """Build a model, without points, of images by name; images with the same lens share a camera."""
    model, numbers = pycolmap.Reconstruction(), {}
    for image_id, (name, camera) in enumerate(cameras.items(), 1):
        focal_lengths, middle = np.diag(camera.intrinsics)[:2], camera.intrinsics[:2, 2] + HALF_PIXEL
        lens = {"width": camera.width, "height": camera.height, "params": (*focal_lengths, *middle)}
        camera_id = numbers.setdefault(tuple(lens.values()), len(numbers) + 1)
        if camera_id not in model.cameras:
            known = {"camera_id": camera_id, "model": "PINHOLE", "has_prior_focal_length": True}
            model.add_camera_with_trivial_rig(pycolmap.Camera(**known, **lens))
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(camera.rotation), camera.translation)
        image = pycolmap.Image(image_id=image_id, camera_id=camera_id, name=name)
        model.add_image_with_trivial_frame(image, pose)
    return model


def check_size(image: Path, camera: pycolmap.Camera) -> None:
    """Refuse an image that has another size than its camera's images.

    Raises:
        FileNotFoundError: the image is missing.
        ValueError: it has another size, or is no image; the message names it.
    """
    size, stated = read_image(image, header_only=True).size, (camera.width, camera.height)
    if size != stated:
        raise ValueError(f"{image} is {size} px and fits no camera of {stated} px")


def write_database(database: Path, cameras: Mapping[str, pycolmap.Camera]) -> dict[str, int]:
    """Write a new database of images and their cameras, without features.

    Args:
        database: the file to make.
        cameras: cameras by image name; images with the same camera id share a camera.

    Returns:
        The images' ids by name, from 1 up in order of names.
    """
    numbers = {}
    with pycolmap.Database.open(database) as opened:
        for name, camera in sorted(cameras.items()):
            if not opened.exists_camera(camera.camera_id):
                opened.write_camera(camera, use_camera_id=True)
            numbers[name] = opened.write_image(pycolmap.Image(name=name, camera_id=camera.camera_id))
    return numbers


def _match_by_sift(database: Path, images: Path) -> None:
    """Extract COLMAP's SIFT features from the images of a database; match and verify all pairs."""
    pycolmap.set_random_seed(0)
    cpu = pycolmap.Device.cpu
    pycolmap.extract_features(database, images, device=cpu)
    pycolmap.match_exhaustive(database, verification_options=_VERIFICATION, device=cpu)


def triangulated(
    posed: pycolmap.Reconstruction, images: Path, work: Path
) -> tuple[pycolmap.Reconstruction, float]:
    """Triangulate points from SIFT matches and known poses; also return the share of matches explained.

    COLMAP leaves out points that only two images see. With a few views far apart, these may be most of
    the points, so they are kept if the others explain less than `LEAST_EXPLAINED` of verified matches.

    Args:
        posed: a model from `posed_model`, with its images in order of names.
        images: the images' folder.
        work: an existing empty folder for COLMAP's files.
    """
    database = work / DATABASE
    write_database(database, {image.name: image.camera for image in posed.images.values()})
    _match_by_sift(database, images)
    with pycolmap.Database.open(database) as opened:
        geometries = opened.read_two_view_geometries()[1]
    verified = sum(len(geometry.inlier_matches) for geometry in geometries)
    options = _mapping_options()
    for ignored in (True, False):
        options.triangulation.ignore_two_view_tracks = ignored
        model = pycolmap.triangulate_points(posed, database, images, work, options=options)
        # A track of n keypoints explains n (n - 1) / 2 matches.
        tracks = np.array([point.track.length() for point in model.points3D.values()], int)
        explained = float((tracks * (tracks - 1) / 2).sum()) / verified if verified else 1.0
        if explained >= LEAST_EXPLAINED:
            break
    return model, explained


def mapped_photographs(images: Path, names: Sequence[str], work: Path) -> pycolmap.Reconstruction:
    """Map the named images of a folder as `mapped` does, from the SIFT matches of all pairs."""
    database = work / DATABASE
    pycolmap.Database.open(database).close()
    # Otherwise images are numbered in the order they finish, so that with two threads the bits differ.
    pycolmap.import_images(database, images, image_names=names)
    _match_by_sift(database, images)
    return mapped(database, work)


def verify(database: Path, drop_stationary: bool = False) -> None:
    """Verify all matches of a database by two-view geometry, in place and anew.

    Where a pair has matches, what the database holds of an earlier verification is left out, for the
    matches may have been replaced since. Pairs with verified matches alone keep them, as in COLMAP.

    Args:
        database: with matches.
        drop_stationary: whether to leave out matches at the same pixels of both images, of pairs that
            are verified here.
    """
    pycolmap.set_random_seed(0)
    options = copy(_VERIFICATION)
    options.filter_stationary_matches = drop_stationary
    with pycolmap.Database.open(database) as opened:
        # COLMAP passes over pairs that have a geometry.
        for pair in opened.read_num_matches()[0]:
            opened.delete_two_view_geometry(*pycolmap.pair_id_to_image_pair(pair))
    # Batches of a hundred pairs, because Ctrl-C waits for the end of a batch.
    pairing = pycolmap.ExistingMatchedPairingOptions(batch_size=100)
    pycolmap.geometric_verification(database, pairing_options=pairing, two_view_geometry_options=options)


def stationary_share(database: Path) -> float:
    """Return the share of verified matches that lie at the same pixels of both images, over pairs of
    images that moved; 0 without such pairs.

    On photographs of a scene it was 0.005 at most, and with a logo or a time stamp on them 0.02 to 0.47.
    """
    shifts = []
    with pycolmap.Database.open(database) as opened:
        positions = {
            image.image_id: opened.read_keypoints(image.image_id)[:, :2]
            for image in opened.read_all_images()
        }
        for pair, geometry in zip(*opened.read_two_view_geometries(), strict=True):
            first, second = pycolmap.pair_id_to_image_pair(pair)
            one, other = geometry.inlier_matches.T
            shift = np.linalg.norm(positions[first][one] - positions[second][other], axis=1)
            if len(shift) and np.percentile(shift, 75) > _MOVED:
                shifts.append(shift)
    return float((np.concatenate(shifts) <= _AT_REST).mean()) if shifts else 0.0


def mapped(
    database: Path, out: Path, images: Path | None = None, keep_cameras: bool = False
) -> pycolmap.Reconstruction:
    """Run incremental mapping on verified matches and return the model with the most images.

    Args:
        database: holds cameras, images, keypoints and verified matches.
        out: an existing folder, which gets the models, 0, 1, ….
        images: the images' folder, for the points' colours; None leaves the points black.
        keep_cameras: whether cameras stay as the database has them, because they are known.

    Returns:
        The model; empty if no two images could be combined.
    """
    options = _mapping_options(colours=images is not None)
    if keep_cameras:
        with pycolmap.Database.open(database) as opened:
            options.constant_cameras = {camera.camera_id for camera in opened.read_all_cameras()}
    models = pycolmap.incremental_mapping(database, images or out, out, options)
    empty = pycolmap.Reconstruction()
    return max(models.values(), key=lambda model: model.num_reg_images(), default=empty)


def _mapping_options(colours: bool = False) -> pycolmap.IncrementalPipelineOptions:
    """Return options for COLMAP's incremental mapping on one thread and from one seed."""
    return pycolmap.IncrementalPipelineOptions(
        num_threads=1,
        # Larger bundle adjustments use several threads whatever num_threads says, and their sums differ.
        ba_min_num_residuals_for_cpu_multi_threading=2**31 - 1,
        random_seed=0,
        min_model_size=SMALLEST_MODEL,
        extract_colors=colours,
    )
