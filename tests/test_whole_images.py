"""Sets of whole images in a source: names, digests, generation, and released sets in place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_files import write_oxford_sequence

from lib.data.hpatches import agreement
from lib.data.scenes.sets import SceneSets
from lib.data.sources import FREE_PLACES, KINDS, WholeImages, open_source
from lib.data.synthetic import ImagesSize
from lib.data.synthetic.photographs import packaged_photographs

SMALL = ImagesSize(longest_side=120)


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A folder that holds only the released Oxford Affine set, of one sequence."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (50, 60)).astype(np.uint8) for _ in range(6)]
    write_oxford_sequence(
        tmp_path / "real" / "oxford_affine" / "graf", images, np.stack([np.eye(3)] * 5)
    )
    return tmp_path / "real"


def own_images(folder: Path, size: ImagesSize = SMALL, shown: slice = slice(None)) -> WholeImages:
    places = SceneSets(FREE_PLACES, folder)
    return WholeImages("free", folder, size, packaged_photographs()[shown], scenes=places)


def test_every_kind_can_be_loaded_by_name(tmp_path: Path) -> None:
    sets = own_images(tmp_path)
    assert sets.names == tuple(f"free-{kind}" for kind in KINDS)
    sequences = sets.load("free-oxford_affine")
    assert len(sequences) == 15
    assert sequences[0].images[0].is_relative_to(sets.folder_of("free-oxford_affine"))


def test_digests_distinguish_sizes_photographs_and_kinds_and_write_nothing(tmp_path: Path) -> None:
    sets = own_images(tmp_path)
    digests = [sets.digest(name) for name in sets.names]
    digests += [own_images(tmp_path, ImagesSize()).digest(name) for name in sets.names]
    fewer = own_images(tmp_path, shown=slice(2))
    digests += [fewer.digest(name) for name in ("free-oxford_affine", "free-w1bs")]
    assert len(set(digests)) == len(digests)
    assert list(tmp_path.iterdir()) == []


def test_released_images_of_equal_size_that_are_exchanged_make_another_set(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    greys = [rng.integers(0, 256, (400, 400)).astype(np.uint8) for _ in range(6)]
    sequence = tmp_path / "oxford_affine" / "graf"
    write_oxford_sequence(sequence, greys, np.stack([np.eye(3)] * 5))
    for number, grey in enumerate(greys, 1):
        Image.fromarray(grey).save(sequence / f"img{number}.ppm")
        (sequence / f"img{number}.png").unlink()
    before, name = WholeImages("ubc", tmp_path, SMALL, real=tmp_path), "ubc-oxford_affine"
    first = before.digest(name)
    for number, other in ((2, 3), (3, 2)):
        Image.fromarray(greys[other - 1]).save(sequence / f"img{number}.ppm")
    assert before.digest(name) != first


def test_released_images_are_compared_with_their_homographies_once(
    released: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    monkeypatch.setattr(agreement, "check_agreement", checked.append)
    for _ in range(2):
        WholeImages("ubc", tmp_path / "made", SMALL, real=released).load("ubc-oxford_affine")
    assert len(checked) == 1
    assert not caplog.records
    assert not list((tmp_path / "made").glob("*.damaged"))


def test_a_source_has_its_own_sets_and_the_real_ones(released: Path, tmp_path: Path) -> None:
    source = open_source("free", tmp_path / "data", images=released)
    assert source.own_images.names == tuple(f"free-{kind}" for kind in KINDS)
    assert source.real_images.names == ("real-oxford_affine",)
    assert [sequence.folder.name for sequence in source.load("real-oxford_affine")] == ["graf"]
    assert source.scene_folder("real-oxford_affine") == released / "oxford_affine"
    with pytest.raises(ValueError, match=r"real-w1bs.*choose from.*free-w1bs"):
        source.load("real-w1bs")
