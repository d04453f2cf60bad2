"""What a notebook shows of a generated scene: read from its files, views drawn again from them."""

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
        ValueError: no such image, or a photograph is missing or is not the one the scene was made of.
    """
    facts, sites = read_sites(folder)
    for number, (entry, site) in enumerate(zip(facts["sites"], sites, strict=True)):
        index = image - entry["first_image"]
        if 0 <= index < len(site.cameras):
            return render_view(site, textures_of(facts, number, photographs), index)
    last = facts["sites"][-1]["first_image"] + len(sites[-1].cameras) - 1
    raise ValueError(f"{folder} has no image {image}: give 0 to {last}")


def textures_of(facts: dict, number: int, photographs: Sequence[Photograph]) -> list[np.ndarray]:
    """What the planes of a site show, grey values.

    Args:
        facts: of `read_sites`.
        number: of the site.
        photographs: at least those of the site.

    Raises:
        ValueError: a photograph is missing or is not the one the scene was made of.
    """
    by_hash = {photograph.sha256: photograph for photograph in photographs}
    shown = facts["sites"][number]["photographs"]
    missing = [p["name"] for p in shown if p["sha256"] not in by_hash]
    if missing:
        raise ValueError(f"not among the photographs given: {', '.join(missing)}")
    return [by_hash[p["sha256"]].grey(facts["size"]["longest_side"]) for p in shown]


def detections(folder: Path, image: int) -> np.ndarray:
    """(N, 4) keypoints whose patches were cut from an image: x, y, orientation, log2 scale."""
    rows = np.loadtxt(folder / INTEREST, ndmin=2)
    return rows[rows[:, 0] == image, 1:]
