"""COLMAP (Schönberger and Frahm, CVPR 2016) by pycolmap: cameras, databases, matches and models.

All of it runs from one seed, and on one thread where the number of threads would change its bits.
COLMAP's first pixel has its centre at 0.5, 0.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pycolmap

from lib.data.synthetic.imaging import Camera

HALF_PIXEL = 0.5
DATABASE = "database.db"
# Every step is told on stderr otherwise.
pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
# Fewest images of a further model that is kept, COLMAP's own 10 being many in a small folder. Its first
# model COLMAP always keeps, so that there are models of two images.
SMALLEST_MODEL = 3
# Share of verified matches that points triangulated from given poses explain; some 0.8 where they fit.
LEAST_EXPLAINED = 0.3
_VERIFICATION = pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0})


def posed_model(cameras: Mapping[str, Camera]) -> pycolmap.Reconstruction:
    """A model without points of images by name; those with the same lens share a camera."""
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


def write_database(database: Path, cameras: Mapping[str, pycolmap.Camera]) -> dict[str, int]:
    """A new database of images and their cameras, with nothing found in them yet.

    Args:
        database: to be made.
        cameras: by image; images of one number share a camera.

    Returns:
        The images' numbers, 1 and up in order of names.
    """
    numbers = {}
    with pycolmap.Database.open(database) as opened:
        for name, camera in sorted(cameras.items()):
            if not opened.exists_camera(camera.camera_id):
                opened.write_camera(camera, use_camera_id=True)
            numbers[name] = opened.write_image(pycolmap.Image(name=name, camera_id=camera.camera_id))
    return numbers


def _match_by_sift(database: Path, images: Path) -> None:
    """Find COLMAP's SIFT keypoints in the images of a database; match and verify all pairs."""
    pycolmap.set_random_seed(0)
    cpu = pycolmap.Device.cpu
    pycolmap.extract_features(database, images, device=cpu)
    pycolmap.match_exhaustive(database, verification_options=_VERIFICATION, device=cpu)


def triangulated(
    posed: pycolmap.Reconstruction, images: Path, work: Path
) -> tuple[pycolmap.Reconstruction, float]:
    """Points by known poses from SIFT's matches, and the share of verified matches that they explain.

    COLMAP leaves out points that two images alone see. Of a few views far apart these may be most, so
    that they are kept where the others explain less than `LEAST_EXPLAINED`.

    Args:
        posed: of `posed_model`, its images in order of names.
        images: their folder.
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
        # A track of n ends has n (n - 1) / 2 matches.
        tracks = np.array([point.track.length() for point in model.points3D.values()], int)
        explained = float((tracks * (tracks - 1) / 2).sum()) / verified if verified else 1.0
        if explained >= LEAST_EXPLAINED:
            break
    return model, explained


def mapped_photographs(images: Path, names: Sequence[str], work: Path) -> pycolmap.Reconstruction:
    """As `mapped`, from the SIFT matches of all pairs of a folder's images of these names."""
    database = work / DATABASE
    pycolmap.Database.open(database).close()
    # Otherwise images are numbered as they are finished, and with two threads the bits differ.
    pycolmap.import_images(database, images, image_names=names)
    _match_by_sift(database, images)
    return mapped(database, work)


def verify(database: Path) -> None:
    """Verify all matches of a database by the geometry of two views, in place."""
    pycolmap.set_random_seed(0)
    # A hundred pairs at once, for which Ctrl-C waits.
    pairing = pycolmap.ExistingMatchedPairingOptions(batch_size=100)
    pycolmap.geometric_verification(
        database, pairing_options=pairing, two_view_geometry_options=_VERIFICATION
    )


def mapped(database: Path, out: Path, images: Path | None = None) -> pycolmap.Reconstruction:
    """The model with most images that incremental mapping builds of verified matches.

    Args:
        database: with cameras, images, keypoints and verified matches.
        out: an existing folder, which gets the models, 0, 1, ….
        images: the folder of the images, which points take their colours from; None leaves them black.

    Returns:
        The model; an empty one where no two images could be put together.
    """
    options = _mapping_options(colours=images is not None)
    models = pycolmap.incremental_mapping(database, images or out, out, options)
    empty = pycolmap.Reconstruction()
    return max(models.values(), key=lambda model: model.num_reg_images(), default=empty)


def _mapping_options(colours: bool = False) -> pycolmap.IncrementalPipelineOptions:
    """COLMAP's incremental mapping on one thread and from one seed."""
    return pycolmap.IncrementalPipelineOptions(
        num_threads=1,
        # A larger adjustment is shared among threads whatever that says, and its sums then differ.
        ba_min_num_residuals_for_cpu_multi_threading=2**31 - 1,
        random_seed=0,
        min_model_size=SMALLEST_MODEL,
        extract_colors=colours,
    )
