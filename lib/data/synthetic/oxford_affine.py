"""Embedded sequences after the Oxford Affine set: each photograph under five nuisances in five steps.

A photograph is a poster that a camera sees six times. What grows from image to image is the defocus,
the underexposure, the loss of JPEG, zoom and roll, or the angle to the poster's normal; all else stays
about as it was: small turns and noise are drawn for every image. The steps are those that the released
sequences are described by: compression and zoom are stated in numbers there, viewpoint in degrees.

How hard they are was settled by looking at them and by SIFT's score (kornia's), before any network of
this study was measured on them. In percent, Mikolajczyk's by the protocol for descriptors, of the
packaged photographs, and Oxford's graf for comparison:

    blur 27, light 36, compression 24, zoom and rotation 24, viewpoint 29; graf 23
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lib.data.hpatches.homographies import write_homography_sequence
from lib.data.oxford_affine import NUISANCES
from lib.data.synthetic.allotment import HOMOGRAPHY, Allotment
from lib.data.synthetic.geometry import plane_homography
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.photometry import Photometry
from lib.data.synthetic.scenes import Piece, Site, render_views
from lib.data.synthetic.sequences import (
    FOCAL,
    ONE_THING,
    make_splits,
    poster_camera,
    poster_plane,
    textures,
)
from lib.data.synthetic.sizes import ImagesSize

# Noise of the sensor in grey levels, largest.
NOISE = 2.0
# Of every image but the first: how far yaw, pitch and roll may be off.
UNSTEADY = np.deg2rad(2.0)


@dataclass(frozen=True)
class Step:
    """What an image has of its nuisance.

    Attributes:
        blur: standard deviation of the defocus, px.
        stops: of exposure.
        quality: of JPEG.
        zoom: how many times smaller the poster is.
        roll, tilt: degrees.
        still: it is the first image itself, stored anew.
    """

    blur: float = 0.0
    stops: float = 0.0
    quality: int = 95
    zoom: float = 1.0
    roll: float = 0.0
    tilt: float = 0.0
    still: bool = False


STEPS = {
    "blur": [Step(blur=blur) for blur in (0.6, 1.0, 1.5, 2.0, 2.6)],
    "light": [Step(stops=stops) for stops in (-0.4, -0.8, -1.2, -1.6, -2.0)],
    "compression": [Step(quality=quality, still=True) for quality in (40, 20, 10, 5, 2)],
    "zoom": [
        Step(zoom=zoom, roll=roll)
        for zoom, roll in ((1.1, 10), (1.38, 25), (1.9, 40), (2.35, 60), (2.8, 80))
    ],
    "viewpoint": [Step(tilt=tilt) for tilt in (20, 30, 40, 50, 60)],
}


def photographs(allotment: Allotment) -> tuple[Photograph, ...]:
    """Those that split a of the homography sequences tests on, so that nothing trains on them; of one
    alone `posters` has a part."""
    given = allotment[HOMOGRAPHY]
    things = {str(place): ONE_THING.get(of.name, str(place)) for place, of in enumerate(given)}
    if len(set(things.values())) < 2:
        return given
    tested = make_splits(things)["a"].test
    return tuple(of for place, of in enumerate(given) if f"v_{place}" in tested)


def posters(of: Sequence[Photograph], longest_side: int) -> Iterator[tuple[str, np.ndarray]]:
    """By name the (H, W) uint8 grey values of what is photographed: photographs, or, of one alone, the
    part that the viewpoint sequence of its tested half shows.

    Args:
        of: of `photographs`.
        longest_side: px; larger ones are reduced to it.
    """
    cut = textures(of, longest_side)
    if len(of) > 1:
        named = zip(of, cut, strict=True)
        yield from ((texture.name, photograph.grey(longest_side)) for photograph, texture in named)
    else:
        tested = make_splits({texture.name: texture.thing for texture in cut})["a"].test
        yield from ((of.name, of.viewpoint) for of in cut if f"v_{of.name}" in tested)


def write(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Generate the sequences of some photographs into a folder.

    Raises:
        ValueError: a photograph cannot be read.
        OSError: the folder cannot be written.
    """
    for shown, grey in posters(photographs, size.longest_side):
        for nuisance in NUISANCES:
            name = f"{nuisance}_{shown}"
            rng = np.random.default_rng([size.seed, zlib.crc32(name.encode())])
            write_homography_sequence(folder / name, *sequence(grey, STEPS[nuisance], rng))


def sequence(
    grey: np.ndarray, steps: Sequence[Step], rng: np.random.Generator
) -> tuple[list[np.ndarray], np.ndarray]:
    """Six images of a poster.

    Args:
        grey: (H, W) uint8, the poster.
        steps: of images 2 to 6.
        rng: signs of angles, unsteadiness, noise.

    Returns:
        Six (H, W) uint8, the first straight ahead, and (5, 3, 3) float64 exact homographies from its
        pixels to the others', bottom right element 1.
    """
    height, width = grey.shape
    focal = FOCAL * max(grey.shape)
    poster = poster_plane(width, height, focal)
    side, first = rng.choice([-1, 1], 2), _taken(Step(), rng)
    views, taken = [poster_camera(focal, (width, height), focal)], [first]
    for step in steps:
        off = np.zeros(3) if step.still else rng.uniform(-UNSTEADY, UNSTEADY, 3)
        yaw, roll = side * np.deg2rad([step.tilt, step.roll])
        angles = np.array([yaw, 0, roll]) + off
        views.append(poster_camera(focal, (width, height), focal * step.zoom, *angles))
        taken.append(replace(first, jpeg_quality=step.quality) if step.still else _taken(step, rng))
    site = Site((Piece(poster, 0, 0, 0),), tuple(views), tuple(taken))
    back = np.linalg.inv(plane_homography(poster, views[0]))
    homographies = np.stack([plane_homography(poster, view) @ back for view in views[1:]])
    return render_views(site, [grey]), homographies / homographies[:, 2:, 2:]


def _taken(step: Step, rng: np.random.Generator) -> Photometry:
    noise, seed = float(rng.uniform(0, NOISE)), int(rng.integers(2**31))
    return Photometry(2.0**step.stops, 1.0, step.blur, noise, seed, step.quality)
