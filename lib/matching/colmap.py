"""From features and matches to COLMAP: its database, verified matches, a sparse model; by pycolmap."""

from __future__ import annotations

import contextlib
from pathlib import Path

import h5py
import numpy as np
import pycolmap

from lib.files import make_once
from lib.matching import hloc

# COLMAP's first pixel has its centre at 0.5, 0.5.
ORIGIN = np.float32(0.5)
# Every step is told on stderr otherwise.
pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
# Fewest images of a further model that is kept, COLMAP's own 10 being many in a small folder. Its first
# model COLMAP always keeps, so that there are models of two images.
SMALLEST_MODEL = 3


def write_database(
    database: Path, images: Path, features: Path, matches: Path, pairs: Path, one_camera: bool = False
) -> None:
    """A new database with cameras, images, keypoints and matches that nobody has verified yet.

    Args:
        database: the file to make.
        images: the folder of the images; cameras come from what they say of themselves.
        features, matches, pairs: files as `lib.matching.hloc` describes them, ours or hloc's own.
        one_camera: whether one took all images.

    Raises:
        FileExistsError: there is a database.
        FileNotFoundError: an image is missing.
        ValueError: a file lacks an image's keypoints or a pair's matches, or does not fit the others, or
            COLMAP refuses an image.
    """
    if database.exists():
        raise FileExistsError(f"{database} is there already: name another file, or remove it")
    listed = hloc.read_pairs(pairs, images)
    names = sorted({name for pair in listed for name in pair})
    mode = pycolmap.CameraMode.SINGLE if one_camera else pycolmap.CameraMode.AUTO
    try:
        with h5py.File(features) as described, h5py.File(matches) as matched:
            pycolmap.Database.open(database).close()
            pycolmap.import_images(database, images, mode, names)
            with pycolmap.Database.open(database) as open_database:
                taken = {image.name: image for image in open_database.read_all_images()}
                if left_out := sorted(set(names) - taken.keys()):
                    raise ValueError(
                        f"COLMAP does not take {images / left_out[0]}: it cannot read it, or one camera "
                        "took all images and it has another size than those before"
                    )
                counts = {}
                for name, image in taken.items():
                    camera = open_database.read_camera(image.camera_id)
                    size, theirs = hloc.read_size(described, name), (camera.width, camera.height)
                    if size != theirs:
                        raise ValueError(
                            f"{images / name} is {theirs} px for COLMAP and {size} px in {features}: "
                            "describe it anew, with its pixels as they are stored"
                        )
                    places = hloc.read_keypoints(described, name) + ORIGIN
                    open_database.write_keypoints(image.image_id, places)
                    counts[name] = len(places)
                for pair in listed:
                    found = hloc.read_matches(matched, pair)
                    if (found >= [counts[name] for name in pair]).any():
                        raise ValueError(
                            f"{matches} matches keypoints of {' and '.join(pair)} that {features} "
                            "lacks: match them anew"
                        )
                    ids = (taken[name].image_id for name in pair)
                    open_database.write_matches(*ids, found.astype(np.uint32))
    except BaseException:
        database.unlink(missing_ok=True)
        raise


def reconstruct(
    database: Path, images: Path | None, pairs: Path, out: Path
) -> pycolmap.Reconstruction | None:
    """Verify the matches of a database and build a sparse model, on one thread and from one seed.

    Args:
        database: of `write_database`; verified matches are added to it.
        images: the folder of the images, which points take their colours from; None leaves them black.
        pairs: the file of pairs.
        out: gets the models, 0, 1, …; it is made when there are any.

    Returns:
        The model with most images; None where no two images could be put together.

    Raises:
        FileNotFoundError: there is no database.
        FileExistsError: `out` is there.
    """
    if not database.is_file():
        raise FileNotFoundError(f"{database} is missing: describe and match the images first")
    if out.exists():
        raise FileExistsError(f"{out} is there already: name another folder, or remove it")
    pycolmap.set_random_seed(0)
    pycolmap.verify_matches(database, pairs, pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0}))
    options = pycolmap.IncrementalPipelineOptions(
        num_threads=1,
        random_seed=0,
        min_model_size=SMALLEST_MODEL,
        extract_colors=images is not None,
    )
    models: dict[int, pycolmap.Reconstruction] = {}

    def make(new: Path) -> None:
        models.update(pycolmap.incremental_mapping(database, images or new, new, options))
        if not models:
            raise _NoModelError

    # An empty folder would have the next try refused.
    with contextlib.suppress(_NoModelError):
        make_once(out, out.name, make)
    return max(models.values(), key=lambda model: model.num_reg_images(), default=None)


class _NoModelError(Exception):
    """No two images could be put together."""
