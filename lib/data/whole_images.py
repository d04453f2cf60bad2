"""Five sets of whole images, each read in the layout that it was released in, a folder a set.

**Oxford Affine** (Mikolajczyk et al., IJCV 2005): a folder a sequence, ``img1`` to ``img6`` with
``H1to2p`` to ``H1to6p``, or in the layout of HPatches. The names of the released sequences tell which
nuisance they show; any other is named after its nuisance, ``blur_NAME``.

**W1BS** (Mishkin et al., BMVC 2015), as released for descriptors
(ducha-aiki/wxbs-descriptors-benchmark): a folder a subset, of one nuisance each. In each, ``1/PAIR.bmp``
and ``2/PAIR.bmp`` are columns of square patches, 41 px there, and row i of both shows one spot; ``h``
has homographies, which the benchmark does not read.

**ETH's structure from motion** (Schönberger et al., CVPR 2017): a scene's folder holds ``images`` and
either of two: ``database.db``, a COLMAP database of any version with the cameras and images, as the
benchmark has it; or ``cameras``, Strecha's files (`lib.data.strecha`), as those of Fountain and Herzjesu
are published. Where there are both, the cameras are the database's and the poses are the files'.

**The image matching challenge of 2020** (Jin et al., IJCV 2020): a scene's folder holds ``set_100`` with
``images/NAME.jpg``, ``calibration/calibration_NAME.h5`` (K, and R and T from the world to the camera),
``new-vis-pairs/keys-th-0.X.npy`` (the pairs whose two photographs share at least that much,
"NAME1-NAME2" with the greater name first) and ``sub_set/NNbag_III.txt`` (the photographs of a subset, a
line each, below ``set_100``). Beside the scenes' folders `KEYNET` may lie, which is not the challenge's.

**Oxford5k and Paris6k** (Philbin et al., CVPR 2007 and 2008): a folder each of `CITIES`; photographs are
``*.jpg`` anywhere below it, and so is the ground truth. Of each query ``NAME_query.txt`` names a
photograph, Oxford's with ``oxc1_`` before it, and a box in it, x and y of two corners in px;
``NAME_good.txt``, ``NAME_ok.txt`` and ``NAME_junk.txt`` name a photograph a line.

Each reader takes such a folder and raises FileNotFoundError where something is missing, and ValueError
where something is damaged; the message names the file.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences
from lib.data.images import read_grey
from lib.data.strecha import read_strecha_cameras
from lib.data.views import View, checked_intrinsics, checked_pose

if TYPE_CHECKING:
    import pycolmap

    from lib.data.synthetic.geometry import Camera

NUISANCES = ("blur", "light", "compression", "zoom", "viewpoint")
# "zoom" is zoom and rotation.
RELEASED = {
    **{"bikes": "blur", "trees": "blur", "leuven": "light", "ubc": "compression"},
    **{"bark": "zoom", "boat": "zoom", "graf": "viewpoint", "wall": "viewpoint"},
}


def read_oxford_affine(folder: Path) -> list[HomographySequence]:
    """The sequences, in order of their folders' names, each of a `nuisance`."""
    sequences = read_homography_sequences(folder)
    for sequence in sequences:
        if nuisance(sequence) not in NUISANCES:
            raise ValueError(f"{sequence.folder} tells no nuisance: name it as one of {NUISANCES}")
    return sequences


def nuisance(sequence: HomographySequence) -> str:
    """What grows from image to image, of `NUISANCES`."""
    return RELEASED.get(sequence.folder.name, sequence.folder.name.partition("_")[0])


# Of W1BS, by the names of their folders.
SUBSETS = {
    "A": "appearance",
    "G": "geometry",
    "L": "illumination",
    "S": "sensor",
    "map2photo": "map to photo",
}
PATCH = 41


@dataclass(frozen=True)
class PatchPair:
    """Two columns of n patches.

    Attributes:
        subset: name of its folder.
        name: of its files.
        files: of image 1 and 2.
    """

    subset: str
    name: str
    files: tuple[Path, Path]

    def patches(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, s, s) uint8 of either image, read from the disk each time.

        Raises:
            ValueError: a file is no column of squares, or the two have different numbers of them.
        """
        first, second = (_column(file) for file in self.files)
        if len(first) != len(second):
            raise ValueError(f"{self.files} have {len(first)} and {len(second)} patches")
        return first, second


def _column(file: Path) -> np.ndarray:
    grey = read_grey(file)
    if grey.shape[0] % grey.shape[1]:
        raise ValueError(f"{file} is no column of square patches: unpack it again")
    return grey.reshape(-1, grey.shape[1], grey.shape[1])


def read_w1bs(folder: Path) -> list[PatchPair]:
    """The pairs, by subset and name; their pixels are read later."""
    pairs = []
    for first in sorted(folder.glob("*/1/*.bmp")):
        second = first.parents[1] / "2" / first.name
        if not second.is_file():
            raise FileNotFoundError(f"{second} is missing, the other image of {first}: unpack it again")
        pairs.append(PatchPair(first.parents[1].name, first.stem, (first, second)))
    if not pairs:
        raise FileNotFoundError(f"{folder} holds no W1BS: SET/1/PAIR.bmp and SET/2/PAIR.bmp")
    return pairs


ETH_IMAGES, ETH_DATABASE, ETH_CAMERAS = "images", "database.db", "cameras"
_SELECTED = (
    "SELECT name, camera_id, model, width, height, params, prior_focal_length"
    " FROM images JOIN cameras USING (camera_id) ORDER BY name"
)


@dataclass(frozen=True)
class EthScene:
    """A scene of ETH's benchmark.

    Attributes:
        name: of its folder.
        images: by name.
        cameras: COLMAP's by the same names; one may have taken several images. Those without a prior
            focal length have one that is to be found.
        poses: known ones by the same names, or none of any.
    """

    name: str
    images: Mapping[str, Path]
    cameras: Mapping[str, pycolmap.Camera]
    poses: Mapping[str, Camera]


def read_eth(folder: Path) -> list[EthScene]:
    """The scenes, by name."""
    parts = (ETH_DATABASE, ETH_CAMERAS)
    folders = sorted({path.parent for part in parts for path in folder.glob(f"*/{part}")})
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene: {ETH_IMAGES} with {' or '.join(parts)}")
    return list(map(_read_eth_scene, folders))


def _read_eth_scene(folder: Path) -> EthScene:
    from lib.data.colmap import posed_model

    database = folder / ETH_DATABASE
    cameras = _read_database(database) if database.is_file() else {}
    posed = sorted(file.stem for file in (folder / ETH_CAMERAS).glob("*.camera"))
    images = {name: folder / ETH_IMAGES / name for name in cameras or posed}
    poses = read_strecha_cameras(images.values(), folder / ETH_CAMERAS) if posed else {}
    if not cameras:
        model = posed_model(poses)
        cameras = {image.name: deepcopy(image.camera) for image in model.images.values()}
    return EthScene(folder.name, images, cameras, poses)


def _read_database(database: Path) -> dict[str, pycolmap.Camera]:
    """Cameras by image; pycolmap's own reader would bring an older database up to date."""
    import pycolmap

    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_SELECTED).fetchall()
    except sqlite3.Error as error:
        raise ValueError(f"{database} is no COLMAP database ({error}): unpack it again") from error
    cameras = {}
    for name, number, model, width, height, params, is_known in rows:
        lens = {"model": pycolmap.CameraModelId(model), "params": np.frombuffer(params)}
        cameras[name] = pycolmap.Camera(camera_id=number, width=width, height=height, **lens)
        cameras[name].has_prior_focal_length = bool(is_known)
    return cameras


IMC_SET = "set_100"
IMC_IMAGES, CALIBRATION, PAIRS, BAGS = "images", "calibration", "new-vis-pairs", "sub_set"
# A checkpoint of Key.Net, for who has one.
KEYNET = "keynet.pth"
# The challenge's own: pairs that share less are not asked for.
COVISIBLE = 0.1
LIST = f"keys-th-{COVISIBLE:.1f}.npy"


@dataclass(frozen=True)
class ChallengeScene:
    """A scene of the challenge.

    Attributes:
        name: of its folder.
        views: by their image's name without its ending.
        pairs: of these names, those with enough in common.
        bags: of these names, the subsets that are reconstructed.
        keynet: the checkpoint of Key.Net that lies beside the scenes, or none.
    """

    name: str
    views: Mapping[str, View]
    pairs: tuple[tuple[str, str], ...]
    bags: tuple[tuple[str, ...], ...]
    keynet: Path | None = None


def read_imc(folder: Path) -> list[ChallengeScene]:
    """The scenes, by name."""
    folders = [path.parent for path in sorted(folder.glob(f"*/{IMC_SET}"))]
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene of the challenge: each has a folder {IMC_SET}")
    keynet = folder / KEYNET if (folder / KEYNET).exists() else None
    return [_read_challenge_scene(scene, keynet) for scene in folders]


def _read_challenge_scene(folder: Path, keynet: Path | None) -> ChallengeScene:
    data = folder / IMC_SET
    try:
        images = sorted((data / IMC_IMAGES).glob("*.jpg"))
        views = {image.stem: _read_view(image, data / CALIBRATION) for image in images}
        pairs = tuple(tuple(key.split("-")) for key in np.load(data / PAIRS / LIST).tolist())
        files = sorted((data / BAGS).glob("*bag_*.txt"))
        lists = [file.read_text(encoding="utf-8").split() for file in files]
        bags = tuple(tuple(Path(line).stem for line in listed) for listed in lists)
        if not pairs or not bags or not views.keys() >= {*chain(*pairs, *bags)}:
            raise ValueError("pairs or subsets are missing, or of photographs that are not there")
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"{data} lacks a file or holds a damaged one: {error}") from error
    return ChallengeScene(folder.name, views, pairs, bags, keynet)


def _read_view(image: Path, calibrations: Path) -> View:
    import h5py

    path = calibrations / f"calibration_{image.stem}.h5"
    with h5py.File(path) as file:
        intrinsics, rotation, translation = (file[name][()] for name in ("K", "R", "T"))
    return View(image, checked_intrinsics(path, intrinsics), *checked_pose(path, rotation, translation))


CITIES = ("oxford5k", "paris6k")
QUERY = "_query.txt"
# Good: seen clearly. Ok: more than a quarter. Junk: less than that, and neither right nor wrong.
GRADES = ("good", "ok", "junk")
OXFORD_PREFIX = "oxc1_"


@dataclass(frozen=True)
class Query:
    """What is looked for, and where it is.

    Attributes:
        name: e.g. "all_souls_1".
        image: the photograph that shows it, by name without ending.
        box: left, top, right and bottom of it there, px.
        good, ok, junk: photographs that show it, by their grade.
    """

    name: str
    image: str
    box: tuple[float, float, float, float]
    good: frozenset[str]
    ok: frozenset[str]
    junk: frozenset[str]


@dataclass(frozen=True)
class City:
    """Photographs and queries.

    Attributes:
        images: by name without ending, in order of names.
        queries: in order of names.
    """

    images: Mapping[str, Path]
    queries: tuple[Query, ...]


def read_landmarks(folder: Path) -> dict[str, City]:
    """Both cities by name: the vocabulary for either is learned on the other."""
    return {city: read_city(folder / city) for city in CITIES}


def read_city(root: Path) -> City:
    """The photographs and the ground truth below a folder."""
    images = {path.stem: path for path in sorted(root.rglob("*.jpg"), key=lambda path: path.stem)}
    queries = sorted(root.rglob(f"*{QUERY}"))
    if not images or not queries:
        raise FileNotFoundError(f"{root} lacks photographs *.jpg or queries *{QUERY}: unpack them there")
    return City(images, tuple(_read_query(path, images) for path in queries))


def _read_query(path: Path, images: Mapping[str, Path]) -> Query:
    name = path.name.removesuffix(QUERY)
    lists = [path.with_name(f"{name}_{grade}.txt") for grade in GRADES]
    graded = [file.read_text(encoding="utf-8").split() for file in lists]
    try:
        shown, *corners = path.read_text(encoding="utf-8").split()[:5]
        left, top, right, bottom = map(float, corners)
        image = shown.removeprefix(OXFORD_PREFIX)
        named = {*graded[0], *graded[1], *graded[2]}
        if not (left < right and top < bottom and {image, *named} <= images.keys()):
            raise ValueError("an empty box, or a photograph that is not there")
        if len(named) < sum(map(len, map(set, graded))):
            raise ValueError("a photograph is of two grades")
    except ValueError as error:
        raise ValueError(f"{path} or its lists are damaged ({error}): unpack them again") from error
    return Query(name, image, (left, top, right, bottom), *map(frozenset, graded))
