"""Walls: pieces of photographs around a part of a cylinder, and cameras about it.

Planes face different ways, stand out unequally and hide each other, so that no two views are related by
one homography and views from either side share little. A wall with relief has its planes cut into facets
that stand out or back: finer than the distance between sparse points, which a triangulated surface gets
wrong. Of what a view shows, it is known where and whether another view shows it.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lib.data.images import write_image
from lib.data.scenes.places import CAMERAS, IMAGES
from lib.data.strecha import write_strecha_camera
from lib.data.synthetic import geometry
from lib.data.synthetic.geometry import Camera
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.photometry import PhotometricSpread, draw_photometry
from lib.data.synthetic.scenes import Piece, Site, carried_pixels, random_tilt, render_views, seen_pieces
from lib.features.keypoints import Keypoints, carried_keypoints

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


# A scene with relief, of photographs taken within an hour by one camera.
RELIEVED = Arrangement(np.deg2rad(90.0), 8, (1024, 768), np.deg2rad(35.0), 0.05)
WITHIN_AN_HOUR = PhotometricSpread(exposure=0.15, gamma=0.1, blur=0.5, noise=2.0, jpeg_quality=(85, 95))
# Facets across and down a plane, and how far one stands out or back at most, in its own widths.
FACETS, DEPTH = 4, 0.06
# Of the depth, by how much what is seen may differ from what is carried there.
SAME_DEPTH = 0.01


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


def with_relief(site: Site, rng: np.random.Generator, depth: float = DEPTH) -> Site:
    """A site whose planes are cut into facets, each moved along its normal.

    Args:
        site: of whole planes.
        rng: the draw.
        depth: of a facet at most, in its widths; 0 leaves the surface as it is.
    """
    pieces = []
    for piece in site.pieces:
        plane = piece.plane
        normal = np.cross(plane.u_axis, plane.v_axis)
        normal /= np.linalg.norm(normal)
        for (x0, x1), (y0, y1) in _cells(plane.width, plane.height, FACETS, FACETS):
            out = depth * (x1 - x0) * np.linalg.norm(plane.u_axis) * rng.uniform(-1, 1)
            origin = plane.origin + x0 * plane.u_axis + y0 * plane.v_axis + out * normal
            # A plane ends in the middle of its last texel: one more closes the gap to the next facet.
            width, height = min(x1 - x0 + 1, plane.width - x0), min(y1 - y0 + 1, plane.height - y0)
            facet = replace(plane, origin=origin, width=width, height=height)
            pieces.append(Piece(facet, piece.photograph, piece.left + x0, piece.top + y0))
    return replace(site, pieces=tuple(pieces))


def write_relief(
    folder: Path, photographs: Sequence[Photograph], seed: int = 0, depth: float = DEPTH
) -> Site:
    """Write a scene: ``images`` and their ``cameras``.

    Args:
        folder: of the scene, made if missing.
        photographs: on the wall, side by side.
        seed: of everything drawn.
        depth: of the relief, as in `with_relief`.

    Returns:
        The site, by which any pixel can be carried without error (`truly_carried`).

    Raises:
        ValueError: a photograph cannot be read.
        OSError: the folder cannot be written.
    """
    rng = np.random.default_rng(seed)
    textures = [photograph.grey(640) for photograph in photographs]
    wall = plan_wall([texture.shape for texture in textures], RELIEVED, rng)
    taken = tuple(draw_photometry(WITHIN_AN_HOUR, rng) for _ in wall.cameras)
    site = with_relief(replace(wall, photometry=taken), rng, depth=depth)
    write_posed(folder, render_views(site, textures), site.cameras)
    return site


def write_posed(
    folder: Path, images: Sequence[np.ndarray], cameras: Sequence[Camera], first: int = 0
) -> None:
    """Write a scene's ``images`` with their ``cameras``, numbered from `first` on."""
    for number, (grey, camera) in enumerate(zip(images, cameras, strict=True), first):
        name = f"{number:04}.png"
        write_image(folder / IMAGES / name, grey)
        write_strecha_camera(folder / CAMERAS / f"{name}.camera", camera)


def truly_carried(
    site: Site, first: int, second: int, keypoints: Keypoints
) -> tuple[Keypoints, np.ndarray, np.ndarray]:
    """Keypoints carried from one view into another by the known planes, without error.

    Args:
        site: the scene.
        first, second: views.
        keypoints: N of the first view.

    Returns:
        The N keypoints in the second view; (N, 2, 2) the local affine maps; (N,) bool, which are seen
        there. Those that are not have no meaning.
    """
    there = site.cameras[second]
    piece = seen_pieces(site, first, keypoints.position)
    position, affine = carried_pixels(site, first, second, keypoints.position, piece)
    nearest = seen_pieces(site, second, position)
    # As deep as what is seen there, which beside an edge may be the next facet.
    coefficients = np.array([geometry.inverse_depth(piece.plane, there) for piece in site.pieces])
    rays = np.column_stack([position, np.ones(len(position))])
    own, seen = (np.einsum("ni,ni->n", rays, coefficients[index]) for index in (piece, nearest))
    visible = in_image(position, there) & (piece >= 0) & (nearest >= 0) & (np.linalg.det(affine) > 0)
    visible &= np.abs(own - seen) <= SAME_DEPTH * np.abs(seen)
    return carried_keypoints(keypoints, position, affine), affine, visible


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
