"""HPatches descriptors: one order of rows, exact round trips through CSV, damage named by place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lib.data.hpatches.descriptors import FORMAT, check, read_descriptors, write_descriptors
from lib.data.hpatches.release import FILES, Sequence

SEQUENCES = [Sequence("v_one", Path("v_one"), 3), Sequence("i_two", Path("i_two"), 2)]


def floats(length: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((16, 5, length)).astype(np.float32)


def bits(length: int = 16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (16, 5, length), dtype=np.uint8)


@pytest.mark.parametrize(
    ("file", "patch", "name"),
    [(0, 0, "v_one, ref, patch 0"), (15, 2, "v_one, t5, patch 2"), (3, 4, "i_two, e3, patch 1")],
)
@pytest.mark.parametrize(
    ("value", "what"),
    [
        ((np.nan, 1, 1, 1), "has a number that is not finite"),
        ((-np.inf, 1, 1, 1), "has a number that is not finite"),
        ((0, 0, 0, 0), "is zero in all dimensions"),
    ],
)
def test_a_descriptor_without_a_direction_is_named_by_place(
    file: int, patch: int, name: str, value: tuple[float, ...], what: str
) -> None:
    values = floats()
    values[9, 1] = [0, 0, 0, -1e-30]
    check(values, SEQUENCES)
    values[file, patch] = value
    with pytest.raises(ValueError, match=f"the descriptor of {name} {what}"):
        check(values, SEQUENCES)


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(values=arrays(np.float32, (16, 2, 3), elements=finite, fill=st.nothing()))
def test_float_descriptors_are_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray
) -> None:
    values[..., 0] = np.where(values.any(axis=2), values[..., 0], 1)
    sequence = [Sequence("v_one", Path("v_one"), 2)]
    folder = tmp_path_factory.mktemp("csv")
    write_descriptors(folder, values, sequence)
    read = read_descriptors(folder, sequence)
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, values)


@settings(max_examples=10)
@given(seed=st.integers(0, 99), length=st.sampled_from([8, 24, 256]))
def test_packed_descriptors_are_read_back_as_bits(
    tmp_path_factory: pytest.TempPathFactory, seed: int, length: int
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    expected = bits(length, seed)
    write_descriptors(folder, expected, SEQUENCES)
    read = read_descriptors(folder, SEQUENCES, packed=True)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, expected)


def test_files_have_the_benchmarks_layout(tmp_path: Path) -> None:
    values = floats(2)
    values[1, 0] = [0.1, -2]
    write_descriptors(tmp_path / "ours", values, SEQUENCES)
    files = {path.relative_to(tmp_path / "ours").as_posix() for path in tmp_path.rglob("*.csv")}
    assert files == {f"{sequence.name}/{file}.csv" for sequence in SEQUENCES for file in FILES}
    lines = (tmp_path / "ours" / "v_one" / "e1.csv").read_text().splitlines()
    assert len(lines) == 3
    assert lines[0] == "0.100000001,-2"
    # The benchmark's code opens every folder as a sequence's, and no file beside them.
    beside = {path.name for path in (tmp_path / "ours").iterdir()}
    assert beside == {"v_one", "i_two", FORMAT}
    packed = bits(8)
    packed[0, 0] = [1, 0, 0, 0, 0, 0, 1, 1]
    write_descriptors(tmp_path / "packed", packed, SEQUENCES)
    assert (tmp_path / "packed" / "v_one" / "ref.csv").read_text().splitlines()[0] == "131"


@pytest.fixture
def csv_folder(tmp_path: Path) -> Path:
    write_descriptors(tmp_path, floats(), SEQUENCES)
    return tmp_path


def test_another_delimiter_is_read_when_named(csv_folder: Path) -> None:
    for path in csv_folder.rglob("*.csv"):
        path.write_text(path.read_text().replace(",", ";"))
    np.testing.assert_array_equal(read_descriptors(csv_folder, SEQUENCES, delimiter=";"), floats())


@pytest.mark.parametrize(
    "content",
    ["", "1,2,3,4\n", "1,2,3,4\n1,2,3\n", "1,2,3,4\n1,,3,4\n", "1,2,x,4\n" * 2, "1,2,3\n" * 2],
)
def test_a_damaged_file_is_named(csv_folder: Path, content: str) -> None:
    (csv_folder / "i_two" / "t2.csv").write_text(content)
    with pytest.raises(ValueError, match=r"i_two.*t2"):
        read_descriptors(csv_folder, SEQUENCES)


@pytest.mark.parametrize("number", ["300", "-1", "1.5", "nan"])
def test_a_number_that_is_no_byte_is_refused(tmp_path: Path, number: str) -> None:
    write_descriptors(tmp_path, bits(8), SEQUENCES)
    (tmp_path / "v_one" / "h3.csv").write_text(f"7\n{number}\n9\n")
    with pytest.raises(ValueError, match=r"v_one/h3\.csv: row 2 has a number that is no byte"):
        read_descriptors(tmp_path, SEQUENCES, packed=True)


def write_foreign(folder: Path, values: np.ndarray, sequences: list[Sequence] = SEQUENCES) -> Path:
    """Write (16, N, k) numbers as other programs do: CSVs alone."""
    starts = np.cumsum([sequence.count for sequence in sequences])[:-1]
    for sequence, part in zip(sequences, np.split(values, starts, axis=1), strict=True):
        (folder / sequence.name).mkdir(parents=True)
        for file, table in zip(FILES, part, strict=True):
            np.savetxt(folder / sequence.name / f"{file}.csv", table, "%.9g", delimiter=",")
    return folder


# Numbers of the rows of both sequences, 3 and 2: in each file from 0, from 1, and through all sequences.
ROW_NUMBERS = [[0, 1, 2, 0, 1], [1, 2, 3, 1, 2], [0, 1, 2, 3, 4]]


def with_column(values: np.ndarray, column: np.ndarray, at: int) -> np.ndarray:
    return np.insert(values, at, column, axis=2)


@pytest.mark.parametrize("numbers", ROW_NUMBERS)
@pytest.mark.parametrize(("at", "name"), [(0, "column 1 of 5"), (4, "column 5 of 5")])
def test_a_column_that_numbers_the_rows_is_refused_by_name(
    tmp_path: Path, numbers: list[int], at: int, name: str
) -> None:
    folder = write_foreign(tmp_path, with_column(floats(), np.array(numbers), at))
    expected = (
        rf"^{folder}/v_one/ref\.csv: {name} numbers the rows, as in every file: write .* without it$"
    )
    with pytest.raises(ValueError, match=expected):
        read_descriptors(folder, SEQUENCES)


@pytest.mark.parametrize("count", [3, 300])
def test_a_column_that_numbers_the_rows_of_packed_bytes_is_refused(tmp_path: Path, count: int) -> None:
    sequences = [Sequence("v_one", Path("v_one"), count)]
    values = np.random.default_rng(0).integers(0, 256, (16, count, 4))
    folder = write_foreign(tmp_path, with_column(values, np.arange(count), 0), sequences)
    with pytest.raises(ValueError, match=r"v_one/ref\.csv: column 1 of 5 numbers the rows"):
        read_descriptors(folder, sequences, packed=True)


def test_a_huge_constant_is_no_row_number(tmp_path: Path) -> None:
    # As float32, one more would be the same number.
    values = with_column(floats(), np.full(5, 1e9, np.float32), 0)
    np.testing.assert_array_equal(read_descriptors(write_foreign(tmp_path, values), SEQUENCES), values)


def test_numbers_with_decimal_commas_are_refused(tmp_path: Path) -> None:
    folder = write_foreign(tmp_path, np.random.default_rng(0).uniform(-1, 1, (16, 5, 4)))
    for path in folder.rglob("*.csv"):
        path.write_text(path.read_text().replace(".", ","))
    with pytest.raises(ValueError, match=r"v_one/ref\.csv: the numbers seem to have decimal commas"):
        read_descriptors(folder, SEQUENCES)


def test_whole_numbers_are_not_taken_for_decimal_commas(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 600, (16, 5, 4)).astype(np.float32)
    np.testing.assert_array_equal(read_descriptors(write_foreign(tmp_path, values), SEQUENCES), values)


@pytest.mark.parametrize("at", [0, 4])
def test_a_column_that_numbers_the_rows_of_all_files_but_one_is_read(tmp_path: Path, at: int) -> None:
    values = with_column(floats(), np.array([0, 1, 2, 0, 1], np.float32), at)
    values[9, 4, at] = 2
    np.testing.assert_array_equal(read_descriptors(write_foreign(tmp_path, values), SEQUENCES), values)


def test_files_of_one_row_do_not_hide_a_column_that_numbers_the_rows(tmp_path: Path) -> None:
    sequences = [Sequence("i_two", Path("i_two"), 1), Sequence("v_one", Path("v_one"), 4)]
    values = with_column(floats(), np.array([0, 0, 1, 2, 3]), 0)
    with pytest.raises(ValueError, match=r"v_one/ref\.csv: column 1 of 5 numbers the rows"):
        read_descriptors(write_foreign(tmp_path, values, sequences), sequences)


def test_one_or_two_rows_a_file_do_not_make_a_row_number(tmp_path: Path) -> None:
    single = [Sequence(name, Path(name), 1) for name in ("v_one", "i_two")]
    values = floats()[:, :2]
    values[:, :, 0] = 0
    folder = write_foreign(tmp_path / "single", values, single)
    np.testing.assert_array_equal(read_descriptors(folder, single), values)
    # Bits of two patches, of which every image confirms the first: no third row contradicts.
    double = [Sequence("v_one", Path("v_one"), 2)]
    values = bits()[:, :2].astype(np.float32)
    values[:, :, 0] = [0, 1]
    folder = write_foreign(tmp_path / "double", values, double)
    np.testing.assert_array_equal(read_descriptors(folder, double), values)


@pytest.mark.parametrize("values", [bits(), floats().round()], ids=["bits", "whole floats"])
def test_the_format_is_read_from_the_file_that_writing_leaves(
    tmp_path: Path, values: np.ndarray
) -> None:
    values[:, :, 0] = 1
    write_descriptors(tmp_path, abs(values), SEQUENCES)
    read = read_descriptors(tmp_path, SEQUENCES)
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, abs(values))


def test_whole_numbers_below_256_are_refused_until_their_meaning_is_said(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(0, 256, (16, 5, 4))
    folder = write_foreign(tmp_path, numbers)
    with pytest.raises(ValueError, match=r"say --packed .*, or --no-packed .* SIFT") as refusal:
        read_descriptors(folder, SEQUENCES)
    assert "\n" not in str(refusal.value)
    packed = read_descriptors(folder, SEQUENCES, packed=True)
    np.testing.assert_array_equal(packed, np.unpackbits(numbers.astype(np.uint8), axis=2))
    plain = read_descriptors(folder, SEQUENCES, packed=False)
    assert plain.dtype == np.float32
    np.testing.assert_array_equal(plain, numbers)


@pytest.mark.parametrize("value", [256, -1, 0.5])
def test_one_number_that_no_byte_has_shows_plain_numbers(tmp_path: Path, value: float) -> None:
    numbers = np.random.default_rng(0).integers(1, 256, (16, 5, 4)).astype(np.float32)
    numbers[11, 3, 2] = value
    np.testing.assert_array_equal(read_descriptors(write_foreign(tmp_path, numbers), SEQUENCES), numbers)


def test_bits_that_nobody_packed_are_plain_numbers(tmp_path: Path) -> None:
    values = bits()
    values[:, :, 0] = 1
    np.testing.assert_array_equal(read_descriptors(write_foreign(tmp_path, values), SEQUENCES), values)


@pytest.mark.parametrize(("values", "told"), [(bits(), "packed"), (floats(), "not packed")])
def test_an_option_that_contradicts_the_format_is_refused(
    tmp_path: Path, values: np.ndarray, told: str
) -> None:
    write_descriptors(tmp_path, values, SEQUENCES)
    expected = rf"{FORMAT} says that the numbers are {told}: leave the option"
    with pytest.raises(ValueError, match=expected):
        read_descriptors(tmp_path, SEQUENCES, packed=told != "packed")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"packed": 1}', b"\xff"])
def test_a_format_that_says_nothing_is_named(tmp_path: Path, content: bytes) -> None:
    write_descriptors(tmp_path, floats(), SEQUENCES)
    (tmp_path / FORMAT).write_bytes(content)
    with pytest.raises(ValueError, match=f'{FORMAT} has no "packed", true or false: remove the file'):
        read_descriptors(tmp_path, SEQUENCES)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("1,2,\n3,4,\n5,6,\n", 1),
        ("1,2,\r\n3,4,\r\n5,6,\r\n", 1),
        ("1,2\n3,4, \n5,6\n", 2),
        ("1,2\n3,4\n5,\n", 3),
    ],
)
def test_a_comma_at_the_end_of_a_line_is_told(
    tmp_path: Path, content: str, line: int, packed: bool
) -> None:
    write_foreign(tmp_path, np.full((16, 5, 2), 0.5 if not packed else 7))
    path = tmp_path / "v_one" / "h3.csv"
    path.write_bytes(content.encode())
    expected = rf"^{path}, line {line} ends with ',': end every line with its last number$"
    with pytest.raises(ValueError, match=expected):
        read_descriptors(tmp_path, SEQUENCES, packed=packed)


@pytest.mark.parametrize("delimiter", [";", "\t", " ", "|"])
def test_another_delimiter_at_the_end_of_a_line_is_told(csv_folder: Path, delimiter: str) -> None:
    for path in csv_folder.rglob("*.csv"):
        path.write_text(path.read_text().replace(",", delimiter).replace("\n", f"{delimiter}\n"))
    with pytest.raises(ValueError, match=r"v_one/ref\.csv, line 1 ends with "):
        read_descriptors(csv_folder, SEQUENCES, delimiter=delimiter)
