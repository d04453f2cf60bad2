"""COLMAP (Schönberger and Frahm, CVPR 2016) by pycolmap: cameras, databases, matches and models.

All of it runs from one seed, and on one thread where the number of threads would change its bits.
COLMAP's first pixel has its centre at 0.5, 0.5.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pycolmap

from lib.data.synthetic.imaging import Camera
from lib.files import ended_cleanly

HALF_PIXEL = 0.5
DATABASE = "database.db"
# Every step is told on stderr otherwise.
pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
# Fewest images of a further model that is kept, COLMAP's own 10 being many in a small folder. Its first
# model COLMAP always keeps, so that there are models of two images.
SMALLEST_MODEL = 3
# Share of verified matches that points triangulated from given poses explain; some 0.8 where they fit.
LEAST_EXPLAINED = 0.3
_NEVER = 2**31 - 1


def read_model(folder: Path) -> pycolmap.Reconstruction:
    """A sparse model, text or binary.

    Raises:
        ValueError: it is none or damaged, or has a camera model that pycolmap does not know.
    """
    try:
        return pycolmap.Reconstruction(folder)
    except (ValueError, RuntimeError, IndexError) as error:
        raise ValueError(f"{folder} is no COLMAP model that pycolmap reads ({error})") from error


def posed_model(cameras: Mapping[str, Camera]) -> pycolmap.Reconstruction:
    """A model without points of images by name; those with the same lens share a camera."""
    model, numbers = pycolmap.Reconstruction(), {}
    for image_id, (name, camera) in enumerate(cameras.items(), 1):
        matrix = camera.intrinsics
        params = (matrix[0, 0], matrix[1, 1], *(matrix[:2, 2] + HALF_PIXEL))
        lens = {"width": camera.width, "height": camera.height, "params": params}
        camera_id = numbers.setdefault(tuple(lens.values()), len(numbers) + 1)
        if camera_id not in model.cameras:
            pinhole = pycolmap.Camera(camera_id=camera_id, model="PINHOLE", **lens)
            pinhole.has_prior_focal_length = True
            model.add_camera_with_trivial_rig(pinhole)
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(camera.rotation), camera.translation)
        image = pycolmap.Image(image_id=image_id, camera_id=camera_id, name=name)
        model.add_image_with_trivial_frame(image, pose)
    return model


def write_database(database: Path, model: pycolmap.Reconstruction) -> None:
    """A new database with the cameras and images of a model, and nothing found in them yet."""
    with pycolmap.Database.open(database) as opened:
        for _, camera in sorted(model.cameras.items()):
            opened.write_camera(camera, use_camera_id=True)
        for number, image in sorted(model.images.items()):
            bare = pycolmap.Image(image_id=number, camera_id=image.camera_id, name=image.name)
            opened.write_image(bare, use_image_id=True)


def _match_by_sift(database: Path, images: Path) -> None:
    """Find COLMAP's SIFT keypoints in the images of a database; match and verify all pairs."""
    pycolmap.set_random_seed(0)
    pycolmap.extract_features(database, images, device=pycolmap.Device.cpu)
    pycolmap.match_exhaustive(
        database,
        verification_options=pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0}),
        device=pycolmap.Device.cpu,
    )


def triangulated(
    posed: pycolmap.Reconstruction, images: Path, work: Path
) -> tuple[pycolmap.Reconstruction, float]:
    """Points by known poses from SIFT's matches, and the share of verified matches that they explain.

    COLMAP leaves out points that two images alone see. Of a few views far apart these may be most, so
    that they are kept where the others explain less than `LEAST_EXPLAINED`.

    Args:
        posed: of `posed_model`.
        images: their folder.
        work: an existing empty folder for COLMAP's files.
    """
    database = work / DATABASE
    write_database(database, posed)
    _match_by_sift(database, images)
    with pycolmap.Database.open(database) as opened:
        geometries = opened.read_two_view_geometries()[1]
    verified = sum(len(geometry.inlier_matches) for geometry in geometries)
    options = mapping_options()
    for ignored in (True, False):
        options.triangulation.ignore_two_view_tracks = ignored
        model = pycolmap.triangulate_points(posed, database, images, work, options=options)
        # A track of n ends has n (n - 1) / 2 matches.
        tracks = np.array([point.track.length() for point in model.points3D.values()], int)
        explained = float((tracks * (tracks - 1) / 2).sum()) / verified if verified else 1.0
        if explained >= LEAST_EXPLAINED:
            break
    return model, explained


def mapped_photographs(images: Path, names: Sequence[str], work: Path) -> pycolmap.Reconstruction | None:
    """As `mapped`, from the SIFT matches of all pairs of a folder's images of these names."""
    database = work / DATABASE
    pycolmap.Database.open(database).close()
    # Otherwise images are numbered as they are finished, and with two threads the bits differ.
    pycolmap.import_images(database, images, image_names=names)
    _match_by_sift(database, images)
    return mapped(database, images, work)


def mapping_options(colours: bool = False) -> pycolmap.IncrementalPipelineOptions:
    """COLMAP's incremental mapping on one thread and from one seed."""
    options = pycolmap.IncrementalPipelineOptions(
        num_threads=1, random_seed=0, min_model_size=SMALLEST_MODEL, extract_colors=colours
    )
    # A larger adjustment is shared among threads whatever `num_threads` says, and its sums then differ.
    options.ba_min_num_residuals_for_cpu_multi_threading = _NEVER
    return options


def mapped(
    database: Path, images: Path, out: Path, colours: bool = False
) -> pycolmap.Reconstruction | None:
    """The model with most images that incremental mapping builds of verified matches.

    Args:
        database: with cameras, images, keypoints and verified matches.
        images: the folder of the images.
        out: an existing folder, which gets the models, 0, 1, ….
        colours: whether points take colours from the images.

    Returns:
        The model; None where no two images could be put together.
    """
    models = pycolmap.incremental_mapping(database, images, out, mapping_options(colours))
    return max(models.values(), key=lambda model: model.num_reg_images(), default=None)


def reconstruct(database: Path, images: Path | None, out: Path) -> pycolmap.Reconstruction | None:
    """Verify the matches of a database and build sparse models.

    Args:
        database: with matches that nobody has verified; verified ones are added to it.
        images: the folder of the images, which points take their colours from; None leaves them black.
        out: gets the models, 0, 1, …; it is made when there are any.

    Returns:
        As `mapped`.

    Raises:
        FileNotFoundError: there is no database.
        FileExistsError: `out` is there.
    """
    if not database.is_file():
        raise FileNotFoundError(f"{database} is missing: describe and match the images first")
    if out.exists():
        raise FileExistsError(f"{out} is there already: name another folder, or remove it")
    pycolmap.set_random_seed(0)
    # A hundred pairs at once, for which Ctrl-C waits.
    pycolmap.geometric_verification(
        database,
        pairing_options=pycolmap.ExistingMatchedPairingOptions(batch_size=100),
        two_view_geometry_options=pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0}),
    )
    with ended_cleanly(), tempfile.TemporaryDirectory(dir=out.parent) as folder:
        models = Path(folder, "models")
        models.mkdir()
        model = mapped(database, images or models, models, colours=images is not None)
        # An empty folder would have the next try refused.
        if model is not None:
            models.rename(out)
    return model
