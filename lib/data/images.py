"""Image files of others: decoded wholly, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image


def read_image(path: Path, header_only: bool = False) -> Image:
    """An image of any format that Pillow reads; unlike OpenCV, it refuses a file that is cut short.

    Args:
        path: of the file.
        header_only: whether size and mode will do; the pixels are then not decoded.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is cut short or no image.
    """
    from PIL import Image

    try:
        with Image.open(path) as image:
            if not header_only:
                image.load()
            return image
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is cut short or no image ({error}): unpack it again") from error


def decode_grey(path: Path, flags: int = 0) -> np.ndarray | None:
    """(H, W) uint8 grey values of a file as OpenCV decodes it, None where it cannot.

    Args:
        path: of the file.
        flags: OpenCV's; 0 is its IMREAD_GRAYSCALE.
    """
    import cv2

    data = np.fromfile(path, np.uint8)
    return cv2.imdecode(data, flags) if len(data) else None


def reduced(grey: np.ndarray, longest_side: int) -> np.ndarray:
    """An image whose longer side is `longest_side` px, by means over areas; a smaller one as it is."""
    import cv2

    height, width = grey.shape
    factor = min(longest_side / max(height, width), 1.0)
    size = (max(round(width * factor), 1), max(round(height * factor), 1))
    return cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
