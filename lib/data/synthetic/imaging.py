"""Cameras in front of a poster, and how the images that they take come about.

World coordinates are right-handed, with y down and z away from the reference camera. Image coordinates
have x right and y down, with whole numbers at pixel centres.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from lib.data.cameras import Camera
from lib.features.keypoints import local_affine, transfer


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


def axis_rotation(axis: Sequence[float], radians: float) -> np.ndarray:
    """Return the (3, 3) rotation about an axis, by Rodrigues' formula."""
    cross = np.cross(np.divide(axis, np.linalg.norm(axis)), np.eye(3)).T
    return np.eye(3) + np.sin(radians) * cross + (1 - np.cos(radians)) * cross @ cross


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


def poster_homography(width: int, height: int, focal: float, camera: Camera) -> np.ndarray:
    """Return the (3, 3) homography from a poster's texels to a camera's pixels.

    The poster fills the image of a camera straight in front of it, one texel per pixel.

    Args:
        width, height: texels.
        focal: that camera's focal length, px, and its distance from the poster.
        camera: the camera that sees the poster.
    """
    right, down, _ = np.eye(3)
    corner = np.array([-(width - 1) / 2, -(height - 1) / 2, focal])
    turned = [camera.rotation @ vector for vector in (right, down, corner)]
    turned[2] += camera.translation
    return camera.intrinsics @ np.stack(turned, axis=1)


def corners(width: int, height: int) -> np.ndarray:
    """Return the centres of an image's corner pixels, in order around it, (4, 2) float64."""
    return np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1.0]])


def warp_texture(
    texture: np.ndarray, homography: np.ndarray, shape: tuple[int, int]
) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray]:
    """Warp a plane's texture into an image, smoothed first where the image is coarser than the texture.

    Args:
        texture: (h, w) uint8.
        homography: (3, 3), from the texture's pixels to the image's.
        shape: height and width of the image, px.

    Returns:
        The rows and columns of the image in which the plane lies, possibly none; light (r, c) float32 of
        these pixels, 0 to 1; and which of them the plane covers, (r, c) bool.
    """
    import cv2

    height, width = texture.shape
    outline = transfer(homography, corners(width, height))
    left, top = low = np.maximum(np.floor(outline.min(axis=0)).astype(int), 0)
    right, bottom = np.ceil(outline.max(axis=0)).astype(int) + 1
    rows = slice(top, max(min(bottom, shape[0]), top))
    columns = slice(left, max(min(right, shape[1]), left))
    part = (rows.stop - rows.start, columns.stop - columns.start)
    if 0 in part:
        return (rows, columns), np.zeros(part, np.float32), np.zeros(part, bool)
    area = abs(np.linalg.det(local_affine(homography, [[width / 2, height / 2]])[0]))
    if area < 1:
        texture = cv2.GaussianBlur(texture, (0, 0), 0.5 * np.sqrt(1 / area - 1) + 1e-3)
    light = cv2.warpPerspective(
        texture.astype(np.float32) / 255,
        [[1, 0, -left], [0, 1, -top], [0, 0, 1]] @ homography,
        part[::-1],
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    # OpenCV takes the polygon's corners in 1/16 px here.
    polygon = np.rint((outline - low) * 16).astype(np.int32)
    inside = cv2.fillConvexPoly(np.zeros(part, np.uint8), polygon, 1, shift=4)
    return (rows, columns), light, inside > 0


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
