"""From features and matches to COLMAP: its database, verified matches, a sparse model; by pycolmap."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pycolmap

from lib.matching import hloc

# COLMAP's first pixel has its centre at 0.5, 0.5.
ORIGIN = np.float32(0.5)
# Images of a model that is kept; COLMAP's own 10 would leave nothing of a small folder.
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
        ValueError: a file lacks an image's keypoints or a pair's matches, or COLMAP refuses an image.
    """
    if database.exists():
        raise FileExistsError(f"{database} is there already: name another file, or remove it")
    listed = hloc.read_pairs(pairs)
    names = sorted({name for pair in listed for name in pair})
    for name in names:
        if not (images / name).is_file():
            raise FileNotFoundError(f"{images / name} is missing, which {pairs} names")
    mode = pycolmap.CameraMode.SINGLE if one_camera else pycolmap.CameraMode.AUTO
    try:
        with h5py.File(features) as described, h5py.File(matches) as matched:
            pycolmap.Database.open(database).close()
            pycolmap.import_images(database, images, mode, names)
            with pycolmap.Database.open(database) as open_database:
                ids = {image.name: image.image_id for image in open_database.read_all_images()}
                if left_out := sorted(set(names) - ids.keys()):
                    raise ValueError(
                        f"COLMAP does not take {images / left_out[0]}: it cannot read it, or one camera "
                        "took all images and it has another size than those before"
                    )
                for name, number in ids.items():
                    places = hloc.read_keypoints(described, name) + ORIGIN
                    open_database.write_keypoints(number, places)
                for pair in listed:
                    found = hloc.read_matches(matched, pair).astype(np.uint32)
                    open_database.write_matches(*(ids[name] for name in pair), found)
    except BaseException:
        database.unlink(missing_ok=True)
        raise


def reconstruct(database: Path, images: Path, pairs: Path, out: Path) -> pycolmap.Reconstruction | None:
    """Verify the matches of a database and build a sparse model, on one thread and from one seed.

    Args:
        database: of `write_database`; verified matches are added to it.
        images: the folder of the images.
        pairs: the file of pairs.
        out: gets the models, 0, 1, …

    Returns:
        The model with most images; None where no two images could be put together.
    """
    out.mkdir(parents=True, exist_ok=True)
    pycolmap.set_random_seed(0)
    pycolmap.verify_matches(database, pairs, pycolmap.TwoViewGeometryOptions(ransac={"random_seed": 0}))
    options = pycolmap.IncrementalPipelineOptions(
        num_threads=1, random_seed=0, min_model_size=SMALLEST_MODEL
    )
    models = pycolmap.incremental_mapping(database, images, out, options)
    return max(models.values(), key=lambda model: model.num_reg_images(), default=None)
