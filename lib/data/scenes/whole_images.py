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

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import h5py
import numpy as np
import pycolmap
from sklearn.cluster import KMeans

from lib.data.cameras import Camera, write_strecha_camera
from lib.data.colmap import HALF_PIXEL
from lib.data.images import read_grey, write_image
from lib.data.scenes.views import DEPTH_AGREEMENT, View, views_of
from lib.data.synthetic import ImagesSize
from lib.data.whole_images import CITIES, COVISIBLE

# Images in each subset of the challenge's multi-view task, whose released subsets have 5, 10 and 25.
BAGS = {"5bag_000": 5, "5bag_001": 5, "8bag_000": 8}
# Landmarks of a place, and most queries of a landmark.
LANDMARKS, QUERIES = 6, 3
# Share of a landmark's points that a photograph of each grade sees: at least the first, below the
# second.
SHARES = {"good": (0.5, np.inf), "ok": (0.25, 0.5), "junk": (0.02, 0.25)}
# Prefix of a photograph's name in a city's queries.
PREFIXES = dict(zip(CITIES, ("oxc1_", ""), strict=True))


@dataclass(frozen=True)
class Photograph:
    """A photograph without lens distortion.

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
        """Return which points (n, 3) of the world it shows, (n,) bool: those on the surface it sees."""
        position, depth = self.view.project(points)
        last = np.array(self.grey.shape[::-1]) - 1
        shown = ((position >= 0) & (position <= last)).all(axis=1)
        rays = self.view.rays(position[shown])
        inverse_depth = np.einsum("ni,ni->n", rays, self.view.planes_at(rays))
        shown[shown] = np.abs(inverse_depth * depth[shown] - 1) <= DEPTH_AGREEMENT
        return shown


Place = Mapping[str, Photograph]


def photographs(images: Path, model: Path, longest_side: int) -> dict[str, Photograph]:
    """Return a place's photographs by name without extension, undistorted and reduced.

    Args:
        images: folder of the photographs.
        model: folder of the COLMAP model; photographs that it leaves out are left out here.
        longest_side: px; larger photographs are reduced to it.
    """
    options = pycolmap.UndistortCameraOptions(max_image_size=longest_side)
    with tempfile.TemporaryDirectory() as work:
        pycolmap.undistort_images(work, model, images, undistort_options=options)
        views = views_of(pycolmap.Reconstruction(Path(work, "sparse")))
        return {
            Path(view.name).stem: Photograph(read_grey(Path(work, "images", view.name)), view)
            for view in views
        }


def write_eth(folder: Path, shown: Mapping[str, Place], size: ImagesSize) -> None:
    """Write the images and camera files of each place."""
    for place, by_name in shown.items():
        for name, photograph in by_name.items():
            write_image(folder / place / "images" / f"{name}.png", photograph.grey)
            write_strecha_camera(folder / place / "cameras" / f"{name}.png.camera", photograph.camera)


def write_imc(folder: Path, shown: Mapping[str, Place], size: ImagesSize) -> None:
    """Write a scene of the challenge for each place."""
    for number, (place, by_name) in enumerate(shown.items()):
        data = folder / place / "set_100"
        for part in ("calibration", "new-vis-pairs", "sub_set"):
            (data / part).mkdir(parents=True)
        # The challenge joins the two names of a pair by a hyphen.
        named = {name.replace("-", "_"): photograph for name, photograph in by_name.items()}
        for name, photograph in named.items():
            camera = photograph.camera
            write_image(data / "images" / f"{name}.jpg", photograph.grey)
            with h5py.File(data / "calibration" / f"calibration_{name}.h5", "w") as file:
                file["K"], file["R"], file["T"] = camera.intrinsics, camera.rotation, camera.translation
        keys = [
            f"{second}-{first}"
            for first, second in combinations(sorted(named), 2)
            if covisibility(named[first], named[second]) >= COVISIBLE
        ]
        np.save(data / "new-vis-pairs" / f"keys-th-{COVISIBLE}.npy", keys)
        rng = np.random.default_rng([size.seed, number])
        for bag, count in BAGS.items():
            chosen = sorted(rng.choice(sorted(named), min(count, len(named)), replace=False))
            lines = "".join(f"images/{name}.jpg\n" for name in chosen)
            (data / "sub_set" / f"{bag}.txt").write_text(lines)


def covisibility(first: Photograph, second: Photograph) -> float:
    """Return the smaller share of the sparse points of either photograph that the other shows."""
    there = second.shows(first.view.points).mean()
    back = first.shows(second.view.points).mean()
    return float(min(there, back))


def write_landmarks(folder: Path, shown: Mapping[str, Place], size: ImagesSize) -> None:
    """Write a city for each of the first two places; its landmarks are parts of the place."""
    for city, (place, by_name) in zip(CITIES, shown.items(), strict=False):
        truth = folder / city / "gt_files"
        truth.mkdir(parents=True)
        for name, photograph in by_name.items():
            write_image(folder / city / "images" / f"{place}_{name}.jpg", photograph.grey)
        for number, landmark in enumerate(landmarks(by_name, size.seed), 1):
            _write_queries(truth, f"{place}_{number}", city, place, by_name, landmark)


def landmarks(by_name: Place, seed: int) -> list[np.ndarray]:
    """Return the points (n, 3) of each landmark: sparse points clustered by who shows them.

    A cluster in space alone could be a corner whose two sides no photograph shows together.
    """
    points = np.unique(
        np.concatenate([photograph.view.points for photograph in by_name.values()]), axis=0
    )
    shown = np.stack([photograph.shows(points) for photograph in by_name.values()], axis=1)
    cluster = KMeans(LANDMARKS, n_init=10, random_state=seed).fit_predict(shown.astype(np.float32))
    return [points[cluster == number] for number in range(LANDMARKS)]


def _write_queries(
    truth: Path,
    landmark: str,
    city: str,
    place: str,
    by_name: Place,
    points: np.ndarray,
) -> None:
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
        box = np.r_[pixels.min(axis=0), pixels.max(axis=0)]
        line = " ".join(f"{value:.1f}" for value in box)
        query = truth / f"{landmark}_{number}_query.txt"
        query.write_text(f"{PREFIXES[city]}{place}_{name} {line}\n")
        for grade, listed in graded.items():
            lines = "".join(f"{place}_{name}\n" for name in listed)
            (truth / f"{landmark}_{number}_{grade}.txt").write_text(lines)
