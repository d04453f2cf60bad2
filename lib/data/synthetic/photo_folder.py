"""A folder of photographs of one place, as people have them, with nothing known of the cameras."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib.data.images import write_image
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import plan_site, render_views
from lib.data.synthetic.sizes import SyntheticSize


def write(folder: Path, photographs: Sequence[Photograph], size: SyntheticSize) -> None:
    """Write what the cameras of a site of several planes see, as PNG; `size` says how many there are.

    Raises:
        FileNotFoundError, ValueError: a photograph is not here, or cannot be read.
        OSError: the folder cannot be written.
    """
    greys = [photograph.grey(size.longest_side) for photograph in photographs]
    site = plan_site([grey.shape for grey in greys], size, np.random.default_rng(size.seed))
    for number, grey in enumerate(render_views(site, greys), 1):
        write_image(folder / f"view{number:02}.png", grey)
