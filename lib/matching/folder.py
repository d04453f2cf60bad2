"""A folder of images described and matched, into files that hloc and COLMAP go on with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import h5py
from torch import nn

from lib.data.images import image_names, image_size, read_grey
from lib.features.description import Describe
from lib.features.detectors import Detector
from lib.features.matches import match, similarity
from lib.features.patches import MAGNIFICATION
from lib.files import make_once
from lib.matching import colmap, hloc
from lib.matching.describe import describe

FEATURES, MATCHES, PAIRS, DATABASE = "features.h5", "matches.h5", "pairs.txt", "database.db"
LONGEST_SIDE = 1600
RATIO = 0.9
Log = Callable[[str], None]


def describe_and_match(
    images: Path,
    out: Path,
    detector: Detector,
    descriptor: nn.Module | Describe,
    *,
    pairs: Path | None = None,
    ratio: float = RATIO,
    mutual: bool = True,
    one_camera: bool = False,
    log: Log = print,
    **options: object,
) -> None:
    """From a folder of images to `FEATURES`, `MATCHES`, `PAIRS` and COLMAP's `DATABASE`, in a folder.

    Args:
        images: the folder.
        out: the folder to make, whole or not at all.
        detector, descriptor, options: as `describe_folder` takes them.
        pairs: a file of pairs; None takes each image with each later one.
        ratio, mutual: as `match` takes them.
        one_camera: as `lib.matching.colmap.write_database` takes it.
        log: is given a line an image and a line a pair.

    Raises:
        FileExistsError: `out` is there.
        FileNotFoundError, ValueError: as what it calls; the message names the file. What can be known
            before anything is described is refused before.
    """
    if out.exists():
        raise FileExistsError(f"{out} is there already: name a folder that is not, or remove it")
    if not 0 < ratio <= 1:
        raise ValueError(f"ratio must be above 0 and at most 1, got {ratio}")
    names = photographs(images)
    matched = hloc.read_pairs(pairs, images) if pairs else list(combinations(names, 2))
    if one_camera:
        _check_one_size(images, sorted({name for pair in matched for name in pair}))

    def make(new: Path) -> None:
        database, *files = (new / name for name in (DATABASE, FEATURES, MATCHES, PAIRS))
        features, matches, pairs_file = files
        hloc.write_pairs(pairs_file, matched)
        describe_folder(images, features, detector, descriptor, log=log, **options)
        match_pairs(features, matches, matched, ratio=ratio, mutual=mutual, log=log)
        colmap.write_database(database, images, *files, one_camera)

    make_once(out, out.name, make)


def photographs(folder: Path) -> list[str]:
    """`image_names` without HDF5 files, which Pillow counts among images and earlier calls may have left
    in a folder below."""
    return [name for name in image_names(folder) if not name.lower().endswith(Path(FEATURES).suffix)]


def _check_one_size(images: Path, names: Sequence[str]) -> None:
    sizes, first = {name: image_size(images / name, "stored") for name in names}, names[0]
    for name, size in sizes.items():
        if size != sizes[first]:
            raise ValueError(f"{images / name} is {size} px and {first} {sizes[first]}: two cameras'")


def describe_folder(
    images: Path,
    features: Path,
    detector: Detector,
    descriptor: nn.Module | Describe,
    *,
    longest_side: int | None = LONGEST_SIDE,
    orientation: str = "refuse",
    magnification: float = MAGNIFICATION,
    device: str = "cpu",
    log: Log = print,
) -> None:
    """Describes the images of a folder, one in memory at a time.

    Args:
        images: the folder.
        features: the file to make, in hloc's layout; positions are those of the images as they are.
        detector, descriptor, magnification, device: as `describe` takes them.
        longest_side, orientation: as `lib.data.images.read_grey` takes them.
        log: is given a line an image.

    Raises:
        FileExistsError: there is a file of features.
        FileNotFoundError, ValueError: as `read_grey`; or an image has no keypoints, e.g. is of one
            colour. The message names the file.
    """
    with h5py.File(features, "x", libver="latest") as file:
        for name in photographs(images):
            path = images / name
            grey = read_grey(path, longest_side, orientation)
            described = describe(grey, detector, descriptor, magnification, device)
            if not len(described):
                raise ValueError(f"{path} has no keypoints: take it away, or choose another detector")
            hloc.write_features(file, name, described.at_size(image_size(path, orientation)))
            log(f"{name}: {len(described)} keypoints")


def match_pairs(
    features: Path,
    matches: Path,
    pairs: Sequence[tuple[str, str]],
    ratio: float | None = RATIO,
    mutual: bool = True,
    log: Log = print,
) -> None:
    """Matches pairs of images by nearest neighbours, those of two images in memory at a time.

    Args:
        features: a file in hloc's layout.
        matches: the file to make.
        pairs: names of images.
        ratio, mutual: as `match` takes them.
        log: is given a line a pair.

    Raises:
        FileExistsError: there is a file of matches.
        ValueError: an image is not in the file of features.
    """
    with h5py.File(features) as described, h5py.File(matches, "x", libver="latest") as file:
        for pair in pairs:
            first, second = (hloc.read_descriptors(described, name) for name in pair)
            pair_matches = match(first, second, mutual, ratio)
            hloc.write_matches(file, pair, pair_matches, similarity(first, second, pair_matches))
            log(f"{pair[0]} and {pair[1]}: {len(pair_matches)} matches")
