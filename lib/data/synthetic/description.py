"""What a notebook shows of a generated scene: read from its files, views drawn again from them."""

from bisect import bisect
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib.data.phototour import INTEREST
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import render_view
from lib.data.synthetic.writing import read_sites

__all__ = ("detections", "read_sites", "redraw_view", "textures_of")


def redraw_view(folder: Path, photographs: Sequence[Photograph], image: int) -> np.ndarray:
    """One of a scene's images, drawn again from ``scene.json``.

    Args:
        folder: the generated scene.
        photographs: at least those of the image's site.
        image: id.

    Returns:
        (H, W) uint8, the image that patches were cut from.

    Raises:
        IndexError: no such image.
        KeyError: a photograph is missing or is not the one the scene was made of.
    """
    facts, sites = read_sites(folder)
    firsts = [site["first_image"] for site in facts["sites"]]
    number = bisect(firsts, image) - 1
    return render_view(sites[number], textures_of(facts, number, photographs), image - firsts[number])


def textures_of(facts: dict, number: int, photographs: Sequence[Photograph]) -> list[np.ndarray]:
    """What the planes of a site show, grey values.

    Args:
        facts: of `read_sites`.
        number: of the site.
        photographs: at least those of the site.

    Raises:
        KeyError: a photograph is missing or is not the one the scene was made of.
    """
    by_hash = {photograph.sha256: photograph for photograph in photographs}
    shown = [by_hash[recorded["sha256"]] for recorded in facts["sites"][number]["photographs"]]
    return [photograph.grey(facts["size"]["longest_side"]) for photograph in shown]


def detections(folder: Path, image: int) -> np.ndarray:
    """(N, 4) keypoints whose patches were cut from an image: x, y, orientation, log2 scale."""
    rows = np.loadtxt(folder / INTEREST, ndmin=2)
    return rows[rows[:, 0] == image, 1:]
