"""Grey values of 8 bits, and the images of which 8 bits would keep too few."""

import warnings

import cv2
import numpy as np

# Fewest grey values that must remain of an image whose values 8 bits do not tell apart: a camera's 12 or
# 14 bits may be stored in the low bits of 16, a thermal camera's in a small part of the range.
FEWEST_GREYS = 65
# Share of the pixels that a grey value has at least: a sensor's hot pixels are no grey values.
_RARE = 1e-5
# Highest grey value of an image of 0 to 1 whose resizing overshot: on photographs, bicubic and Lanczos
# reach 1.1, at black and white edges 1.55. An image of 0 to 255 has no texture below it.
OVERSHOT = 2.0
# Range of grey values, of 255, below which rounding changes a patch's texture.
_FAINT = 4


def kept_values(grey: np.ndarray) -> int:
    """Count the grey values of a uint16 image's upper 8 bits; 256 if these tell all its values apart."""
    pixels = cv2.calcHist([grey], [0], None, [2**16], [0, 2**16]).reshape(256, 256)
    if np.count_nonzero(pixels, axis=1).max() == 1:
        return 256
    return np.count_nonzero(pixels.sum(axis=1) >= max(_RARE * grey.size, 1))


def as_grey(values: np.ndarray, what: str) -> np.ndarray:
    """Return an image (H, W) or patches (m, S, S) as uint8 grey values.

    Args:
        values: uint8, or floating point from 0 to 1 or from 0 to 255. They are of 0 to 255 if one of
            them is above `OVERSHOT`.
        what: "an image" or "patches", for messages.

    Raises:
        ValueError: values are of another type or range, or 8 bits would keep too few of an image's.
    """
    if values.dtype == np.uint8:
        return values
    lowest, highest = values.min(initial=0), values.max(initial=0)
    # NaN is neither.
    if np.issubdtype(values.dtype, np.floating) and lowest >= 0:
        if highest <= 1:
            return _rounded(values * 255, what)
        if OVERSHOT < highest <= 255:
            return _rounded(values, what)
    raise ValueError(
        f"{what}: grey values are uint8, or floating from 0 to 1 or from 0 to 255, got {values.dtype} "
        f"from {lowest:.7g} to {highest:.7g}: clip what resizing overshot, or give uint8"
    )


def _rounded(values: np.ndarray, what: str) -> np.ndarray:
    """Round floating grey values from 0 to 255.

    An image of which little would remain is refused. Of patches there is only a warning, since any
    image has faint ones.
    """
    if values.ndim == 2 and values.size:
        kept = kept_values((257 * values).round().astype(np.uint16))
        if kept < FEWEST_GREYS:
            raise ValueError(f"{what}: 8 bits would keep {kept} of its grey values: stretch them")
    elif values.size:
        spans = np.ptp(values, axis=(1, 2))
        faint = np.count_nonzero((spans > 0) & (spans < _FAINT))
        if faint:
            warnings.warn(
                f"{faint} of {len(values)} {what} span less than {_FAINT} of 255 grey values, and "
                "rounding to 8 bits changes their texture: stretch them",
                stacklevel=4,
            )
    return values.round().astype(np.uint8)
