"""Embedded scenes in the layout of the image matching challenge of 2020."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lib.data.imc import write_scene
from lib.data.synthetic.multiview import PLACES, photographs, place
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sizes import ImagesSize
from lib.data.synthetic.walls import covisibility

__all__ = ("photographs", "write")

VIEWS, AZIMUTH = 9, np.deg2rad(75.0)
# Of the multi-view task, by their number of photographs, how many subsets there are; the challenge's are
# of 5, 10 and 25.
BAGS = {5: 2, 8: 1}


def write(folder: Path, of: Sequence[Photograph], size: ImagesSize) -> None:
    """Write scenes, to which the photographs are dealt in turn.

    Raises:
        ValueError: a photograph cannot be read.
        OSError: the folder cannot be written.
    """
    for number in range(PLACES):
        name = f"place{number + 1}"
        some = of[number::PLACES] or of
        site, images = place(f"imc {name}", some, size, VIEWS, AZIMUTH)
        rng = np.random.default_rng([size.seed, number])
        bags = [
            sorted(rng.choice(VIEWS, count, replace=False).tolist())
            for count, times in BAGS.items()
            for _ in range(times)
        ]
        shared = partial(covisibility, site)
        write_scene(folder / name, images, site.cameras, shared, bags)
