"""Read and write descriptors of HPatches sequences in the benchmark's CSV layout.

The layout has one folder per sequence with ``ref.csv``, ``e1.csv`` … ``t5.csv``. A file has one line per
patch, in the patches' order, and no header. Binary descriptors are packed, eight bits a number (the
benchmark's bin_packed).

In memory, descriptors are one array (16, N, k): files in the order of `FILES`, then the N patches of all
sequences, one sequence after the other (`first_patches`). It is float32, or uint8 of 0 and 1 for binary
descriptors.
"""

from collections.abc import Sequence as Sequences
from pathlib import Path

import numpy as np

from lib.data.hpatches.release import FILES, Sequence, first_patches
from lib.files import replacing


def check(descriptors: np.ndarray, sequences: Sequences[Sequence]) -> None:
    """Check that every descriptor has a distance and a direction.

    Args:
        descriptors: (16, N, k) of the sequences' patches.
        sequences: the sequences, for the names in the error message.

    Raises:
        ValueError: a float descriptor has NaN, infinity or a norm of zero. The message names sequence,
            file and patch.
    """
    if descriptors.dtype == np.uint8:
        return
    highest = np.maximum(descriptors.max(axis=2), -descriptors.min(axis=2))
    wrong = np.argwhere(~((highest > 0) & (highest < np.inf)))
    if len(wrong):
        file, patch = wrong[0]
        starts = first_patches(sequences)
        owner = int(np.searchsorted(starts, patch, side="right")) - 1
        described = f"{sequences[owner].name}, {FILES[file]}, patch {patch - starts[owner]}"
        raise ValueError(f"descriptor of {described} has NaN, infinity or zero norm")


def read_descriptors(
    folder: Path, sequences: Sequences[Sequence], *, packed: bool = False, delimiter: str = ","
) -> np.ndarray:
    """Read descriptors in the benchmark's layout, whoever made them.

    Args:
        folder: holds a folder for each sequence.
        sequences: the sequences to read, each with its expected number of patches.
        packed: whether the numbers are bytes of eight bits each, the highest first.
        delimiter: the character between numbers.

    Returns:
        (16, N, k) float32, or bits where packed.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file has another number of rows than patches, a value that is no number (no byte
            if packed), or descriptors of another length than other files; or as `check` raises.
    """
    parts = []
    for file in FILES:
        for sequence in sequences:
            path = folder / sequence.name / f"{file}.csv"
            parts.append(_read_file(path, packed, delimiter))
            expected = (sequence.count, parts[0].shape[1])
            if parts[-1].shape != expected:
                raise ValueError(f"{path} has (rows, numbers) {parts[-1].shape}, {expected} expected")
    descriptors = np.concatenate(parts).reshape(len(FILES), -1, parts[0].shape[1])
    if packed:
        return np.unpackbits(descriptors, axis=2)
    check(descriptors, sequences)
    return descriptors


def write_descriptors(folder: Path, descriptors: np.ndarray, sequences: Sequences[Sequence]) -> None:
    """Write descriptors for the benchmark; float32 values are read back exactly, bits are packed.

    Args:
        folder: gets a folder for each sequence.
        descriptors: (16, N, k) float32, or bits with k a multiple of eight.
        sequences: the sequences whose patches are described.

    Raises:
        OSError: the folder cannot be written.
    """
    # Nine significant digits tell any two float32 apart.
    form = "%.9g"
    if descriptors.dtype == np.uint8:
        form, descriptors = "%d", np.packbits(descriptors, axis=2)
    parts = np.split(descriptors, first_patches(sequences)[1:], axis=1)
    for sequence, part in zip(sequences, parts, strict=True):
        for file, values in zip(FILES, part, strict=True):
            with replacing(folder / sequence.name / f"{file}.csv") as half:
                np.savetxt(half, values, form, delimiter=",")


def _read_file(path: Path, packed: bool, delimiter: str) -> np.ndarray:
    """Read a file as (n, k) float32, or uint8 if packed; values missing from a row are NaN."""
    import pandas as pd

    kind = np.uint8 if packed else np.float32
    try:
        # Values too large for float32 become infinite, which `check` refuses.
        with np.errstate(over="ignore"):
            return pd.read_csv(path, header=None, sep=delimiter, dtype=kind, engine="c").to_numpy()
    except FileNotFoundError as error:
        advice = "write descriptors of all 16 files of each sequence"
        raise FileNotFoundError(f"{path} is missing: {advice}") from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: {str(error).strip()}; or name another delimiter") from error
