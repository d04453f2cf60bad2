"""Features and matches in the HDF5 layout of hloc (Hierarchical-Localization, Sarlin et al., CVPR 2019).

``features.h5`` has a group an image, by its name: ``keypoints`` (N, 2), the first pixel's centre at 0,
0; ``descriptors`` (k, N); ``scores`` (N,); ``image_size`` (2,), width and height. ``matches.h5`` has a
group a pair, ``NAME0/NAME1`` with slashes in names made dashes: ``matches0`` (N0,), the other image's
keypoint or -1, and ``matching_scores0`` (N0,), larger for better. ``pairs.txt`` names two images a line.
All numbers are of 32 bits, where hloc itself halves them.
"""

import re
from collections.abc import Sequence, Set
from pathlib import Path

import h5py
import numpy as np

from lib.features.description import Features
from lib.features.matches import Matches
from lib.files import write_bytes

FEATURES, MATCHES, PAIRS = "features.h5", "matches.h5", "pairs.txt"
Pairs = Sequence[tuple[str, str]]
# An attribute of descriptors that are bits; hloc passes it over.
_BITS = "bits"


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
    group["scores"] = features.regions.scores
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
