"""Several sets of patches as one to train on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lib.data.patchset import PatchSet, unite
from lib.data.sources import open_source
from lib.data.synthetic import SequencesSize, SyntheticSize
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sequences import make_splits, textures
from lib.data.synthetic.whole_images import posters


def mapped(folder: Path, name: str, points: list[int], images: list[int] | None) -> PatchSet:
    """A set whose patches are of one grey value each, in a file."""
    greys = np.random.default_rng(len(points)).integers(0, 256, (len(points), 1, 1), dtype=np.uint8)
    np.save(folder / f"{name}.npy", np.broadcast_to(greys, (len(points), 64, 64)))
    patches = np.load(folder / f"{name}.npy", mmap_mode="r")
    told = None if images is None else np.array(images)
    return PatchSet(name, patches, np.array(points), told, None)


ids = st.lists(st.integers(0, 9), min_size=1, max_size=6)


@settings(max_examples=20, deadline=None)
@given(st.lists(ids, min_size=2, max_size=3))
def test_patches_keep_their_order_and_no_two_sets_share_a_point(tmp_path_factory, points) -> None:
    folder = tmp_path_factory.mktemp("sets")
    sets = [mapped(folder, f"set{n}", of, of) for n, of in enumerate(points)]
    united = unite(sets, folder / "decoded", "all")
    assert np.array_equal(united.patches, np.concatenate([of.patches for of in sets]))
    of_set = np.repeat(np.arange(len(points)), [len(of) for of in points])
    theirs = [(number, point) for number, of in enumerate(points) for point in of]
    for found in (united.point_ids, united.image_ids):
        assert len(set(found)) == len(set(theirs)) == len(set(zip(found, theirs, strict=True)))
        assert all(len(set(of_set[found == point])) == 1 for point in found)
    assert united.pairs is None


def test_a_union_is_copied_anew_when_a_set_changes(tmp_path: Path) -> None:
    first = mapped(tmp_path, "first", [0, 0], None)
    unite([first, mapped(tmp_path, "second", [0, 0], None)], tmp_path / "decoded", "all")
    longer = mapped(tmp_path, "second", [0, 0, 1], None)
    united = unite([first, longer], tmp_path / "decoded", "all")
    assert np.array_equal(united.patches[2:], longer.patches)
    assert len(list((tmp_path / "decoded").iterdir())) == 1


SMALL = SyntheticSize(points_per_photo=30, pairs=40, views=5, longest_side=256)


def test_a_source_unites_its_first_scene_with_what_a_split_of_hpatches_trains_on(tmp_path: Path) -> None:
    few = SequencesSize(longest_side=256, patches_per_sequence=20, pairs=50, queries=8, distractors=40)
    source = open_source("mini", tmp_path, SMALL, few)
    united = source.load(source.united)
    parts = [source.load("mini-a"), source.load("mini-hp-a-train")]
    assert len(united.patches) == sum(len(of.patches) for of in parts)
    assert len(set(united.point_ids)) == sum(len(set(of.point_ids)) for of in parts)


def test_real_unions_have_all_three_sets(tmp_path: Path) -> None:
    for name in ("liberty", "notredame", "yosemite", "hpatches-release", "tasks"):
        (tmp_path / name).mkdir()
    source = open_source(str(tmp_path), tmp_path / "data", SMALL)
    assert source.united == "liberty+notredame+yosemite+hpatches-a-train"
    (tmp_path / "tasks").rmdir()
    with pytest.raises(FileNotFoundError, match="lacks hpatches-release or tasks"):
        _ = open_source(str(tmp_path), tmp_path / "data", SMALL).united


@pytest.mark.parametrize("count", [1, 2, 5])
def test_no_part_of_a_photograph_is_shown_that_a_split_trains_on(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        Image.fromarray(rng.integers(0, 256, (64, 128), dtype=np.uint8)).save(
            tmp_path / f"p{number}.png"
        )
    given = tuple(
        Photograph(f"p{number}", tmp_path / f"p{number}.png", "", "0" * 64) for number in range(count)
    )
    cut = textures(given, 640)
    trained = make_splits({of.name: of.thing for of in cut})["a"].train
    parts = [part for of in cut if f"v_{of.name}" in trained for part in (of.viewpoint, of.illumination)]
    shown = posters(given, 640)
    assert parts
    assert shown
    for grey in shown.values():
        assert not any(within(part, grey) for part in parts)


def within(part: np.ndarray, grey: np.ndarray) -> bool:
    """Whether a corner of the part stands somewhere in the picture."""
    corner = part[:8, :8]
    return any(
        np.array_equal(grey[y : y + 8, x : x + 8], corner)
        for y in range(grey.shape[0] - 7)
        for x in range(grey.shape[1] - 7)
    )
