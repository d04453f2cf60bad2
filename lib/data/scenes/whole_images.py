"""Sets of whole images made of the photographs of places: structure from motion, poses and retrieval.

Each is written in its released layout (`lib.data.whole_images`), from the photographs of a place and its
COLMAP model, with any lens distortion removed:

- **ETH's structure from motion**: the photographs and their camera files.
- **The image matching challenge of 2020**: cameras, pairs by covisibility, and subsets. As in the
  challenge, the poses are those of a COLMAP model.
- **Oxford5k and Paris6k**: a landmark is a part of a place, a cluster of its model's points. Photographs
  are graded by how much of the landmark they show; those from other sides are the distractors.

What a photograph shows follows from the surface between its sparse points (`lib.data.scenes.views`), not
from which points SIFT found in it. The model itself is of SIFT's matches: a photograph that SIFT could
not place is in none of these sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pycolmap
from sklearn.cluster import KMeans

from lib.data.cameras import Camera
from lib.data.colmap import HALF_PIXEL
from lib.data.images import read_grey, write_image
from lib.data.scenes.places import IMAGES, SPARSE
from lib.data.scenes.views import View, views_of
from lib.data.synthetic import ImagesSize
from lib.data.whole_images import (
    CITIES,
    COVISIBLE,
    draw_bags,
    write_challenge_scene,
    write_eth_scene,
    write_query,
)

# Photographs of a place in a model: as many as the smallest model that ETH's benchmark reports. They are
# neighbours by name, which is the order they were taken in.
MODELLED = 10
# Landmarks of a place, and most queries of a landmark.
LANDMARKS, QUERIES = 6, 3
# Share of a landmark's points that a photograph of each grade sees: at least the first, below the
# second.
SHARES = {"good": (0.5, np.inf), "ok": (0.25, 0.5), "junk": (0.02, 0.25)}


@dataclass(frozen=True)
class PosedPhotograph:
    """A photograph without lens distortion, with its pose.

    Attributes:
        grey: (H, W) uint8.
        view: its pinhole camera, its pose and the surface that it sees, in the units of the model.
    """

    grey: np.ndarray
    view: View

    @property
    def camera(self) -> Camera:
        """The camera, with the first pixel's centre at 0, 0."""
        intrinsics = self.view.camera.calibration_matrix()
        intrinsics[:2, 2] -= HALF_PIXEL
        size = self.view.camera.width, self.view.camera.height
        return Camera(intrinsics, self.view.rotation, self.view.translation, *size)

    def shows(self, points: np.ndarray) -> np.ndarray:
        """Return which points (n, 3) of the world it shows, (n,) bool."""
        return self.view.sees(*self.view.project(points))


# A place's photographs by name without extension.
Photographs = Mapping[str, PosedPhotograph]


def undistort(folder: Path, images: Path, model: Path, longest_side: int) -> None:
    """Write a place's photographs without lens distortion, and the model of them.

    Args:
        folder: an existing empty folder, for `read_photographs`.
        images: folder of the photographs.
        model: folder of the COLMAP model; photographs that it leaves out are left out here.
        longest_side: px; larger photographs are reduced to it.
    """
    options = pycolmap.UndistortCameraOptions(max_image_size=longest_side)
    pycolmap.undistort_images(folder, model, images, undistort_options=options)


def read_photographs(folder: Path) -> dict[str, PosedPhotograph]:
    """Read what `undistort` wrote."""
    views = views_of(pycolmap.Reconstruction(folder / SPARSE))
    return {
        Path(view.name).stem: PosedPhotograph(
            read_grey(folder / IMAGES / view.name, orientation="stored"), view
        )
        for view in views
    }


def write_eth(folder: Path, shown: Mapping[str, Photographs], size: ImagesSize) -> None:
    """Write the images and camera files of each place."""
    for place, photographs in shown.items():
        by_name = _neighbours(photographs)
        images = {f"{name}.png": photograph.grey for name, photograph in by_name.items()}
        cameras = {f"{name}.png": photograph.camera for name, photograph in by_name.items()}
        write_eth_scene(folder / place, images, cameras)


def write_imc(folder: Path, shown: Mapping[str, Photographs], size: ImagesSize) -> None:
    """Write a scene of the challenge for each place."""
    for number, (place, by_name) in enumerate(shown.items()):
        # The challenge joins the two names of a pair by a hyphen.
        chosen = _neighbours(by_name)
        named = {name.replace("-", "_"): photograph for name, photograph in chosen.items()}
        names = sorted(named)
        pairs = [
            (second, first)
            for first, second in combinations(names, 2)
            if covisibility(named[first], named[second]) >= COVISIBLE
        ]
        images = {name: named[name].grey for name in names}
        cameras = {name: named[name].camera for name in names}
        bags = draw_bags(names, np.random.default_rng([size.seed, number]))
        write_challenge_scene(folder / place, images, cameras, pairs, bags)


def _neighbours(by_name: Photographs) -> Photographs:
    """Return the first `MODELLED` photographs by name."""
    return {name: by_name[name] for name in sorted(by_name)[:MODELLED]}


def covisibility(first: PosedPhotograph, second: PosedPhotograph) -> float:
    """Return the smaller share of the sparse points of either photograph that the other shows."""
    there = second.shows(first.view.points).mean()
    back = first.shows(second.view.points).mean()
    return float(min(there, back))


def write_landmarks(folder: Path, shown: Mapping[str, Photographs], size: ImagesSize) -> None:
    """Write a city for each of the first two places; its landmarks are parts of the place."""
    for city, (place, by_name) in zip(CITIES, shown.items(), strict=False):
        named = {f"{place}_{name}": photograph for name, photograph in by_name.items()}
        for name, photograph in named.items():
            write_image(folder / city / IMAGES / f"{name}.jpg", photograph.grey)
        for number, landmark in enumerate(landmarks(named, size.seed), 1):
            _write_queries(folder / city, f"{place}_{number}", named, landmark)


def landmarks(by_name: Photographs, seed: int) -> list[np.ndarray]:
    """Return the points (n, 3) of each landmark: sparse points clustered by who shows them.

    A cluster in space alone could be a corner whose two sides no photograph shows together.
    """
    points = np.unique(
        np.concatenate([photograph.view.points for photograph in by_name.values()]), axis=0
    )
    shown = np.stack([photograph.shows(points) for photograph in by_name.values()], axis=1)
    cluster = KMeans(LANDMARKS, n_init=10, random_state=seed).fit_predict(shown.astype(np.float32))
    return [points[cluster == number] for number in range(LANDMARKS)]


def _write_queries(city: Path, landmark: str, by_name: Photographs, points: np.ndarray) -> None:
    """Write a landmark's queries, the photographs that show most of it, and their lists."""
    share = {name: photograph.shows(points).mean() for name, photograph in by_name.items()}
    graded = {
        grade: [name for name in share if least <= share[name] < below]
        for grade, (least, below) in SHARES.items()
    }
    best = sorted(graded["good"], key=lambda name: -share[name])
    for number, name in enumerate(best[:QUERIES], 1):
        photograph = by_name[name]
        pixels, _ = photograph.view.project(points[photograph.shows(points)])
        box = [*pixels.min(axis=0), *pixels.max(axis=0)]
        write_query(city, f"{landmark}_{number}", name, box, graded)
