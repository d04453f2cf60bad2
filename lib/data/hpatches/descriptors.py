"""Descriptors of HPatches sequences, and the benchmark's CSV layout of them: read, write.

The layout has a folder a sequence with ``ref.csv``, ``e1.csv`` … ``t5.csv`` in it, a line a patch, in
the patches' order and without a header; binary descriptors may be packed, eight bits a number (the
benchmark's bin_packed).
"""

from collections import abc
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.data.hpatches.release import FILES, Sequence
from lib.files import replacing


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of every patch of some sequences.

    Attributes:
        sequences: names, as many as S.
        starts, counts: (S,) int64, the first row of each sequence, and patches in each of its files.
        values: (P, k) float32, or uint8 of 0 and 1 for binary ones; P is 16 times all counts. The row
            of patch i in file f (an index into `FILES`) of sequence s is starts[s] + f * counts[s] + i.
    """

    sequences: tuple[str, ...]
    starts: np.ndarray
    counts: np.ndarray
    values: np.ndarray

    @property
    def binary(self) -> bool:
        """Whether distances are Hamming's."""
        return self.values.dtype == np.uint8

    def rows(
        self, sequence: np.ndarray | int, file: np.ndarray | int, patch: np.ndarray | int
    ) -> np.ndarray:
        """Rows of `values`, int64.

        Args:
            sequence, file, patch: integers whose shapes broadcast; file is an index into `FILES`.
        """
        return self.starts[sequence] + file * self.counts[sequence] + patch


def lay_out(sequences: abc.Sequence[Sequence], values: np.ndarray) -> Descriptors:
    """Descriptors from values that lie in the order sequence, file, patch.

    Args:
        sequences: what the values describe.
        values: (P, k), P being 16 times the patches of all sequences; bool or uint8 of 0 and 1 are
            binary, floats are kept as float32.

    Raises:
        ValueError: another number of values.
    """
    counts = np.array([sequence.count for sequence in sequences])
    if len(values) != len(FILES) * counts.sum():
        raise ValueError(f"{len(values)} descriptors of {len(FILES) * counts.sum()} patches")
    starts = len(FILES) * (np.cumsum(counts) - counts)
    kind = np.uint8 if values.dtype in (bool, np.uint8) else np.float32
    names = tuple(sequence.name for sequence in sequences)
    return Descriptors(names, starts, counts, values.astype(kind, copy=False))


def check(descriptors: Descriptors) -> None:
    """Refuse what has no distance or no direction.

    Raises:
        ValueError: NaN or infinity; a norm of zero of a float descriptor; a binary one with something
            else than 0 and 1. The message names sequence, file and patch.
    """
    values = descriptors.values
    lowest, highest = values.min(axis=1), values.max(axis=1)
    if descriptors.binary:
        wrong, fault = highest > 1, "has something else than the bits 0 and 1"
    else:
        finite = np.isfinite(lowest) & np.isfinite(highest)
        wrong, fault = ~finite | ((lowest == 0) & (highest == 0)), "has NaN, infinity or zero norm"
    if wrong.any():
        row = int(wrong.argmax())
        sequence = int(np.searchsorted(descriptors.starts, row, side="right")) - 1
        file, patch = divmod(row - int(descriptors.starts[sequence]), int(descriptors.counts[sequence]))
        name = descriptors.sequences[sequence]
        raise ValueError(f"descriptor of {name}, {FILES[file]}, patch {patch} {fault}")


def read_descriptors(
    folder: Path, sequences: abc.Sequence[Sequence], *, packed: bool = False, delimiter: str = ","
) -> Descriptors:
    """Read descriptors that anybody made for the benchmark.

    Args:
        folder: has a folder for each sequence.
        sequences: to read, and how many patches each must have.
        packed: the numbers are bytes of eight bits each, the highest first.
        delimiter: one character between numbers.

    Returns:
        float32 descriptors, or binary ones where packed.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: another number of rows than patches, rows of unequal length, something that is no
            number (or no byte where packed), other lengths in other files; or as `check` raises.
    """
    total = len(FILES) * sum(sequence.count for sequence in sequences)
    values, row = None, 0
    for sequence in sequences:
        for file in FILES:
            path = folder / sequence.name / f"{file}.csv"
            numbers = _read_file(path, packed, delimiter)
            if values is None:
                values = np.empty((total, numbers.shape[1]), numbers.dtype)
            expected = (sequence.count, values.shape[1])
            if numbers.shape != expected:
                raise ValueError(f"{path} has (rows, numbers) {numbers.shape}, {expected} expected")
            values[row : row + sequence.count] = numbers
            row += sequence.count
    descriptors = lay_out(sequences, values)
    check(descriptors)
    return descriptors


def write_descriptors(folder: Path, descriptors: Descriptors, *, packed: bool = False) -> None:
    """Write descriptors for the benchmark; float32 values are read back exactly.

    Args:
        folder: gets a folder for each sequence.
        descriptors: to write.
        packed: write bytes of eight bits, for binary descriptors with a multiple of eight bits.

    Raises:
        OSError: the folder cannot be written.
    """
    # Nine significant digits tell any two float32 apart.
    form = "%d" if descriptors.binary else "%.9g"
    for name, start, count in zip(
        descriptors.sequences, descriptors.starts, descriptors.counts, strict=True
    ):
        files = descriptors.values[start : start + len(FILES) * count].reshape(len(FILES), count, -1)
        for file, values in zip(FILES, files, strict=True):
            with replacing(folder / name / f"{file}.csv") as half:
                np.savetxt(half, np.packbits(values, 1) if packed else values, form, delimiter=",")


def _read_file(path: Path, packed: bool, delimiter: str) -> np.ndarray:
    """(n, k) float32, or uint8 bits."""
    import pandas as pd

    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: write descriptors of all 16 files of each sequence")
    try:
        # What is too large for float32 becomes infinite, which `check` refuses.
        with np.errstate(over="ignore"):
            frame = pd.read_csv(path, header=None, sep=delimiter, dtype=np.float32, engine="c")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: {str(error).strip()}; or name another delimiter") from error
    numbers = frame.to_numpy()
    # pandas fills up short rows, and empty fields, with NaN.
    if np.isnan(numbers).any():
        row = int(np.isnan(numbers).any(axis=1).argmax())
        raise ValueError(f"{path}, row {row + 1} has NaN, or fewer numbers than others: write it again")
    if not packed:
        return numbers
    if not ((numbers >= 0) & (numbers <= 255) & (numbers == np.floor(numbers))).all():
        raise ValueError(f"{path}: packed descriptors are whole numbers 0 to 255")
    return np.unpackbits(numbers.astype(np.uint8), axis=1)
