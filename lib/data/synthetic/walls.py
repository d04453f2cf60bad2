"""Walls: pieces of photographs around a part of a cylinder, and cameras about it.

Planes face different ways, stand out unequally and hide each other, so that no two views are related by
one homography and views from either side share little.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from lib.data.synthetic.geometry import (
    Plane,
    axis_rotation,
    nearest_plane,
    orbiting_camera,
    plane_homography,
    transfer,
)
from lib.data.synthetic.photometry import PhotometricSpread, draw_photometry
from lib.data.synthetic.scenes import Piece, Site

# Columns and rows of pieces that a photograph is cut into.
PIECES = (3, 2)
TILT = np.deg2rad(20.0)
# How far a piece stands out or back, in radii of the wall.
RELIEF = 0.12
# How much larger a piece is than its place, so that few gaps are left.
OVERLAP = 1.05
# Focal length in widths of the image.
FOCAL = 1.2
PITCH = np.deg2rad((-20.0, 10.0))
ROLL = np.deg2rad(15.0)
# Of a camera from the wall, in the distance from which the wall fills the image's width.
DISTANCE = (0.7, 1.6)
PHOTOMETRY = PhotometricSpread(exposure=0.5, gamma=0.5, blur=2.0, noise=10.0, jpeg_quality=(20, 80))
# Px between the points at which it is asked what two views share.
_STEP = 8


def plan_wall(
    shapes: Sequence[tuple[int, int]],
    arc: float,
    count: int,
    size: tuple[int, int],
    azimuth: float,
    aside: float,
    rng: np.random.Generator,
) -> Site:
    """Textures side by side around the world's y axis, and cameras before them.

    Args:
        shapes: (height, width) of the textures; a texel is as large as a world unit, before `OVERLAP`.
        arc: radians that they take of the circle.
        count: of cameras.
        size: width and height of their images.
        azimuth: radians that a camera stands to either side of the wall's middle at most.
        aside: how far it looks past the middle at most, in breadths of the wall.
        rng: the draw.
    """
    from scipy.stats.qmc import LatinHypercube

    width = sum(wide for _, wide in shapes)
    radius = width / arc
    pieces, left = [], -width / 2
    for index, (tall, wide) in enumerate(shapes):
        columns, rows = (
            np.linspace(0, length, parts + 1).round().astype(int).tolist()
            for length, parts in zip((wide, tall), PIECES, strict=True)
        )
        for x0, x1 in itertools.pairwise(columns):
            around = (left + (x0 + x1) / 2) / radius
            for y0, y1 in itertools.pairwise(rows):
                plane = _outward(around, (y0 + y1 - tall) / 2, (x1 - x0, y1 - y0), radius, rng)
                pieces.append(Piece(plane, index, x0, y0))
        left += wide

    focal, breadth = FOCAL * size[0], 2 * radius * np.sin(min(arc, np.pi) / 2)
    middle = [(length - 1) / 2 for length in size]
    intrinsics = np.array([[focal, 0, middle[0]], [0, focal, middle[1]], [0, 0, 1.0]])
    cameras = []
    # Stratified, so that scenes with few views are about equally hard.
    for draw in LatinHypercube(4, rng=rng).random(count):
        yaw, roll = (2 * draw[:2] - 1) * (azimuth, ROLL)
        pitch = PITCH[0] + draw[2] * (PITCH[1] - PITCH[0])
        distance = FOCAL * breadth * DISTANCE[0] * (DISTANCE[1] / DISTANCE[0]) ** draw[3]
        past = breadth * rng.uniform(-1, 1, 2) * (aside, aside / 2)
        target = np.array([*past, -radius / 2])
        cameras.append(orbiting_camera(target, distance, yaw, pitch, roll, intrinsics, size))
    return Site(tuple(pieces), tuple(cameras), tuple(draw_photometry(PHOTOMETRY, rng) for _ in cameras))


def _outward(
    around: float, height: float, size: tuple[int, int], radius: float, rng: np.random.Generator
) -> Plane:
    leaning = rng.uniform(0, 2 * np.pi)
    tilt = axis_rotation(np.array([np.cos(leaning), np.sin(leaning), 0]), TILT * rng.uniform())
    turn = axis_rotation(np.array([0, 1, 0]), -around) @ tilt
    out = radius * (1 + RELIEF * rng.uniform(-1, 1))
    middle = np.array([out * np.sin(around), height, -out * np.cos(around)])
    u_axis, v_axis = (OVERLAP * turn).T[:2]
    origin = middle - u_axis * (size[0] - 1) / 2 - v_axis * (size[1] - 1) / 2
    return Plane(origin, u_axis, v_axis, *size)


def seen(site: Site, view: int, pixels: np.ndarray) -> np.ndarray:
    """(N,) int64: which piece is seen at (N, 2) pixels of a view, -1 where none is."""
    return nearest_plane([piece.plane for piece in site.pieces], site.cameras[view], pixels)


def covisibility(site: Site, first: int, second: int) -> float:
    """The share of what either view sees of the wall that the other sees too, the smaller of the two."""
    return min(_shared(site, first, second), _shared(site, second, first))


def _shared(site: Site, first: int, second: int) -> float:
    here, there = site.cameras[first], site.cameras[second]
    sides = (np.arange(_STEP / 2, length, _STEP) for length in (here.width, here.height))
    pixels = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    piece = seen(site, first, pixels)
    pixels, piece = pixels[piece >= 0], piece[piece >= 0]
    carried = carry(site, first, second, pixels, piece)
    inside = (carried >= 0) & (carried <= [there.width - 1, there.height - 1])
    both = inside.all(axis=1) & (seen(site, second, carried) == piece)
    return float(both.mean()) if len(both) else 0.0


def carry(site: Site, first: int, second: int, pixels: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """Where pixels (N, 2) of one view, which show pieces (N,), lie in another, seen there or not."""
    carried = np.full(pixels.shape, np.nan)
    for index in np.unique(piece):
        plane, of = site.pieces[index].plane, piece == index
        there, here = (plane_homography(plane, site.cameras[view]) for view in (second, first))
        carried[of] = transfer(there @ np.linalg.inv(here), pixels[of])
    return carried
