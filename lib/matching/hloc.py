"""Features and matches in the HDF5 layout of hloc (Hierarchical-Localization, Sarlin et al., CVPR 2019).

``features.h5`` has a group an image, by its name: ``keypoints`` (N, 2), the first pixel's centre at 0,
0; ``descriptors`` (k, N); ``scores`` (N,); ``image_size`` (2,), width and height. ``matches.h5`` has a
group a pair, ``NAME0/NAME1`` with slashes in names made dashes: ``matches0`` (N0,), the other image's
keypoint or -1, and ``matching_scores0`` (N0,), larger for better. ``pairs.txt`` names two images a line.
All numbers are of 32 bits, where hloc itself halves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from lib.features.description import Features
from lib.features.matches import Matches

# An attribute of descriptors that are bits; hloc passes it over.
_BITS = "bits"


def write_features(file: h5py.File, name: str, features: Features) -> None:
    """An image's features; bits are written as k numbers ±1/√k, whose products order as Hamming's do."""
    group = file.create_group(name)
    group["keypoints"] = features.position
    group["descriptors"] = as_unit(features.descriptors).T
    group["descriptors"].attrs[_BITS] = features.descriptors.dtype == np.uint8
    group["scores"] = features.regions.scores
    group["image_size"] = np.array(features.size)


def as_unit(descriptors: np.ndarray) -> np.ndarray:
    """(N, k) float32: bits (N, k / 8) as unit vectors of equal numbers, others as they are."""
    if descriptors.dtype != np.uint8:
        return descriptors
    bits = np.unpackbits(descriptors, axis=1).astype(np.float32)
    return (2 * bits - 1) / np.sqrt(np.float32(max(bits.shape[1], 1)))


def read_descriptors(file: h5py.File, name: str) -> np.ndarray:
    """(N, k) float32 of an image, or (N, k / 8) uint8 of what `write_features` was given as packed bits,
    so that ratios are of Hamming distances; raises as `read`."""
    values = read(file, name, "descriptors").T
    if file[name]["descriptors"].attrs.get(_BITS, False):
        return np.packbits(values > 0, axis=1)
    return np.ascontiguousarray(values, np.float32)


def read(file: h5py.File, name: str, dataset: str) -> np.ndarray:
    """A dataset of an image, such as "keypoints".

    Raises:
        ValueError: the file has no such image.
    """
    if name not in file or dataset not in file[name]:
        raise ValueError(f"{file.filename} has no {dataset} of {name}: describe the images first")
    return file[name][dataset][()]


def pair_group(first: str, second: str) -> str:
    """The group of a pair of images in a file of matches."""
    return "/".join(name.replace("/", "-") for name in (first, second))


def write_matches(file: h5py.File, pair: tuple[str, str], matches: Matches, scores: np.ndarray) -> None:
    """Matches of a pair.

    Args:
        file: to write to.
        pair: names of the two images.
        matches: M of them.
        scores: (N0,) by keypoint of the first image, 0 where it has no match.
    """
    group = file.create_group(pair_group(*pair))
    partner = np.full(len(scores), -1, np.int32)
    partner[matches.first] = matches.second
    group["matches0"] = partner
    group["matching_scores0"] = scores.astype(np.float32)


def read_matches(file: h5py.File, pair: tuple[str, str]) -> np.ndarray:
    """(M, 2) int64 matches of a pair, whichever way round the file has it.

    Raises:
        ValueError: the file has no such pair.
    """
    for way, names in ((1, pair), (-1, pair[::-1])):
        if (group := pair_group(*names)) in file:
            partner = file[group]["matches0"][()].astype(np.int64)
            first = np.flatnonzero(partner >= 0)
            return np.column_stack([first, partner[first]])[:, ::way]
    raise ValueError(f"{file.filename} has no matches of {pair[0]} and {pair[1]}: match them first")


def write_pairs(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Two names a line.

    Raises:
        ValueError: no pair, or a name with white space, which the layout cannot hold.
    """
    if not pairs:
        raise ValueError(f"no pair of images for {path}: two images are needed at least")
    for name in {name for pair in pairs for name in pair}:
        if len(name.split()) != 1:
            raise ValueError(f"{name!r} holds white space, which a file of pairs cannot: rename it")
    path.write_text("".join(f"{first} {second}\n" for first, second in pairs), encoding="utf-8")


def read_pairs(path: Path, images: Path) -> list[tuple[str, str]]:
    """Pairs of names; one that stands there again, either way round, is passed over.

    Args:
        path: of the file.
        images: the folder of the images.

    Raises:
        FileNotFoundError: there is no such file, or an image that it names is not in the folder.
        ValueError: no pair, or a line without the names of two images.
    """
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        names = line.split()
        if not len(names) == len(set(names)) == 2:
            raise ValueError(f"{path}, line {number}: names of two images expected, got {line!r}")
        for name in names:
            if not (images / name).is_file():
                raise FileNotFoundError(f"{images / name} is missing, which {path} names")
        pairs.setdefault(frozenset(names), (names[0], names[1]))
    if not pairs:
        raise ValueError(f"{path} names no pair of images")
    return list(pairs.values())
