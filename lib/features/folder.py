"""Describe and match a folder of images; write files that hloc and COLMAP can use.

All files are checked before the first image is described, and unusable ones are set aside. Features are
saved image by image, so that a stopped run can continue.
"""

import hashlib
import io
import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, combinations
from numbers import Real
from pathlib import Path

import h5py
import numpy as np
from PIL import ExifTags
from torch import nn
from tqdm import tqdm

from lib.data.colmap import DATABASE
from lib.data.images import (
    FLIPPED,
    FOCAL_LENGTHS,
    MIRRORED,
    TRANSPOSED,
    fault_of_pages,
    read_grey,
    read_image,
    stated_focal_lengths,
)
from lib.features import files
from lib.features.detectors import SMALLEST_SIDE, Detector
from lib.features.files import FEATURES, MATCHES, PAIRS, Pairs
from lib.features.matches import RATIO, match, similarity
from lib.features.networks import describe, own_magnification
from lib.features.patches import Describe, Features
from lib.files import (
    check_room,
    locked,
    photograph_of_mask,
    replacing,
    set_aside,
    sha256,
    why_passed_over,
    write_bytes,
)

# File of an output folder's settings and images; folder with an unfinished one's features.
STATE, PARTS = "describe.json", "parts"
# Bytes of a SHA-256.
_DIGEST = 32
# Bytes of a pair's group in a file of matches, besides its numbers.
_PAIR = 4096
# Magnifications: below the first, patches show little but blur; above the second, the whole image.
_NARROW, _WIDEST = 3, 100
# Share by which the focal lengths of one camera may differ in EXIF, where they are rounded.
_SAME_LENGTH = 0.01
# Pillow opens no larger image. Decoding one takes about 1 GB.
MOST_PIXELS = 178_000_000


@dataclass(frozen=True)
class Settings:
    """Settings of how a folder of images is described and matched.

    Attributes:
        longest_side: px to which larger images are reduced.
        magnification: half a patch's width in scales of its keypoint; None is the descriptor's own.
        device: the descriptor's.
        ratio, mutual: as `match` takes them.
        one_camera: whether one camera took all images; images of another size, or of another focal
            length in EXIF, than most are set aside.
        camera: what is known of that camera, in the form that `lib.features.files.known_camera` reads.

    Raises:
        ValueError: a value has another type, e.g. the text "false" for False.
    """

    longest_side: int = 1600
    magnification: float | None = None
    device: str = "cpu"
    ratio: float = RATIO
    mutual: bool = True
    one_camera: bool = False
    camera: str | None = None

    def __post_init__(self) -> None:
        for name in ("mutual", "one_camera"):
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"{name} is True or False, got {getattr(self, name)!r}")
        for name in ("longest_side", "magnification", "ratio"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise ValueError(f"{name} is a number, got {value!r}")


def describe_and_match(
    images: Path,
    out: Path,
    detector: Detector,
    descriptor: nn.Module | Describe,
    settings: Settings = Settings(),
    pairs: Path | None = None,
    strict: bool = False,
    log: Callable[[str], None] = print,
    cropped: bool = False,
) -> None:
    """Describe and match images; write `FEATURES`, `MATCHES`, `PAIRS` and COLMAP's `DATABASE`.

    Images whose EXIF orientation requires turning are described upright. All positions are in the pixels
    as stored, which COLMAP reads.

    Args:
        images: the folder of images.
        out: the folder to make, or one that a call with the same arguments left unfinished. The call
            then continues, and writes the same bits as if it had not been stopped.
        detector, descriptor: as `describe` takes them.
        settings: all other settings.
        pairs: a file of pairs; None pairs each image with each later one.
        strict: whether to refuse files that would otherwise be set aside.
        log: called with the files that are set aside, one per line, with a line if images are in no
            pair, or if hloc would misread names in `PAIRS`, and with the outcome.
        cropped: as `lib.features.files.known_camera` takes it.

    Raises:
        FileExistsError: `out` was made with other arguments or from other images, or is another folder.
        filelock.Timeout: another process is writing `out`.
        FileNotFoundError, ValueError: a file is missing, a value is invalid, or no pair is left.
    """
    if any(".half" not in p.name for p in out.glob("[!.]*")) and not (out / STATE).exists():
        raise FileExistsError(f"{out} is there already: name a folder that is not, or remove it")
    if settings.magnification is None:
        settings = replace(settings, magnification=own_magnification(descriptor))
    side = settings.longest_side
    allowed = {
        f"longest side must be a whole number, {SMALLEST_SIDE} or more": (
            isinstance(side, int) and side >= SMALLEST_SIDE
        ),
        f"magnification must be above 0, {_WIDEST} at most": 0 < settings.magnification <= _WIDEST,
        "ratio must be above 0, 1 at most": 0 < settings.ratio <= 1,
        "contrast must be 0 or more": detector.contrast >= 0,
    }
    if refused := [rule for rule, holds in allowed.items() if not holds]:
        raise ValueError("; ".join(refused))
    if settings.magnification < _NARROW:
        log(f"magnification below {_NARROW} is small: such patches show little but blur")
    is_known = settings.camera is not None
    sizes, problems = photographs(images, settings.one_camera or is_known, out)
    named = files.read_pairs(pairs, {*sizes, *problems}) if pairs else None
    _set_aside(problems, strict, log)
    matched = _usable_pairs(named or combinations(sizes, 2), sizes.keys())
    if named and len(matched) < len(named):
        log(f"{len(named) - len(matched)} pairs of {pairs} name files that are set aside")
    size = next(iter(sizes.values()))
    camera = files.known_camera(settings.camera, size, cropped) if is_known else None
    how = {"magnification": settings.magnification, "device": settings.device}
    describing = partial(describe, keypoints=detector, descriptor=descriptor, **how)
    digests = {name: sha256(images / name) for name in sizes}
    state = {"pairs": named, "descriptor": _behaviour(describing), "images": digests}
    with locked(out / ".lock", wait=0):
        if _is_finished(out, {**asdict(detector), **asdict(settings), "camera": camera, **state}):
            log(f"{out} is finished already")
            return
        for left_by_a_kill in out.glob("*.half.*"):
            left_by_a_kill.unlink()
        describe_file = partial(_features, longest_side=settings.longest_side, describing=describing)
        problems = _write_features(images, out, digests, describe_file, log)
        _set_aside(problems, strict, log)
        matched = _usable_pairs(matched, sizes.keys() - problems.keys())
        _write_matches(out, matched, settings)
        files.write_pairs(out / PAIRS, matched)
        if single := sorted(sizes.keys() - problems.keys() - {*chain(*matched)}):
            where = f"no pair, and so not in {files.DATABASE}"
            log(f"{len(single)} of the images described are in {where}: {single[0]} first")
        if spaced := sorted(name for name in {*chain(*matched)} if " " in name):
            log(f"{out / PAIRS}: hloc splits names at spaces, as in {spaced[0]!r}: rename the images")
        # The database has keypoints and matches, and no descriptors.
        written = sum((out / name).stat().st_size for name in (FEATURES, MATCHES))
        check_room(out / files.DATABASE, written)
        files.write_database(out, images, matched, settings.one_camera, camera)
        shutil.rmtree(out / PARTS)
    log(f"{out} is written: {len(sizes) - len(problems)} images described, {len(matched)} pairs matched")


def photographs(
    folder: Path, one_camera: bool = False, out: Path | None = None
) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
    """Check the headers of the files in a folder and its subfolders, linked ones among them.

    Args:
        folder: of the images.
        one_camera: whether images of another size or focal length than most are set aside.
        out: a folder to skip.

    Returns:
        Two mappings by name, sorted; a name is the path relative to the folder. The first has width and
        height, px, of each image that can be described, as stored. The second has the fault of each
        other file, and of each folder that is passed over.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: give one that holds images")
    names, problems = _files_below(folder.resolve(), out and out.resolve())
    by_file = {Path(name).name: name for name in names}
    sizes, groups = {}, {}
    for name in names:
        path, group = folder / name, files.group_of(name)
        if not name.isprintable():
            problems[ascii(name)] = "has a name that no file of pairs can hold: rename it"
            continue
        if masked := by_file.get(photograph_of_mask(path.name)):
            problems[name] = f"has the name of a mask of {masked}"
            continue
        try:
            image = read_image(path, header_only=True)
        except ValueError:
            unread = f"is no image that Pillow reads, or has over {MOST_PIXELS // 10**6} megapixels"
            problems[name] = f"{unread}: save it as JPEG or PNG"
            continue
        if fault := fault_of_pages(path, image):
            problems[name] = fault
        elif min(image.size) < SMALLEST_SIDE:
            problems[name] = "is {} by {} px, which is too small".format(*image.size)
        elif group in groups:
            problems[name] = f"has the same name as {groups[group]} in hloc's matches: rename it"
        elif not files.reads(path, image):
            problems[name] = f"is {image.format}, which COLMAP does not read: save it as JPEG or PNG"
        else:
            sizes[name], groups[group] = image.size, name
    if one_camera and sizes:
        usual = Counter(sizes.values()).most_common(1)[0][0]
        for name in [name for name, size in sizes.items() if size != usual]:
            problems[name] = "is {} by {} px, unlike most: another camera's".format(*sizes.pop(name))
        stated = {name: stated_focal_lengths(folder / name) for name in sizes}
        for tag in FOCAL_LENGTHS:
            lengths = {name: stated[name][tag] for name in sizes if tag in stated[name]}
            for name, most in _unlike_most(lengths).items():
                del sizes[name]
                problems[name] = (
                    f"has a {FOCAL_LENGTHS[tag]} of {lengths[name]:g} mm in EXIF, unlike most, which "
                    f"have {most:g}: zoomed, or another camera's"
                )
    return sizes, dict(sorted(problems.items()))


def _unlike_most(lengths: Mapping[str, float]) -> dict[str, float]:
    """Return, for images whose focal length is not that of most, the one that most have.

    Args:
        lengths: by image; those within `_SAME_LENGTH` of each other are alike.
    """
    counts = Counter(lengths.values())
    alike = {
        one: {other for other in counts if math.isclose(one, other, rel_tol=_SAME_LENGTH)}
        for one in counts
    }
    usual = max(counts, key=lambda one: sum(counts[other] for other in alike[one]), default=None)
    return {name: usual for name, length in lengths.items() if length not in alike[usual]}


def _files_below(root: Path, out: Path | None) -> tuple[list[str], dict[str, str]]:
    """List the files in a folder and its subfolders, and say which of these are passed over.

    Args:
        root: the folder, resolved.
        out: a folder to skip without a word, resolved.
    """
    names, passed_over, visited = [], {}, {}
    for folder, subfolders, found in os.walk(root, followlinks=True):
        real, below = Path(folder).resolve(), Path(folder).relative_to(root)
        if real == out:
            subfolders.clear()
            continue
        if real in visited:
            passed_over[below.as_posix()] = f"is the same folder as {visited[real]}"
            subfolders.clear()
            continue
        visited[real] = below.as_posix()
        left_out = {name: why for name in (*subfolders, *found) if (why := why_passed_over(name))}
        subfolders[:] = sorted(name for name in subfolders if name not in left_out)
        for name, why in left_out.items():
            passed_over[(below / name).as_posix()] = why
        names += [(below / name).as_posix() for name in found if name not in left_out]
    return sorted(names), passed_over


def _set_aside(problems: Mapping[str, str], strict: bool, log: Callable[[str], None]) -> None:
    if problems:
        lines = [f"set aside: {name} {problem}" for name, problem in problems.items()]
        text = "\n".join([*lines, f"files set aside: {len(lines)}"])
        if strict:
            raise ValueError(f"--strict refuses files that cannot be used\n{text}")
        log(text)


def _usable_pairs(pairs: Iterable[tuple[str, str]], usable: Set[str]) -> list[tuple[str, str]]:
    matched = [pair for pair in pairs if usable >= {*pair}]
    if not matched:
        raise ValueError("no two images can be matched")
    return matched


def _behaviour(describing: Callable[[np.ndarray], Features]) -> str:
    """Return a digest of the detector's and the descriptor's output for one image.

    Any fault of either thus shows before the first image of the folder.
    """
    blocks = np.random.default_rng(0).integers(0, 256, (16, 16), dtype=np.uint8)
    described = describing(np.kron(blocks, np.ones((8, 8), np.uint8)))
    # Rounded, since threads may change the last bits.
    values = np.concatenate([described.descriptors.ravel(), described.position.ravel()])
    return hashlib.sha256((values.astype(float).round(2) + 0.0).tobytes()).hexdigest()


def stated_camera(out: Path) -> str | None:
    """Return the model and parameters of the camera that a described folder was given, or None."""
    path = out / STATE
    camera = json.loads(path.read_text())["camera"] if path.is_file() else None
    return camera and ",".join(camera.values())


def check_unchanged(images: Path, out: Path) -> None:
    """Refuse to go on with images other than those that a finished folder was described from.

    Args:
        images: the folder of images.
        out: the folder made of them; one that `describe_and_match` has not made tells nothing.

    Raises:
        FileNotFoundError, ValueError: a described image is missing, or is another; the message names it.
    """
    if not (out / STATE).is_file() or not (out / FEATURES).is_file():
        return
    with h5py.File(out / FEATURES) as described:
        digests = json.loads((out / STATE).read_text())["images"]
        for name in filter(described.__contains__, digests):
            if not (path := images / name).is_file():
                raise FileNotFoundError(f"{path} is missing, of which {out} has keypoints: put it back")
            if sha256(path) != digests[name]:
                raise ValueError(
                    f"{path} has changed since {out} was described: describe the folder again, into "
                    "another, or put the old image back"
                )


def _is_finished(out: Path, state: Mapping) -> bool:
    """Return whether a folder is finished; if not, write the state that it is made with.

    Raises:
        FileExistsError: it was made with another state; an unfinished folder's images may differ.
    """
    state, path = json.loads(json.dumps(state, default=str)), out / STATE
    known, finished = json.loads(path.read_text()) if path.exists() else state, (out / DATABASE).exists()
    compared = state.keys() if finished else state.keys() - {"images"}
    if changed := ", ".join(sorted(name for name in compared if known.get(name) != state[name])):
        raise FileExistsError(
            f"{out} was made with different {changed}: name another folder, or remove it"
        )
    if not finished:
        write_bytes(path, json.dumps(state, indent=1).encode())
    return finished


def _write_features(
    images: Path,
    out: Path,
    digests: Mapping[str, str],
    describe_file: Callable[[Path], tuple[Features, float]],
    log: Callable[[str], None],
) -> dict[str, str]:
    """Write the features file of all images; return by name the faults of images without features."""
    parts, problems = {}, {}
    for name, digest in tqdm(digests.items(), "described", unit=" images", disable=None):
        part = out / PARTS / f"{hashlib.sha256(f'{name} {digest}'.encode()).hexdigest()}.part"
        try:
            if part.exists() and _kept(part) is None:
                log(f"{set_aside(part)} was damaged: {name} is described anew")
            if not part.exists():
                with h5py.File(content := io.BytesIO(), "w") as file:
                    files.write_features(file, name, *describe_file(images / name))
                write_bytes(part, hashlib.sha256(content.getvalue()).digest() + content.getvalue())
            parts[name] = part
        except ValueError as error:
            problems[name] = str(error).removeprefix(f"{images / name} ")
    check_room(out / FEATURES, sum(part.stat().st_size for part in parts.values()))
    with replacing(out / FEATURES) as half, h5py.File(half, "w") as file:
        for name, part in parts.items():
            with h5py.File(io.BytesIO(_kept(part))) as stored:
                stored.copy(name, file, name)
    return problems


def _kept(part: Path) -> bytes | None:
    """Return an image's features as they were written after their SHA-256; None if they are not."""
    content = part.read_bytes() if part.is_file() else b""
    digest, features = content[:_DIGEST], content[_DIGEST:]
    return features if hashlib.sha256(features).digest() == digest else None


def _features(
    path: Path, longest_side: int, describing: Callable[[np.ndarray], Features]
) -> tuple[Features, float]:
    """Describe an image upright; return its features at positions in the stored pixels, and how many of
    these, by the mean of both axes, one pixel is of the image that was described.

    Raises:
        ValueError: as `read_grey`; or the image is too small once reduced, or has no keypoints, e.g.
            because it has one colour.
    """
    image = read_image(path)
    orientation = image.getexif().get(ExifTags.Base.Orientation)
    grey = read_grey(path, longest_side, "turned", MOST_PIXELS)
    if min(grey.shape) < SMALLEST_SIDE:
        height, width = grey.shape
        raise ValueError(
            f"is {width} by {height} px once its longest side is {longest_side}, which is too small: "
            "raise --longest-side"
        )
    described = describing(grey)
    if not len(described):
        raise ValueError("has no keypoints")
    size, maps = described.size, described.maps
    for axis, values in enumerate((MIRRORED, FLIPPED)):
        if orientation in values:
            maps[:, axis] *= -1
            maps[:, axis, 2] += size[axis] - 1
    if orientation in TRANSPOSED:
        size, maps = size[::-1], maps[:, ::-1]
    # The first pixel's centre is at 0, 0.
    half = np.array([0.0, 0.0, 0.5])
    reductions = np.divide(image.size, size)
    maps = (maps + half) * reductions[:, None] - half
    features = replace(described, maps=maps.astype(np.float32), size=image.size)
    return features, float(reductions.mean())


def _write_matches(out: Path, pairs: Pairs, settings: Settings) -> None:
    """Write the matches file of all pairs, from the features file."""
    with h5py.File(out / FEATURES) as described:
        keypoints = {name: len(described[name]["scores"]) for pair in pairs for name in pair}
    numbers = sum(2 * keypoints[name] for name, _ in pairs)
    check_room(out / MATCHES, 4 * numbers + _PAIR * len(pairs))
    with (
        h5py.File(out / FEATURES) as described,
        replacing(out / MATCHES) as half,
        h5py.File(half, "w") as file,
    ):
        for pair in tqdm(pairs, "matched", unit=" pairs", disable=None):
            one, other = (files.read_descriptors(described, name) for name in pair)
            matches = match(one, other, settings.mutual, settings.ratio)
            files.write_matches(file, pair, matches, similarity(one, other, matches))
