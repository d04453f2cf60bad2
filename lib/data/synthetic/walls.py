"""Walls: pieces of photographs around a part of a cylinder, and cameras about it.

Planes face different ways, stand out unequally and hide each other, so that no two views are related by
one homography and views from either side share little. Of what a view shows, it is known where and
whether another view shows it.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.data.images import write_image
from lib.data.scenes.places import CAMERAS, IMAGES
from lib.data.strecha import write_strecha_camera
from lib.data.synthetic import geometry
from lib.data.synthetic.geometry import Camera
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


@dataclass(frozen=True)
class Arrangement:
    """A kind of wall and the cameras before it.

    Attributes:
        arc: radians that the wall takes of the circle.
        views: how many cameras.
        size: width and height of their images, px.
        azimuth: radians that a camera stands to either side of the wall's middle at most.
        aside: how far it looks past the middle at most, in breadths of the wall.
    """

    arc: float
    views: int
    size: tuple[int, int]
    azimuth: float
    aside: float


def plan_wall(
    shapes: Sequence[tuple[int, int]], arrangement: Arrangement, rng: np.random.Generator
) -> Site:
    """Textures side by side around the world's y axis, and cameras before them.

    Args:
        shapes: (height, width) of the textures; a texel is as large as a world unit, before `OVERLAP`.
        arrangement: of the wall and the cameras.
        rng: the draw.
    """
    from scipy.stats.qmc import LatinHypercube

    arc, size, width = arrangement.arc, arrangement.size, sum(wide for _, wide in shapes)
    radius = width / arc
    pieces, left = [], -width / 2
    for index, (tall, wide) in enumerate(shapes):
        for (x0, x1), (y0, y1) in _cells(wide, tall, *PIECES):
            around = (left + (x0 + x1) / 2) / radius
            tilt = random_tilt(TILT, rng)
            turn = geometry.axis_rotation(np.array([0, 1, 0]), -around) @ tilt
            out = radius * (1 + RELIEF * rng.uniform(-1, 1))
            height = (y0 + y1 - tall) / 2
            middle = np.array([out * np.sin(around), height, -out * np.cos(around)])
            axes = (OVERLAP * turn).T[:2]
            pieces.append(Piece(geometry.centred_plane(middle, axes, x1 - x0, y1 - y0), index, x0, y0))
        left += wide

    focal, breadth = FOCAL * size[0], 2 * radius * np.sin(min(arc, np.pi) / 2)
    intrinsics = geometry.intrinsics(focal, *size)
    cameras = []
    # Stratified, so that scenes with few views are about equally hard.
    for draw in LatinHypercube(4, rng=rng).random(arrangement.views):
        yaw, roll = (2 * draw[:2] - 1) * (arrangement.azimuth, ROLL)
        pitch = PITCH[0] + draw[2] * (PITCH[1] - PITCH[0])
        distance = FOCAL * breadth * DISTANCE[0] * (DISTANCE[1] / DISTANCE[0]) ** draw[3]
        past = breadth * rng.uniform(-1, 1, 2) * (arrangement.aside, arrangement.aside / 2)
        target = np.array([*past, -radius / 2])
        cameras.append(geometry.orbiting_camera(target, distance, yaw, pitch, roll, intrinsics, size))
    return Site(tuple(pieces), tuple(cameras), tuple(draw_photometry(PHOTOMETRY, rng) for _ in cameras))


def _cells(width: int, height: int, columns: int, rows: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Left and right, top and bottom of nearly equal cells of whole px, column by column."""
    parts = ((width, columns), (height, rows))
    cuts = (np.linspace(0, side, count + 1).round().astype(int).tolist() for side, count in parts)
    return itertools.product(*map(itertools.pairwise, cuts))


def photographed_wall(
    textures: Sequence[np.ndarray], arrangement: Arrangement, rng: np.random.Generator
) -> tuple[Site, list[np.ndarray]]:
    """A wall of (H, W) uint8 textures side by side, and what each camera photographs, (h, w) uint8."""
    site = plan_wall([texture.shape for texture in textures], arrangement, rng)
    return site, render_views(site, textures)


def write_posed(
    folder: Path, images: Sequence[np.ndarray], cameras: Sequence[Camera], first: int = 0
) -> None:
    """Write a scene's ``images`` with their ``cameras``, numbered from `first` on."""
    for number, (grey, camera) in enumerate(zip(images, cameras, strict=True), first):
        name = f"{number:04}.png"
        write_image(folder / IMAGES / name, grey)
        write_strecha_camera(folder / CAMERAS / f"{name}.camera", camera)


def covisibility(site: Site, first: int, second: int) -> float:
    """The share of what either view sees of the wall that the other sees too, the smaller of the two."""
    shares = []
    for view, other in ((first, second), (second, first)):
        here, there = site.cameras[view], site.cameras[other]
        sides = (np.arange(_STEP / 2, length, _STEP) for length in (here.width, here.height))
        pixels = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        piece = seen_pieces(site, view, pixels)
        carried, _ = carried_pixels(site, view, other, pixels, piece)
        both = in_image(carried, there) & (seen_pieces(site, other, carried) == piece)
        shares.append(float(both[piece >= 0].mean()) if (piece >= 0).any() else 0.0)
    return min(shares)


def in_image(pixels: np.ndarray, camera: Camera) -> np.ndarray:
    """(N,) bool, which of (N, 2) pixels lie in a camera's image."""
    return ((pixels >= 0) & (pixels <= [camera.width - 1, camera.height - 1])).all(axis=1)
