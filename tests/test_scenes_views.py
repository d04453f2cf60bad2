"""Keypoints carried by a view's surface land where the plane and the cameras' full models put them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_scenes import (
    LENS,
    NORMAL,
    OFFSET,
    POSES,
    Known,
    grid,
    inside,
    keypoints,
    plane_views,
    turned,
    view,
)

from lib.data.scenes.correspondences import carried
from lib.data.scenes.views import View, angles_between, carry, lift
from lib.features.keypoints import Keypoints

A, B = POSES[:2]
BENT = tuple(replace(known, lens=LENS) for known in POSES)
RIGHT, BELOW = np.eye(2)
# Well inside the first image, none on a sparse point.
INNER = np.random.default_rng(3).uniform((120, 90), (520, 390), (80, 2))


def homography(first: Known, second: Known) -> np.ndarray:
    """The plane's homography between pixels of cameras without distortion."""
    turn = second.rotation @ first.rotation.T
    normal = first.rotation @ NORMAL
    shift = second.translation - turn @ first.translation
    plane = turn + np.outer(shift, normal) / (OFFSET + normal @ first.translation)
    return second.matrix @ plane @ np.linalg.inv(first.matrix)


def moved(points: Keypoints, first: View, second: View) -> tuple[Keypoints, np.ndarray]:
    return carry(points, lift(first, points), second)


def jacobian(matrix: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """(N, 2, 2) derivatives of x ↦ (h1 x / h3 x, h2 x / h3 x)."""
    *top, third = matrix @ np.column_stack([pixels, np.ones(len(pixels))]).T
    rows = [
        (np.outer(third, matrix[i, :2]) - np.outer(top[i], matrix[2, :2])) / third[:, None] ** 2
        for i in range(2)
    ]
    return np.stack(rows, axis=1)


def assert_frames(after: Keypoints, before: Keypoints, affine: np.ndarray, shown: np.ndarray) -> None:
    """Check scales by the map's determinant, orientations by the direction it maps to.

    The library takes tangents between pixels 1 px apart, which agree up to the curvature over 1 px.
    """
    scale = before.scale * np.sqrt(np.linalg.det(affine))
    direction = np.column_stack([np.cos(before.orientation), np.sin(before.orientation)])
    x, y = np.einsum("nij,nj->in", affine, direction)
    turn = np.angle(np.exp(1j * (after.orientation - np.arctan2(y, x))))
    np.testing.assert_allclose(after.scale[shown], scale[shown], rtol=2e-3)
    np.testing.assert_allclose(turn[shown], 0, atol=2e-3)
    # Both differ from before.
    assert np.median(np.abs(scale / before.scale - 1)) > 0.02
    assert np.median(np.abs(after.orientation - before.orientation)) > 0.1


def test_the_planes_homography_carries_between_pinhole_cameras() -> None:
    views, points = plane_views(), keypoints(INNER)
    actual, visible = moved(points, *views[:2])
    matrix = homography(A, B)
    expected = np.column_stack([INNER, np.ones(len(INNER))]) @ matrix.T
    expected = expected[:, :2] / expected[:, 2:]
    assert visible.sum() > 40
    np.testing.assert_array_equal(visible, inside(expected))
    np.testing.assert_allclose(actual.position[visible], expected[visible], atol=1e-6)
    assert_frames(actual, points, jacobian(matrix, INNER), visible)


@pytest.mark.parametrize("second", [BENT[1], B], ids=["both bent", "one bent"])
def test_distortion_is_undone_in_one_view_and_applied_in_the_other(second: Known) -> None:
    first = BENT[0]
    views = plane_views([first, second])
    points = keypoints(INNER)
    actual, visible = moved(points, *views[:2])

    def literal(pixels: np.ndarray) -> np.ndarray:
        return second.project(first.on_plane(pixels))

    expected = literal(INNER)
    assert visible.sum() > 40
    np.testing.assert_array_equal(visible, inside(expected))
    np.testing.assert_allclose(actual.position[visible], expected[visible], atol=1e-6)
    h = 1e-3
    columns = [(literal(INNER + step) - literal(INNER - step)) / (2 * h) for step in np.eye(2) * h]
    assert_frames(actual, points, np.stack(columns, axis=2), visible)
    # A pinhole camera would have put them elsewhere.
    pinhole = replace(second, lens=()).project(replace(first, lens=()).on_plane(INNER))
    assert np.median(np.abs(pinhole - expected)) > 0.3


def test_a_keypoint_is_lifted_to_where_its_ray_meets_the_plane() -> None:
    for number, known in enumerate(BENT):
        lifted = lift(plane_views(BENT)[number], keypoints(INNER))
        np.testing.assert_allclose(lifted[0], known.on_plane(INNER), atol=1e-8)
        np.testing.assert_allclose(lifted[1], known.on_plane(INNER + RIGHT), atol=1e-8)
        np.testing.assert_allclose(lifted[2], known.on_plane(INNER + BELOW), atol=1e-8)


def test_a_view_has_no_surface_outside_its_triangles_or_on_long_ones() -> None:
    pixels, points = grid(), keypoints(INNER)
    left_view = view(A, A.on_plane(pixels[pixels[:, 0] < 320]))
    edge = pixels[:, 0][pixels[:, 0] < 320].max()
    lifted = lift(left_view, points)
    np.testing.assert_array_equal(np.isfinite(lifted[0]).all(axis=1), INNER[:, 0] < edge)
    _, visible = carry(points, lifted, plane_views()[0])
    np.testing.assert_array_equal(visible, INNER[:, 0] < edge)
    # A tenth of the longer side is the most: 64 px.
    assert np.isfinite(lift(view(A, A.on_plane(grid(44))), points)).all()
    assert np.isnan(lift(view(A, A.on_plane(grid(66))), points)).all()


def stepped(depth: float, nearer: float) -> tuple[View, np.ndarray]:
    """Two fronto-parallel walls, the left half nearer, and the keypoints between them."""
    known, pixels = Known(), grid()
    rays = np.column_stack(
        [(pixels - known.matrix[:2, 2]) / np.diag(known.matrix)[:2], pixels[:, 0] ** 0]
    )
    near = pixels[:, 0] < 320
    gap = pixels[near, 0].max(), pixels[~near, 0].min()
    between = np.column_stack([np.linspace(*gap, 9)[2:-2], np.linspace(150, 333, 5)])
    return view(known, rays * np.where(near, nearer, depth)[:, None]), between


def test_no_surface_spans_a_depth_jump() -> None:
    surface, between = stepped(6.0, 4.0)
    assert np.isnan(lift(surface, keypoints(between))).all()
    assert not moved(keypoints(between), surface, surface)[1].any()
    beside = np.concatenate([between - 30 * RIGHT, between + 30 * RIGHT])
    depth = lift(surface, keypoints(beside))[0, :, 2]
    np.testing.assert_allclose(depth, np.repeat([4.0, 6.0], len(between)))
    # A step as small as a windowsill's is spanned.
    surface, between = stepped(6.0, 5.9)
    depth = lift(surface, keypoints(between))[0, :, 2]
    assert ((depth > 5.9) & (depth < 6.0)).all()


@pytest.mark.parametrize(("nearness", "hidden"), [(0.9, True), (0.98, False)])
def test_keypoints_behind_the_other_views_surface_are_hidden(nearness: float, hidden: bool) -> None:
    # The same rays meet a parallel plane in proportion to its offset, seen from the origin.
    pixels = grid()
    left = pixels[:, 0] < 320
    surface = np.concatenate([A.on_plane(pixels[left], OFFSET * nearness), A.on_plane(pixels[~left])])
    _, visible = moved(keypoints(INNER), view(A, A.on_plane(pixels)), view(A, surface))
    sides = INNER[:, 0] < 290, INNER[:, 0] > 345
    assert visible[sides[0]].all() != hidden
    assert visible[sides[0]].any() != hidden
    assert visible[sides[1]].all()


def test_a_surface_is_not_seen_from_behind() -> None:
    behind = Known(turned(0, np.pi, 0), np.array([0, 0, 8.0]))
    views = plane_views([A, behind])
    lifted = lift(views[0], keypoints(INNER))
    assert inside(behind.project(lifted[0])).sum() > 50
    assert not carry(keypoints(INNER), lifted, views[1])[1].any()


def test_pairs_measure_how_far_a_detected_keypoint_is_from_a_carried_one() -> None:
    views, points = plane_views(), keypoints(INNER)
    projected, seen = moved(points, *views[:2])
    projected = projected[seen]
    shifted = replace(
        projected,
        position=projected.position + 0.6 * RIGHT - 0.8 * BELOW,
        scale=projected.scale * 2**0.1,
        orientation=projected.orientation + 0.2 + 2 * np.pi,
    )
    world, pairs = carried(views[:2], [points, shifted])
    source, target = np.flatnonzero(seen), len(points) + np.arange(len(projected))
    rows = pairs.set_index(["source", "target"]).loc[list(zip(source, target, strict=True))]
    np.testing.assert_allclose(rows, np.tile([1.0, 0.1, 0.2], (len(rows), 1)), atol=1e-6)
    back = pairs.set_index(["source", "target"]).loc[list(zip(target, source, strict=True))]
    np.testing.assert_allclose(back["octaves"], 0.1, atol=5e-3)
    np.testing.assert_allclose(world[: len(points)], A.on_plane(INNER), atol=1e-8)


def test_a_keypoints_neighbours_in_its_own_view_are_pairs_up_to_twice_ubcs_tolerance() -> None:
    positions = np.array([[200.0, 200.0], [204.0, 203.0], [210.1, 200.0]])
    points = replace(keypoints(positions), scale=np.full(3, 3.0), orientation=np.zeros(3))
    no_points = replace(points[:0], position=np.empty((0, 2)))
    _, pairs = carried(plane_views()[:2], [points, no_points])
    distances = dict(
        zip(zip(pairs["source"], pairs["target"], strict=True), pairs["position"], strict=True)
    )
    assert distances == pytest.approx({(0, 1): 5.0, (1, 0): 5.0, (1, 2): 6.8, (2, 1): 6.8}, abs=0.02)


def test_the_viewing_angle_is_that_between_the_rays_to_the_cameras() -> None:
    views = plane_views()
    points = A.on_plane(INNER[:5])
    centres = [-known.rotation.T @ known.translation for known in POSES]
    measured = angles_between(views, np.zeros(5, int), np.full(5, 1), points)
    for point, angle in zip(points, measured, strict=True):
        one, other = (centre - point for centre in centres[:2])
        area = np.linalg.norm(np.cross(one, other))
        assert np.arctan2(area, one @ other) == pytest.approx(angle, abs=1e-12)
    assert measured.min() > 0.1
