"""HPatches' patch format, its splits and training classes: read as written, damage reported by place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lib.data.hpatches.release import (
    FILES,
    LEVELS,
    Split,
    as_64,
    file_index,
    open_sequences,
    read_classes,
    read_sequence,
    read_sequences,
    read_splits,
    write_sequence,
    write_splits,
)


def noise(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {file: rng.integers(0, 256, (count, 65, 65), dtype=np.uint8) for file in FILES}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    write_sequence(folder / "v_one", noise(3, seed=1))
    write_sequence(folder / "i_two", noise(2, seed=2))
    return folder


def test_an_image_at_a_level_is_the_file_of_that_letter_and_number() -> None:
    assert " ".join(FILES) == "ref e1 e2 e3 e4 e5 h1 h2 h3 h4 h5 t1 t2 t3 t4 t5"
    for level in LEVELS:
        files = file_index(np.arange(6).reshape(2, 3), level)
        expected = ["ref", *(f"{level[0]}{image}" for image in range(1, 6))]
        assert np.array(FILES)[files].ravel().tolist() == expected


@settings(max_examples=5)
@given(count=st.integers(1, 6), seed=st.integers(0, 99))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("release") / "v_noise"
    patches = noise(count, seed)
    write_sequence(folder, patches)
    sequence = read_sequence(folder)
    assert (sequence.name, sequence.folder, sequence.count) == ("v_noise", folder, count)
    for file in FILES:
        np.testing.assert_array_equal(sequence.patches(file), patches[file])


def test_an_image_is_a_grey_column_of_patches(release: Path) -> None:
    assert {path.name for path in (release / "v_one").iterdir()} == {f"{file}.png" for file in FILES}
    with Image.open(release / "v_one" / "h4.png") as image:
        assert (image.format, image.mode, image.size) == ("PNG", "L", (65, 3 * 65))
        column = np.asarray(image)
    np.testing.assert_array_equal(column[65:130], noise(3, seed=1)["h4"][1])


def test_a_colour_image_is_read_as_grey(release: Path) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (3 * 65, 65, 3), dtype=np.uint8)
    Image.fromarray(colours).save(release / "v_one" / "e2.png")
    luma = (colours @ np.array([0.299, 0.587, 0.114])).reshape(3, 65, 65)
    np.testing.assert_allclose(read_sequence(release / "v_one").patches("e2"), luma, atol=1)


def test_every_sequence_of_a_release_is_read(release: Path) -> None:
    (release / ".cache").mkdir()
    (release / "README.txt").write_text("of the release")
    sequences = read_sequences(release)
    assert {name: sequence.count for name, sequence in sequences.items()} == {"i_two": 2, "v_one": 3}
    assert list(sequences) == ["i_two", "v_one"]


@pytest.mark.parametrize("size", [(65, 2 * 65), (65, 3 * 65 + 1), (64, 3 * 65)])
def test_an_image_of_another_width_or_number_of_patches_is_refused(
    release: Path, size: tuple[int, int]
) -> None:
    Image.new("L", size).save(release / "v_one" / "e5.png")
    with pytest.raises(ValueError, match="e5"):
        read_sequence(release / "v_one")


def test_a_truncated_image_is_refused_when_decoded(release: Path) -> None:
    path = release / "v_one" / "h2.png"
    path.write_bytes(path.read_bytes()[:1000])
    sequence = read_sequence(release / "v_one")
    with pytest.raises(ValueError, match=r"h2\.png is cut short"):
        sequence.patches("h2")


def test_a_new_pixel_is_the_mean_over_its_area() -> None:
    patches = np.random.default_rng(3).integers(0, 256, (5, 65, 65), dtype=np.uint8)
    edges = np.arange(65) * 65 / 64
    overlap = np.clip(
        np.minimum(edges[1:, None], np.arange(1, 66)) - np.maximum(edges[:-1, None], np.arange(65)),
        0,
        None,
    )
    weights = overlap / overlap.sum(axis=1, keepdims=True)
    small = as_64(patches)
    assert small.dtype == np.uint8
    np.testing.assert_allclose(small, weights @ patches @ weights.T, atol=0.51)


def test_no_patch_is_mixed_with_its_neighbours_when_resized() -> None:
    patches = np.random.default_rng(4).integers(0, 256, (7, 65, 65), dtype=np.uint8)
    alone = np.concatenate([as_64(patches[i : i + 1]) for i in range(7)])
    np.testing.assert_array_equal(as_64(patches), alone)


names = st.lists(st.text("abcdev_ü", min_size=1, max_size=5), unique=True, min_size=2, max_size=6)


@given(lists=st.dictionaries(st.sampled_from("abc"), names, min_size=1), cut=st.integers(1, 6))
def test_splits_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, lists: dict[str, list[str]], cut: int
) -> None:
    splits = {
        name: Split(name, tuple(sequences[:cut]), tuple(sequences[cut:]))
        for name, sequences in lists.items()
    }
    folder = tmp_path_factory.mktemp("tasks")
    write_splits(folder, splits)
    assert read_splits(folder) == splits


def test_the_sequences_of_a_split_are_opened_in_its_order(release: Path) -> None:
    (release / "v_damaged").mkdir()
    opened = open_sequences(release, ("v_one", "i_two"))
    assert [sequence.name for sequence in opened] == ["v_one", "i_two"]
    with pytest.raises(FileNotFoundError, match=r"v_three"):
        open_sequences(release, ("v_one", "v_three"))


def test_a_sequence_that_a_split_names_and_the_release_lacks_is_named(release: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"sequence v_absent is missing: .* {release}/v_absent"):
        open_sequences(release, ["v_absent"])


def test_splits_are_read_with_the_mark_of_windows_editors(tmp_path: Path) -> None:
    write_splits(tmp_path, {"a": Split("a", ("v_one",))})
    file = tmp_path / "splits.json"
    file.write_text(file.read_text(), encoding="utf-8-sig")
    assert read_splits(tmp_path) == {"a": Split("a", ("v_one",))}


def test_a_class_is_the_sixteen_patches_of_a_point(release: Path, tmp_path: Path) -> None:
    sequences = open_sequences(release, ("v_one", "i_two"))
    classes = read_classes(sequences, tmp_path / "cache", "a-train")
    assert classes.name == "a-train"
    assert classes.pairs is None
    assert classes.patches.shape == (16 * 5, 64, 64)
    assert len(classes.point_ids) == len(classes.image_ids) == 16 * 5
    point = 0
    for s, sequence in enumerate(sequences):
        for patch in range(sequence.count):
            members = np.flatnonzero(classes.point_ids == point)
            expected = np.stack([as_64(sequence.patches(f)[patch : patch + 1])[0] for f in FILES])
            np.testing.assert_array_equal(classes.patches[members], expected)
            images = [0, *range(1, 6), *range(1, 6), *range(1, 6)]
            np.testing.assert_array_equal(classes.image_ids[members], 6 * s + np.array(images))
            point += 1
    assert classes.point_ids.max() == point - 1
