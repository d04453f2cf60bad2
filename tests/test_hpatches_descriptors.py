"""HPatches descriptors: one order of rows, exact round trips through CSV, damage named by place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lib.data.hpatches.descriptors import check, read_descriptors, write_descriptors
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
@pytest.mark.parametrize("value", [(np.nan, 1, 1, 1), (-np.inf, 1, 1, 1), (0, 0, 0, 0)])
def test_a_descriptor_without_a_direction_is_named_by_place(
    file: int, patch: int, name: str, value: tuple[float, ...]
) -> None:
    values = floats()
    values[9, 1] = [0, 0, 0, -1e-30]
    check(values, SEQUENCES)
    values[file, patch] = value
    with pytest.raises(ValueError, match=f"descriptor of {name} has NaN, infinity or zero norm"):
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


@pytest.mark.parametrize("number", ["300", "-1", "1.5"])
def test_a_number_that_is_no_byte_is_refused(tmp_path: Path, number: str) -> None:
    write_descriptors(tmp_path, bits(8), SEQUENCES)
    (tmp_path / "v_one" / "h3.csv").write_text(f"7\n{number}\n9\n")
    with pytest.raises(ValueError, match=r"v_one/h3\.csv"):
        read_descriptors(tmp_path, SEQUENCES, packed=True)
