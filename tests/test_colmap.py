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
