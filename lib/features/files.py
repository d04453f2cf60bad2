"""Features and matches as files of hloc and in COLMAP's database, and sparse models.

hloc (Hierarchical-Localization, Sarlin et al., CVPR 2019) uses HDF5 files. ``features.h5`` has a group
per image, under its name: ``keypoints`` (N, 2), with the first pixel's centre at 0, 0, and with the
attribute ``uncertainty``, px; ``descriptors`` (k, N); ``scores`` (N,); ``image_size`` (2,), width and
height. ``matches.h5`` has a group per pair, ``NAME0/NAME1``, where slashes in names become dashes:
``matches0`` (N0,), the other image's keypoint or -1, and ``matching_scores0`` (N0,), larger for better.
``pairs.txt`` names two images per line.
Numbers by keypoint have 32 bits; hloc itself writes 16.
"""

import re
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import h5py
import numpy as np
import pycolmap
from PIL.Image import Image

from lib.data.cameras import is_central
from lib.data.colmap import DATABASE, HALF_PIXEL, mapped, verify
from lib.data.images import read_grey
from lib.features.matches import Matches
from lib.features.patches import Features
from lib.files import ended_cleanly, replacing, write_bytes

FEATURES, MATCHES, PAIRS = "features.h5", "matches.h5", "pairs.txt"
Pairs = Sequence[tuple[str, str]]
# Uncertainty of a detected position in hloc's files, px of the image that the detector saw: 1 for DoG
# and for every detector that states none.
_NOISE = 1.0
# Attribute of descriptors that tells whether they are bits; hloc ignores it.
_BITS = "bits"
# Formats that COLMAP is known to read; others are tested by decoding the file.
_READ = ("JPEG", "MPO", "PNG")
# Pairs of images from which no depth follows.
_WITHOUT_DEPTH = (
    pycolmap.TwoViewGeometryConfiguration.PLANAR,
    pycolmap.TwoViewGeometryConfiguration.PANORAMIC,
    pycolmap.TwoViewGeometryConfiguration.PLANAR_OR_PANORAMIC,
)
# Width to which an image is reduced to see whether its edges meet, px.
_PANORAMA = 512
# Plausible focal lengths, in longest sides of the image: from a fisheye lens to a lens for wildlife.
_PLAUSIBLE = (0.25, 10.0)


def write_features(file: h5py.File, name: str, features: Features, reduction: float = 1.0) -> None:
    """Write an image's features; bits become k numbers ±1/√k, whose products order as Hamming's do.

    Args:
        file: to write to.
        name: of the image.
        features: at positions in the whole image.
        reduction: px of the whole image per px of the one that the detector saw.
    """
    group, descriptors = file.create_group(name), features.descriptors
    packed = descriptors.dtype == np.uint8
    if packed:
        bits = np.unpackbits(descriptors, axis=1).astype(np.float32)
        descriptors = (2 * bits - 1) / np.sqrt(np.float32(bits.shape[1]))
    group["keypoints"] = features.position
    group["keypoints"].attrs["uncertainty"] = _NOISE * reduction
    group["descriptors"] = descriptors.T
    group["descriptors"].attrs[_BITS] = packed
    group["scores"] = features.scores
    group["image_size"] = np.array(features.size)


def read_descriptors(file: h5py.File, name: str) -> np.ndarray:
    """Read an image's descriptors, (N, k) float32, or (N, k / 8) uint8 if they were packed bits.

    Bits are packed again so that ratios are of Hamming distances.
    """
    stored = file[name]["descriptors"]
    values = stored[()].T
    if stored.attrs[_BITS]:
        return np.packbits(values > 0, axis=1)
    return np.ascontiguousarray(values, np.float32)


def group_of(*names: str) -> str:
    """Return the group of a pair of images in a matches file, or of all pairs with one first image."""
    return "/".join(name.replace("/", "-") for name in names)


def write_matches(file: h5py.File, pair: tuple[str, str], matches: Matches, scores: np.ndarray) -> None:
    """Write the matches of a pair.

    Args:
        file: to write to.
        pair: names of the two images.
        matches: M matches.
        scores: (N0,) by keypoint of the first image, 0 if it has no match.
    """
    group = file.create_group(group_of(*pair))
    partner = np.full(len(scores), -1, np.int32)
    partner[matches.first] = matches.second
    group["matches0"] = partner
    group["matching_scores0"] = scores.astype(np.float32)


def read_matches(file: h5py.File, pair: tuple[str, str]) -> np.ndarray:
    """Read the (M, 2) int64 matches of a pair."""
    partner = file[group_of(*pair)]["matches0"][()].astype(np.int64)
    first = np.flatnonzero(partner >= 0)
    return np.column_stack([first, partner[first]])


def write_pairs(path: Path, pairs: Pairs) -> None:
    """Write pairs, two names per line."""
    write_bytes(path, "".join(f"{first} {second}\n" for first, second in pairs).encode())


def read_pairs(path: Path, names: Set[str]) -> list[tuple[str, str]]:
    """Read pairs of names, which may hold spaces; skip pairs that recur in either order.

    A name may be written in another Unicode normal form than that of its file, as macOS writes ü in two
    characters; the pair then has the file's.

    Args:
        path: of the file.
        names: of the existing files.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: there is no pair, or lines lack two of the names; the message quotes these lines.
    """
    pairs, faults = {}, []
    composed = {unicodedata.normalize("NFC", name): name for name in names}
    try:
        # With or without the mark that Windows' editors put first.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error.reason}): save it so") from error
    for line in filter(None, map(str.strip, text.splitlines())):
        # Any gap may be the one between the two names.
        splits = [(line[: gap.start()], line[gap.end() :]) for gap in re.finditer(r"\s+", line)]
        written = [[Path(name).as_posix() for name in split] for split in splits]
        named = [tuple(_existing(name, names, composed) for name in split) for split in written]
        pair = next((pair for pair in named if names >= {*pair} and pair[0] != pair[1]), None)
        if pair:
            pairs.setdefault(frozenset(pair), pair)
        else:
            faults.append(repr(line))
    if faults or not pairs:
        lines = "\n".join(faults) or "no pair"
        raise ValueError(f"{path}: names of two files of the folder expected a line, got\n{lines}")
    return list(pairs.values())


def _existing(name: str, names: Set[str], composed: Mapping[str, str]) -> str:
    """Return the existing name that a name stands for, or else the name itself.

    Args:
        name: as somebody wrote it.
        names: the existing ones.
        composed: these by their normal form NFC.
    """
    return name if name in names else composed.get(unicodedata.normalize("NFC", name), name)


def reads(path: Path, image: Image) -> bool:
    """Return whether COLMAP reads an image whose header Pillow has read."""
    try:
        camera = None if image.format in _READ else pycolmap.infer_camera_from_image(path)
    except (ValueError, RuntimeError):
        return False
    # As sets, since Pillow has already turned a TIFF.
    return camera is None or {camera.width, camera.height} == set(image.size)


def known_camera(text: str, size: tuple[int, int], cropped: bool = False) -> dict[str, str]:
    """Return a camera in the form that `pycolmap.ImageReaderOptions` takes.

    Args:
        text: model and parameters as COLMAP writes them, ``PINHOLE,fx,fy,cx,cy``, with the first
            pixel's centre at 0.5, 0.5; or the path of a text file with the 3×3 matrix K, with the first
            pixel's centre at 0, 0.
        size: width and height of the camera's images, px.
        cropped: whether the images are parts of larger ones, so that the principal point may be anywhere
            in them.

    Raises:
        ValueError: `text` is neither; the principal point is outside the images, or far from their
            middle though they are not cropped: the camera is then that of images of another size.
    """
    model, *parameters = text.split(",")
    try:
        if Path(text).is_file():
            (fx, skew, cx), (below, fy, cy), last = np.loadtxt(text)
            if skew or below or last.tolist() != [0, 0, 1]:
                raise ValueError("K is not fx 0 cx, 0 fy cy, 0 0 1")
            model, parameters = "PINHOLE", [fx, fy, cx + HALF_PIXEL, cy + HALF_PIXEL]
        numbers = [float(number) for number in parameters]
        if not numbers or not np.isfinite(numbers).all():
            raise ValueError("a model and finite numbers are expected")
        camera = pycolmap.Camera(model=model, params=numbers, width=size[0], height=size[1])
        if not camera.verify_params():
            raise ValueError(f"a {model} has other parameters: {camera.params_info}")
    except (ValueError, RuntimeError, IndexError) as error:
        raise ValueError(
            f"{text!r} is no camera model with its parameters and no file of K: {error}"
        ) from error
    of_images = f"{text!r} is no camera of images that are stored as {size[0]} by {size[1]} px"
    # A panorama's model has no principal point.
    if camera.principal_point_idxs() and not cropped:
        x, y = camera.principal_point_x, camera.principal_point_y
        if not is_central((x, y), size):
            raise ValueError(
                f"{of_images}: its principal point is the middle of {2 * x:.0f} by {2 * y:.0f} px; say "
                "--cropped if they were cut out of larger ones"
            )
    if camera.has_bogus_params(*_PLAUSIBLE, 100.0):
        raise ValueError(f"{of_images}: its focal length, principal point or distortion is implausible")
    return {"camera_model": model, "camera_params": ",".join(map(str, numbers))}


def write_database(
    out: Path, images: Path, pairs: Pairs, one_camera: bool = False, intrinsics: Mapping | None = None
) -> None:
    """Write a new database of cameras, images, keypoints and unverified matches.

    Args:
        out: a folder with `FEATURES` and `MATCHES` of these images and pairs; it gets `DATABASE`.
        images: the folder of the images; their metadata gives the cameras.
        pairs: names of two images each.
        one_camera: whether one camera took all images.
        intrinsics: of that camera, as `known_camera` returns them.

    Raises:
        ValueError: COLMAP refuses an image, or keypoints have 16 bits, as hloc writes them: in large
            images they are some px off.
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


def sparse_models(
    database: Path,
    images: Path,
    out: Path,
    keep_cameras: bool = False,
    drop_stationary: bool = False,
) -> list[tuple[Path, pycolmap.Reconstruction]]:
    """Verify the matches of a database and build models, each in a folder.

    Args:
        database: with matches, which are verified as `verify` says.
        images: the folder of the images, from which points take their colours.
        out: gets the models as folders 0, 1, …; made only if there is a model.
        keep_cameras: whether cameras stay as the database has them, because they are known.
        drop_stationary: whether to leave out matches at the same pixels of both images.

    Returns:
        Folders and models, by number of images, then of points, largest first; empty if no two images
        could be put together.

    Raises:
        FileNotFoundError: there is no database.
        FileExistsError: `out` exists.
    """
    if not database.is_file():
        raise FileNotFoundError(f"{database} is missing: describe and match the images first")
    if out.exists():
        raise FileExistsError(f"{out} is there already: name another folder, or remove it")
    verify(database, drop_stationary)
    with ended_cleanly(), tempfile.TemporaryDirectory(dir=out.parent) as folder:
        models = Path(folder, "models")
        models.mkdir()
        mapped(database, models, images, keep_cameras)
        # An empty folder would make the next try fail.
        if any(models.iterdir()):
            models.rename(out)
    models = [(folder, pycolmap.Reconstruction(folder)) for folder in sorted(out.glob("*"))]
    return sorted(models, key=lambda m: (-m[1].num_reg_images(), -m[1].num_points3D()))


def why_no_model(database: Path) -> str:
    """Say why no model could be made of a database whose matches are verified."""
    with pycolmap.Database.open(database) as opened:
        _, geometries = opened.read_two_view_geometries()
    kinds = [geometry.config for geometry in geometries if len(geometry.inlier_matches)]
    if not kinds:
        return "no two images have matches that one camera's motion explains; match more of them"
    if all(kind in _WITHOUT_DEPTH for kind in kinds):
        return (
            f"one homography explains the matches of each pair ({len(kinds)} in all): a plane, or "
            "a camera that only turned, has no depth; take photographs from other places"
        )
    return "no two images could be put together; match more of them"


def implausible_focal_lengths(model: pycolmap.Reconstruction) -> dict[str, float]:
    """Return focal lengths that no usual lens has, in longest sides, by an image of the camera."""
    names = {image.camera_id: image.name for image in model.images.values()}
    low, high = _PLAUSIBLE
    return {
        names[number]: length
        for number, camera in model.cameras.items()
        # A panorama's camera has none.
        if camera.focal_length_idxs()
        and not low < (length := camera.mean_focal_length() / max(camera.width, camera.height)) < high
    }


def panoramas(model: pycolmap.Reconstruction, images: Path) -> list[str]:
    """Return the names of images that look like 360° panoramas although their cameras are others: they
    are twice as wide as high, and their left edge goes on where the right one ends."""
    found = []
    for image in model.images.values():
        camera = model.cameras[image.camera_id]
        if camera.model == pycolmap.CameraModelId.EQUIRECTANGULAR or camera.width != 2 * camera.height:
            continue
        columns = read_grey(images / image.name, _PANORAMA, "stored").T.astype(float)
        across_edges = np.abs(columns[0] - columns[-1]).mean()
        elsewhere = np.abs(np.diff(columns, axis=0)).mean()
        if across_edges < 2 * elsewhere:
            found.append(image.name)
    return sorted(found)
