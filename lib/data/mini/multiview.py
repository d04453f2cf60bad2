"""What the embedded multi-view sets have in common: of which photographs they are, and how they are seen.

How hard they are was settled by SIFT alone (kornia's, on OpenCV's DoG keypoints) and frozen before
anything trained was looked at.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from lib.data.mini.allotment import SCENES, Allotment
from lib.data.mini.photographs import Photograph
from lib.data.mini.walls import Views, plan_views, plan_wall

PLACES = 2
TEXTURES = 3
VIEWS = 12
SIZE = (480, 360)
# Of the wall, of how far to either side of its middle cameras stand, and how far past it they look.
ARC, AZIMUTH, ASIDE = np.deg2rad(160.0), np.deg2rad(60.0), 0.15
PLANES = "scene.json"


def photographs(allotment: Allotment) -> list[Photograph]:
    """Those of the second and the third scene, since the methods compared are trained on the first."""
    return [photograph for scene in SCENES[1:] for photograph in allotment[scene]][: PLACES * TEXTURES]


def place(
    name: str, of: Sequence[Photograph], longest_side: int, seed: int
) -> tuple[Views, list[np.ndarray]]:
    """A wall and its cameras, and its textures, (H, W) uint8.

    Raises:
        ValueError: a photograph cannot be read.
    """
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    textures = [photograph.grey(longest_side) for photograph in of]
    shapes = [texture.shape for texture in textures]
    wall = plan_wall(shapes, ARC, rng)
    return plan_views(wall, shapes, VIEWS, SIZE, AZIMUTH, ASIDE, rng), textures


def write_planes(path: Path, views: Views) -> None:
    """Write the planes that a place is made of, and how each photograph was taken, as JSON."""
    planes = [
        {"photograph": p.photograph, "left": p.left, "top": p.top, **vars(p.plane)}
        for p in views.wall.pieces
    ]
    facts = {"planes": planes, "photometry": [asdict(taken) for taken in views.photometry]}
    path.write_text(json.dumps(facts, default=np.ndarray.tolist) + "\n", encoding="utf-8")
