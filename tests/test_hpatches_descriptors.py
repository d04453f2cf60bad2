"""Descriptors of HPatches: one order of rows, exact round trips through CSV, damage told by place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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


def test_binary_descriptors_are_those_of_bytes() -> None:
    assert not lay_out(SEQUENCES, floats().astype(np.float64)).binary
    assert lay_out(SEQUENCES, floats().astype(np.float64)).values.dtype == np.float32
    assert lay_out(SEQUENCES, bits()).binary
    np.testing.assert_array_equal(lay_out(SEQUENCES, bits().astype(bool)).values, bits())
    with pytest.raises(ValueError, match="79 descriptors of 80 patches"):
        lay_out(SEQUENCES, floats()[1:])


@pytest.mark.parametrize(
    ("row", "name"), [(0, "v_one, ref, patch 0"), (47, "v_one, t5, patch 2"), (55, "i_two, e3, patch 1")]
)
@pytest.mark.parametrize("value", [(np.nan, 1, 1, 1), (-np.inf, 1, 1, 1), (0, 0, 0, 0)])
def test_a_descriptor_without_a_direction_is_told_by_place(
    row: int, name: str, value: tuple[float, ...]
) -> None:
    values = floats()
    values[9] = [0, 0, 0, -1e-30]
    check(lay_out(SEQUENCES, values))
    values[row] = value
    with pytest.raises(ValueError, match=f"descriptor of {name} has NaN, infinity or zero norm"):
        check(lay_out(SEQUENCES, values))


def test_binary_descriptors_may_be_all_zero_but_hold_bits_only() -> None:
    values = bits()
    values[3] = 0
    check(lay_out(SEQUENCES, values))
    values[50, 2] = 2
    with pytest.raises(ValueError, match="i_two, e1, patch 0 has something else than the bits"):
        check(lay_out(SEQUENCES, values))


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


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


@settings(max_examples=10)
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


def test_files_are_as_the_benchmark_has_them(tmp_path: Path) -> None:
    values = floats(2)
    values[3] = [0.1, -2]
    write_descriptors(tmp_path / "ours", lay_out(SEQUENCES, values))
    files = {path.relative_to(tmp_path / "ours").as_posix() for path in tmp_path.rglob("*.csv")}
    assert files == {f"{sequence.name}/{file}.csv" for sequence in SEQUENCES for file in FILES}
    lines = (tmp_path / "ours" / "v_one" / "e1.csv").read_text().splitlines()
    assert len(lines) == 3
    assert lines[0] == "0.100000001,-2"
    row = bits(8)
    row[0] = [1, 0, 0, 0, 0, 0, 1, 1]
    write_descriptors(tmp_path / "packed", lay_out(SEQUENCES, row), packed=True)
    assert (tmp_path / "packed" / "v_one" / "ref.csv").read_text().splitlines()[0] == "131"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_descriptors(tmp_path, lay_out(SEQUENCES, floats()))
    return tmp_path


def test_another_delimiter_is_read_when_named(written: Path) -> None:
    for path in written.rglob("*.csv"):
        path.write_text(path.read_text().replace(",", ";"))
    np.testing.assert_array_equal(read_descriptors(written, SEQUENCES, delimiter=";").values, floats())


@pytest.mark.parametrize(
    "content",
    ["", "1,2,3,4\n", "1,2,3,4\n1,2,3\n", "1,2,3,4\n1,,3,4\n", "1,2,x,4\n" * 2, "1,2,3\n" * 2],
)
def test_a_damaged_file_is_named(written: Path, content: str) -> None:
    (written / "i_two" / "t2.csv").write_text(content)
    with pytest.raises(ValueError, match=r"i_two/t2\.csv"):
        read_descriptors(written, SEQUENCES)
