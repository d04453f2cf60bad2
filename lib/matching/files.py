"""Features and matches as files: hloc's, COLMAP's database of them, and sparse models.

hloc (Hierarchical-Localization, Sarlin et al., CVPR 2019) has HDF5 files. ``features.h5`` has a group an
image, by its name: ``keypoints`` (N, 2), the first pixel's centre at 0, 0; ``descriptors`` (k, N);
``scores`` (N,); ``image_size`` (2,), width and height. ``matches.h5`` has a group a pair,
``NAME0/NAME1`` with slashes in names made dashes: ``matches0`` (N0,), the other image's keypoint or -1,
and ``matching_scores0`` (N0,), larger for better. ``pairs.txt`` names two images a line. All numbers are
of 32 bits, where hloc itself halves them.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import h5py
import numpy as np
import pycolmap
from PIL.Image import Image

from lib.data.colmap import DATABASE, HALF_PIXEL, mapped, verify
from lib.features.matches import Matches
from lib.features.patches import Features
from lib.files import ended_cleanly, replacing, write_bytes

FEATURES, MATCHES, PAIRS = "features.h5", "matches.h5", "pairs.txt"
Pairs = Sequence[tuple[str, str]]
# An attribute of descriptors that are bits; hloc passes it over.
_BITS = "bits"
# Formats that COLMAP reads; for others it decodes the file.
_READ = ("JPEG", "MPO", "PNG")
# Of a focal length in longest sides of the image: wider than a fisheye lens is none, nor longer than
# what wildlife is taken with.
_PLAUSIBLE = (0.25, 10.0)


def write_features(file: h5py.File, name: str, features: Features) -> None:
    """An image's features; bits are written as k numbers ±1/√k, whose products order as Hamming's do."""
    group, descriptors = file.create_group(name), features.descriptors
    packed = descriptors.dtype == np.uint8
    if packed:
        bits = np.unpackbits(descriptors, axis=1).astype(np.float32)
        descriptors = (2 * bits - 1) / np.sqrt(np.float32(bits.shape[1]))
    group["keypoints"] = features.position
    group["descriptors"] = descriptors.T
    group["descriptors"].attrs[_BITS] = packed
    group["scores"] = features.scores
    group["image_size"] = np.array(features.size)


def read_descriptors(file: h5py.File, name: str) -> np.ndarray:
    """(N, k) float32 of an image, or (N, k / 8) uint8 of what `write_features` was given as packed bits,
    so that ratios are of Hamming distances."""
    stored = file[name]["descriptors"]
    values = stored[()].T
    if stored.attrs[_BITS]:
        return np.packbits(values > 0, axis=1)
    return np.ascontiguousarray(values, np.float32)


def group_of(*names: str) -> str:
    """The group of a pair of images in a file of matches, or of all pairs with the same first image."""
    return "/".join(name.replace("/", "-") for name in names)


def write_matches(file: h5py.File, pair: tuple[str, str], matches: Matches, scores: np.ndarray) -> None:
    """Matches of a pair.

    Args:
        file: to write to.
        pair: names of the two images.
        matches: M of them.
        scores: (N0,) by keypoint of the first image, 0 where it has no match.
    """
    group = file.create_group(group_of(*pair))
    partner = np.full(len(scores), -1, np.int32)
    partner[matches.first] = matches.second
    group["matches0"] = partner
    group["matching_scores0"] = scores.astype(np.float32)


def read_matches(file: h5py.File, pair: tuple[str, str]) -> np.ndarray:
    """(M, 2) int64 matches of a pair."""
    partner = file[group_of(*pair)]["matches0"][()].astype(np.int64)
    first = np.flatnonzero(partner >= 0)
    return np.column_stack([first, partner[first]])


def write_pairs(path: Path, pairs: Pairs) -> None:
    """Two names a line."""
    write_bytes(path, "".join(f"{first} {second}\n" for first, second in pairs).encode())


def read_pairs(path: Path, names: Set[str]) -> list[tuple[str, str]]:
    """Pairs of names, which may hold spaces; one that stands there again, either way round, is passed
    over.

    Args:
        path: of the file.
        names: of the files that there are.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no pair, or lines without two of the names; all are named.
    """
    pairs, faults = {}, []
    for line in filter(None, map(str.strip, path.read_text(encoding="utf-8").splitlines())):
        # Any of the gaps may be the one between the names.
        splits = [(line[: gap.start()], line[gap.end() :]) for gap in re.finditer(r"\s+", line)]
        named = [tuple(Path(name).as_posix() for name in split) for split in splits]
        pair = next((pair for pair in named if names >= {*pair} and pair[0] != pair[1]), None)
        if pair:
            pairs.setdefault(frozenset(pair), pair)
        else:
            faults.append(repr(line))
    if faults or not pairs:
        lines = "\n".join(faults) or "no pair"
        raise ValueError(f"{path}: names of two files of the folder expected a line, got\n{lines}")
    return list(pairs.values())


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
        out: a folder with `FEATURES` and `MATCHES` of these images and pairs; it gets `DATABASE`.
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
            h5py.File(out / FEATURES) as described,
            h5py.File(out / MATCHES) as matched,
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
                indices = read_matches(matched, pair).astype(np.uint32)
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
    """
    if not database.is_file():
        raise FileNotFoundError(f"{database} is missing: describe and match the images first")
    if out.exists():
        raise FileExistsError(f"{out} is there already: name another folder, or remove it")
    verify(database)
    with ended_cleanly(), tempfile.TemporaryDirectory(dir=out.parent) as folder:
        models = Path(folder, "models")
        models.mkdir()
        mapped(database, models, images)
        # An empty folder would have the next try refused.
        if any(models.iterdir()):
            models.rename(out)
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
