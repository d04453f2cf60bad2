"""Descriptors of HPatches: one order of rows, exact round trips through CSV, damage told by place."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lib.data.hpatches import descriptors as module
from lib.data.hpatches.descriptors import (
    check,
    lay_out,
    read_descriptors,
    write_descriptors,
)
from lib.data.hpatches.release import FILES, Sequence

SEQUENCES = [Sequence("v_one", Path("v_one"), 3), Sequence("i_two", Path("i_two"), 2)]
ROWS = 16 * 5


def floats(length: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((ROWS, length)).astype(np.float32)


def bits(length: int = 16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (ROWS, length), dtype=np.uint8)


def test_rows_are_in_the_order_sequence_file_patch() -> None:
    laid = lay_out(SEQUENCES, floats())
    assert laid.sequences == ("v_one", "i_two")
    places = [
        (s, f, i) for s, one in enumerate(SEQUENCES) for f in range(len(FILES)) for i in range(one.count)
    ]
    sequence, file, patch = np.array(places).T
    np.testing.assert_array_equal(laid.rows(sequence, file, patch), np.arange(ROWS))
    assert laid.rows(1, 2, 1) == 3 * 16 + 2 * 2 + 1
    assert laid.rows(np.array([[0], [1]]), np.arange(16), 0).shape == (2, 16)


@pytest.mark.parametrize("place", [(0, 0, 3), (1, 0, 2), (0, 16, 0), (0, -1, 0), (0, 0, -1)])
def test_a_patch_that_is_not_there_has_no_row(place: tuple[int, int, int]) -> None:
    with pytest.raises(IndexError, match="other sequences"):
        lay_out(SEQUENCES, floats()).rows(*(np.array([index]) for index in place))


def test_binary_descriptors_are_those_of_bytes() -> None:
    assert not lay_out(SEQUENCES, floats().astype(np.float64)).binary
    assert lay_out(SEQUENCES, floats().astype(np.float64)).values.dtype == np.float32
    assert lay_out(SEQUENCES, bits()).binary
    np.testing.assert_array_equal(lay_out(SEQUENCES, bits().astype(bool)).values, bits())
    with pytest.raises(ValueError, match="values are int64: give floats, or uint8"):
        lay_out(SEQUENCES, bits().astype(np.int64))


@pytest.mark.parametrize("values", [floats()[1:], floats()[:, :0], floats()[:, 0]])
def test_values_of_another_shape_are_refused(values: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"\(80, k\) values expected, 16 for each of 5 patches; got"):
        lay_out(SEQUENCES, values)
    with pytest.raises(ValueError, match="no sequences"):
        lay_out([], floats())


@pytest.mark.parametrize("block", [1, 7, 4096])
@pytest.mark.parametrize(
    ("row", "name"), [(0, "v_one, ref, patch 0"), (47, "v_one, t5, patch 2"), (55, "i_two, e3, patch 1")]
)
@pytest.mark.parametrize(
    ("value", "told"),
    [(np.nan, "has NaN or inf"), (np.inf, "has NaN or inf"), (-np.inf, "has NaN"), (0, "has zero norm")],
)
def test_a_descriptor_without_a_direction_is_told_by_place(
    monkeypatch: pytest.MonkeyPatch, row: int, name: str, value: float, told: str, block: int
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    values = floats()
    check(lay_out(SEQUENCES, values))
    values[row] = value
    with pytest.raises(ValueError, match=f"descriptor of {name} {told}"):
        check(lay_out(SEQUENCES, values))


def test_one_number_that_is_none_is_enough_and_one_that_is_not_zero_too() -> None:
    values = floats()
    values[9] = [0, 0, 0, -1e-30]
    check(lay_out(SEQUENCES, values))
    values[9, 1] = np.nan
    with pytest.raises(ValueError, match="v_one, e3, patch 0 has NaN"):
        check(lay_out(SEQUENCES, values))


def test_binary_descriptors_may_be_all_zero_but_hold_bits_only() -> None:
    values = bits()
    values[3] = 0
    check(lay_out(SEQUENCES, values))
    values[50, 2] = 2
    with pytest.raises(ValueError, match="i_two, e1, patch 0 has something else than the bits"):
        check(lay_out(SEQUENCES, values))


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=15, deadline=None)
@given(values=arrays(np.float32, (32, 3), elements=finite, fill=st.nothing()))
def test_float_descriptors_are_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray
) -> None:
    values[:, 0] = np.where(values.any(axis=1), values[:, 0], 1)
    sequence = [Sequence("v_one", Path("v_one"), 2)]
    folder = tmp_path_factory.mktemp("csv")
    write_descriptors(folder, lay_out(sequence, values))
    read = read_descriptors(folder, sequence)
    assert read.values.dtype == np.float32
    np.testing.assert_array_equal(read.values, values)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99), length=st.sampled_from([8, 24, 256]))
def test_packed_descriptors_are_read_back_as_bits(
    tmp_path_factory: pytest.TempPathFactory, seed: int, length: int
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    written = lay_out(SEQUENCES, bits(length, seed))
    write_descriptors(folder, written, packed=True)
    read = read_descriptors(folder, SEQUENCES, packed=True)
    assert read.binary
    np.testing.assert_array_equal(read.values, written.values)
    np.testing.assert_array_equal(read.starts, written.starts)
    np.testing.assert_array_equal(read.counts, written.counts)


def test_files_are_as_the_benchmark_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 2)
    values = floats(2)
    values[3] = [0.1, -2]
    write_descriptors(tmp_path / "ours", lay_out(SEQUENCES, values))
    folders = {path.name for path in (tmp_path / "ours").iterdir()}
    assert folders == {"v_one", "i_two"}
    for sequence in SEQUENCES:
        files = {path.name for path in (tmp_path / "ours" / sequence.name).iterdir()}
        assert files == {f"{file}.csv" for file in FILES}
    lines = (tmp_path / "ours" / "v_one" / "e1.csv").read_text().splitlines()
    assert len(lines) == 3
    assert lines[0] == "0.100000001,-2"
    row = bits(8)
    row[0] = [1, 0, 0, 0, 0, 0, 1, 1]
    write_descriptors(tmp_path / "packed", lay_out(SEQUENCES, row), packed=True)
    assert (tmp_path / "packed" / "v_one" / "ref.csv").read_text().splitlines()[0] == "131"


def test_bits_that_are_not_packed_are_read_as_floats(tmp_path: Path) -> None:
    values = bits(6)
    values[:, 0] = 1
    write_descriptors(tmp_path, lay_out(SEQUENCES, values))
    read = read_descriptors(tmp_path, SEQUENCES)
    assert not read.binary
    np.testing.assert_array_equal(read.values, values)


def test_only_whole_bytes_of_bits_are_packed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="float descriptors of length 8 cannot be packed"):
        write_descriptors(tmp_path, lay_out(SEQUENCES, floats(8)), packed=True)
    with pytest.raises(ValueError, match="binary descriptors of length 12 cannot be packed"):
        write_descriptors(tmp_path, lay_out(SEQUENCES, bits(12)), packed=True)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_descriptors(tmp_path, lay_out(SEQUENCES, floats()))
    return tmp_path


def test_another_delimiter_is_read_when_named(written: Path) -> None:
    for path in written.rglob("*.csv"):
        path.write_text(path.read_text().replace(",", ";"))
    np.testing.assert_array_equal(read_descriptors(written, SEQUENCES, delimiter=";").values, floats())
    with pytest.raises(ValueError, match=r"v_one/ref\.csv, line 1: .* or name another delimiter"):
        read_descriptors(written, SEQUENCES)


@pytest.mark.parametrize("missing", ["v_one/ref.csv", "i_two/h3.csv"])
def test_a_missing_file_is_named(written: Path, missing: str) -> None:
    (written / missing).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{missing} is missing"):
        read_descriptors(written, SEQUENCES)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", " has 0 rows but the sequence has 2 patches"),
        ("1,2,3,4\n", " has 1 rows but the sequence has 2 patches"),
        ("1,2,3,4\n" * 3, " has 3 rows but the sequence has 2 patches"),
        ("1,2,3,4\n1,2,3\n", ", line 2: 3 numbers, but the first has 4"),
        ("1,2,3\n\n1,2,3,4\n", ", line 3: 4 numbers, but the first has 3"),
        ("1,2,3,4\n1,2,x,4\n", ", line 2: 'x' is no number"),
        ("a,b,c,d\n1,2,3,4\n1,2,3,4\n", ", line 1: 'a' is no number"),
        ("1,2,3,4\n1,,3,4\n", ", line 2: '' is no number"),
        ("1,2,3,4,\n1,2,3,4,\n", ", line 1: '' is no number"),
        ("1,2,3,4\n1,NA,3,4\n", ", line 2: 'NA' is no number"),
        ("1,2,3\n1,2,3\n", " has descriptors of length 3 but .*v_one/ref.csv of length 4"),
    ],
)
def test_a_damaged_file_is_named(written: Path, content: str, told: str) -> None:
    (written / "i_two" / "t2.csv").write_text(content)
    with pytest.raises(ValueError, match=rf"i_two/t2\.csv{told}"):
        read_descriptors(written, SEQUENCES)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("nan,2,3,4", "has NaN"),
        ("1,2,inf,4", "has NaN or infinity"),
        ("1,2,1e300,4", "has NaN or infinity"),
        ("0,0,0,0", "has zero norm"),
    ],
)
def test_a_descriptor_that_is_none_is_named(written: Path, row: str, told: str) -> None:
    (written / "i_two" / "t2.csv").write_text(f"1,2,3,4\n{row}\n")
    with pytest.raises(ValueError, match=f"i_two, t2, patch 1 {told}"):
        read_descriptors(written, SEQUENCES)


@pytest.mark.parametrize("value", ["256", "-1", "1.5", "nan"])
def test_a_packed_number_that_is_no_byte_is_told_by_file_and_row(tmp_path: Path, value: str) -> None:
    write_descriptors(tmp_path, lay_out(SEQUENCES, bits(16)), packed=True)
    (tmp_path / "i_two" / "e4.csv").write_text(f"0,255\n{value},0\n")
    with pytest.raises(ValueError, match=r"i_two/e4\.csv, line 2: packed descriptors are whole numbers"):
        read_descriptors(tmp_path, SEQUENCES, packed=True)


@pytest.mark.parametrize("columns", [10**7, 70_000])
def test_a_line_too_long_for_a_descriptor_is_refused_at_once(tmp_path: Path, columns: int) -> None:
    (tmp_path / "v_x").mkdir()
    (tmp_path / "v_x" / "ref.csv").write_text("0," * columns + "0\n")
    started = time.monotonic()
    with pytest.raises(ValueError, match=r"ref\.csv: its first line has more than 65,536 numbers"):
        read_descriptors(tmp_path, [Sequence("v_x", tmp_path, 1)])
    assert time.monotonic() - started < 1
