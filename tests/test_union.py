"""Several sets of patches united into one for training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from small_study import small_source

from lib.data.patchset import PatchSet, unite
from lib.data.sources import HPatchesSets, open_source
from lib.data.synthetic import SequencesSize
from lib.data.synthetic.photographs import Photograph, packaged_photographs
from lib.data.synthetic.sequences import make_splits, textures
from lib.data.synthetic.whole_images import posters


def mapped(folder: Path, name: str, points: list[int], images: list[int] | None) -> PatchSet:
    """Return a set whose patches have one grey value each, in a file."""
    greys = np.random.default_rng(len(points)).integers(0, 256, (len(points), 1, 1), dtype=np.uint8)
    np.save(folder / f"{name}.npy", np.broadcast_to(greys, (len(points), 64, 64)))
    patches = np.load(folder / f"{name}.npy", mmap_mode="r")
    image_ids = None if images is None else np.array(images)
    return PatchSet(name, patches, np.array(points), image_ids, None)


ids = st.lists(st.integers(0, 9), min_size=1, max_size=6)


@settings(max_examples=20, deadline=None)
@given(st.lists(ids, min_size=2, max_size=3))
def test_patches_keep_their_order_and_no_two_sets_share_a_point(tmp_path_factory, points) -> None:
    folder = tmp_path_factory.mktemp("sets")
    sets = [mapped(folder, f"set{n}", subset, subset) for n, subset in enumerate(points)]
    united = unite(sets, folder / "decoded", "all")
    assert np.array_equal(united.patches, np.concatenate([subset.patches for subset in sets]))
    set_numbers = np.repeat(np.arange(len(points)), [len(subset) for subset in points])
    expected = [(number, point) for number, subset in enumerate(points) for point in subset]
    for numbers in (united.point_ids, united.image_ids):
        assert len(set(numbers)) == len(set(expected)) == len(set(zip(numbers, expected, strict=True)))
        assert all(len(set(set_numbers[numbers == point])) == 1 for point in numbers)
    assert united.pairs is None


def test_a_set_has_one_point_and_one_image_for_each_patch(tmp_path: Path) -> None:
    whole = mapped(tmp_path, "whole", [0, 0, 1], [0, 1, 0])
    for column, what in (("point_ids", "point"), ("image_ids", "image")):
        with pytest.raises(ValueError, match=f"whole has 3 patches, but 2 {what} ids"):
            replace(whole, **{column: np.zeros(2, int)})
        with pytest.raises(ValueError, match=f"whole has 3 patches, but 3 × 1 {what} ids"):
            replace(whole, **{column: np.zeros((3, 1), int)})


@pytest.mark.parametrize("kind", [list, torch.tensor, lambda ids: pd.Series(ids, [2, 1, 0])])
def test_ids_of_any_sequence_are_those_of_the_same_patches(kind: Callable) -> None:
    patches = np.zeros((3, 64, 64), np.uint8)
    given = PatchSet("mine", patches, kind([5, 0, 7]), kind([0, 1, 2]), None)
    np.testing.assert_array_equal(given.point_ids[np.array([0, 1])], [5, 0])
    np.testing.assert_array_equal(given.image_ids, [0, 1, 2])


def test_a_union_is_copied_anew_when_a_set_changes(tmp_path: Path) -> None:
    first = mapped(tmp_path, "first", [0, 0], None)
    unite([first, mapped(tmp_path, "second", [0, 0], None)], tmp_path / "decoded", "all")
    longer = mapped(tmp_path, "second", [0, 0, 1], None)
    united = unite([first, longer], tmp_path / "decoded", "all")
    assert np.array_equal(united.patches[2:], longer.patches)
    assert len(list((tmp_path / "decoded").iterdir())) == 1


def test_a_union_is_of_the_rows_that_are_taken_of_the_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "patches.npy", rng.integers(0, 256, (12, 64, 64), dtype=np.uint8))
    patches = np.load(tmp_path / "patches.npy", mmap_mode="r")
    takes = [slice(0, 4), slice(4, 8), slice(0, 8, 2), slice(None, 4, -2), np.array([9, 2, 7, 3])]
    for taken in takes:
        fold = PatchSet("fold", patches[taken], np.zeros(4, int), None, None)
        united = unite([fold, fold], tmp_path / "decoded", "train")
        assert np.array_equal(united.patches, np.concatenate([patches[taken]] * 2))


def test_a_union_is_of_the_part_of_a_file_that_is_mapped(tmp_path: Path) -> None:
    path, patches = tmp_path / "raw", np.random.default_rng(0).integers(0, 256, (3, 64, 64), np.uint8)
    patches.tofile(path)
    for first in range(2):
        part = np.memmap(path, np.uint8, "r", first * 64 * 64, (2, 64, 64))
        fold = PatchSet("fold", part, np.zeros(2, int), None, None)
        united = unite([fold, fold], tmp_path / "decoded", "train")
        assert np.array_equal(united.patches[:2], patches[first : first + 2])


def test_a_union_is_copied_once(tmp_path: Path) -> None:
    whole = mapped(tmp_path, "whole", [0, 0, 1], None)
    half = replace(whole, patches=whole.patches[:2], point_ids=whole.point_ids[:2])
    unite([whole, half], tmp_path / "decoded", "all")
    [copy] = (tmp_path / "decoded").glob("*/patches.npy")
    made = copy.stat().st_ino
    unite([whole, half], tmp_path / "decoded", "all")
    assert copy.stat().st_ino == made


@pytest.mark.parametrize("patches", [np.zeros((2, 64, 64)), np.zeros((2, 65, 65), np.uint8)])
def test_a_union_has_patches_of_64_px_and_8_bits_alone(tmp_path: Path, patches: np.ndarray) -> None:
    other = PatchSet("other", patches, np.zeros(2, int), None, None)
    with pytest.raises(ValueError, match=r"other: patches are \(P, 64, 64\) uint8 grey values, got"):
        unite([mapped(tmp_path, "first", [0, 0], None), other], tmp_path / "decoded", "all")


def test_a_source_unites_patches_with_a_training_split_of_hpatches(tmp_path: Path) -> None:
    few = SequencesSize(longest_side=128, patches_per_sequence=10, pairs=50, queries=8, distractors=20)
    hpatches = HPatchesSets("small-hp", tmp_path, few, packaged_photographs()[:2])
    source = replace(small_source(tmp_path), own_hpatches=hpatches)
    name = "small-a+small-hp-a-train"
    united = source.load(name)
    parts = [source.load(part) for part in name.split("+")]
    assert len(united.patches) == sum(len(part.patches) for part in parts)
    assert len(set(united.point_ids)) == sum(len(set(part.point_ids)) for part in parts)


def test_the_repositorys_union_has_the_place_that_whole_images_do_not_show(tmp_path: Path) -> None:
    assert open_source("free", tmp_path).united == "banana+free-hp-a-train"


def test_real_unions_have_all_three_sets(tmp_path: Path) -> None:
    for name in ("liberty", "notredame", "yosemite", "hpatches-release", "tasks"):
        (tmp_path / name).mkdir()
    source = open_source(str(tmp_path), tmp_path / "data")
    assert source.united == "liberty+notredame+yosemite+hpatches-a-train"
    (tmp_path / "tasks").rmdir()
    with pytest.raises(FileNotFoundError, match="lacks hpatches-release or tasks"):
        _ = open_source(str(tmp_path), tmp_path / "data").united


@pytest.mark.parametrize("count", [1, 2, 5])
def test_no_part_of_a_photograph_that_a_split_trains_on_is_shown(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        Image.fromarray(rng.integers(0, 256, (64, 128), dtype=np.uint8)).save(
            tmp_path / f"p{number}.png"
        )
    photographs = tuple(Photograph(f"p{number}", tmp_path / f"p{number}.png") for number in range(count))
    cut_textures = textures(photographs, 640)
    trained = make_splits({texture.name: texture.thing for texture in cut_textures})["a"].train
    parts = [
        part
        for texture in cut_textures
        if f"v_{texture.name}" in trained
        for part in (texture.viewpoint, texture.illumination)
    ]
    shown = posters(photographs, 640)
    assert parts
    assert shown
    for grey in shown.values():
        assert not any(within(part, grey) for part in parts)


def within(part: np.ndarray, grey: np.ndarray) -> bool:
    """Return whether a corner of the part is anywhere in the picture."""
    corner = part[:8, :8]
    return any(
        np.array_equal(grey[y : y + 8, x : x + 8], corner)
        for y in range(grey.shape[0] - 7)
        for x in range(grey.shape[1] - 7)
    )


@pytest.mark.parametrize("mark", [np.int64(-1), np.uint64(2**64 - 1)])
def test_colmaps_marks_of_no_point_are_refused(mark: np.integer) -> None:
    patches, ids = np.zeros((3, 64, 64), np.uint8), np.array([3, 3, mark], mark.dtype)
    with pytest.raises(ValueError, match="point ids are from 0 to"):
        PatchSet("mine", patches, ids, None, None)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
def test_points_of_two_sets_stay_apart_whatever_integers_their_ids_are(tmp_path: Path, dtype: type):
    ids = np.repeat(np.arange(256), 2).astype(dtype)
    patches = np.zeros((512, 64, 64), np.uint8)
    sets = [PatchSet(name, patches, ids, ids, None) for name in "ab"]
    union = unite(sets, tmp_path, "both")
    assert len(np.unique(union.point_ids)) == len(np.unique(union.image_ids)) == 512


@pytest.mark.parametrize("ids", [[0.2, 0.7], ["0", "1"], [False, True]])
def test_ids_that_are_no_whole_numbers_are_refused_because_rounding_would_join_points(ids: list):
    with pytest.raises(ValueError, match="point ids are whole numbers, got "):
        PatchSet("mine", np.zeros((2, 64, 64), np.uint8), ids, None, None)
