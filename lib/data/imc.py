"""The layout of the image matching challenge of 2020 (Jin et al., IJCV 2020), read and written.

A scene's folder holds ``set_100`` with ``images/NAME.jpg``, ``calibration/calibration_NAME.h5`` (K,
and R and T from the world to the camera), ``new-vis-pairs/keys-th-0.X.npy`` (the pairs whose two
photographs share at least that much, "NAME1-NAME2" with the greater name first) and
``sub_set/NNbag_III.txt`` (the photographs of a subset, a line each, below ``set_100``). Beside the
scenes' folders `KEYNET` may lie, which is not the challenge's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from lib.data.images import write_image
from lib.data.synthetic.geometry import Camera
from lib.data.views import View, checked_intrinsics, checked_pose

SET = "set_100"
PAIRS, BAGS = "new-vis-pairs", "sub_set"
# A checkpoint of Key.Net, for who has one.
KEYNET = "keynet.pth"
# The challenge's own: pairs that share less are not asked for.
COVISIBLE = 0.1
_LIST = f"keys-th-{COVISIBLE:.1f}.npy"


@dataclass(frozen=True)
class ChallengeScene:
    """A scene of the challenge.

    Attributes:
        name: of its folder.
        views: by their image's name without its ending.
        pairs: of these names, those with enough in common.
        bags: of these names, the subsets that are reconstructed.
    """

    name: str
    views: Mapping[str, View]
    pairs: tuple[tuple[str, str], ...]
    bags: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ChallengeScenes:
    """The scenes of a set, by name.

    Attributes:
        name: of the set.
        scenes: by name.
        keynet: the checkpoint of Key.Net that lies beside them, or none.
    """

    name: str
    scenes: tuple[ChallengeScene, ...]
    keynet: Path | None = None


def read(name: str, folder: Path) -> ChallengeScenes:
    """Open a folder of scenes.

    Args:
        name: of the set.
        folder: with a folder a scene.

    Raises:
        FileNotFoundError: no scene, or a file is missing; the message names it.
        ValueError: a camera is singular or mirrored, a list is damaged, empty or names a photograph that
            is not there, or a subset is of fewer than two; the message names the file.
    """
    folders = [path for path in sorted(folder.glob("*")) if (path / SET).is_dir()]
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene of the challenge: each has a folder {SET}")
    weights = folder / KEYNET
    scenes = tuple(map(_read_scene, folders))
    return ChallengeScenes(name, scenes, weights if weights.exists() else None)


def _read_scene(folder: Path) -> ChallengeScene:
    data = folder / SET
    images = sorted((data / "images").glob("*.jpg"))
    views = {path.stem: _read_view(path, data / "calibration") for path in images}
    pairs = _read_pairs(data / PAIRS / _LIST, views)
    bags = tuple(_read_bag(path, views) for path in sorted((data / BAGS).glob("*bag_*.txt")))
    if not pairs or not bags:
        raise ValueError(f"{data} lists no pairs that share enough, or no subsets: unpack it again")
    return ChallengeScene(folder.name, views, pairs, bags)


def _read_pairs(path: Path, views: Mapping[str, View]) -> tuple[tuple[str, str], ...]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: unpack the scene again")
    try:
        keys = np.load(path, allow_pickle=False).ravel()
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is damaged ({error}): unpack it again") from error
    return tuple(_pair(str(key), views, path) for key in keys)


def _read_bag(path: Path, views: Mapping[str, View]) -> tuple[str, ...]:
    try:
        names = [Path(line).stem for line in path.read_text(encoding="utf-8").split()]
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): unpack it again") from error
    if absent := [name for name in names if name not in views]:
        raise ValueError(f"{path} names {absent[0]}.jpg, which is not among the scene's images")
    if len({*names}) < max(2, len(names)):
        raise ValueError(f"{path} is to name two photographs or more, each of them once")
    return tuple(names)


def _pair(key: str, views: Mapping[str, View], path: Path) -> tuple[str, str]:
    # A name may hold the sign that parts the two.
    for cut in range(len(key)):
        if key[cut] == "-" and key[:cut] in views and key[cut + 1 :] in views:
            return key[:cut], key[cut + 1 :]
    raise ValueError(f"{path} holds the pair {key!r}, of which a photograph is not there")


def _read_view(image: Path, calibrations: Path) -> View:
    path = calibrations / f"calibration_{image.stem}.h5"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: {image} has no pose without it")
    try:
        with h5py.File(path) as file:
            intrinsics, rotation, translation = (file[name][()] for name in ("K", "R", "T"))
    except (KeyError, OSError) as error:
        raise ValueError(f"{path} is damaged or lacks K, R or T ({error}): unpack it again") from error
    return View(image, checked_intrinsics(path, intrinsics), *checked_pose(path, rotation, translation))


def write_scene(
    folder: Path,
    images: Iterable[np.ndarray],
    cameras: Sequence[Camera],
    covisibility: Callable[[int, int], float],
    bags: Sequence[Sequence[int]],
) -> None:
    """Write a scene.

    Args:
        folder: of the scene, made here.
        images: (height, width) uint8, one for each camera.
        cameras: of the photographs.
        covisibility: of two of them, by their numbers, what they share, 0 to 1.
        bags: numbers of the photographs of each subset.

    Raises:
        OSError: the folder cannot be written.
    """
    data = folder / SET
    for part in ("calibration", PAIRS, BAGS):
        (data / part).mkdir(parents=True)
    names = [f"{number:08}" for number in range(len(cameras))]
    for name, image, camera in zip(names, images, cameras, strict=True):
        write_image(data / "images" / f"{name}.jpg", image)
        with h5py.File(data / "calibration" / f"calibration_{name}.h5", "w") as file:
            file["K"], file["R"], file["T"] = camera.intrinsics, camera.rotation, camera.translation
    keys = [
        f"{names[second]}-{names[first]}"
        for first, second in itertools.combinations(range(len(cameras)), 2)
        if covisibility(first, second) >= COVISIBLE
    ]
    np.save(data / PAIRS / _LIST, np.array(keys, dtype=str))
    counts: dict[int, int] = {}
    for bag in bags:
        number = counts[len(bag)] = counts.get(len(bag), -1) + 1
        lines = "".join(f"images/{names[index]}.jpg\n" for index in bag)
        (data / BAGS / f"{len(bag)}bag_{number:03}.txt").write_text(lines, encoding="utf-8")
