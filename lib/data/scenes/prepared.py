"""A scene prepared once: its model, its keypoints, and which of them meet when carried between views."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pycolmap

from lib.data.images import read_grey
from lib.data.scenes import geometry
from lib.data.scenes.correspondences import Carried, carried
from lib.data.scenes.places import FEWEST_IMAGES, IMAGES, image_files
from lib.data.scenes.views import FEWEST_POINTS, View, views_of
from lib.data.synthetic.scenes import CONTRAST, SMALLEST_SCALE
from lib.features.keypoints import Keypoints, dog_keypoints, one_a_place
from lib.features.patches import PATCH, PATCH_WIDTH, cut

# Of a view, the strongest.
MOST_KEYPOINTS = 4000
_MODEL, _ARRAYS = "model", "carried.npz"


@dataclass(frozen=True)
class Scene:
    """A prepared scene.

    Attributes:
        name: of its folder.
        images: files, one a view.
        views: as many, by name.
        carried: their keypoints, and which of them meet.
        left_out: names of images that the model has no pose of, or no points in.
    """

    name: str
    images: tuple[Path, ...]
    views: tuple[View, ...]
    carried: Carried
    left_out: tuple[str, ...]

    def grey(self, view: int) -> np.ndarray:
        """(H, W) uint8, the pixels of a view as they are stored, as COLMAP has them too."""
        return read_grey(self.images[view], orientation="stored")

    def patches(self, keypoints: np.ndarray) -> np.ndarray:
        """(n, 64, 64) uint8 of keypoints by their indices, (n,), each cut from its own view."""
        patches = np.empty((len(keypoints), PATCH, PATCH), np.uint8)
        view = self.carried.view[keypoints]
        for index in np.unique(view):
            members = view == index
            patches[members] = cut(self.grey(index), self.carried.keypoints[keypoints[members]])
        return patches


def prepare(source: Path, folder: Path) -> None:
    """Prepare a scene: its model, its keypoints, and which of them meet.

    Args:
        source: the scene's folder.
        folder: an existing empty one.

    Raises:
        FileNotFoundError, ValueError: as `geometry.reconstruction`.
    """
    (folder / _MODEL).mkdir()
    with tempfile.TemporaryDirectory(dir=folder) as work:
        model = geometry.reconstruction(source, Path(work))
    model.write(folder / _MODEL)
    views = views_of(model)
    if len(views) < FEWEST_IMAGES:
        raise ValueError(f"{source}: {len(views)} images see {FEWEST_POINTS} points or more: too few")
    files = [source / IMAGES / view.name for view in views]
    scene = carried(views, [keypoints_of(read_grey(file, orientation="stored")) for file in files])
    arrays = {"view": scene.view, "points": scene.points, **asdict(scene.keypoints)}
    np.savez(folder / _ARRAYS, pairs=scene.pairs.to_records(index=False), **arrays)


def keypoints_of(grey: np.ndarray) -> Keypoints:
    """The strongest DoG keypoints of a (H, W) uint8 image whose patches lie wholly inside it."""
    keypoints = one_a_place(dog_keypoints(grey, CONTRAST, SMALLEST_SCALE))
    radius = keypoints.scale[:, None] * PATCH_WIDTH / 2
    last = np.array(grey.shape[::-1]) - 1
    inside = (keypoints.position >= radius) & (keypoints.position <= last - radius)
    return keypoints[inside.all(axis=1)][:MOST_KEYPOINTS]


def open_scene(source: Path, folder: Path) -> Scene:
    """A scene that `prepare` has prepared."""
    views = tuple(views_of(pycolmap.Reconstruction(folder / _MODEL)))
    with np.load(folder / _ARRAYS) as arrays:
        keypoints = Keypoints(*(arrays[name] for name in ("position", "scale", "orientation")))
        scene = Carried(keypoints, arrays["view"], arrays["points"], pd.DataFrame(arrays["pairs"]))
    images = tuple(source / IMAGES / view.name for view in views)
    left_out = tuple(path.name for path in image_files(source) if path not in images)
    return Scene(source.name, images, views, scene, left_out)
