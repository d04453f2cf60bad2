"""Walls of pieces of photographs, and the images that known cameras take of them.

The pieces stand on part of a cylinder, face different ways, stand out unequally and hide each other. No
two views are therefore related by one homography, and it is known where each pixel lies in space.

World coordinates are right-handed, with y down and z away from the camera. Image coordinates have x
right and y down, with whole numbers at pixel centres.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.random import Generator
from scipy.stats.qmc import LatinHypercube
from skimage import data

from lib.data.cameras import Camera
from lib.data.images import reduced
from lib.data.synthetic import imaging
from lib.data.synthetic.imaging import Photometry
from lib.data.whole_images import write_eth_scene
from lib.features.keypoints import local_affine, transfer

# Columns and rows of pieces that a photograph in a wall is cut into.
PIECES = (3, 2)
TILT = np.deg2rad(20.0)
# Largest distance by which a piece stands out or back, in radii of the wall.
RELIEF = 0.12
# How much larger a piece is than its place, so that few gaps are left.
OVERLAP = 1.05
# Focal length, in widths of the image.
FOCAL = 1.2
PITCH = np.deg2rad((-20.0, 10.0))
ROLL = np.deg2rad(15.0)
# Distance of a camera from the wall, relative to that from which the wall fills the image's width.
DISTANCE = (0.7, 1.6)
# Photographs taken within an hour by one camera.
WITHIN_AN_HOUR = {"exposure": 0.15, "gamma": 0.1, "blur": 0.5, "noise": 2.0, "jpeg_quality": (85, 95)}


@dataclass(frozen=True)
class Plane:
    """A rectangle of texture in space: texel (u, v) lies at origin + u * u_axis + v * v_axis.

    Attributes:
        origin: (3,) float64, world units.
        u_axis, v_axis: (3,) float64, world units per texel.
        width, height: texels.
        photograph: index of the photograph that the texture is part of.
        left, top: the texture's corner in the photograph, px.
    """

    origin: np.ndarray
    u_axis: np.ndarray
    v_axis: np.ndarray
    width: int
    height: int
    photograph: int = 0
    left: int = 0
    top: int = 0


@dataclass(frozen=True)
class Site:
    """Planes, the cameras that see them, and how each camera's image was taken."""

    planes: Sequence[Plane]
    cameras: Sequence[Camera]
    photometry: Sequence[Photometry]

    def homographies(self, view: int) -> np.ndarray:
        """Return (P, 3, 3) homographies from each plane's texels to a view's pixels."""
        return np.array([plane_homography(plane, self.cameras[view]) for plane in self.planes])


@dataclass(frozen=True)
class Arrangement:
    """A kind of wall and the cameras before it.

    Attributes:
        arc: angle of the cylinder that the wall covers, radians.
        views: number of cameras.
        size: width and height of their images, px.
        azimuth: largest angle of a camera to either side of the wall's middle, radians.
        aside: how far a camera looks past the middle at most, in breadths of the wall.
    """

    arc: float
    views: int
    size: tuple[int, int]
    azimuth: float
    aside: float


def random_tilt(largest: float, rng: Generator) -> np.ndarray:
    """Draw a (3, 3) rotation about an axis across the line of sight, by `largest` radians at most."""
    angle = rng.uniform(0, 2 * np.pi)
    return imaging.axis_rotation([np.cos(angle), np.sin(angle), 0], largest * rng.uniform())


def plane_homography(plane: Plane, camera: Camera) -> np.ndarray:
    """Return the (3, 3) homography from texels of the plane to pixels; its third row gives depth.

    The third row of its inverse gives 1 / depth of the plane at a pixel.
    """
    turned = [camera.rotation @ vector for vector in (plane.u_axis, plane.v_axis, plane.origin)]
    turned[2] += camera.translation
    return camera.intrinsics @ np.stack(turned, axis=1)


def in_image(pixels: np.ndarray, camera: Camera, margin: np.ndarray | float = 0.0) -> np.ndarray:
    """Test which (N, 2) pixels lie in a camera's image, a margin (px, or (N, 1)) inside; (N,) bool."""
    last = np.array([camera.width - 1, camera.height - 1])
    return ((pixels >= margin) & (pixels <= last - margin)).all(axis=1)


def seen_planes(site: Site, view: int, pixels: np.ndarray) -> np.ndarray:
    """Return the nearest plane on the ray of each of (N, 2) pixels of a view.

    Planes are (N,) int64 indices, -1 where the ray meets none.
    """
    rays = np.vstack([pixels.T, np.ones(len(pixels))])
    texels = np.linalg.inv(site.homographies(view)) @ rays
    closeness = texels[:, 2]
    texels = texels[:, :2] / texels[:, 2:]
    last = np.array([[[plane.width - 1], [plane.height - 1]] for plane in site.planes])
    hit = ((texels >= 0) & (texels <= last)).all(axis=1) & (closeness > 0)
    return np.where(hit.any(axis=0), np.where(hit, closeness, 0).argmax(axis=0), -1)


def carried_pixels(
    site: Site, first: int, second: int, pixels: np.ndarray, planes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Carry pixels of one view into another, whether or not they are visible there.

    Args:
        site: the planes and cameras.
        first, second: indices of the views.
        pixels: (N, 2) of the first view.
        planes: (N,) index of the plane that each pixel shows, -1 for none.

    Returns:
        (N, 2) pixels of the second view, and (N, 2, 2) local affine maps. For pixels that show no plane,
        (-1, -1) and the identity.
    """
    position = np.full(pixels.shape, -1.0)
    affine = np.tile(np.eye(2), (len(pixels), 1, 1))
    homographies = site.homographies(second) @ np.linalg.inv(site.homographies(first))
    for index, homography in enumerate(homographies):
        chosen = planes == index
        position[chosen] = transfer(homography, pixels[chosen])
        affine[chosen] = local_affine(homography, pixels[chosen])
    return position, affine


def plan_wall(textures: Sequence[np.ndarray], arrangement: Arrangement, rng: Generator) -> Site:
    """Arrange textures side by side around the world's y axis, and place cameras in front of them.

    Args:
        textures: (H, W) each; a texel is as large as a world unit, before `OVERLAP`.
        arrangement: of the wall and the cameras.
        rng: draws the pieces' poses, and the cameras and their photometry.
    """
    radius = sum(texture.shape[1] for texture in textures) / arrangement.arc
    planes = pieces([texture.shape for texture in textures], radius, rng)
    focal, breadth = FOCAL * arrangement.size[0], 2 * radius * np.sin(min(arrangement.arc, np.pi) / 2)
    cameras = []
    # Stratified, so that walls with few views are about equally hard.
    for draw in LatinHypercube(4, rng=rng).random(arrangement.views):
        yaw, roll = (2 * draw[:2] - 1) * (arrangement.azimuth, ROLL)
        pitch = PITCH[0] + draw[2] * (PITCH[1] - PITCH[0])
        distance = FOCAL * breadth * DISTANCE[0] * (DISTANCE[1] / DISTANCE[0]) ** draw[3]
        past = breadth * rng.uniform(-1, 1, 2) * (arrangement.aside, arrangement.aside / 2)
        view = focal, arrangement.size, distance, yaw, pitch, roll, [*past, -radius / 2]
        cameras.append(imaging.orbiting_camera(*view))
    taken = [imaging.draw_photometry(rng, **WITHIN_AN_HOUR) for _ in cameras]
    return Site(planes, cameras, taken)


def pieces(shapes: Sequence[tuple[int, int]], radius: float, rng: Generator) -> list[Plane]:
    """Cut photographs of the given (height, width), side by side on a cylinder, into tilted planes."""
    planes, left = [], -sum(wide for _, wide in shapes) / 2
    for index, (tall, wide) in enumerate(shapes):
        sides = zip((wide, tall), PIECES, strict=True)
        cuts = [np.linspace(0, side, count + 1).round().astype(int).tolist() for side, count in sides]
        for (x0, x1), (y0, y1) in itertools.product(*map(itertools.pairwise, cuts)):
            angle = (left + (x0 + x1) / 2) / radius
            turn = imaging.axis_rotation([0, 1, 0], -angle) @ random_tilt(TILT, rng)
            u_axis, v_axis = OVERLAP * turn.T[:2]
            out = radius * (1 + RELIEF * rng.uniform(-1, 1))
            middle = np.array([out * np.sin(angle), (y0 + y1 - tall) / 2, -out * np.cos(angle)])
            origin = middle - u_axis * (x1 - x0 - 1) / 2 - v_axis * (y1 - y0 - 1) / 2
            planes.append(Plane(origin, u_axis, v_axis, x1 - x0, y1 - y0, index, x0, y0))
        left += wide
    return planes


def render_view(site: Site, photographs: Sequence[np.ndarray], view: int) -> np.ndarray:
    """Render the image that one camera of a site takes.

    Args:
        site: the planes and cameras.
        photographs: (H, W) uint8 each.
        view: index of the camera.

    Returns:
        (height, width) uint8.
    """
    camera = site.cameras[view]
    image = imaging.sky(camera.width, camera.height)
    # 1 / depth of the plane drawn at each pixel.
    depths = np.zeros_like(image)
    for plane, homography in zip(site.planes, site.homographies(view), strict=True):
        rows = slice(plane.top, plane.top + plane.height)
        columns = slice(plane.left, plane.left + plane.width)
        texture = photographs[plane.photograph][rows, columns]
        part, light, inside = imaging.warp_texture(texture, homography, image.shape)
        y, x = np.ogrid[part]
        a, b, c = np.linalg.inv(homography)[2]
        closeness = (a * x + b * y + c).astype(np.float32)
        nearer = inside & (closeness > depths[part])
        image[part][nearer] = light[nearer]
        depths[part][nearer] = closeness[nearer]
    return imaging.photograph_through(site.photometry[view], image)


def render_views(site: Site, photographs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Render the images that all cameras of a site take; arguments are those of `render_view`."""
    return [render_view(site, photographs, view) for view in range(len(site.cameras))]


def greys(longest_side: int) -> list[np.ndarray]:
    """Return (H, W) uint8 grey values of three photographs that scikit-image installs.

    Args:
        longest_side: px; larger ones are reduced to it.
    """
    colours = (data.coffee(), data.astronaut())
    pictures = [*(cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY) for colour in colours), data.gravel()]
    return [reduced(picture, longest_side) for picture in pictures]


def write_posed(folder: Path, images: Sequence[np.ndarray], cameras: Sequence[Camera]) -> None:
    """Write a scene's ``images`` and their ``cameras``, numbered from 1 on."""
    names = [f"{number:04}.png" for number in range(1, len(images) + 1)]
    by_name = dict(zip(names, images, strict=True))
    write_eth_scene(folder, by_name, dict(zip(names, cameras, strict=True)))
