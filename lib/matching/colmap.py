"""From features and matches in hloc's layout to COLMAP's database; models are `lib.data.colmap`'s."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pycolmap

from lib.data.colmap import HALF_PIXEL, reconstruct
from lib.matching import hloc

__all__ = ("reconstruct", "write_database")


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
        pycolmap.Database.open(database).close()
        pycolmap.import_images(database, images, mode, names)
        with (
            h5py.File(features) as described,
            h5py.File(matches) as matched,
            pycolmap.Database.open(database) as opened,
        ):
            imported = {image.name: image for image in opened.read_all_images()}
            if left_out := sorted(set(names) - imported.keys()):
                raise ValueError(f"COLMAP does not take {images / left_out[0]} (is it of another size?)")
            counts = {}
            for name, image in imported.items():
                camera = opened.read_camera(image.camera_id)
                size = tuple(hloc.read(described, name, "image_size").astype(int).tolist())
                stored = camera.width, camera.height
                if size != stored:
                    sizes = f"{stored} px for COLMAP and {size} px in {features}"
                    raise ValueError(f"{images / name} is {sizes}: describe it as stored")
                positions = hloc.read(described, name, "keypoints").astype(np.float32)
                opened.write_keypoints(image.image_id, positions + np.float32(HALF_PIXEL))
                counts[name] = len(positions)
            for pair in listed:
                indices = hloc.read_matches(matched, pair)
                if (indices >= [counts[name] for name in pair]).any():
                    raise ValueError(f"{matches} has keypoints of {pair} that {features} lacks")
                ids = (imported[name].image_id for name in pair)
                opened.write_matches(*ids, indices.astype(np.uint32))
    except BaseException:
        database.unlink(missing_ok=True)
        raise
