"""Walls: pieces of photographs around a part of a cylinder, and cameras about it.

Planes face different ways, stand out unequally and hide each other, so that no two views are related by
one homography and views from either side share little.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lib.data.synthetic import geometry
from lib.data.synthetic.photometry import PhotometricSpread, draw_photometry
from lib.data.synthetic.scenes import Piece, Site, carried_pixels, random_tilt, render_views, seen_pieces

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
        columns, rows = even_cuts(wide, PIECES[0]), even_cuts(tall, PIECES[1])
        for x0, x1 in itertools.pairwise(columns):
            around = (left + (x0 + x1) / 2) / radius
            for y0, y1 in itertools.pairwise(rows):
                tilt = random_tilt(TILT, rng)
                turn = geometry.axis_rotation(np.array([0, 1, 0]), -around) @ tilt
                out = radius * (1 + RELIEF * rng.uniform(-1, 1))
                height = (y0 + y1 - tall) / 2
                middle = np.array([out * np.sin(around), height, -out * np.cos(around)])
                axes = (OVERLAP * turn).T[:2]
                plane = geometry.centred_plane(middle, axes, x1 - x0, y1 - y0)
                pieces.append(Piece(plane, index, x0, y0))
        left += wide

    focal, breadth = FOCAL * size[0], 2 * radius * np.sin(min(arc, np.pi) / 2)
    intrinsics = geometry.intrinsics(focal, *size)
    cameras = []
    # Stratified, so that scenes with few views are about equally hard.
    for draw in LatinHypercube(4, rng=rng).random(count):
        yaw, roll = (2 * draw[:2] - 1) * (azimuth, ROLL)
        pitch = PITCH[0] + draw[2] * (PITCH[1] - PITCH[0])
        distance = FOCAL * breadth * DISTANCE[0] * (DISTANCE[1] / DISTANCE[0]) ** draw[3]
        past = breadth * rng.uniform(-1, 1, 2) * (aside, aside / 2)
        target = np.array([*past, -radius / 2])
        cameras.append(geometry.orbiting_camera(target, distance, yaw, pitch, roll, intrinsics, size))
    return Site(tuple(pieces), tuple(cameras), tuple(draw_photometry(PHOTOMETRY, rng) for _ in cameras))


def even_cuts(length: int, parts: int) -> list[int]:
    """Where a length is cut into so many parts, nearly equal and whole px; both ends included."""
    return np.linspace(0, length, parts + 1).round().astype(int).tolist()


def photographed_wall(textures: Sequence[np.ndarray], *arguments: Any) -> tuple[Site, list[np.ndarray]]:
    """A wall of (H, W) uint8 textures, and what each camera photographs.

    Args:
        textures: on the wall, side by side.
        arguments: of `plan_wall`, those after the shapes.
    """
    site = plan_wall([texture.shape for texture in textures], *arguments)
    return site, render_views(site, textures)


def covisibility(site: Site, first: int, second: int) -> float:
    """The share of what either view sees of the wall that the other sees too, the smaller of the two."""
    return min(_shared(site, first, second), _shared(site, second, first))


def _shared(site: Site, first: int, second: int) -> float:
    here, there = site.cameras[first], site.cameras[second]
    sides = (np.arange(_STEP / 2, length, _STEP) for length in (here.width, here.height))
    pixels = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    piece = seen_pieces(site, first, pixels)
    pixels, piece = pixels[piece >= 0], piece[piece >= 0]
    carried, _ = carried_pixels(site, first, second, pixels, piece)
    inside = (carried >= 0) & (carried <= [there.width - 1, there.height - 1])
    both = inside.all(axis=1) & (seen_pieces(site, second, carried) == piece)
    return float(both.mean()) if len(both) else 0.0
