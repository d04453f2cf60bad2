"""Textured planes in 3D, and the images that pinhole cameras take of them.

World coordinates are right-handed, with y down and z away from the reference camera. Image coordinates
have x right and y down, with whole numbers at pixel centres.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from lib.data.cameras import Camera
from lib.features.keypoints import local_affine, transfer


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
class Photometry:
    """A camera's effect on the light of one image.

    Attributes:
        gain: exposure, a factor on grey values.
        gamma: exponent on grey values in [0, 1].
        blur: standard deviation of defocus, px.
        noise: standard deviation of the sensor's noise, grey levels of 255.
        noise_seed: seed of that noise.
        jpeg_quality: 1 to 100.
    """

    gain: float
    gamma: float
    blur: float
    noise: float
    noise_seed: int
    jpeg_quality: int


@dataclass(frozen=True)
class Site:
    """Planes, the cameras that see them, and how each camera's image was taken."""

    planes: Sequence[Plane]
    cameras: Sequence[Camera]
    photometry: Sequence[Photometry]

    def homographies(self, view: int) -> np.ndarray:
        """Return (P, 3, 3) homographies from each plane's texels to a view's pixels."""
        return np.array([plane_homography(plane, self.cameras[view]) for plane in self.planes])


def side_by_side(
    shapes: Sequence[tuple[int, int]],
    cuts: Callable[[int, int], Iterable[Sequence[int]]],
    pose: Callable[[float, float], tuple[Sequence[float], np.ndarray]],
) -> list[Plane]:
    """Cut photographs, arranged side by side in a row, into planes, column by column.

    Args:
        shapes: (height, width) of the photographs.
        cuts: maps a photograph's width and height to the edges of its columns and of its rows.
        pose: maps the x and y of a plane's middle, relative to the row's middle, to the middle's (3,)
            position in the world and a (3, 3) matrix whose first columns are the plane's u and v axis.
    """
    planes, left = [], -sum(wide for _, wide in shapes) / 2
    for index, (tall, wide) in enumerate(shapes):
        for (x0, x1), (y0, y1) in itertools.product(*map(itertools.pairwise, cuts(wide, tall))):
            middle, basis = pose(left + (x0 + x1) / 2, (y0 + y1 - tall) / 2)
            u_axis, v_axis = basis.T[:2]
            origin = middle - u_axis * (x1 - x0 - 1) / 2 - v_axis * (y1 - y0 - 1) / 2
            planes.append(Plane(origin, u_axis, v_axis, x1 - x0, y1 - y0, index, x0, y0))
        left += wide
    return planes


def axis_rotation(axis: Sequence[float], radians: float) -> np.ndarray:
    """Return the (3, 3) rotation about an axis, by Rodrigues' formula."""
    cross = np.cross(np.divide(axis, np.linalg.norm(axis)), np.eye(3)).T
    return np.eye(3) + np.sin(radians) * cross + (1 - np.cos(radians)) * cross @ cross


def random_tilt(largest: float, rng: Generator) -> np.ndarray:
    """Draw a (3, 3) rotation about an axis across the line of sight, by `largest` radians at most."""
    angle = rng.uniform(0, 2 * np.pi)
    return axis_rotation([np.cos(angle), np.sin(angle), 0], largest * rng.uniform())


def orbiting_camera(
    focal: float,
    size: tuple[int, int],
    distance: float,
    yaw: float = 0.0,
    pitch: float = 0.0,
    roll: float = 0.0,
    target: Sequence[float] | None = None,
) -> Camera:
    """Return a camera that looks at a target point, turned around it.

    Args:
        focal: focal length, px; the optical axis meets the middle of the image.
        size: width and height of the image, px.
        distance: from the target, world units.
        yaw, pitch, roll: radians; all 0 puts the camera straight before the target, looking along +z.
        target: (3,) world units; None for (0, 0, focal).
    """
    target = (0, 0, focal) if target is None else target
    right, down, ahead = np.eye(3)
    turns = axis_rotation(ahead, roll), axis_rotation(right, pitch), axis_rotation(down, yaw)
    rotation = turns[0] @ turns[1] @ turns[2]
    centre = target - distance * rotation[2]
    width, height = size
    intrinsics = np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1.0]])
    return Camera(intrinsics, rotation, -rotation @ centre, width, height)


def plane_homography(plane: Plane, camera: Camera) -> np.ndarray:
    """Return the (3, 3) homography from texels of the plane to pixels; its third row gives depth.

    The third row of its inverse gives 1 / depth of the plane at a pixel.
    """
    turned = [camera.rotation @ vector for vector in (plane.u_axis, plane.v_axis, plane.origin)]
    turned[2] += camera.translation
    return camera.intrinsics @ np.stack(turned, axis=1)


def corners(width: int, height: int) -> np.ndarray:
    """Return the centres of an image's corner pixels, in order around it, (4, 2) float64."""
    return np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1.0]])


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


def draw_photometry(
    rng: Generator,
    exposure: float,
    gamma: float,
    blur: float,
    noise: float,
    jpeg_quality: tuple[int, int],
) -> Photometry:
    """Draw how an image is taken.

    Args:
        rng: draws the photometry.
        exposure: standard deviation of the gain in stops.
        gamma: standard deviation of log2 gamma.
        blur, noise: largest values; drawn uniformly from 0 up.
        jpeg_quality: lowest and highest value.
    """
    return Photometry(
        gain=2.0 ** (exposure * rng.standard_normal()),
        gamma=2.0 ** (gamma * rng.standard_normal()),
        blur=rng.uniform(0, blur),
        noise=rng.uniform(0, noise),
        noise_seed=rng.integers(2**31),
        jpeg_quality=rng.integers(*jpeg_quality, endpoint=True),
    )


def photograph_through(photometry: Photometry, light: np.ndarray) -> np.ndarray:
    """Turn light into the image that a camera outputs.

    Args:
        photometry: how the image is taken.
        light: (H, W) float32 in [0, 1].

    Returns:
        (H, W) uint8.
    """
    import cv2

    image = np.clip(light, 0, 1) ** photometry.gamma * photometry.gain
    if photometry.blur > 0.1:
        image = cv2.GaussianBlur(image, (0, 0), photometry.blur)
    noise = np.random.default_rng(photometry.noise_seed).standard_normal(image.shape, np.float32)
    image = 255 * image + photometry.noise * noise
    image = np.clip(np.rint(image), 0, 255).astype(np.uint8)
    coded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, photometry.jpeg_quality])[1]
    return cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE)


def sky(width: int, height: int) -> np.ndarray:
    """Return the background light, (height, width) float32, darker towards the top."""
    return np.linspace(np.full(width, 0.45), 0.7, height, dtype=np.float32)


def render_view(site: Site, photographs: Sequence[np.ndarray], view: int) -> np.ndarray:
    """Render the image that one camera of a site takes.

    Args:
        site: the planes and cameras.
        photographs: (H, W) uint8 each.
        view: index of the camera.

    Returns:
        (height, width) uint8.
    """
    import cv2

    camera = site.cameras[view]
    image = sky(camera.width, camera.height)
    # 1 / depth of the plane drawn at each pixel.
    depths = np.zeros_like(image)
    for plane, homography in zip(site.planes, site.homographies(view), strict=True):
        w, h = plane.width, plane.height
        outline = transfer(homography, corners(w, h))
        left, top = low = np.maximum(np.floor(outline.min(axis=0)).astype(int), 0)
        right, bottom = np.maximum(np.ceil(outline.max(axis=0)).astype(int) + 1, 0)
        # The part of the image in which the plane lies.
        light, closest = image[top:bottom, left:right], depths[top:bottom, left:right]
        if not light.size:
            continue
        texture = photographs[plane.photograph][plane.top : plane.top + h, plane.left : plane.left + w]
        area = abs(np.linalg.det(local_affine(homography, [[w / 2, h / 2]])[0]))
        if area < 1:
            texture = cv2.GaussianBlur(texture, (0, 0), 0.5 * np.sqrt(1 / area - 1) + 1e-3)
        drawn = cv2.warpPerspective(
            texture.astype(np.float32) / 255,
            [[1, 0, -left], [0, 1, -top], [0, 0, 1]] @ homography,
            light.shape[::-1],
            flags=cv2.INTER_CUBIC,
            borderMode=cv2.BORDER_REPLICATE,
        )
        # OpenCV takes the polygon's corners in 1/16 px here.
        polygon = np.rint((outline - low) * 16).astype(np.int32)
        inside = cv2.fillConvexPoly(np.zeros(light.shape, np.uint8), polygon, 1, shift=4)
        y, x = np.ogrid[top : top + len(light), left : left + light.shape[1]]
        a, b, c = np.linalg.inv(homography)[2]
        closeness = (a * x + b * y + c).astype(np.float32)
        nearer = (inside > 0) & (closeness > closest)
        light[nearer], closest[nearer] = drawn[nearer], closeness[nearer]
    return photograph_through(site.photometry[view], image)


def render_views(site: Site, photographs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Render the images that all cameras of a site take; arguments are those of `render_view`."""
    return [render_view(site, photographs, view) for view in range(len(site.cameras))]
