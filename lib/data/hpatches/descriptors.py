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
from lib.data.tables import filled_lines, refuse_rows
from lib.files import replacing

MOST_NUMBERS = 1 << 16
_LONGEST_LINE = 1 << 21
# Rows looked at at once, so that checks take little memory beside the descriptors.
_BLOCK = 4096


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of every patch of some sequences.

    Attributes:
        sequences: names, as many as S.
        starts, counts: (S,) int64, the first row of each sequence, and patches in each of its files.
        values: (P, k) float32, or uint8 of 0 and 1 for binary ones; P is 16 times all counts. The row
            of patch i in file f (a place in `FILES`) of sequence s is starts[s] + f * counts[s] + i.
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
            sequence, file, patch: integers whose shapes broadcast; file is a place in `FILES`.

        Raises:
            IndexError: a file or patch that is not there.
        """
        counts = self.counts[sequence]
        file, patch = np.asarray(file), np.asarray(patch)
        if ((file < 0) | (file >= len(FILES))).any() or ((patch < 0) | (patch >= counts)).any():
            raise IndexError(
                f"files are 0 to {len(FILES) - 1} and patches below their sequence's count: these "
                "descriptors are of other sequences"
            )
        return self.starts[sequence] + file * counts + patch


def lay_out(sequences: abc.Sequence[Sequence], values: np.ndarray) -> Descriptors:
    """Descriptors from values that lie in the order sequence, file, patch.

    Args:
        sequences: what the values describe.
        values: (P, k), P being 16 times the patches of all sequences; bool or uint8 of 0 and 1 are
            binary, floats are kept as float32.

    Raises:
        ValueError: another shape or type.
    """
    starts, counts, total = _places(sequences)
    if values.ndim != 2 or len(values) != total or values.shape[1] == 0:
        raise ValueError(
            f"({total}, k) values expected, {len(FILES)} for each of {total // len(FILES)} patches; got "
            f"{values.shape}"
        )
    if values.dtype == bool:
        values = values.view(np.uint8)
    elif np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float32, copy=False)
    elif values.dtype != np.uint8:
        raise ValueError(f"values are {values.dtype}: give floats, or uint8 of 0 and 1 for binary ones")
    return Descriptors(tuple(sequence.name for sequence in sequences), starts, counts, values)


def check(descriptors: Descriptors) -> None:
    """Refuse what has no distance or no direction.

    Raises:
        ValueError: NaN or infinity; a norm of zero of a float descriptor; a binary one with something
            else than 0 and 1. The message names sequence, file and patch.
    """
    for start in range(0, len(descriptors.values), _BLOCK):
        block = descriptors.values[start : start + _BLOCK]
        if descriptors.binary:
            wrong, what = (block > 1).any(axis=1), "has something else than the bits 0 and 1"
        else:
            finite = np.isfinite(block).all(axis=1)
            wrong, what = ~finite | ~block.any(axis=1), "has zero norm"
            if wrong.any() and not finite[wrong.argmax()]:
                what = "has NaN or infinity"
        if wrong.any():
            name, file, patch = _where(descriptors, start + int(wrong.argmax()))
            raise ValueError(
                f"descriptor of {name}, {file}, patch {patch} {what}: find out why the describer "
                "gives it, and describe again"
            )


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
    starts, _, total = _places(sequences)
    values: np.ndarray | None = None
    for sequence, start in zip(sequences, starts.tolist(), strict=True):
        for place, file in enumerate(FILES):
            path = folder / sequence.name / f"{file}.csv"
            read = _read_file(path, sequence.count, packed, delimiter)
            if values is None:
                first, values = path, np.empty((total, read.shape[1]), read.dtype)
            if read.shape[1] != values.shape[1]:
                raise ValueError(
                    f"{path} has descriptors of length {read.shape[1]} but {first} of length "
                    f"{values.shape[1]}: they are of different describers; write them again"
                )
            row = start + place * sequence.count
            values[row : row + sequence.count] = read
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
        ValueError: packed, but not binary or no multiple of eight bits.
        OSError: the folder cannot be written.
    """
    length = descriptors.values.shape[1]
    if packed and (not descriptors.binary or length % 8):
        kind = "binary" if descriptors.binary else "float"
        raise ValueError(
            f"{kind} descriptors of length {length} cannot be packed, only binary ones of a multiple of "
            "8 bits: write with packed=False"
        )
    # Nine significant digits tell any two float32 apart.
    form = "%d" if descriptors.binary else "%.9g"
    for name, start, count in zip(
        descriptors.sequences, descriptors.starts, descriptors.counts, strict=True
    ):
        files = descriptors.values[start : start + len(FILES) * count].reshape(len(FILES), count, -1)
        for file, values in zip(FILES, files, strict=True):
            with replacing(folder / name / f"{file}.csv") as half:
                np.savetxt(half, np.packbits(values, 1) if packed else values, form, delimiter=",")


def _places(sequences: abc.Sequence[Sequence]) -> tuple[np.ndarray, np.ndarray, int]:
    if not sequences:
        raise ValueError("no sequences: give those that the descriptors are of")
    counts = np.array([sequence.count for sequence in sequences], np.int64)
    ends = len(FILES) * counts.cumsum()
    return ends - len(FILES) * counts, counts, int(ends[-1])


def _where(descriptors: Descriptors, row: int) -> tuple[str, str, int]:
    s = int(np.searchsorted(descriptors.starts, row, side="right")) - 1
    file, patch = divmod(row - int(descriptors.starts[s]), int(descriptors.counts[s]))
    return descriptors.sequences[s], FILES[file], patch


def _read_file(path: Path, count: int, packed: bool, delimiter: str) -> np.ndarray:
    """(count, k) float32, or uint8 bits."""
    import pandas as pd

    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: write descriptors of all 16 files of each sequence")
    with path.open("rb") as file:
        first = file.readline(_LONGEST_LINE)
    if len(first) == _LONGEST_LINE or first.count(delimiter.encode()) >= MOST_NUMBERS:
        raise ValueError(
            f"{path}: its first line has more than {MOST_NUMBERS:,} numbers or {_LONGEST_LINE:,} bytes, "
            "which is no descriptor: write a line for each patch"
        )
    try:
        # What is too large for float32 becomes infinite, which `check` tells.
        with np.errstate(over="ignore"):
            frame = pd.read_csv(path, header=None, sep=delimiter, dtype=np.float32, engine="c")
        read = frame.to_numpy()
    except pd.errors.EmptyDataError:
        read = np.empty((0, 1), np.float32)
    except (ValueError, OverflowError) as error:
        raise ValueError(_trouble(path, delimiter) or f"{path}: {error}") from error
    # pandas fills up short rows, and empty fields, with NaN.
    trouble = _trouble(path, delimiter) if np.isnan(read).any() else None
    if trouble:
        raise ValueError(trouble)
    if len(read) != count:
        raise ValueError(
            f"{path} has {len(read)} rows but the sequence has {count} patches: write a row for each "
            "patch, without a header"
        )
    if not packed:
        return read
    wrong = ~((read >= 0) & (read <= 255) & (read == np.floor(read))).all(axis=1)
    refuse_rows(path, wrong, lambda _: "packed descriptors are whole numbers 0 to 255")
    return np.unpackbits(read.astype(np.uint8), axis=1)


def _trouble(path: Path, delimiter: str) -> str | None:
    """What is wrong with the first line that is not as the first, or not of numbers."""
    length = 0
    for where, fields in filled_lines(path, delimiter):
        length = length or len(fields)
        if len(fields) != length:
            return f"{where}: {len(fields)} numbers, but the first has {length}: write the file again"
        for field in fields:
            try:
                float(field)
            except ValueError:
                return (
                    f"{where}: {field[:40]!r} is no number; write numbers with {delimiter!r} between "
                    "them and no header, or name another delimiter"
                )
    return None
