"""A scene's cameras and sparse points: as given, triangulated from known poses, or mapped by COLMAP.

COLMAP (Schönberger and Frahm, CVPR 2016) runs from one seed, and on one thread where the number of
threads would change its bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pycolmap

from lib.data.eth import colmap_camera
from lib.data.images import read_image
from lib.data.scenes.places import CAMERAS, FEWEST_IMAGES, IMAGES, SPARSE, image_files
from lib.data.strecha import read_strecha_camera
from lib.data.synthetic.geometry import Camera

# Every step is told on stderr otherwise.
pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
_NEVER = 2**31 - 1
DATABASE, MODEL = "database.db", "model"
# Px. A model that explains its own images has some tenths.
LARGEST_ERROR = 2.0
# Share of verified matches that points triangulated from given poses explain; some 0.8 where they fit.
LEAST_TRIANGULATED = 0.3


def reconstruction(scene: Path, work: Path) -> pycolmap.Reconstruction:
    """The cameras, poses and sparse points of a scene, checked against its images.

    Args:
        scene: the folder: ``images`` with ``sparse``, with ``cameras``, or alone.
        work: an existing empty folder for COLMAP's database and models.

    Raises:
        FileNotFoundError: images are missing that the model names, or a camera of an image.
        ValueError: no overlap, a damaged model, a camera model that pycolmap does not know, images of
            another size than the model's, or poses that contradict the images.
    """
    images = {path.name: path for path in image_files(scene)}
    if (scene / SPARSE).is_dir():
        model = _given(scene)
    elif (scene / CAMERAS).is_dir():
        model = _triangulated(scene, work, _posed(scene, images))
    else:
        model = _mapped(scene, work)
    _check(scene, model, images)
    return model


def _given(scene: Path) -> pycolmap.Reconstruction:
    folder = scene / SPARSE
    try:
        return pycolmap.Reconstruction(folder if list(folder.glob("cameras.*")) else folder / "0")
    except (ValueError, RuntimeError, IndexError) as error:
        raise ValueError(
            f"{folder} is no COLMAP model, or damaged, or has a camera model unknown to pycolmap "
            f"({str(error).splitlines()[0]}): export it anew, or remove it to have the images mapped"
        ) from error


def _posed(scene: Path, images: Mapping[str, Path]) -> pycolmap.Reconstruction:
    """A model without points of the poses in ``cameras``."""
    model = pycolmap.Reconstruction()
    for number, (name, path) in enumerate(images.items(), 1):
        size = read_image(path, header_only=True).size
        file = scene / CAMERAS / f"{name}.camera"
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing: give the poses of all images, or of none")
        intrinsics, rotation, translation, *_ = read_strecha_camera(file, size)
        if intrinsics[0, 1]:
            raise ValueError(f"{file} states a skew of {intrinsics[0, 1]:g}: COLMAP has no such camera")
        view = Camera(intrinsics, rotation, translation, *size)
        model.add_camera_with_trivial_rig(colmap_camera(view, number))
        image = pycolmap.Image(image_id=number, camera_id=number, name=name)
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(rotation), translation)
        model.add_image_with_trivial_frame(image, pose)
    return model


def _triangulated(scene: Path, work: Path, model: pycolmap.Reconstruction) -> pycolmap.Reconstruction:
    with pycolmap.Database.open(work / DATABASE) as database:
        for number, camera in sorted(model.cameras.items()):
            database.write_camera(camera, use_camera_id=True)
            database.write_image(
                pycolmap.Image(image_id=number, camera_id=number, name=model.image(number).name),
                use_image_id=True,
            )
    _match(scene, work)
    with pycolmap.Database.open(work / DATABASE) as database:
        verified = sum(
            len(geometry.inlier_matches) for geometry in database.read_two_view_geometries()[1]
        )
    (work / MODEL).mkdir()
    model = pycolmap.triangulate_points(
        model, work / DATABASE, scene / IMAGES, work / MODEL, options=_options()
    )
    # A track of n ends has n (n - 1) / 2 matches.
    tracks = np.array([point.track.length() for point in model.points3D.values()], int)
    explained = float((tracks * (tracks - 1) / 2).sum())
    if explained < LEAST_TRIANGULATED * verified:
        raise ValueError(
            f"{scene / CAMERAS} contradicts the images: of {verified} matches the poses explain "
            f"{explained:.0f}; remove the folder to have the images mapped"
        )
    return model


def _options() -> pycolmap.IncrementalPipelineOptions:
    options = pycolmap.IncrementalPipelineOptions(
        num_threads=1, random_seed=0, min_model_size=FEWEST_IMAGES, extract_colors=False
    )
    # A larger adjustment is shared among threads whatever `num_threads` says, and its sums then differ.
    options.ba_min_num_residuals_for_cpu_multi_threading = _NEVER
    return options


def _match(scene: Path, work: Path) -> None:
    """COLMAP's SIFT on the images of the database, all pairs matched and verified."""
    pycolmap.set_random_seed(0)
    pycolmap.extract_features(work / DATABASE, scene / IMAGES, device=pycolmap.Device.cpu)
    pycolmap.match_exhaustive(
        work / DATABASE,
        verification_options=pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0}),
        device=pycolmap.Device.cpu,
    )


def _mapped(scene: Path, work: Path) -> pycolmap.Reconstruction:
    # Otherwise images are numbered as they are finished, and with two threads the bits differ.
    names = [path.name for path in image_files(scene)]
    pycolmap.Database.open(work / DATABASE).close()
    pycolmap.import_images(work / DATABASE, scene / IMAGES, image_names=names)
    _match(scene, work)
    (work / MODEL).mkdir()
    models = pycolmap.incremental_mapping(work / DATABASE, scene / IMAGES, work / MODEL, _options())
    largest = max(models.values(), key=lambda m: (m.num_reg_images(), m.num_points3D()), default=None)
    if largest is None or largest.num_reg_images() < FEWEST_IMAGES:
        raise ValueError(
            f"{scene / IMAGES}: COLMAP puts no {FEWEST_IMAGES} images together; give photographs that "
            f"overlap, or their poses in {scene / CAMERAS}"
        )
    return largest


def _check(scene: Path, model: pycolmap.Reconstruction, images: Mapping[str, Path]) -> None:
    posed = [model.image(number) for number in model.reg_image_ids()]
    if len(posed) < FEWEST_IMAGES:
        raise ValueError(f"{scene}: its model has {len(posed)} images, {FEWEST_IMAGES} are needed")
    for image in posed:
        if image.name not in images:
            raise FileNotFoundError(f"{scene / IMAGES / image.name} is missing, which the model names")
        if not image.camera.mean_focal_length() > 0:
            raise ValueError(
                f"{scene}: {image.name} has a camera without a focal length, which is needed"
            )
        size = read_image(images[image.name], header_only=True).size
        if size != (image.camera.width, image.camera.height):
            raise ValueError(
                f"{images[image.name]} is {size} px, and {(image.camera.width, image.camera.height)} in "
                "the model: give the images that it was made of"
            )
    if model.num_points3D() == 0:
        raise ValueError(f"{scene}: no point is seen by two images; give photographs that overlap")
    model.update_point_3d_errors()
    error = model.compute_mean_reprojection_error()
    if not error < LARGEST_ERROR:
        raise ValueError(
            f"{scene}: poses contradict the images; the mean reprojection error is {error:.1f} px, and "
            f"{LARGEST_ERROR} px at most are expected"
        )
