"""Walls: pieces of photographs around a part of a cylinder, cameras about it, and passers-by before it.

Planes face different ways, stand out unequally and hide each other, so that no two views are related by
one homography and views from either side share little. Passers-by, cut from the same photographs, stand
somewhere else in each view: what is found on them matches, and is wrong.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lib.data.mini.geometry import (
    Camera,
    Plane,
    axis_rotation,
    nearest_plane,
    orbiting_camera,
    plane_homography,
    transfer,
)
from lib.data.mini.photometry import PhotometricSpread, Photometry, draw_photometry
from lib.data.mini.scenes import Piece, Site, render_view

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
PASSERS = 2
# Width of one in the image, in widths of the image; how near it stands, in distances as above; its turn.
PASSER_WIDTH = 0.16
PASSER_DISTANCE = (0.35, 0.6)
PASSER_TURN = np.deg2rad(60.0)
PHOTOMETRY = PhotometricSpread(exposure=0.4, gamma=0.4, blur=1.2, noise=6.0, jpeg_quality=(40, 90))
# Px between the points at which it is asked what two views share.
_STEP = 8


@dataclass(frozen=True)
class Wall:
    """Pieces of textures around the axis of a cylinder, which is the world's y axis.

    Attributes:
        pieces: the planes.
        radius: world units, texels of a piece before `OVERLAP`.
        breadth: of the wall as seen from before it.
    """

    pieces: tuple[Piece, ...]
    radius: float
    breadth: float


@dataclass(frozen=True)
class Views:
    """A wall and the cameras that see it, each with its own passers-by.

    Attributes:
        wall: the planes.
        cameras, photometry: of each view.
        passers: of each view, planes in the world.
    """

    wall: Wall
    cameras: tuple[Camera, ...]
    photometry: tuple[Photometry, ...]
    passers: tuple[tuple[Piece, ...], ...]

    def images(self, textures: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """(height, width) uint8 each, one view after the other, of (H, W) uint8 textures."""
        for camera, taken, passers in zip(self.cameras, self.photometry, self.passers, strict=True):
            yield render_view(Site((*self.wall.pieces, *passers), (camera,), (taken,)), textures, 0)

    def seen(self, view: int, pixels: np.ndarray) -> np.ndarray:
        """(N,) int64: which piece of the wall is seen at (N, 2) pixels of a view, -1 where none is."""
        planes = [piece.plane for piece in (*self.wall.pieces, *self.passers[view])]
        piece = nearest_plane(planes, self.cameras[view], pixels)
        return np.where(piece < len(self.wall.pieces), piece, -1)


def plan_wall(shapes: Sequence[tuple[int, int]], arc: float, rng: np.random.Generator) -> Wall:
    """A wall of textures of the given (height, width), side by side over an arc in radians."""
    width = sum(wide for _, wide in shapes)
    radius = width / arc
    pieces, left = [], 0
    for index, (tall, wide) in enumerate(shapes):
        columns, rows = (
            np.linspace(0, length, parts + 1).round().astype(int).tolist()
            for length, parts in zip((wide, tall), PIECES, strict=True)
        )
        for x0, x1 in itertools.pairwise(columns):
            around = (left + (x0 + x1) / 2 - width / 2) / radius
            for y0, y1 in itertools.pairwise(rows):
                plane = _outward(around, (y0 + y1 - tall) / 2, (x1 - x0, y1 - y0), radius, rng)
                pieces.append(Piece(plane, index, x0, y0))
        left += wide
    return Wall(tuple(pieces), radius, 2 * radius * np.sin(min(arc, np.pi) / 2))


def _outward(
    around: float, height: float, size: tuple[int, int], radius: float, rng: np.random.Generator
) -> Plane:
    leaning = rng.uniform(0, 2 * np.pi)
    tilt = axis_rotation(np.array([np.cos(leaning), np.sin(leaning), 0]), TILT * rng.uniform())
    turn = axis_rotation(np.array([0, 1, 0]), -around) @ tilt
    out = radius * (1 + RELIEF * rng.uniform(-1, 1))
    middle = np.array([out * np.sin(around), height, -out * np.cos(around)])
    return _plane(middle, OVERLAP * turn, size)


def _plane(middle: np.ndarray, axes: np.ndarray, size: tuple[int, int]) -> Plane:
    """A plane around its middle; the first two columns of `axes` are a texel's width and height."""
    u_axis, v_axis = axes.T[:2]
    origin = middle - u_axis * (size[0] - 1) / 2 - v_axis * (size[1] - 1) / 2
    return Plane(origin, u_axis, v_axis, *size)


def plan_views(
    wall: Wall,
    shapes: Sequence[tuple[int, int]],
    count: int,
    size: tuple[int, int],
    azimuth: float,
    aside: float,
    rng: np.random.Generator,
) -> Views:
    """Cameras about a wall, and passers-by.

    Args:
        wall: of `plan_wall`.
        shapes: (height, width) of its textures.
        count: of cameras.
        size: width and height of their images.
        azimuth: radians that a camera stands to either side of the wall's middle at most.
        aside: how far it looks past the middle at most, in breadths of the wall.
        rng: the draw.
    """
    from scipy.stats.qmc import LatinHypercube

    focal = FOCAL * size[0]
    middle = [(length - 1) / 2 for length in size]
    intrinsics = np.array([[focal, 0, middle[0]], [0, focal, middle[1]], [0, 0, 1.0]])
    filling = FOCAL * wall.breadth
    cameras, passers = [], []
    # Stratified, so that scenes with few views are about equally hard.
    for draw in LatinHypercube(4, rng=rng).random(count):
        yaw, roll = (2 * draw[:2] - 1) * (azimuth, ROLL)
        pitch = PITCH[0] + draw[2] * (PITCH[1] - PITCH[0])
        distance = filling * DISTANCE[0] * (DISTANCE[1] / DISTANCE[0]) ** draw[3]
        past = wall.breadth * rng.uniform(-1, 1, 2) * (aside, aside / 2)
        target = np.array([*past, -wall.radius / 2])
        cameras.append(orbiting_camera(target, distance, yaw, pitch, roll, intrinsics, size))
        passers.append(tuple(_passer(k, cameras[-1], filling, shapes, rng) for k in range(PASSERS)))
    taken = tuple(draw_photometry(PHOTOMETRY, rng) for _ in cameras)
    return Views(wall, tuple(cameras), taken, tuple(passers))


def _passer(
    number: int,
    camera: Camera,
    filling: float,
    shapes: Sequence[tuple[int, int]],
    rng: np.random.Generator,
) -> Piece:
    """The same part of a texture in every view: its lower 60%, a third of it wide."""
    texture = number % len(shapes)
    tall, wide = shapes[texture]
    size = (wide // 3, int(0.6 * tall))
    depth = filling * rng.uniform(*PASSER_DISTANCE)
    per_pixel = depth / camera.intrinsics[0, 0]
    place = per_pixel * np.array([rng.uniform(-0.4, 0.4) * camera.width, 0, 0])
    place[1] = per_pixel * rng.uniform(-0.1, 0.4) * camera.height
    turn = axis_rotation(np.array([0, 1, 0]), PASSER_TURN * rng.uniform(-1, 1))
    texel = PASSER_WIDTH * camera.width * per_pixel / size[0]
    middle = camera.rotation.T @ (place + [0, 0, depth] - camera.translation)
    plane = _plane(middle, texel * camera.rotation.T @ turn, size)
    return Piece(plane, texture, number * wide // 3, tall - size[1])


def covisibility(views: Views, first: int, second: int) -> float:
    """The share of what either view sees of the wall that the other sees too, the smaller of the two."""
    return min(_shared(views, first, second), _shared(views, second, first))


def _shared(views: Views, first: int, second: int) -> float:
    here, there = views.cameras[first], views.cameras[second]
    pixels = grid(here)
    piece = views.seen(first, pixels)
    pixels, piece = pixels[piece >= 0], piece[piece >= 0]
    carried = carry(views.wall, here, there, pixels, piece)
    inside = (carried >= 0) & (carried <= [there.width - 1, there.height - 1])
    both = inside.all(axis=1) & (views.seen(second, carried) == piece)
    return float(both.mean()) if len(both) else 0.0


def grid(camera: Camera) -> np.ndarray:
    """(N, 2) float64, pixels of a camera's image at even distances."""
    across, down = np.arange(_STEP / 2, camera.width, _STEP), np.arange(_STEP / 2, camera.height, _STEP)
    return np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2)


def carry(
    wall: Wall, here: Camera, there: Camera, pixels: np.ndarray, piece: np.ndarray
) -> np.ndarray:
    """Where pixels (N, 2) of one camera, which show the pieces (N,) of a wall, lie in another's image."""
    carried = np.full(pixels.shape, np.nan)
    for index in np.unique(piece):
        plane, of = wall.pieces[index].plane, piece == index
        homography = plane_homography(plane, there) @ np.linalg.inv(plane_homography(plane, here))
        carried[of] = transfer(homography, pixels[of])
    return carried
