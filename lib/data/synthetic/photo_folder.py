"""A folder of photographs of one place, as people have them, with nothing known of the cameras."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import plan_site, render_view
from lib.data.synthetic.sizes import MiniSize
from lib.files import write_bytes


def write(folder: Path, photographs: Sequence[Photograph], size: MiniSize) -> None:
    """Write what the cameras of a site of several planes see, as PNG; `size` says how many there are.

    Raises:
        FileNotFoundError, ValueError: a photograph is not here, or cannot be read.
        OSError: the folder cannot be written.
    """
    import cv2

    greys = [photograph.grey(size.longest_side) for photograph in photographs]
    site = plan_site([grey.shape for grey in greys], size, np.random.default_rng(size.seed))
    for number in range(len(site.cameras)):
        view = cv2.imencode(".png", render_view(site, greys, number))[1]
        write_bytes(folder / f"view{number + 1:02}.png", view.tobytes())
