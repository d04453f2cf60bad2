"""From features and matches in hloc's layout to COLMAP's database, and from there to sparse models."""

import errno
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import pycolmap
from PIL.Image import Image

from lib.data.colmap import DATABASE, HALF_PIXEL, reconstruct
from lib.files import explained_errors, replacing
from lib.matching import hloc
from lib.matching.hloc import Pairs

# Formats that COLMAP reads; for others it decodes the file.
_READ = ("JPEG", "MPO", "PNG")
# Of a focal length in longest sides of the image: wider than a fisheye lens is none, nor longer than
# what wildlife is taken with.
_PLAUSIBLE = (0.25, 10.0)


def reads(path: Path, image: Image) -> bool:
    """Whether COLMAP reads an image of which Pillow has read the header."""
    try:
        camera = None if image.format in _READ else pycolmap.infer_camera_from_image(path)
    except (ValueError, RuntimeError):
        return False
    # Pillow has turned a TIFF already.
    return camera is None or {camera.width, camera.height} == set(image.size)


def known_camera(text: str, size: tuple[int, int]) -> dict[str, str]:
    """A camera as `pycolmap.ImageReaderOptions` takes it.

    Args:
        text: both as COLMAP writes them, ``PINHOLE,fx,fy,cx,cy``, the first pixel's centre at 0.5, 0.5;
            or the path of a text file with K, 3×3, the first pixel's centre at 0, 0.
        size: width and height of its images, px.

    Raises:
        ValueError: it is neither, or the principal point is outside of the images.
    """
    model, *parameters = text.split(",")
    try:
        if Path(text).is_file():
            (fx, skew, cx), (below, fy, cy), last = np.loadtxt(text)
            if skew or below or last.tolist() != [0, 0, 1]:
                raise ValueError("K is not fx 0 cx, 0 fy cy, 0 0 1")
            model, parameters = "PINHOLE", [fx, fy, cx + HALF_PIXEL, cy + HALF_PIXEL]
        numbers = [float(number) for number in parameters]
        camera = pycolmap.Camera(model=model, params=numbers, width=size[0], height=size[1])
        if not camera.verify_params() or camera.has_bogus_params(*_PLAUSIBLE, 100.0):
            raise ValueError(f"the parameters are not those of a {model} of {size[0]} by {size[1]} px")
    except (ValueError, RuntimeError, IndexError) as error:
        raise ValueError(
            f"{text!r} is no camera model with its parameters and no file of K: {error}"
        ) from error
    return {"camera_model": model, "camera_params": ",".join(map(str, numbers))}


def write_database(
    out: Path, images: Path, pairs: Pairs, one_camera: bool = False, intrinsics: Mapping | None = None
) -> None:
    """A new database with cameras, images, keypoints and matches that nobody has verified yet.

    Args:
        out: a folder with the `lib.matching.hloc` files of these images and pairs; it gets `DATABASE`.
        images: the folder of the images; cameras come from what they say of themselves.
        pairs: names of two images each.
        one_camera: whether one took all images.
        intrinsics: of that one, as `known_camera` gives them.

    Raises:
        ValueError: COLMAP refuses an image, or keypoints are of 16 bits, as hloc writes them: in large
            images these are some px off.
    """
    names = sorted({name for pair in pairs for name in pair})
    mode = pycolmap.CameraMode.SINGLE if one_camera or intrinsics else pycolmap.CameraMode.AUTO
    with replacing(out / DATABASE) as half:
        pycolmap.Database.open(half).close()
        reader = pycolmap.ImageReaderOptions(**(intrinsics or {}))
        pycolmap.import_images(half, images, mode, names, reader)
        with (
            h5py.File(out / hloc.FEATURES) as described,
            h5py.File(out / hloc.MATCHES) as matched,
            pycolmap.Database.open(half) as opened,
        ):
            ids = {image.name: image.image_id for image in opened.read_all_images()}
            if left_out := sorted(set(names) - ids.keys()):
                raise ValueError(f"COLMAP does not take these of {images}: {', '.join(left_out)}")
            for name, number in ids.items():
                keypoints = described[name]["keypoints"][()]
                if keypoints.itemsize < 4:
                    raise ValueError(f"{out}: keypoints of 32 bits expected, hloc's 16 are px off")
                opened.write_keypoints(number, keypoints + np.float32(HALF_PIXEL))
            for pair in pairs:
                indices = hloc.read_matches(matched, pair).astype(np.uint32)
                opened.write_matches(*(ids[name] for name in pair), indices)


def sparse_models(database: Path, images: Path, out: Path) -> list[tuple[Path, pycolmap.Reconstruction]]:
    """Verify the matches of a database and build models, each in a folder.

    Args:
        database: with matches that nobody has verified; verified ones are added to it.
        images: the folder of the images, which points take their colours from.
        out: gets the models, 0, 1, …; it is made when there are any.

    Returns:
        Folders and models, first those of most images and, of equal ones, most points; none where no two
        images could be put together.

    Raises:
        FileNotFoundError: there is no database.
        FileExistsError: `out` is there.
        OSError: the disk has too little room.
    """
    if database.is_file() and not out.exists():
        # Verified matches, SQLite's journal and models take less.
        check_space(database, 6 * database.stat().st_size)
        # All its matches: a file of pairs, as `reconstruct` reads it, cannot name files with spaces.
        # A hundred pairs at once, for which Ctrl-C waits.
        pycolmap.geometric_verification(
            database,
            pairing_options=pycolmap.ExistingMatchedPairingOptions(batch_size=100),
            two_view_geometry_options=pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0}),
        )
    with tempfile.NamedTemporaryFile() as no_pairs:
        reconstruct(database, images, Path(no_pairs.name), out)
    models = [(folder, pycolmap.Reconstruction(folder)) for folder in sorted(out.glob("*"))]
    return sorted(models, key=lambda m: (-m[1].num_reg_images(), -m[1].num_points3D()))


def implausible_focal_lengths(model: pycolmap.Reconstruction) -> dict[str, float]:
    """By an image of each camera whose focal length no usual lens has: it, in longest sides."""
    names = {image.camera_id: image.name for image in model.images.values()}
    low, high = _PLAUSIBLE
    return {
        names[number]: length
        for number, camera in model.cameras.items()
        if not low < (length := camera.mean_focal_length() / max(camera.width, camera.height)) < high
    }


def check_space(path: Path, needed: int) -> None:
    """Raises OSError where so many bytes of a file find no room: on a full disk HDF5 and SQLite, which
    write it, end the process."""
    with explained_errors(path):
        if shutil.disk_usage(path.parent).free < needed:
            raise OSError(errno.ENOSPC, "no space left")
