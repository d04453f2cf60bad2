"""Walls: pieces of photographs around a part of a cylinder, and cameras about it.

Planes face different ways, stand out unequally and hide each other, so that no two views are related by
one homography and views from either side share little. Of what a view shows, it is known where and
whether another view shows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator
from scipy.stats.qmc import LatinHypercube

from lib.data.images import write_image
from lib.data.scenes.places import CAMERAS, IMAGES
from lib.data.strecha import write_strecha_camera
from lib.data.synthetic import imaging
from lib.data.synthetic.imaging import Camera, Site

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
PHOTOMETRY = {"exposure": 0.5, "gamma": 0.5, "blur": 2.0, "noise": 10.0, "jpeg_quality": (20, 80)}


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


def plan_wall(textures: Sequence[np.ndarray], arrangement: Arrangement, rng: Generator) -> Site:
    """Textures side by side around the world's y axis, and cameras before them.

    Args:
        textures: (H, W) each; a texel is as large as a world unit, before `OVERLAP`.
        arrangement: of the wall and the cameras.
        rng: the draw.
    """
    shapes = [texture.shape for texture in textures]
    radius = sum(wide for _, wide in shapes) / arrangement.arc

    def cuts(*sides: int) -> list[list[int]]:
        parts = zip(sides, PIECES, strict=True)
        return [np.linspace(0, side, n + 1).round().astype(int).tolist() for side, n in parts]

    def pose(x: float, y: float) -> tuple[np.ndarray, np.ndarray]:
        turn = imaging.axis_rotation(np.array([0, 1, 0]), -x / radius) @ imaging.random_tilt(TILT, rng)
        out = radius * (1 + RELIEF * rng.uniform(-1, 1))
        return np.array([out * np.sin(x / radius), y, -out * np.cos(x / radius)]), OVERLAP * turn

    planes = imaging.side_by_side(shapes, cuts, pose)
    focal, breadth = FOCAL * arrangement.size[0], 2 * radius * np.sin(min(arrangement.arc, np.pi) / 2)
    cameras = []
    # Stratified, so that scenes with few views are about equally hard.
    for draw in LatinHypercube(4, rng=rng).random(arrangement.views):
        yaw, roll = (2 * draw[:2] - 1) * (arrangement.azimuth, ROLL)
        pitch = PITCH[0] + draw[2] * (PITCH[1] - PITCH[0])
        distance = FOCAL * breadth * DISTANCE[0] * (DISTANCE[1] / DISTANCE[0]) ** draw[3]
        past = breadth * rng.uniform(-1, 1, 2) * (arrangement.aside, arrangement.aside / 2)
        target = np.array([*past, -radius / 2])
        view = focal, arrangement.size, distance, yaw, pitch, roll, target
        cameras.append(imaging.orbiting_camera(*view))
    return Site(planes, cameras, [imaging.draw_photometry(rng, **PHOTOMETRY) for _ in cameras])


def write_posed(folder: Path, images: Sequence[np.ndarray], cameras: Sequence[Camera]) -> None:
    """Write a scene's ``images`` with their ``cameras``, numbered from 1 on."""
    for number, (grey, camera) in enumerate(zip(images, cameras, strict=True), 1):
        name = f"{number:04}.png"
        write_image(folder / IMAGES / name, grey)
        write_strecha_camera(folder / CAMERAS / f"{name}.camera", camera)


def covisibility(site: Site, first: int, second: int) -> float:
    """The share of what either view sees of the wall that the other sees too, the smaller of the two."""
    shares = []
    for view, other in ((first, second), (second, first)):
        camera = site.cameras[view]
        # Every eighth pixel will do.
        pixels = np.mgrid[4 : camera.width : 8, 4 : camera.height : 8].reshape(2, -1).T
        planes = imaging.seen_planes(site, view, pixels)
        carried, _ = imaging.carried_pixels(site, view, other, pixels, planes)
        same = imaging.seen_planes(site, other, carried) == planes
        both = same & imaging.in_image(carried, site.cameras[other])
        shares.append(both.sum() / max(np.count_nonzero(planes >= 0), 1))
    return min(shares)
