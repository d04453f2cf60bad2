"""COLMAP's models of known poses, triangulated from handmade matches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pycolmap
import pytest
from known_cameras import cameras, points, project

from lib.data import colmap


@pytest.mark.parametrize("seen_by_all", [0, 60])
def test_points_triangulated_from_known_poses_are_accurate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen_by_all: int
) -> None:
    """Points that only two views see are kept, unless others explain enough."""
    views, world = cameras(3), points(120)
    tracks = [(0, 1, 2)] * seen_by_all + [(0, 1), (0, 2), (1, 2)] * 20
    world = world[: len(tracks)]

    def match(database: Path, _: Path) -> None:
        with pycolmap.Database.open(database) as opened:
            for number, camera in enumerate(views, 1):
                opened.write_keypoints(number, project(camera, world).astype(np.float32) + 0.5)
            for pair in ((0, 1), (0, 2), (1, 2)):
                rows = np.flatnonzero([{*pair} <= {*track} for track in tracks])
                geometry = pycolmap.TwoViewGeometry()
                geometry.config = pycolmap.TwoViewGeometryConfiguration.CALIBRATED
                geometry.inlier_matches = np.column_stack([rows, rows]).astype(np.uint32)
                opened.write_two_view_geometry(pair[0] + 1, pair[1] + 1, geometry)

    monkeypatch.setattr(colmap, "_match_by_sift", match)
    posed = colmap.posed_model({f"{number}.png": camera for number, camera in enumerate(views)})
    assert len(posed.cameras) == 1
    model, explained = colmap.triangulated(posed, tmp_path, tmp_path)
    assert model.num_points3D() == (seen_by_all or len(tracks))
    assert explained == pytest.approx(1.0 if not seen_by_all else 180 / 240)
    for point in model.points3D.values():
        index = point.track.elements[0].point2D_idx
        np.testing.assert_allclose(point.xyz, world[index], atol=1e-3)


def synthesized(folder: Path) -> Path:
    """Write a database of three images of 100 points, with raw and verified matches."""
    path = folder / "database.db"
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=1, num_cameras_per_rig=1, num_frames_per_rig=3, num_points3D=100
    )
    with pycolmap.Database.open(path) as database:
        pycolmap.synthesize_dataset(options, database)
    return path


def test_matches_are_verified_anew_once_they_are_replaced(tmp_path: Path) -> None:
    path = synthesized(tmp_path)
    with pycolmap.Database.open(path) as database:
        database.clear_two_view_geometries()
    colmap.verify(path)
    first = inliers(path)
    colmap.verify(path)
    assert inliers(path) == first
    with pycolmap.Database.open(path) as database:
        fewer = database.read_matches(1, 2)[::2]
        database.delete_matches(1, 2)
        database.write_matches(1, 2, fewer)
    colmap.verify(path)
    assert inliers(path)[1, 2] == sorted(fewer.tolist())
    assert inliers(path)[1, 3] == first[1, 3]


def test_a_pair_of_verified_matches_alone_keeps_them_beside_pairs_with_others(tmp_path: Path) -> None:
    path = synthesized(tmp_path)
    before = inliers(path)
    with pycolmap.Database.open(path) as database:
        # One pair has no matches, and of another it is known that it has none.
        database.delete_matches(1, 3)
        database.delete_matches(2, 3)
        database.write_matches(2, 3, np.empty((0, 2), np.uint32))
    colmap.verify(path)
    after = inliers(path)
    assert after.keys() == before.keys()
    for pair in ((1, 3), (2, 3)):
        assert after[pair] == before[pair]


def test_a_database_of_verified_matches_alone_keeps_them(tmp_path: Path) -> None:
    path = synthesized(tmp_path)
    with pycolmap.Database.open(path) as database:
        database.clear_matches()
    before = inliers(path)
    colmap.verify(path)
    assert before
    assert inliers(path) == before


def test_the_stationary_share_is_that_of_verified_matches_at_the_same_pixels(tmp_path: Path) -> None:
    path = synthesized(tmp_path)
    assert colmap.stationary_share(path) == 0
    logo = np.random.default_rng(0).uniform(20, 60, (25, 2)).astype(np.float32)
    with pycolmap.Database.open(path) as database:
        first, second = (database.read_keypoints(image) for image in (1, 2))
        geometry = database.read_two_view_geometry(1, 2)
        verified = len(geometry.inlier_matches)
        for image, points in ((1, first), (2, second)):
            spare = np.zeros((25, points.shape[1]), np.float32)
            spare[:, :2] = logo
            database.update_keypoints(image, np.concatenate([points, spare]))
        rows = np.stack([len(first) + np.arange(25), len(second) + np.arange(25)], axis=1)
        geometry.inlier_matches = np.concatenate([geometry.inlier_matches, rows]).astype(np.uint32)
        database.delete_two_view_geometry(1, 2)
        database.write_two_view_geometry(1, 2, geometry)
        others = sum(
            len(database.read_two_view_geometry(*pair).inlier_matches) for pair in ((1, 3), (2, 3))
        )
    assert colmap.stationary_share(path) == pytest.approx(25 / (verified + 25 + others))


def inliers(path: Path) -> dict[tuple[int, int], list[list[int]]]:
    """Return the verified matches of a database by pair of images."""
    with pycolmap.Database.open(path) as database:
        pairs, geometries = database.read_two_view_geometries()
    numbers = [pycolmap.pair_id_to_image_pair(pair) for pair in pairs]
    matches = [sorted(geometry.inlier_matches.tolist()) for geometry in geometries]
    return {tuple(sorted(pair)): rows for pair, rows in zip(numbers, matches, strict=True)}
