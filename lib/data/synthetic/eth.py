"""Embedded scenes in the layout of ETH's benchmark of structure from motion, with known poses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib.data.eth import write_scene
from lib.data.synthetic.multiview import PLACES, TEXTURES, photographs, place
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sizes import ImagesSize

__all__ = ("photographs", "write")

VIEWS, AZIMUTH = 12, np.deg2rad(65.0)


def write(folder: Path, of: Sequence[Photograph], size: ImagesSize) -> None:
    """Write scenes, each of photographs that follow each other.

    Raises:
        ValueError: a photograph cannot be read.
        OSError: the folder cannot be written.
    """
    for number in range(PLACES):
        name = f"place{number + 1}"
        some = of[number * TEXTURES :][:TEXTURES] or of[:TEXTURES]
        site, images = place(f"eth {name}", some, size, VIEWS, AZIMUTH)
        write_scene(folder / name, images, site.cameras)
