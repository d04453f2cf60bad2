"""A scene prepared once: its model, its keypoints, and which of them meet when carried between views."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pycolmap

from lib.data.images import decode_grey
from lib.data.scenes import geometry
from lib.data.scenes.correspondences import Carried, carried
from lib.data.scenes.places import FEWEST_IMAGES, IMAGES, image_files
from lib.data.scenes.views import FEWEST_POINTS, View, views_of
from lib.data.synthetic import detection
from lib.data.synthetic.scenes import CONTRAST, SMALLEST_SCALE
from lib.features.detectors import Keypoints

# Of a view, the strongest.
MOST_KEYPOINTS = 4000
_MODEL, _ARRAYS, _LEFT_OUT = "model", "carried.npz", "left_out.json"


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
        """(H, W) uint8, the pixels of a view as they are stored."""
        return read_stored(self.images[view])

    def patches(self, keypoints: np.ndarray) -> np.ndarray:
        """(n, 64, 64) uint8 of keypoints by their indices, (n,), each cut from its own view."""
        patches = np.empty((len(keypoints), detection.PATCH, detection.PATCH), np.uint8)
        view = self.carried.view[keypoints]
        for index in np.unique(view):
            cut = detection.cut(self.grey(index), self.carried.keypoints[keypoints[view == index]])
            patches[view == index] = cut
        return patches


def read_stored(path: Path) -> np.ndarray:
    """(H, W) uint8 grey values; EXIF orientation is ignored, as COLMAP does.

    Raises:
        ValueError: OpenCV cannot read the file.
    """
    grey = decode_grey(path, cv2.IMREAD_IGNORE_ORIENTATION)
    if grey is None:
        raise ValueError(f"{path} is no image that OpenCV reads: save it as PNG")
    return grey


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
        raise ValueError(
            f"{source}: {len(views)} images see {FEWEST_POINTS} sparse points, {FEWEST_IMAGES} are "
            "needed; give a model with more points, or remove it to have the images mapped"
        )
    scene = carried(views, [keypoints_of(read_stored(source / IMAGES / view.name)) for view in views])
    pairs = {f"pairs.{name}": column.to_numpy() for name, column in scene.pairs.items()}
    np.savez(
        folder / _ARRAYS,
        **asdict(scene.keypoints),
        view=scene.view,
        points=scene.points,
        **pairs,
    )
    placed = {view.name for view in views}
    left_out = [path.name for path in image_files(source) if path.name not in placed]
    (folder / _LEFT_OUT).write_text(json.dumps(left_out) + "\n")


def keypoints_of(grey: np.ndarray) -> Keypoints:
    """The strongest DoG keypoints of a (H, W) uint8 image whose patches lie wholly inside it."""
    keypoints = detection.detect(grey, SMALLEST_SCALE, CONTRAST)
    radius = keypoints.scale[:, None] * detection.PATCH_WIDTH / 2
    last = np.array(grey.shape[::-1]) - 1
    inside = (keypoints.position >= radius) & (keypoints.position <= last - radius)
    return keypoints[inside.all(axis=1)][:MOST_KEYPOINTS]


def open_scene(source: Path, folder: Path) -> Scene:
    """A scene that `prepare` has prepared."""
    views = tuple(views_of(pycolmap.Reconstruction(folder / _MODEL)))
    with np.load(folder / _ARRAYS) as arrays:
        held: Mapping[str, np.ndarray] = dict(arrays)
    pairs = {name.removeprefix("pairs."): held[name] for name in held if name.startswith("pairs.")}
    scene = Carried(
        Keypoints(held["position"], held["scale"], held["orientation"]),
        held["view"],
        held["points"],
        pd.DataFrame(pairs),
    )
    images = tuple(source / IMAGES / view.name for view in views)
    left_out = tuple(json.loads((folder / _LEFT_OUT).read_text()))
    return Scene(source.name, images, views, scene, left_out)
