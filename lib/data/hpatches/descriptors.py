"""Read and write descriptors of HPatches sequences in the benchmark's CSV layout.

The layout has one folder per sequence with ``ref.csv``, ``e1.csv`` … ``t5.csv``. A file has one line per
patch, in the patches' order, and no header. Binary descriptors are packed, eight bits a number (the
benchmark's bin_packed). Nothing in such files says so: SIFT's numbers are whole and below 256 too. Nor
does anything say by which descriptor they are, or of which patches. So ``format.json`` beside the
folders says whether the numbers are packed, and what they are of. The benchmark's Python code opens the
folders alone and passes it over.

In memory, descriptors are one array (16, N, k): files in the order of `FILES`, then the N patches of all
sequences, one sequence after the other (`first_patches`). It is float32, or uint8 of 0 and 1 for binary
descriptors.
"""

import json
from collections.abc import Sequence as Sequences
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from lib.data.hpatches.release import FILES, Sequence, first_patches
from lib.files import replacing, write_bytes

FORMAT = "format.json"
# Two rows of bits are 0 and 1 in all files of some real descriptor; no three rows are 0, 1 and 2.
_FEWEST_ROWS = 3


@dataclass(frozen=True)
class Origin:
    """What the descriptors of a folder are of.

    Attributes:
        descriptor: its name.
        weights: a digest of its weights; None if it has none.
        release: the digest of each sequence's patches (`Sequence.digest`), by the sequence's name.
    """

    descriptor: str
    weights: str | None
    release: dict[str, str]


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
        sequence, file, patch = _place(*wrong[0], sequences)
        what = "has a number that is not finite"
        if highest[tuple(wrong[0])] == 0:
            what = "is zero in all dimensions and so has no direction"
        raise ValueError(f"the descriptor of {sequence}, {file}, patch {patch} {what}")


def _place(file: int, patch: int, sequences: Sequences[Sequence]) -> tuple[str, str, int]:
    """Return the sequence, the file and the number in it of a descriptor of the array."""
    starts = first_patches(sequences)
    owner = int(np.searchsorted(starts, patch, side="right")) - 1
    return sequences[owner].name, FILES[file], int(patch - starts[owner])


def read_descriptors(
    folder: Path, sequences: Sequences[Sequence], *, packed: bool | None = None, delimiter: str = ","
) -> np.ndarray:
    """Read descriptors in the benchmark's layout, whoever made them.

    Args:
        folder: holds a folder for each sequence.
        sequences: the sequences to read, each with its expected number of patches.
        packed: whether the numbers are bytes of eight bits each, the highest first. None: what the
            folder's `FORMAT` says; without that file they are not, but must not look like it.
        delimiter: the character between numbers.

    Returns:
        (16, N, k) float32, or bits where packed.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file has another number of rows than patches, a value that is no number (no byte
            if packed), a delimiter at the end of a line, or descriptors of another length than other
            files; the first or the last column numbers the rows of every file; all numbers are whole, 0
            to 255, and nothing says whether they are packed; `packed` contradicts `FORMAT`, or `FORMAT`
            says that other patches were described; or as `check` raises.
    """
    if (known := _format(folder)) is not None:
        packed = _packing(folder, known, packed)
        _refuse_other_patches(folder, known, sequences)
    parts = []
    for file in FILES:
        for sequence in sequences:
            path = folder / sequence.name / f"{file}.csv"
            parts.append(_read_file(path, delimiter))
            expected = (sequence.count, parts[0].shape[1])
            if parts[-1].shape != expected:
                raise ValueError(f"{path} has (rows, numbers) {parts[-1].shape}, {expected} expected")
    descriptors = np.concatenate(parts).reshape(len(FILES), -1, parts[0].shape[1])
    _refuse_row_numbers(folder, descriptors, sequences)
    _refuse_decimal_commas(folder, descriptors, sequences)
    if packed:
        return _unpacked(folder, descriptors, sequences)
    if packed is None and _could_be_packed(descriptors):
        raise ValueError(
            f"{folder}: all numbers are whole, from 0 to 255: say --packed if each packs eight bits of "
            "a binary descriptor, or --no-packed if they are plain numbers, as SIFT's are"
        )
    check(descriptors, sequences)
    return descriptors


def check_origin(folder: Path, origin: Origin) -> None:
    """Refuse to write descriptors into a folder of others.

    Args:
        folder: new, empty, or begun with the same origin.
        origin: of the descriptors that are to be written.

    Raises:
        FileExistsError: the folder has files of another descriptor or release, or nothing says of which.
        ValueError: its `FORMAT` is damaged.
    """
    known, stated = _format(folder), asdict(origin)
    if known is None:
        # A kill may leave a half-written file, which says nothing.
        if any(".half" not in path.name for path in folder.glob("[!.]*")):
            raise FileExistsError(f"{folder} is there already: name a folder that is not, or remove it")
    elif changed := ", ".join(name for name in stated if known.get(name) != stated[name]):
        raise FileExistsError(
            f"{folder} was made with different {changed}: name another folder, or remove it"
        )


def write_descriptors(
    folder: Path,
    descriptors: np.ndarray,
    sequences: Sequences[Sequence],
    origin: Origin | None = None,
) -> None:
    """Write descriptors for the benchmark; float32 values are read back exactly, bits are packed.

    Args:
        folder: gets a folder for each sequence, and `FORMAT`.
        descriptors: (16, N, k) float32, or bits with k a multiple of eight.
        sequences: the sequences whose patches are described.
        origin: what they are of, for `FORMAT`; None says nothing.

    Raises:
        OSError: the folder cannot be written.
    """
    # Nine significant digits tell any two float32 apart.
    form = "%.9g"
    packed = descriptors.dtype == np.uint8
    if packed:
        form, descriptors = "%d", np.packbits(descriptors, axis=2)
    # It comes first, so that an interrupted folder has it too.
    content = {"packed": packed} | (asdict(origin) if origin else {})
    write_bytes(folder / FORMAT, (json.dumps(content) + "\n").encode())
    parts = np.split(descriptors, first_patches(sequences)[1:], axis=1)
    for sequence, part in zip(sequences, parts, strict=True):
        for file, values in zip(FILES, part, strict=True):
            with replacing(folder / sequence.name / f"{file}.csv") as half:
                np.savetxt(half, values, form, delimiter=",")


def _read_file(path: Path, delimiter: str) -> np.ndarray:
    """Read a file as (n, k) float32; values missing from a row are NaN."""
    import pandas as pd

    form = {"header": None, "sep": delimiter, "dtype": np.float32, "engine": "c"}
    try:
        # Values too large for float32 become infinite, which `check` refuses.
        with np.errstate(over="ignore"):
            table = pd.read_csv(path, **form).to_numpy()
    except FileNotFoundError as error:
        advice = "write descriptors of all 16 files of each sequence"
        raise FileNotFoundError(f"{path} is missing: {advice}") from error
    except (ValueError, OverflowError) as error:
        _refuse_last_delimiter(path, delimiter)
        raise ValueError(f"{path}: {str(error).strip()}; or name another delimiter") from error
    if np.isnan(table[:, -1]).any():
        _refuse_last_delimiter(path, delimiter)
    return table


def _refuse_last_delimiter(path: Path, delimiter: str) -> None:
    """Raise if a line of a file ends with the delimiter: pandas takes it for one more, empty column."""
    blank = "\r\n" if delimiter.isspace() else None
    with open(path, errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.rstrip(blank).endswith(delimiter):
                told = f"line {number} ends with {delimiter!r}"
                raise ValueError(f"{path}, {told}: end every line with its last number")


def _format(folder: Path) -> dict | None:
    """Return what `FORMAT` says, or None without that file; raise if it does not say what is packed."""
    path = folder / FORMAT
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("packed"), bool):
        advice = "remove the file, then say --packed or --no-packed"
        raise ValueError(f'{path} has no "packed", true or false: {advice}')
    return content


def _packing(folder: Path, known: dict, packed: bool | None) -> bool:
    """Return whether numbers are packed as `FORMAT` says; raise if `packed` differs."""
    written = known["packed"]
    if packed not in (None, written):
        told = "packed" if written else "not packed"
        advice = "leave the option out, or remove the file if it belongs to other CSVs"
        raise ValueError(f"{folder / FORMAT} says that the numbers are {told}: {advice}")
    return written


def _refuse_other_patches(folder: Path, known: dict, sequences: Sequences[Sequence]) -> None:
    """Raise if `FORMAT` says that the patches of a sequence were others when they were described."""
    release = known.get("release")
    if release is None:
        return
    for sequence in sequences:
        if not isinstance(release, dict) or release.get(sequence.name) != sequence.digest():
            told = f"says that other patches were described than those of {sequence.folder}"
            raise ValueError(f"{folder / FORMAT} {told}: describe these into another folder")


def _refuse_decimal_commas(folder: Path, table: np.ndarray, sequences: Sequences[Sequence]) -> None:
    """Raise if columns of (16, N, k) are, by turns, the part of a number before a comma and the digits
    after it: "0,1284,-0,0517" for the two numbers 0.1284 and -0.0517."""
    if table.shape[2] % 2:
        return
    before, digits = table[:, :, ::2], table[:, :, 1::2]
    # Small numbers may be written as "5,43e-05". A byte has no more than three digits.
    whole = before == np.round(before)
    mostly_zero = np.mean(np.abs(before) <= 1) > 0.9
    if whole.all() and mostly_zero and (digits >= 0).all() and digits.max() > 255:
        told = "the numbers seem to have decimal commas, which part them in two"
        advice = "write them with decimal points"
        raise ValueError(f"{folder / sequences[0].name / FILES[0]}.csv: {told}: {advice}")


def _refuse_row_numbers(folder: Path, table: np.ndarray, sequences: Sequences[Sequence]) -> None:
    """Raise if the first or last of k columns of (16, N, k) goes up by one from row to row in all files.

    That covers numbers that start at 0, at 1 or where the sequence before ended. Corresponding patches
    stand in the same row of each file, so that such a column tells which patches match.
    """
    telling = next((one for one in sequences if one.count >= _FEWEST_ROWS), None)
    if telling is None:
        return
    length = table.shape[2]
    between_sequences = first_patches(sequences)[1:] - 1
    for column in (0, length - 1):
        # Infinite or huge values have differences that are not one either.
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.diff(table[:, :, column], axis=1)
        steps = np.delete(steps, between_sequences, axis=1)
        if (steps == 1).all():
            told = f"column {column + 1} of {length} numbers the rows, as in every file"
            advice = "write the descriptors without it"
            raise ValueError(f"{folder / telling.name / FILES[0]}.csv: {told}: {advice}")


def _could_be_packed(table: np.ndarray) -> bool:
    """Whether all numbers are whole, from 0 to 255, and not just bits."""
    # File by file: the first one tells nearly always, and a whole release takes a gigabyte.
    return all(_are_bytes(file).all() for file in table) and bool(table.max() > 1)


def _are_bytes(numbers: np.ndarray) -> np.ndarray:
    return (numbers >= 0) & (numbers <= 255) & (numbers == np.floor(numbers))


def _unpacked(folder: Path, table: np.ndarray, sequences: Sequences[Sequence]) -> np.ndarray:
    """Return the bits (16, N, 8k) that packed numbers (16, N, k) stand for; raise if one is no byte."""
    wrong = np.argwhere(~_are_bytes(table).all(axis=2))
    if len(wrong):
        sequence, file, patch = _place(*wrong[0], sequences)
        told = f"row {patch + 1} has a number that is no byte"
        raise ValueError(f"{folder / sequence / file}.csv: {told}: these numbers are not packed")
    return np.unpackbits(table.astype(np.uint8), axis=2)
