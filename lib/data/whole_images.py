"""Five sets of whole images, each in its released layout and in a folder of its own.

All are read here; of those that are also made here, the layouts of scenes and cities are written here.

**Oxford Affine** (Mikolajczyk et al., IJCV 2005): one folder per sequence, with ``img1`` to ``img6`` and
``H1to2p`` to ``H1to6p``, or in the layout of HPatches. A released sequence's name determines its
nuisance; any other sequence is named after its nuisance, ``blur_NAME``.

**W1BS** (Mishkin et al., BMVC 2015), as released for descriptors
(ducha-aiki/wxbs-descriptors-benchmark): one folder per subset, each with one nuisance. In it,
``1/PAIR.bmp`` and ``2/PAIR.bmp``, or with another of the endings `lib.files.PHOTOGRAPHS`, are columns of
square patches, 41 px in the release, and row i of both shows the same spot. ``h`` has homographies,
which the benchmark does not read.

**ETH's structure from motion** (Schönberger et al., CVPR 2017): a scene's folder holds ``images`` and
either ``database.db``, a COLMAP database of any version with the cameras and images, as in the
benchmark; or ``cameras``, Strecha's camera files (`lib.data.cameras`), as published for Fountain and
Herzjesu. If both exist, the cameras come from the database and the poses from the files.

**The image matching challenge of 2020** (Jin et al., IJCV 2020): a scene's folder holds ``set_100`` with

- ``images/NAME.jpg``;
- ``calibration/calibration_NAME.h5``: K, and R and T from the world to the camera;
- ``new-vis-pairs/keys-th-0.X.npy``: the pairs of photographs with a covisibility of at least 0.X, as
  "NAME1-NAME2" with the greater name first;
- ``sub_set/NNbag_III.txt``: the photographs of a subset, one path below ``set_100`` per line.

`KEYNET`, which is not part of the challenge, may lie next to the scenes' folders.

**Oxford5k and Paris6k** (Philbin et al., CVPR 2007 and 2008): one folder for each of `CITIES`, with
photographs and the ground truth anywhere below it. The ground truth names a photograph by its file's
name without folder and ending. For each query, ``NAME_query.txt`` names a photograph, in Oxford with the
prefix ``oxc1_``, and a box in it: x and y of two corners, in px. ``NAME_good.txt``, ``NAME_ok.txt`` and
``NAME_junk.txt`` name one photograph per line.

Each reader takes such a folder. It raises FileNotFoundError if something is missing and ValueError if
something is damaged; the message names the file.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib.data.cameras import (
    Camera,
    checked_camera,
    is_central,
    read_strecha_cameras,
    write_strecha_camera,
)
from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences
from lib.data.images import read_grey, read_image, write_image
from lib.files import PHOTOGRAPHS, photograph_of_mask, why_passed_over

if TYPE_CHECKING:
    import pycolmap

NUISANCES = ("blur", "light", "compression", "zoom", "viewpoint")
# Released sequence -> nuisance; "zoom" is zoom and rotation.
RELEASED = {
    **{"bikes": "blur", "trees": "blur", "leuven": "light", "ubc": "compression"},
    **{"bark": "zoom", "boat": "zoom", "graf": "viewpoint", "wall": "viewpoint"},
}


def read_oxford_affine(folder: Path) -> list[HomographySequence]:
    """Read the sequences, in order of their folders' names; each must show one of `NUISANCES`."""
    sequences = read_homography_sequences(folder)
    for sequence in sequences:
        if nuisance(sequence) not in NUISANCES:
            raise ValueError(f"{sequence.folder} tells no nuisance: name it as one of {NUISANCES}")
    return sequences


def nuisance(sequence: HomographySequence) -> str:
    """Return the nuisance that grows from image to image, one of `NUISANCES`."""
    return RELEASED.get(sequence.folder.name, sequence.folder.name.partition("_")[0])


# W1BS: folder of a subset -> what differs between its images.
SUBSETS = {
    "A": "appearance",
    "G": "geometry",
    "L": "illumination",
    "S": "sensor",
    "map2photo": "map to photo",
}
PATCH = 41


# Patches of the same n spots in two images, (n, s, s) uint8 each.
PatchPair = tuple[np.ndarray, np.ndarray]


def read_w1bs(folder: Path) -> dict[tuple[str, str], PatchPair]:
    """Read the pairs, keyed by the names of their subset's folder and of their files."""
    images = _photographs(folder, "*/[12]/*")
    pairs: dict[tuple[str, str], PatchPair] = {}
    for subset, name in sorted({(image.parents[1], image.name) for image in images}):
        first, second = (subset / number / name for number in "12")
        if missing := {first, second} - images:
            raise FileNotFoundError(f"{missing.pop()} is missing, one image of a pair: unpack it again")
        if (subset.name, first.stem) in pairs:
            raise ValueError(f"{first} has the name of another pair but for its ending: rename one")
        columns = [read_grey(path) for path in (first, second)]
        height, width = columns[0].shape
        if height % width or columns[1].shape != (height, width):
            raise ValueError(f"{first} and its pair are no equal columns of squares: unpack them again")
        one, other = (column.reshape(-1, width, width) for column in columns)
        pairs[subset.name, first.stem] = one, other
    if not pairs:
        raise FileNotFoundError(f"{folder} holds no W1BS: SET/1/PAIR.bmp and SET/2/PAIR.bmp")
    return pairs


@dataclass(frozen=True)
class EthScene:
    """A scene of ETH's benchmark.

    Attributes:
        name: the folder's name.
        images: image files by name.
        cameras: COLMAP's cameras by image name; several images may share one. The mapper estimates the
            focal length of cameras that have no prior one.
        known: a model of the images with their true poses, or None if these are unknown.
    """

    name: str
    images: Mapping[str, Path]
    cameras: Mapping[str, pycolmap.Camera]
    known: pycolmap.Reconstruction | None


def read_eth(folder: Path) -> list[EthScene]:
    """Read the scenes, in order of names."""
    parts = ("database.db", "cameras")
    folders = sorted({path.parent for part in parts for path in folder.glob(f"*/{part}")})
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene: images with {' or '.join(parts)}")
    return list(map(_read_eth_scene, folders))


def _read_eth_scene(folder: Path) -> EthScene:
    from lib.data.colmap import check_size, posed_model

    database, poses, known = folder / "database.db", folder / "cameras", None
    cameras = _read_database(database) if database.is_file() else {}
    names = [*cameras] or sorted(file.stem for file in poses.glob("*.camera"))
    images = {name: folder / "images" / name for name in names}
    if poses.is_dir():
        known = posed_model(read_strecha_cameras(images.values(), poses))
        cameras = cameras or {image.name: image.camera for image in known.images.values()}
    for name, camera in cameras.items():
        check_size(images[name], camera)
    return EthScene(folder.name, images, cameras, known)


def _read_database(database: Path) -> dict[str, pycolmap.Camera]:
    """Read the cameras, by image name."""
    import pycolmap

    # Open a copy, because COLMAP upgrades an older database when it opens it.
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copy(database, scratch)
        try:
            with pycolmap.Database.open(copy) as opened:
                images = sorted(opened.read_all_images(), key=lambda image: image.name)
                return {image.name: opened.read_camera(image.camera_id) for image in images}
        except RuntimeError as error:
            raise ValueError(f"{database} is no COLMAP database ({error}): unpack it again") from error


def write_eth_scene(
    folder: Path, images: Mapping[str, np.ndarray], cameras: Mapping[str, Camera]
) -> None:
    """Write a scene's ``images`` and their ``cameras``.

    Args:
        folder: the scene's folder; made if missing.
        images: (H, W) uint8 by file name.
        cameras: by the same names.

    Raises:
        OSError: the folder cannot be written.
    """
    for name, grey in images.items():
        write_image(folder / "images" / name, grey)
        write_strecha_camera(folder / "cameras" / f"{name}.camera", cameras[name])


# An optional checkpoint of Key.Net.
KEYNET = "keynet.pth"
# The challenge's own threshold: pairs with less covisibility are not evaluated.
COVISIBLE = 0.1
# Images in each subset of the multi-view task of a scene made here; released subsets have 5, 10 and 25.
BAGS = {"5bag_000": 5, "5bag_001": 5, "8bag_000": 8}


@dataclass(frozen=True)
class ChallengeScene:
    """A scene of the challenge.

    Attributes:
        name: the folder's name.
        images: image files by name without extension.
        cameras: cameras with their poses, by image name.
        pairs: pairs of image names with enough covisibility.
        bags: subsets of image names to reconstruct.
        keynet: the Key.Net checkpoint next to the scenes' folders, or None.
    """

    name: str
    images: Mapping[str, Path]
    cameras: Mapping[str, Camera]
    pairs: tuple[tuple[str, str], ...]
    bags: tuple[tuple[str, ...], ...]
    keynet: Path | None = None


def read_imc(folder: Path) -> list[ChallengeScene]:
    """Read the scenes, in order of names."""
    folders = sorted(folder.glob("*/set_100"))
    if not folders:
        raise FileNotFoundError(f"{folder} holds no scene of the challenge: each has a folder set_100")
    return list(map(_read_challenge_scene, folders))


def _read_challenge_scene(folder: Path) -> ChallengeScene:
    images = {path.stem: path for path in sorted(folder.glob("images/*.jpg"))}
    cameras = {}
    for name, image in images.items():
        path = folder / "calibration" / f"calibration_{name}.h5"
        cameras[name] = _read_challenge_camera(path, read_image(image, header_only=True).size)
    listed = folder / "new-vis-pairs" / f"keys-th-{COVISIBLE}.npy"
    pairs = tuple(tuple(key.split("-")) for key in np.load(listed).tolist())
    for pair in pairs:
        if len(set(pair)) < len(pair):
            raise ValueError(f"{listed} pairs {pair[0]} with itself: take the file again")
    # A pair is the same in either order.
    _check_distinct(listed, ["-".join(sorted(pair)) for pair in pairs])
    bags = []
    for file in sorted(folder.glob("sub_set/*bag_*.txt")):
        bags.append(tuple(Path(line).stem for line in file.read_text().split()))
        _check_distinct(file, bags[-1])
    if not pairs or not bags or not images.keys() >= {*chain(*pairs, *bags)}:
        raise ValueError(f"{folder} lacks pairs or subsets, or photographs that these name")
    keynet = folder.parents[1] / KEYNET
    checkpoint = keynet if keynet.exists() else None
    return ChallengeScene(folder.parent.name, images, cameras, pairs, tuple(bags), checkpoint)


def _check_distinct(file: Path, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{file} names {name} {count} times: take the file again")


def _read_challenge_camera(path: Path, size: tuple[int, int]) -> Camera:
    """Read the camera of a photograph with this width and height, px."""
    import h5py

    with h5py.File(path) as file:
        known = [file[part][()] for part in ("K", "R", "T")]
    camera = checked_camera(path, *known, size)
    matrix = camera.intrinsics
    if matrix[0, 1] or matrix[1, 0]:
        raise ValueError(f"{path} states a skew of {matrix[0, 1]:g}: undistort the photograph")
    # The file states no size: only the principal point shows that the photograph was resized.
    # K puts the first pixel's centre at 0, 0, half a pixel inside.
    middle = matrix[:2, 2] + 0.5
    if not is_central(middle, size):
        width, height = 2 * middle
        shown = f"about {width:.0f} by {height:.0f} px, not {size}"
        raise ValueError(f"{path} is of a photograph of {shown}: scale K with the photograph")
    return camera


def draw_bags(names: Sequence[str], rng: np.random.Generator) -> dict[str, list[str]]:
    """Draw the images of the subsets `BAGS`; of fewer images than a subset has, all."""
    return {
        bag: sorted(rng.choice(names, min(count, len(names)), replace=False))
        for bag, count in BAGS.items()
    }


def write_challenge_scene(
    folder: Path,
    images: Mapping[str, np.ndarray],
    cameras: Mapping[str, Camera],
    pairs: Sequence[tuple[str, str]],
    bags: Mapping[str, Sequence[str]],
) -> None:
    """Write a scene of the challenge.

    Args:
        folder: the scene's folder; made if missing.
        images: (H, W) uint8 by name, without extension and without hyphen.
        cameras: by the same names.
        pairs: names of images with enough covisibility, the greater first.
        bags: names of the images of each subset.

    Raises:
        OSError: the folder cannot be written.
    """
    import h5py

    data = folder / "set_100"
    for part in ("calibration", "new-vis-pairs", "sub_set"):
        (data / part).mkdir(parents=True)
    for name, grey in images.items():
        write_image(data / "images" / f"{name}.jpg", grey)
        with h5py.File(data / "calibration" / f"calibration_{name}.h5", "w") as file:
            file["K"] = cameras[name].intrinsics
            file["R"] = cameras[name].rotation
            file["T"] = cameras[name].translation
    keys = [f"{greater}-{less}" for greater, less in pairs]
    np.save(data / "new-vis-pairs" / f"keys-th-{COVISIBLE}.npy", keys)
    for bag, names in bags.items():
        lines = "".join(f"images/{name}.jpg\n" for name in names)
        (data / "sub_set" / f"{bag}.txt").write_text(lines)


CITIES = ("oxford5k", "paris6k")
# Prefix of a photograph's name in a city's queries.
PREFIXES = {"oxford5k": "oxc1_", "paris6k": ""}
# Good: clearly visible. Ok: more than a quarter is visible. Junk: less is; neither right nor wrong.
GRADES = ("good", "ok", "junk")


@dataclass(frozen=True)
class Query:
    """A query for a landmark, with its ground truth.

    Attributes:
        name: e.g. "all_souls_1".
        image: name, without extension, of the photograph that serves as the query.
        box: left, top, right and bottom of the landmark in this photograph, px.
        good, ok, junk: names of the photographs that show the landmark, by grade.
    """

    name: str
    image: str
    box: tuple[float, float, float, float]
    good: frozenset[str]
    ok: frozenset[str]
    junk: frozenset[str]


@dataclass(frozen=True)
class City:
    """The photographs and queries of one city.

    Attributes:
        images: photograph files by name without extension, in order of names.
        queries: in order of names.
    """

    images: Mapping[str, Path]
    queries: tuple[Query, ...]


def read_landmarks(folder: Path) -> dict[str, City]:
    """Read both cities, by name; the vocabulary for each is learned on the other."""
    return {city: read_city(folder / city) for city in CITIES}


def read_city(root: Path) -> City:
    """Read the photographs and the ground truth below a folder."""
    images = _named_photographs(root)
    files, queries = sorted(root.rglob("*_query.txt")), []
    if not images or not files:
        raise FileNotFoundError(f"{root} lacks photographs or queries *_query.txt: unpack them")
    for path in files:
        name = path.name.removesuffix("_query.txt")
        lists = [path.with_name(f"{name}_{grade}.txt") for grade in GRADES]
        # With or without the mark that Windows' editors put first.
        shown, *corners = path.read_text(encoding="utf-8-sig").split()
        graded = [frozenset(file.read_text(encoding="utf-8-sig").split()) for file in lists]
        image = shown.removeprefix(PREFIXES["oxford5k"])
        if len(corners) != 4 or not {image}.union(*graded) <= images.keys():
            raise ValueError(f"{path} or its lists are cut short or name a photograph that is not there")
        queries.append(Query(name, image, tuple(map(float, corners)), *graded))
    return City(images, tuple(queries))


def _photographs(folder: Path, pattern: str) -> set[Path]:
    """Return the files below a folder that match a pattern and are read as photographs."""
    return {
        path
        for path in folder.glob(pattern)
        if path.suffix.lower() in PHOTOGRAPHS
        and not path.is_dir()
        and not any(map(why_passed_over, path.relative_to(folder).parts))
    }


def _named_photographs(root: Path) -> dict[str, Path]:
    """Return the photographs below a folder by name without extension, in order of names.

    Raises:
        ValueError: two have one name.
    """
    found = _photographs(root, "**/*")
    photographs = {path for path in found if path.parent / photograph_of_mask(path.name) not in found}
    named: dict[str, Path] = {}
    for path in sorted(photographs, key=lambda path: (path.stem, path)):
        same = named.setdefault(path.stem, path)
        if same != path:
            raise ValueError(f"{same} and {path} are both {path.stem} to the ground truth: rename one")
    return named


def write_query(
    root: Path,
    name: str,
    image: str,
    box: Sequence[float],
    graded: Mapping[str, Sequence[str]],
) -> None:
    """Write a query and its lists below a city's folder.

    Args:
        root: the city's folder, named as in `CITIES`.
        name: the query's name, e.g. "all_souls_1".
        image: name, without extension, of the photograph that serves as the query.
        box: left, top, right and bottom of the landmark in this photograph, px.
        graded: names of the photographs of each of `GRADES`.

    Raises:
        OSError: the folder cannot be written.
    """
    truth = root / "gt_files"
    truth.mkdir(parents=True, exist_ok=True)
    corners = " ".join(f"{value:.1f}" for value in box)
    (truth / f"{name}_query.txt").write_text(f"{PREFIXES[root.name]}{image} {corners}\n")
    for grade, listed in graded.items():
        lines = "".join(f"{other}\n" for other in listed)
        (truth / f"{name}_{grade}.txt").write_text(lines)
