"""What the embedded multi-view sets have in common: their photographs, and how these are seen.

How hard they are was settled by SIFT alone and frozen before anything trained was looked at.
"""

import zlib
from collections.abc import Sequence

import numpy as np

from lib.data.mini.allotment import SCENES, Allotment
from lib.data.mini.photographs import Photograph
from lib.data.mini.scenes import Site, render_view
from lib.data.mini.walls import plan_wall

PLACES = 2
TEXTURES = 3
VIEWS = 12
SIZE = (480, 360)
# Of the wall, of how far to either side of its middle cameras stand, and how far past it they look.
ARC, AZIMUTH, ASIDE = np.deg2rad(190.0), np.deg2rad(75.0), 0.15


def photographs(allotment: Allotment) -> tuple[Photograph, ...]:
    """Those of the second and the third scene, since the methods compared are trained on the first."""
    both = [photograph for scene in SCENES[1:] for photograph in allotment[scene]]
    return tuple(both[: PLACES * TEXTURES])


def place(
    name: str, of: Sequence[Photograph], longest_side: int, seed: int
) -> tuple[Site, list[np.ndarray]]:
    """A wall with its cameras, and what each of them photographs, (height, width) uint8.

    Raises:
        ValueError: a photograph cannot be read.
    """
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    textures = [photograph.grey(longest_side) for photograph in of]
    shapes = [texture.shape for texture in textures]
    site = plan_wall(shapes, ARC, VIEWS, SIZE, AZIMUTH, ASIDE, rng)
    return site, [render_view(site, textures, number) for number in range(VIEWS)]
