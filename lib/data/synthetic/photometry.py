"""What a camera does to the light: exposure, gamma, blur, noise and JPEG, drawn anew for each view."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Photometry:
    """How one image was taken.

    Attributes:
        gain: exposure, a factor on grey values.
        gamma: exponent on grey values in [0, 1].
        blur: standard deviation of defocus, px.
        noise: standard deviation of the sensor's noise, grey levels of 255.
        noise_seed: of that noise.
        jpeg_quality: 1 to 100.
    """

    gain: float
    gamma: float
    blur: float
    noise: float
    noise_seed: int
    jpeg_quality: int


@dataclass(frozen=True)
class PhotometricSpread:
    """Ranges from which `draw_photometry` draws.

    Attributes:
        exposure: standard deviation of the gain in stops.
        gamma: standard deviation of log2 gamma.
        blur, noise: largest values, drawn uniformly from 0 on.
        jpeg_quality: lowest and highest.
    """

    exposure: float
    gamma: float
    blur: float
    noise: float
    jpeg_quality: tuple[int, int]


def draw_photometry(spread: PhotometricSpread, rng: np.random.Generator) -> Photometry:
    """One image's conditions."""
    return Photometry(
        gain=float(2.0 ** (spread.exposure * rng.standard_normal())),
        gamma=float(2.0 ** (spread.gamma * rng.standard_normal())),
        blur=float(rng.uniform(0, spread.blur)),
        noise=float(rng.uniform(0, spread.noise)),
        noise_seed=int(rng.integers(2**31)),
        jpeg_quality=int(rng.integers(spread.jpeg_quality[0], spread.jpeg_quality[1] + 1)),
    )


def photograph_through(photometry: Photometry, light: np.ndarray) -> np.ndarray:
    """The image a camera hands out.

    Args:
        photometry: the conditions.
        light: (H, W) float32 in [0, 1].

    Returns:
        (H, W) uint8.
    """
    import cv2

    image = np.clip(light, 0, 1) ** np.float32(photometry.gamma) * np.float32(photometry.gain)
    if photometry.blur > 0.1:
        image = cv2.GaussianBlur(image, (0, 0), photometry.blur)
    noise = np.random.default_rng(photometry.noise_seed).standard_normal(image.shape, np.float32)
    image = 255 * image + np.float32(photometry.noise) * noise
    image = np.clip(np.rint(image), 0, 255).astype(np.uint8)
    coded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, photometry.jpeg_quality])[1]
    return cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE)
