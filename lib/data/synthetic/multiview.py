"""What the embedded multi-view sets have in common: their photographs, and how these are seen.

How hard they are was settled by SIFT alone and frozen. Of OpenCV's, on its own keypoints, which
matches are right: those that are mutually nearest under a ratio of 0.9, within 4 px, the mean over
pairs of views that share a tenth, of the packaged photographs; a test holds it between 5% and 40%.
And how many images SIFT registers, by the benchmark, on patches that are cut as networks' are:

                           right          registered
    structure from motion  34% and 34%    12 and 11 of 12, on COLMAP's keypoints
    the challenge          38% and 28%    65% and 72% of its subsets' images
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from lib.data.synthetic.allotment import SCENES, Allotment
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import Site
from lib.data.synthetic.sizes import ImagesSize
from lib.data.synthetic.walls import photographed_wall

PLACES = 2
TEXTURES = 3
SIZE = (480, 360)
# Of the wall, and how far past its middle cameras look, in its breadths.
ARC, ASIDE = np.deg2rad(190.0), 0.15


def photographs(allotment: Allotment) -> tuple[Photograph, ...]:
    """Those of the second and the third scene, since the methods compared are trained on the first."""
    both = [photograph for scene in SCENES[1:] for photograph in allotment[scene]]
    return tuple(both[: PLACES * TEXTURES])


def place(
    name: str, of: Sequence[Photograph], size: ImagesSize, views: int, azimuth: float
) -> tuple[Site, list[np.ndarray]]:
    """A wall with its cameras, and what each of them photographs, (height, width) uint8.

    Args:
        name: of the set and the place.
        of: what is on the wall.
        size: of what is generated.
        views: how many cameras.
        azimuth: radians that they stand to either side of the wall's middle at most.

    Raises:
        ValueError: a photograph cannot be read.
    """
    rng = np.random.default_rng([size.seed, zlib.crc32(name.encode())])
    textures = [photograph.grey(size.longest_side) for photograph in of]
    return photographed_wall(textures, ARC, views, SIZE, azimuth, ASIDE, rng)
