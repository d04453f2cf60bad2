"""Image files of others: decoded wholly, in shades of grey where asked for, or refused by name."""

from __future__ import annotations

import warnings
from pathlib import Path

import cv2
import numpy as np
from PIL import ExifTags, Image

from lib.files import write_bytes

# Some 0.3 GB while they are decoded.
MOST_PIXELS = 50_000_000
# Grey values that must be left of a file of 16 bits: what a camera measures in 12 or 14 may be stored in
# the low ones.
_FEWEST_GREYS = 65
# EXIF's values of an image whose pixels are stored turned or mirrored.
_TURNED = range(2, 9)


def read_image(path: Path, header_only: bool = False) -> Image.Image:
    """An image of any format that Pillow reads; unlike OpenCV, it refuses a file that is cut short.

    Args:
        path: of the file.
        header_only: whether size and mode will do; the pixels are then not decoded.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is cut short or no image.
    """
    try:
        with Image.open(path) as image:
            if not header_only:
                image.load()
            return image
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is cut short or no image ({error})") from error


def decode_grey(path: Path, flags: int = 0) -> np.ndarray | None:
    """(H, W) uint8 grey values of a file as OpenCV decodes it, None where it cannot.

    Args:
        path: of the file.
        flags: OpenCV's; 0 is its IMREAD_GRAYSCALE.
    """
    data = np.fromfile(path, np.uint8)
    return cv2.imdecode(data, flags) if len(data) else None


def write_image(path: Path, image: np.ndarray) -> None:
    """Write (H, W) uint8 grey values, or (H, W, 3) colours, in the format that the name ends with (JPEG
    at quality 95).

    Raises:
        OSError: the folder cannot be written; it is made where it is missing.
    """
    write_bytes(path, cv2.imencode(path.suffix, image)[1].tobytes())


def reduced(grey: np.ndarray, longest_side: int) -> np.ndarray:
    """An image whose longer side is `longest_side` px, by means over areas; a smaller one as it is."""
    height, width = grey.shape
    factor = min(longest_side / max(height, width), 1.0)
    size = (max(round(width * factor), 1), max(round(height * factor), 1))
    return cv2.resize(grey, size, interpolation=cv2.INTER_AREA)


def read_grey(
    path: Path,
    longest_side: int | None = None,
    orientation: str = "refuse",
    most_pixels: int = MOST_PIXELS,
) -> np.ndarray:
    """(H, W) uint8 grey values of an image; of 16 bits the upper 8 are taken.

    Args:
        path: of the file, in any format that Pillow and OpenCV read.
        longest_side: px to which a larger image is reduced; None leaves it as it is, of which
            detectors want up to 250 bytes a pixel.
        orientation: of an image that its camera says is to be turned (EXIF): "refuse" it, since
            programs differ in which way up its pixels are; read them as "stored", as COLMAP does; or
            "turned", as hloc does.
        most_pixels: of the file, before it is reduced.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no image or cut short, larger than `most_pixels`, seen through in places, to be
            turned, or of numbers that 8 bits would not tell apart; the message names the file and says
            what to do.
    """
    with warnings.catch_warnings():
        # Pillow warns of large images, of which this refuses smaller ones already.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        width, height = read_image(path, header_only=True).size
        if width * height > most_pixels:
            most = f"more than {most_pixels / 1e6:g} megapixels"
            raise ValueError(f"{path} is {width} by {height} px, {most}")
        image = read_image(path)
    if image.has_transparency_data and image.convert("RGBA").getextrema()[3][0] < 255:
        raise ValueError(f"{path} can be seen through in places: save it over a background")
    if orientation == "refuse" and image.getexif().get(ExifTags.Base.Orientation) in _TURNED:
        marked = f"{path} is marked by its camera as to be turned, which programs follow or not"
        raise ValueError(f"{marked}: take it as 'stored' (--as-stored), or save it turned")
    flags = cv2.IMREAD_GRAYSCALE if orientation == "turned" else cv2.IMREAD_IGNORE_ORIENTATION
    grey = decode_grey(path, flags | cv2.IMREAD_ANYDEPTH)
    if grey is None:
        raise ValueError(f"{path} is of a kind that OpenCV does not read: save it as PNG")
    if grey.dtype == np.uint16:
        if (kept := (int(grey.max()) >> 8) + 1) < _FEWEST_GREYS:
            bits = f"{path} holds 16 bits a pixel, of which 8 bits would keep {kept} grey values"
            raise ValueError(f"{bits}: stretch them, or save it with 8")
        grey = (grey >> 8).astype(np.uint8)
    if grey.dtype != np.uint8:
        raise ValueError(f"{path} holds numbers of {grey.dtype}: save it with 8 or 16 bits")
    return grey if longest_side is None else reduced(grey, longest_side)
