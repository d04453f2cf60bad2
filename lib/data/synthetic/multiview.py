"""Synthetic multi-view sets: walls that cameras see from several sides, with known poses.

`write_eth` and `write_imc` lay them out as the benchmark of structure from motion and the image matching
challenge of 2020 do; `write_folder` makes a folder of photographs of which nothing is known.

How hard they are was settled by SIFT alone and frozen. Of OpenCV's, on its own keypoints, which
matches are right: those that are mutually nearest under a ratio of 0.9, within 4 px, the mean over
pairs of views that share a tenth, of the packaged photographs; a test holds it between 5% and 40%.
And how many images SIFT registers, by the benchmark, on patches that are cut as networks' are:

                           right          registered
    structure from motion  34% and 34%    12 and 11 of 12, on COLMAP's keypoints
    the challenge          38% and 28%    65% and 72% of its subsets' images
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from lib.data.images import write_image
from lib.data.synthetic.allotment import SCENES, Allotment
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.scenes import Site, plan_site, render_views
from lib.data.synthetic.sizes import ImagesSize, SyntheticSize
from lib.data.synthetic.walls import covisibility, photographed_wall, write_posed
from lib.data.whole_images import BAGS, CALIBRATION, COVISIBLE, IMC_IMAGES, IMC_SET, LIST, PAIRS

PLACES = ("place1", "place2")
TEXTURES = 3
SIZE = (480, 360)
# Of the wall, and how far past its middle cameras look, in its breadths.
ARC, ASIDE = np.deg2rad(190.0), 0.15
# Cameras, and how far they stand to either side of the wall's middle at most.
ETH_VIEWS, ETH_AZIMUTH = 12, np.deg2rad(65.0)
IMC_VIEWS, IMC_AZIMUTH = 9, np.deg2rad(75.0)
# Photographs of each subset of the multi-view task; the challenge's are of 5, 10 and 25.
BAG_SIZES = (5, 5, 8)


def photographs(allotment: Allotment) -> tuple[Photograph, ...]:
    """Those of the second and the third scene, since the methods compared are trained on the first."""
    both = [photograph for scene in SCENES[1:] for photograph in allotment[scene]]
    return tuple(both[: len(PLACES) * TEXTURES])


def write_eth(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write images and camera files of scenes, each of photographs that follow each other.

    Raises:
        ValueError: a photograph cannot be read.
        OSError: the folder cannot be written.
    """
    for number, scene in enumerate(PLACES):
        shown = photographs[number * TEXTURES :][:TEXTURES] or photographs[:TEXTURES]
        site, images = place(f"eth {scene}", shown, size, ETH_VIEWS, ETH_AZIMUTH)
        write_posed(folder / scene, images, site.cameras, first=1)


def write_imc(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write scenes of the challenge, to which the photographs are dealt in turn.

    Raises:
        ValueError, OSError: as `write_eth`.
    """
    for number, scene in enumerate(PLACES):
        shown = photographs[number :: len(PLACES)] or photographs
        site, images = place(f"imc {scene}", shown, size, IMC_VIEWS, IMC_AZIMUTH)
        data, names = folder / scene / IMC_SET, [f"{view:08}" for view in range(IMC_VIEWS)]
        for part in (CALIBRATION, PAIRS, BAGS):
            (data / part).mkdir(parents=True)
        for name, image, camera in zip(names, images, site.cameras, strict=True):
            write_image(data / IMC_IMAGES / f"{name}.jpg", image)
            with h5py.File(data / CALIBRATION / f"calibration_{name}.h5", "w") as file:
                file["K"], file["R"], file["T"] = camera.intrinsics, camera.rotation, camera.translation
        pairs = itertools.combinations(range(IMC_VIEWS), 2)
        shared = [pair for pair in pairs if covisibility(site, *pair) >= COVISIBLE]
        np.save(data / PAIRS / LIST, [f"{names[b]}-{names[a]}" for a, b in shared])
        rng = np.random.default_rng([size.seed, number])
        for index, count in enumerate(BAG_SIZES):
            bag = sorted(rng.choice(IMC_VIEWS, count, replace=False))
            lines = [f"images/{names[view]}.jpg\n" for view in bag]
            file = data / BAGS / f"{count}bag_{BAG_SIZES[:index].count(count):03}.txt"
            file.write_text("".join(lines), encoding="utf-8")


def place(
    name: str, photographs: Sequence[Photograph], size: ImagesSize, views: int, azimuth: float
) -> tuple[Site, list[np.ndarray]]:
    """A wall with its cameras, and what each of them photographs, (height, width) uint8.

    Args:
        name: of the set and the place.
        photographs: on the wall.
        size: of what is generated.
        views: how many cameras.
        azimuth: radians that they stand to either side of the wall's middle at most.

    Raises:
        ValueError: a photograph cannot be read.
    """
    rng = np.random.default_rng([size.seed, zlib.crc32(name.encode())])
    textures = [photograph.grey(size.longest_side) for photograph in photographs]
    return photographed_wall(textures, ARC, views, SIZE, azimuth, ASIDE, rng)


def write_folder(folder: Path, photographs: Sequence[Photograph], size: SyntheticSize) -> None:
    """Write what the cameras of a site of several planes see, as PNG; `size` says how many there are.

    Raises:
        FileNotFoundError, ValueError: a photograph is not here, or cannot be read.
        OSError: the folder cannot be written.
    """
    textures = [photograph.grey(size.longest_side) for photograph in photographs]
    shapes = [texture.shape for texture in textures]
    site = plan_site(shapes, size, np.random.default_rng(size.seed))
    for number, image in enumerate(render_views(site, textures), 1):
        write_image(folder / f"view{number:02}.png", image)
