"""The study's photographs of places, from public repositories: fetched, recognised, reduced and checked.

Three tables next to this module list the scenes with their licences, the files of the repositories, and
the photographs that the study's numbers were measured on. A file is known by what it shows, not by its
name: a repository may have renamed, added or replaced some since.
"""

from __future__ import annotations

import csv
import http
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError
from urllib.parse import quote

import cv2
import numpy as np
from PIL import Image, ImageOps

from lib.data.cameras import read_strecha_camera, read_strecha_cameras
from lib.data.fetching import download
from lib.data.images import read_image
from lib.data.scenes.places import (
    CAMERAS,
    IMAGES,
    LIMITS,
    PLACES,
    ROLES,
    SHARED,
    image_files,
    read_roles,
)
from lib.files import make_once, sha256, write_bytes

REPOSITORIES = "https://raw.githubusercontent.com/"
# A photograph is known by the mean grey values of a grid of so many blocks a side. Another decoder or
# another reduction changes a mean by 1 at most; to another photograph of the scene, one of them differs
# by 6 or more.
BLOCKS, MOST_DIFFERENCE = 8, 3
# Reduced photographs keep their shape but for the rounding to whole pixels.
_SAME_SHAPE = 0.01
# Classes of each place, so that networks are trained on equally many: those of Rock, the smallest place
# to train on (results/reference/places).
MOST_CLASSES = 3662
# How much of each place is matched, so that a run that is tested on all ten places describes 200,000
# keypoints in place of 745,000. Fewer photographs leave few pairs.
MOST_IMAGES, MOST_KEYPOINTS = 10, 1000
_CAMERA = ".camera"
_TABLES = Path(__file__).parent


@dataclass(frozen=True)
class PublicFile:
    """A file of a public repository at a commit: a photograph, or a camera of Strecha et al."""

    repository: str
    commit: str
    path: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def address(self) -> str:
        """The address after that of the server."""
        return f"{self.repository}/{self.commit}/{quote(self.path)}"


@dataclass(frozen=True)
class RecordedPhotograph:
    """A photograph as the study's numbers were measured on it.

    Attributes:
        name: its file's name.
        size: width and height, px.
        means: mean grey values of `BLOCKS` by `BLOCKS` blocks, row by row.
        sha256: of its file.
    """

    name: str
    size: tuple[int, int]
    means: bytes
    sha256: str


@dataclass(frozen=True)
class PublicScene:
    """A scene whose photographs are in public repositories.

    Attributes:
        name, place, role: as in ``scenes.json``.
        evidence: whether it is one of those that the study's evidence is about.
        quality: JPEG quality of the reduced photographs; None keeps the files as they are.
        optimised: whether their Huffman tables are the smallest.
        keeps_exif: whether they keep their EXIF.
        author, licence, address: whose the photographs are, their terms, and where these are stated.
        files: where the photographs and cameras are, the likeliest first.
        photographs: what must be found in them.
    """

    name: str
    place: str
    role: str
    evidence: bool
    quality: int | None
    optimised: bool
    keeps_exif: bool
    author: str
    licence: str
    address: str
    files: tuple[PublicFile, ...]
    photographs: tuple[RecordedPhotograph, ...]


def public_scenes() -> tuple[PublicScene, ...]:
    """Return the scenes of the tables, in the order in which ``scenes.json`` lists their places."""
    files: dict[str, list[PublicFile]] = {}
    for row in _rows("public_files.csv"):
        files.setdefault(row.pop("scene"), []).append(PublicFile(**row))
    photographs: dict[str, list[RecordedPhotograph]] = {}
    for row in _rows("public_photographs.csv"):
        size, means = (int(row["width"]), int(row["height"])), bytes.fromhex(row["means"])
        photograph = RecordedPhotograph(row["name"], size, means, row["sha256"])
        photographs.setdefault(row["scene"], []).append(photograph)
    return tuple(
        PublicScene(
            name=row["scene"],
            place=row["place"],
            role=row["role"],
            evidence=row["evidence"] == "yes",
            quality=int(row["quality"]) if row["quality"] else None,
            optimised=row["optimised"] == "yes",
            keeps_exif=row["keeps_exif"] == "yes",
            author=row["author"],
            licence=row["licence"],
            address=row["address"],
            files=tuple(files[row["scene"]]),
            photographs=tuple(photographs[row["scene"]]),
        )
        for row in _rows("public.csv")
    )


def fetch_scene(
    folder: Path, scene: PublicScene, server: str = REPOSITORIES, keep_originals: bool = False
) -> None:
    """Fetch a scene's photographs and cameras into a folder; check one that is there and leave it alone.

    The repositories' files are kept in ``FOLDER.originals`` until the scene is whole. If the download
    stops for any reason, Ctrl-C included, the same call continues from there.

    Args:
        folder: the scene's folder; parent folders are made if missing.
        scene: what to fetch.
        server: the http address in front of ``OWNER/REPOSITORY/COMMIT/PATH``.
        keep_originals: whether to keep the repositories' files once the scene is in place.

    Raises:
        ValueError: a photograph or camera cannot be found, a file is no image, or the existing folder is
            not as expected.
        OSError: the server cannot be reached, or the folder cannot be written.
    """
    originals = folder.with_name(f"{folder.name}.originals")
    if not folder.exists():
        make_once(folder, folder.name, partial(_obtain, scene, originals, server))
        if not keep_originals:
            shutil.rmtree(originals, ignore_errors=True)
    same = check_scene(folder, scene)
    count = len(scene.photographs)
    print(f"{folder}: whole, {count} photographs, {same} of them the study's bit by bit", flush=True)


def check_scene(folder: Path, scene: PublicScene) -> int:
    """Check a scene's folder, and return how many photographs are bit by bit those of the study.

    Raises:
        ValueError, FileNotFoundError: a photograph or camera is missing or damaged, or has another size,
            or there are others besides.
    """
    images = image_files(folder)
    expected = {photograph.name: photograph for photograph in scene.photographs}
    if odd := sorted(expected.keys() ^ {image.name for image in images}):
        names = ", ".join(odd)
        raise ValueError(f"{folder / IMAGES}: missing, or not of this scene: {names}: remove {folder}")
    for image in images:
        if (size := read_image(image).size) != expected[image.name].size:
            raise ValueError(f"{image} is {size} px, not {expected[image.name].size}: remove {folder}")
    if any(file.name.endswith(_CAMERA) for file in scene.files):
        read_strecha_cameras(images, folder / CAMERAS)
    return sum(sha256(image) == expected[image.name].sha256 for image in images)


def write_roles(home: Path, scenes: Iterable[PublicScene]) -> None:
    """Enter the public scenes that are in a folder into its ``scenes.json``; keep what it says already.

    If one of them is a place of the evidence to train on, each place's classes are limited to
    `MOST_CLASSES`, its matched images to `MOST_IMAGES` and their keypoints to `MOST_KEYPOINTS`, unless
    the file has a limit of its own.

    Args:
        home: the folder of scenes.
        scenes: all public scenes; those without a folder are passed over.

    Raises:
        ValueError: an existing ``scenes.json`` is damaged.
        OSError: it cannot be written.
    """
    file = home / PLACES
    try:
        held = read_roles(file) if file.exists() else {}
        places = {place: list(names) for place, names in held.get("places", {}).items()}
        role_of = {place: role for role in ROLES for place in held.get(role, ())}
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error}): correct or remove it") from error
    there = [scene for scene in scenes if (home / scene.name).is_dir()]
    for scene in there:
        names = places.setdefault(scene.place, [])
        names += [scene.name] * (scene.name not in names)
        role_of.setdefault(scene.place, scene.role)
    # The order counts: a search trains on the first place. It must not depend on what was fetched first.
    public = dict.fromkeys(scene.place for scene in there)
    order = [*(place for place in places if place not in public), *public]
    roles = {role: [place for place in order if role_of.get(place) == role] for role in ROLES}
    content = {**held, "places": {place: places[place] for place in order}, **roles}
    if any(scene.evidence and scene.role == ROLES[0] for scene in there):
        for limit, most in zip(LIMITS, (MOST_CLASSES, MOST_IMAGES, MOST_KEYPOINTS), strict=True):
            content.setdefault(limit, most)
    if content != held:
        write_bytes(file, (json.dumps(content, indent=2) + "\n").encode())


def write_shared_matches(home: Path, scenes: Iterable[PublicScene]) -> None:
    """Put the study's count of matches between scenes, which takes minutes, beside all scenes of the
    evidence; an existing file is kept.

    It is read only if the scenes hold the study's photographs file by file; others are matched anew.
    """
    whole = all((home / scene.name).is_dir() for scene in scenes if scene.evidence)
    if whole and not (home / SHARED).exists():
        write_bytes(home / SHARED, (_TABLES / "public_shared.json").read_bytes())


def _rows(table: str) -> Iterator[dict[str, str]]:
    with (_TABLES / table).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _obtain(scene: PublicScene, originals: Path, server: str, part: Path) -> None:
    """Fill an empty folder with a scene."""
    originals.mkdir(parents=True, exist_ok=True)
    wanted = {photograph.name: photograph for photograph in scene.photographs}
    sizes = {photograph.name: photograph.size for photograph in scene.photographs}
    absent, strange = [], []
    (part / IMAGES).mkdir()
    for file in scene.files:
        is_camera = file.name.endswith(_CAMERA)
        if not (wanted or is_camera):
            continue
        url = f"{server.rstrip('/')}/{file.address}"
        original = originals / f"{file.commit[:8]}-{file.name}"
        if not (original.exists() or _downloaded(url, original)):
            absent.append(url)
            continue
        try:
            if is_camera:
                read_strecha_camera(original, sizes[file.name.removesuffix(_CAMERA)])
                (part / CAMERAS).mkdir(exist_ok=True)
                shutil.copyfile(original, part / CAMERAS / file.name)
                continue
            image = read_image(original)
        except ValueError as error:
            # A page of the network's own, say. The next call fetches the file anew.
            original.unlink()
            raise ValueError(f"{url} cannot be used ({error}): run again to fetch it anew") from error
        if (match := _recognised(image, wanted)) is None:
            strange.append(url)
            continue
        view, photograph = match
        _write_reduced(part / IMAGES / photograph.name, original, view, photograph.size, scene)
        del wanted[photograph.name]
    lacking = [*wanted, *(PurePosixPath(url).name for url in absent if url.endswith(_CAMERA))]
    if lacking:
        reasons = {"not on the server": absent, "show something else": strange}
        told = "; ".join(f"{reason}: {', '.join(urls)}" for reason, urls in reasons.items() if urls)
        raise ValueError(f"{scene.name} lacks {', '.join(lacking)} ({told})")


def _downloaded(url: str, original: Path) -> bool:
    """Fetch a file, and return whether the server has it; other failures are raised."""
    try:
        download(url, original)
    except OSError as error:
        cause = error.__cause__
        if isinstance(cause, HTTPError) and cause.code == http.HTTPStatus.NOT_FOUND:
            return False
        raise
    return True


def _recognised(
    image: Image.Image, wanted: Mapping[str, RecordedPhotograph]
) -> tuple[Image.Image, RecordedPhotograph] | None:
    """Return the recorded photograph that an image shows, and the image in the recorded orientation.

    The study's photographs were stored turned as their camera marked them, or not; both are tried.
    """
    for view in (image.convert("RGB"), ImageOps.exif_transpose(image).convert("RGB")):
        grey = cv2.cvtColor(np.asarray(view), cv2.COLOR_RGB2GRAY)
        means = cv2.resize(grey, (BLOCKS, BLOCKS), interpolation=cv2.INTER_AREA).ravel().astype(int)
        near = []
        for photograph in wanted.values():
            width, height = photograph.size
            difference = np.abs(means - np.frombuffer(photograph.means, np.uint8)).max()
            shape = view.width * height / (view.height * width)
            if difference <= MOST_DIFFERENCE and abs(shape - 1) <= _SAME_SHAPE:
                near.append((difference, photograph.name))
        if near:
            return view, wanted[min(near)[1]]
    return None


def _write_reduced(
    path: Path, original: Path, image: Image.Image, size: tuple[int, int], scene: PublicScene
) -> None:
    """Write a photograph as the study's were: reduced by area averaging, or the file as it is."""
    if scene.quality is None:
        shutil.copyfile(original, path)
        return
    pixels = cv2.resize(np.asarray(image), size, interpolation=cv2.INTER_AREA)
    exif = image.info.get("exif", b"") if scene.keeps_exif else b""
    options = {"quality": scene.quality, "optimize": scene.optimised, "exif": exif}
    Image.fromarray(pixels).save(path, "JPEG", **options)
