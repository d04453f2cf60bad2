"""The places of the repository: their roles, their models, and the sets that are made of them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pycolmap
import pytest

from lib.data import states
from lib.data.scenes.places import MOST_SHARED, image_files, read_places, shared_matches
from lib.data.sources import FREE_PLACES, open_source
from lib.data.whole_images import CITIES

PLACES = ("banana", "conch", "boruszyn", "caliterra")


def test_three_places_are_trained_and_tested_on_and_one_is_for_searches() -> None:
    places = read_places(FREE_PLACES)
    assert places.train_and_test == ("banana", "conch", "boruszyn")
    assert places.reserve == ("caliterra",)


def test_the_written_matches_between_the_places_are_of_these_files_and_show_no_two_to_be_one() -> None:
    written = json.loads((FREE_PLACES / "shared.json").read_text())
    files = states.of_files(FREE_PLACES, ["*/cameras/**/*", "*/sparse/**/*"], sized=["*/images/*"])
    assert written["files"] == states.digest(files)
    assert {frozenset(pair) for *pair, _ in written["matches"]} == {
        frozenset(pair) for pair in itertools.combinations(PLACES, 2)
    }
    assert max(count for *_, count in written["matches"]) <= MOST_SHARED


def test_the_written_matches_are_what_is_measured() -> None:
    written = json.loads((FREE_PLACES / "shared.json").read_text())["matches"]
    images = {place: image_files(FREE_PLACES / place) for place in ("banana", "caliterra")}
    [measured] = shared_matches(images)
    assert [*measured] in written


def test_they_are_small_enough_for_a_repository() -> None:
    assert sum(path.stat().st_size for path in FREE_PLACES.rglob("*") if path.is_file()) < 12e6


@pytest.mark.parametrize("place", PLACES)
def test_a_model_has_each_photograph_and_fits_it(place: str) -> None:
    model = pycolmap.Reconstruction(FREE_PLACES / place / "sparse")
    named = sorted(image.name for image in model.images.values())
    assert named == [path.name for path in image_files(FREE_PLACES / place)]
    assert model.compute_mean_reprojection_error() < 0.5


@pytest.mark.parametrize("place", PLACES)
def test_a_licence_stands_beside_the_photographs(place: str) -> None:
    readme = (FREE_PLACES / "README.md").read_text(encoding="utf-8")
    [row] = [line for line in readme.splitlines() if line.startswith(f"| {place} |")]
    assert any(licence in row for licence in ("MIT", "CC BY 3.0", "CC0 1.0"))


def test_whole_images_show_no_place_that_compared_networks_are_trained_on(tmp_path: Path) -> None:
    source = open_source("free", tmp_path)
    for kind in ("eth", "imc"):
        scenes = source.load(source.own_images.name(kind))
        assert {scene.name for scene in scenes} == {"conch", "boruszyn"}
    cities = source.load(source.own_images.name("landmarks"))
    assert list(cities) == list(CITIES)
    assert all(len(city.queries) >= 6 for city in cities.values())
