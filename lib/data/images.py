"""Image files of others: decoded wholly, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
