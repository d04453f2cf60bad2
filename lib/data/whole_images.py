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
benchmark has it; or ``cameras``, Strecha's files (`lib.data.cameras`), as those of Fountain and Herzjesu
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

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib.data.cameras import checked_camera, read_strecha_cameras
from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences
from lib.data.images import read_grey, read_image
from lib.data.synthetic.imaging import Camera

if TYPE_CHECKING:
    import pycolmap

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


# (n, s, s) uint8 of the same n spots in two images.
PatchPair = tuple[np.ndarray, np.ndarray]


def read_w1bs(folder: Path) -> dict[tuple[str, str], PatchPair]:
    """The pairs by the name of their subset's folder and that of their files."""
    pairs = {}
    for first in sorted(folder.glob("*/1/*.bmp")):
        subset = first.parents[1]
        columns = [read_grey(subset / number / first.name) for number in "12"]
        height, width = columns[0].shape
        if height % width or columns[1].shape != (height, width):
            raise ValueError(f"{first} and its pair are no equal columns of squares: unpack them again")
        patches = (column.reshape(-1, width, width) for column in columns)
        pairs[subset.name, first.stem] = tuple(patches)
    if not pairs:
        raise FileNotFoundError(f"{folder} holds no W1BS: SET/1/PAIR.bmp and SET/2/PAIR.bmp")
    return pairs


@dataclass(frozen=True)
class EthScene:
    """A scene of ETH's benchmark.

    Attributes:
        name: of its folder.
        images: by name.
        cameras: COLMAP's by the same names; one may have taken several images. The mapper looks for the
            focal length of those that have no prior one.
        known: a model of the images with their true poses, or None where these are unknown.
    """

    name: str
    images: Mapping[str, Path]
    cameras: Mapping[str, pycolmap.Camera]
    known: pycolmap.Reconstruction | None


def read_eth(folder: Path) -> list[EthScene]:
    """The scenes, by name."""
    parts = ("database.db", "cameras")
    folders = sorted({path.parent for part in parts for path in folder.glob(f"*/{part}")})
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene: images with {' or '.join(parts)}")
    return list(map(_read_eth_scene, folders))


def _read_eth_scene(folder: Path) -> EthScene:
    from lib.data.colmap import posed_model

    database, poses, known = folder / "database.db", folder / "cameras", None
    cameras = _read_database(database) if database.is_file() else {}
    names = [*cameras] or sorted(file.stem for file in poses.glob("*.camera"))
    images = {name: folder / "images" / name for name in names}
    if poses.is_dir():
        known = posed_model(read_strecha_cameras(images.values(), poses))
        cameras = cameras or {image.name: image.camera for image in known.images.values()}
    return EthScene(folder.name, images, cameras, known)


def _read_database(database: Path) -> dict[str, pycolmap.Camera]:
    """Cameras by image."""
    import pycolmap

    # COLMAP brings an older database up to date as it opens it: here a copy.
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copy(database, scratch)
        try:
            with pycolmap.Database.open(copy) as opened:
                images = sorted(opened.read_all_images(), key=lambda image: image.name)
                return {image.name: opened.read_camera(image.camera_id) for image in images}
        except RuntimeError as error:
            raise ValueError(f"{database} is no COLMAP database ({error}): unpack it again") from error


# A checkpoint of Key.Net, for who has one.
KEYNET = "keynet.pth"
# The challenge's own: pairs that share less are not asked for.
COVISIBLE = 0.1


@dataclass(frozen=True)
class ChallengeScene:
    """A scene of the challenge.

    Attributes:
        name: of its folder.
        images: by name without ending.
        cameras: with their poses, by the same names.
        pairs: of these names, those with enough in common.
        bags: of these names, the subsets that are reconstructed.
        keynet: the checkpoint of Key.Net that lies beside the scenes, or none.
    """

    name: str
    images: Mapping[str, Path]
    cameras: Mapping[str, Camera]
    pairs: tuple[tuple[str, str], ...]
    bags: tuple[tuple[str, ...], ...]
    keynet: Path | None = None


def read_imc(folder: Path) -> list[ChallengeScene]:
    """The scenes, by name."""
    folders = sorted(folder.glob("*/set_100"))
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene of the challenge: each has a folder set_100")
    return list(map(_read_challenge_scene, folders))


def _read_challenge_scene(folder: Path) -> ChallengeScene:
    import h5py

    images = {path.stem: path for path in sorted(folder.glob("images/*.jpg"))}
    cameras = {}
    for name, image in images.items():
        path = folder / "calibration" / f"calibration_{name}.h5"
        with h5py.File(path) as file:
            known = [file[part][()] for part in ("K", "R", "T")]
        cameras[name] = checked_camera(path, *known, read_image(image, header_only=True).size)
    keys = np.load(folder / "new-vis-pairs" / f"keys-th-{COVISIBLE}.npy").tolist()
    pairs = tuple(tuple(key.split("-")) for key in keys)
    lists = [file.read_text().split() for file in sorted(folder.glob("sub_set/*bag_*.txt"))]
    bags = tuple(tuple(Path(line).stem for line in listed) for listed in lists)
    if not pairs or not bags or not images.keys() >= {*chain(*pairs, *bags)}:
        raise ValueError(f"{folder} lacks pairs or subsets, or photographs that these name")
    keynet = folder.parents[1] / KEYNET
    checkpoint = keynet if keynet.exists() else None
    return ChallengeScene(folder.parent.name, images, cameras, pairs, bags, checkpoint)


CITIES = ("oxford5k", "paris6k")
# Good: seen clearly. Ok: more than a quarter. Junk: less than that, and neither right nor wrong.
GRADES = ("good", "ok", "junk")


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
    files, queries = sorted(root.rglob("*_query.txt")), []
    if not images or not files:
        raise FileNotFoundError(f"{root} lacks photographs *.jpg or queries *_query.txt: unpack them")
    for path in files:
        name = path.name.removesuffix("_query.txt")
        lists = [path.with_name(f"{name}_{grade}.txt") for grade in GRADES]
        graded = [frozenset(file.read_text().split()) for file in lists]
        shown, *corners = path.read_text().split()
        image = shown.removeprefix("oxc1_")
        if len(corners) != 4 or not {image}.union(*graded) <= images.keys():
            raise ValueError(f"{path} or its lists are cut short or name a photograph that is not there")
        queries.append(Query(name, image, tuple(map(float, corners)), *graded))
    return City(images, tuple(queries))
