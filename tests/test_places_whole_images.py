"""Sets of whole images made of places: what photographs show, and what is read back from the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from known_scenes import NORMAL, OFFSET, PINHOLE, POSES, SIZE, Known, inside, plane_views, turned

from lib.data.scenes.whole_images import (
    PosedPhotograph,
    covisibility,
    write_eth,
    write_imc,
    write_landmarks,
)
from lib.data.synthetic import ImagesSize
from lib.data.whole_images import read_eth, read_imc, read_landmarks

# Two groups of cameras that look at different parts of the plane.
LEFT = [Known(turned(0, 0, roll), np.array([2.8, 0, 0])) for roll in (0.0, 0.1, 0.2)]
RIGHT = [Known(turned(0, 0, roll), np.array([-2.8, 0, 0])) for roll in (0.0, 0.1, 0.2)]


def photographed(poses: list[Known] | tuple[Known, ...]) -> dict[str, PosedPhotograph]:
    rng = np.random.default_rng(0)
    greys = rng.integers(0, 256, (len(poses), *SIZE[::-1]), np.uint8)
    views = plane_views(poses)
    return {view.name[:4]: PosedPhotograph(grey, view) for grey, view in zip(greys, views, strict=True)}


def on_plane(count: int = 300) -> np.ndarray:
    """Points (n, 3) on the plane around the middle of the first camera's image."""
    across = np.random.default_rng(1).uniform(-1.5, 1.5, (count, 2))
    depth = (OFFSET - across @ NORMAL[:2]) / NORMAL[2]
    return np.column_stack([across, depth])


def test_a_photograph_shows_the_points_of_its_surface_that_are_inside_the_image() -> None:
    points = on_plane()
    for known, photograph in zip(POSES, photographed(POSES).values(), strict=True):
        assert (photograph.shows(points) == inside(known.project(points))).all()


def test_a_photograph_does_not_show_what_lies_behind_its_surface() -> None:
    photograph = photographed(POSES)["0000"]
    points = on_plane()
    assert not photograph.shows(1.2 * points).any()
    assert not photograph.shows(-points).any()


def test_covisibility_is_the_smaller_share_of_common_points() -> None:
    left = photographed(LEFT[:1])["0000"]
    right = photographed(RIGHT[:1])["0000"]
    assert covisibility(left, right) == 0
    # Of the points of one, the other sees all; of the other's, the one sees those in the left half.
    half = left.view.points[:, 0] < np.median(left.view.points[:, 0])
    part = replace(left.view, points=left.view.points[half], observed=left.view.observed[half])
    both = covisibility(left, PosedPhotograph(left.grey, part))
    assert both == pytest.approx(0.5 * covisibility(left, left), abs=0.05)


def test_structure_from_motion_reads_the_cameras_back(tmp_path: Path) -> None:
    write_eth(tmp_path, {"wall": photographed(POSES)}, ImagesSize())
    [scene] = read_eth(tmp_path)
    assert (scene.name, len(scene.images)) == ("wall", 3)
    for number, known in enumerate(POSES):
        image = scene.known.find_image_with_name(f"{number:04}.png")
        pose = image.cam_from_world()
        np.testing.assert_allclose(pose.rotation.matrix(), known.rotation, atol=1e-12)
        np.testing.assert_allclose(pose.translation, known.translation, atol=1e-12)
        np.testing.assert_allclose(image.camera.params, PINHOLE)


def test_the_challenge_has_the_pairs_that_share_a_tenth(tmp_path: Path) -> None:
    shown = photographed([*LEFT, *RIGHT])
    write_imc(tmp_path, {"wall": shown}, ImagesSize())
    [scene] = read_imc(tmp_path)
    expected = {(f"{b:04}", f"{a:04}") for a, b in ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5))}
    assert set(scene.pairs) == expected
    np.testing.assert_allclose(scene.cameras["0000"].intrinsics, LEFT[0].matrix)
    assert sorted(map(len, scene.bags)) == [5, 5, 6]


def test_a_landmark_is_found_on_its_own_side_only(tmp_path: Path) -> None:
    shown = photographed([*LEFT, *RIGHT])
    write_landmarks(tmp_path, {"one": shown, "other": shown}, ImagesSize())
    for place, city in zip(("one", "other"), read_landmarks(tmp_path).values(), strict=True):
        assert len(city.images) == 6
        sides = [{f"{place}_{n:04}" for n in side} for side in ((0, 1, 2), (3, 4, 5))]
        for query in city.queries:
            assert query.image in query.good
            assert any(query.good <= side for side in sides)
            left, top, right, bottom = query.box
            assert 0 <= left < right <= SIZE[0]
            assert 0 <= top < bottom <= SIZE[1]


@pytest.mark.parametrize("count", [2, 3])
def test_a_city_is_made_of_each_of_the_first_two_places(tmp_path: Path, count: int) -> None:
    shown = photographed([*LEFT, *RIGHT])
    write_landmarks(tmp_path, {f"place{n}": shown for n in range(count)}, ImagesSize())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["oxford5k", "paris6k"]
