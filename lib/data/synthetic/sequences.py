"""Homography sequences of photographs after HPatches (Balntas et al., CVPR 2017), patches and tasks.

Each photograph gives two sequences of six images. One half is a poster that six cameras see from ever
steeper angles, ``v_NAME``. Of the other half, ``i_NAME``, one camera takes six images while lamp,
exposure and gamma change. If both sequences showed the whole photograph, the distractors of retrieval
would show the very spots of its queries, and SIFT's 71% (hard jitter) would fall to 58%.

The first image shows its half and nothing else, so every region in it lies on the poster. The poster
is extended by mirroring, since jittered regions may reach slightly beyond the first image.

The difficulty was set by SIFT's matching alone (kornia's) and frozen before any trained network was
evaluated. The patch builder then had denser detections and a different jitter. Mean AP in percent at
easy, hard and tough with at most 200 patches per sequence, by the current builder:

    here, viewpoint       74.5  37.4  16.8   mean 42.9
    here, illumination    78.4  40.4  20.3   mean 46.4
    v_churchill           83.6  45.7  24.8   mean 51.4
    v_wormhole            68.7  40.4  18.1   mean 42.4
    Oxford's graf         67.0  32.7  13.1   mean 37.6

The packaged photographs are small: a sequence has 147 to 1 935 detections and 29 to 200 patches.
Matching is easier with fewer patches.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import Generator

from lib.data.hpatches.building import pack
from lib.data.hpatches.homographies import read_homography_sequence, write_homography_sequence
from lib.data.hpatches.release import Split
from lib.data.images import reduced
from lib.data.synthetic import SEQUENCES, SequencesSize, drawing, imaging
from lib.data.synthetic.imaging import Photometry
from lib.data.synthetic.photographs import Photograph
from lib.features.keypoints import local_affine

# Focal length, in lengths of the longest side.
FOCAL = 1.5
# Angles between the line of sight and the poster's normal in images 2 to 6, and their largest error.
TILTS = np.deg2rad([14.0, 24.0, 34.0, 44.0, 54.0])
TILT_SPREAD = np.deg2rad(4.0)
# The cameras of a sequence stand to one side of the poster, up to this angle above or below the horizon.
ASCENT = np.deg2rad(35.0)
# Largest roll and zoom (octaves) of image 6; images 2 to 5 get a proportional share.
ROLL = np.deg2rad(25.0)
ZOOM = 0.4
# Width of the mirrored margin, in lengths of the longest side.
MARGIN = 0.1
# Smallest ratio of short to long side of images 2 to 6; applies where the photograph is flatter.
FLATTEST = 0.75
VIEWPOINT = {"exposure": 0.15, "gamma": 0.2, "blur": 0.6, "noise": 2.0, "jpeg_quality": (75, 95)}

# The gain is drawn uniformly from STOPS instead: a normal distribution's tail would leave only white.
ILLUMINATION = {"exposure": 0.0, "gamma": 0.6, "blur": 0.6, "noise": 8.0, "jpeg_quality": (40, 90)}
STOPS = (-1.5, 0.7)
REFERENCE = {"exposure": 0.0, "gamma": 0.0, "blur": 0.0, "noise": 1.5, "jpeg_quality": (85, 95)}
# The lamp's distance from the image's middle and its height above the surface, in image diagonals.
LAMP_AWAY = (0.3, 0.8)
LAMP_HEIGHT = (0.35, 0.9)
# Grey values are encoded for display; raising them to this power gives light.
DISPLAY_GAMMA = 2.2

# Largest standard deviation of the sensor noise, grey levels.
NOISE = 2.0
# Largest error of yaw, pitch and roll in every image but the first; none under compression.
UNSTEADY = np.deg2rad(2.0)
# Settings of the first image, and those that change in images 2 to 6: standard deviation of the defocus
# (px), exposure (stops), JPEG quality, how many times smaller the poster is, and angles (degrees).
PLAIN = {"blur": 0.0, "stops": 0.0, "quality": 95, "zoom": 1.0, "roll": 0.0, "tilt": 0.0}
NUISANCES = {
    "blur": {"blur": (0.6, 1.0, 1.5, 2.0, 2.6)},
    "light": {"stops": (-0.4, -0.8, -1.2, -1.6, -2.0)},
    "compression": {"quality": (40, 20, 10, 5, 2)},
    "zoom": {"zoom": (1.1, 1.38, 1.9, 2.35, 2.8), "roll": (10, 25, 40, 60, 80)},
    "viewpoint": {"tilt": (20, 30, 40, 50, 60)},
}

# Photographs of one thing, by name; no split separates them unless there is no other thing.
ONE_THING = {"motorcycle_left": "motorcycle", "motorcycle_right": "motorcycle"}


@dataclass(frozen=True)
class Texture:
    """Two parts of a photograph that share no pixel, one for each of its two sequences.

    Attributes:
        name: unique, and valid as a file name.
        thing: textures of one thing are on the same side of a split.
        viewpoint, illumination: (H, W) uint8, the parts for ``v_NAME`` and ``i_NAME``.
    """

    name: str
    thing: str
    viewpoint: np.ndarray
    illumination: np.ndarray


def textures(photographs: Sequence[Photograph], longest_side: int) -> tuple[Texture, ...]:
    """Turn photographs into textures so that no two sequences show the same spot.

    If several photographs show one thing, each gives a different strip of it, from left to right. A
    single photograph is cut into a left and a right half, NAME_left and NAME_right. They count as two
    things, so that one can be trained on and the other tested.

    Args:
        photographs: one or more.
        longest_side: px; larger parts are reduced to it.

    Raises:
        ValueError: a photograph cannot be read.
    """
    names = _file_names([photograph.name for photograph in photographs])
    things = [ONE_THING.get(name, name) for name in names]
    if len(names) == 1:
        names = [f"{names[0]}_{side}" for side in ("left", "right")]
        things, photographs = ["one"] * 2, [*photographs] * 2
    # Strips of one thing share no spot, so splits may separate them where there is only one thing.
    parted = things if len(set(things)) > 1 else names
    made = []
    for index, (photograph, thing) in enumerate(zip(photographs, things, strict=True)):
        strips = things.count(thing)
        grey = photograph.grey(2 * strips * longest_side)
        strip = np.array_split(grey, strips, axis=1)[things[:index].count(thing)]
        halves = np.array_split(strip, 2, axis=int(np.argmax(strip.shape)))
        made.append(Texture(names[index], parted[index], *(reduced(h, longest_side) for h in halves)))
    return tuple(made)


def _file_names(names: Sequence[str]) -> list[str]:
    """Return names of letters, digits, - and _ only that differ even if case is ignored."""
    safe: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        plain = re.sub(r"[^A-Za-z0-9-]+", "_", plain).strip("_-")[:60] or "photograph"
        numbered = (f"{plain}_{number}" for number in itertools.count(2))
        unique = next(n for n in itertools.chain([plain], numbered) if n.lower() not in safe)
        safe[unique.lower()] = unique
    return list(safe.values())


def viewpoint_sequence(grey: np.ndarray, rng: Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Render a poster from six viewpoints.

    Args:
        grey: (H, W) uint8, the poster.
        rng: draws the viewpoints, and how each image is taken.

    Returns:
        Six uint8 images, the first (H, W) and taken from straight ahead; and (5, 3, 3) float64, exact
        homographies from its pixels to those of images 2 to 6, bottom right element 1.
    """
    height, width = grey.shape
    focal = FOCAL * max(grey.shape)
    size = (max(width, round(FLATTEST * height)), max(height, round(FLATTEST * width)))
    views = [imaging.orbiting_camera(focal, (width, height), focal)]
    taken = [imaging.draw_photometry(rng, **REFERENCE)]
    side = rng.choice([-1, 1])
    ascent = rng.uniform(-ASCENT, ASCENT)
    for number, tilt in enumerate(TILTS, start=1):
        share = number / len(TILTS)
        tilt += rng.uniform(-TILT_SPREAD, TILT_SPREAD)
        # Yaw and pitch together give the tilt: cos(yaw) cos(pitch) = cos(tilt).
        pitch = np.arcsin(np.sin(tilt) * np.sin(ascent))
        yaw = side * np.arccos(np.cos(tilt) / np.cos(pitch))
        roll = share * rng.uniform(-ROLL, ROLL)
        zoom = 2.0 ** (share * rng.uniform(-ZOOM, ZOOM))
        views.append(imaging.orbiting_camera(focal, size, focal / zoom, yaw, pitch, roll))
        taken.append(imaging.draw_photometry(rng, **VIEWPOINT))
    homographies = _from_first([imaging.poster_homography(width, height, focal, v) for v in views])
    light = grey.astype(np.float32) / 255
    seen = [light, *(_warp(light, homography, size) for homography in homographies)]
    return list(map(imaging.photograph_through, taken, seen)), homographies


def nuisance_sequence(
    grey: np.ndarray, steps: Mapping[str, Sequence[float]], rng: Generator
) -> tuple[list[np.ndarray], np.ndarray]:
    """Render six images of a poster under one nuisance.

    Args:
        grey: (H, W) uint8, the poster.
        steps: values in images 2 to 6 of the settings that differ from `PLAIN`.
        rng: draws signs of angles, unsteadiness and noise.

    Returns:
        Six (H, W) uint8 images, the first from straight ahead; and (5, 3, 3) float64, exact homographies
        from its pixels to those of the others, bottom right element 1.
    """
    size, focal = grey.shape[::-1], FOCAL * max(grey.shape)
    side, first = rng.choice([-1, 1], 2), _photometry(PLAIN, rng)
    views, taken = [imaging.orbiting_camera(focal, size, focal)], [first]
    for values in zip(*steps.values(), strict=True):
        step = PLAIN | dict(zip(steps, values, strict=True))
        if "quality" in steps:
            # The first image itself, stored at another quality.
            views.append(views[0])
            taken.append(replace(first, jpeg_quality=step["quality"]))
            continue
        yaw, roll = side * np.deg2rad([step["tilt"], step["roll"]])
        angles = np.array([yaw, 0, roll]) + rng.uniform(-UNSTEADY, UNSTEADY, 3)
        views.append(imaging.orbiting_camera(focal, size, focal * step["zoom"], *angles))
        taken.append(_photometry(step, rng))
    from_poster = [imaging.poster_homography(*size, focal, view) for view in views]
    seen = [_drawn(grey, homography) for homography in from_poster]
    return list(map(imaging.photograph_through, taken, seen)), _from_first(from_poster)


def _photometry(step: Mapping[str, float], rng: Generator) -> Photometry:
    noise, seed = rng.uniform(0, NOISE), rng.integers(2**31)
    return Photometry(2.0 ** step["stops"], 1.0, step["blur"], noise, seed, step["quality"])


def _from_first(from_poster: Sequence[np.ndarray]) -> np.ndarray:
    """Return (V - 1, 3, 3) homographies from the first view's pixels to the others', last element 1.

    Args:
        from_poster: (3, 3) each, from the poster's texels to the pixels of the V views.
    """
    first, *others = from_poster
    homographies = np.stack([other @ np.linalg.inv(first) for other in others])
    return homographies / homographies[:, 2:, 2:]


def _drawn(grey: np.ndarray, homography: np.ndarray) -> np.ndarray:
    """Render a poster in front of the sky, (H, W) float32 light as large as the poster's own image."""
    image = imaging.sky(*grey.shape[::-1])
    part, light, inside = imaging.warp_texture(grey, homography, image.shape)
    image[part][inside] = light[inside]
    return image


def _warp(light: np.ndarray, homography: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Render a poster and its mirrored margin as a view shows them, supersampled and averaged."""
    import cv2

    height, width = light.shape
    margin = min(round(MARGIN * max(light.shape)), height - 1, width - 1)
    wide = cv2.copyMakeBorder(light, *[margin] * 4, cv2.BORDER_REFLECT_101)
    # Samples along each side of a pixel, so that none skips texels of the photograph; at most 4.
    jacobians = local_affine(homography, imaging.corners(width, height))
    samples = int(np.clip(np.ceil(1 / np.linalg.norm(jacobians, -2, (1, 2)).min()), 1, 4))
    shift = [[1, 0, -margin], [0, 1, -margin], [0, 0, 1]]
    # The centre of a pixel is the centre of its samples.
    fine = [[samples, 0, (samples - 1) / 2], [0, samples, (samples - 1) / 2], [0, 0, 1]]
    fine_size = (samples * size[0], samples * size[1])
    drawn = imaging.sky(*fine_size)
    forward = fine @ homography @ shift
    border = cv2.BORDER_TRANSPARENT
    cv2.warpPerspective(wide, forward, fine_size, drawn, cv2.INTER_CUBIC, borderMode=border)
    return cv2.resize(drawn, size, interpolation=cv2.INTER_AREA) if samples > 1 else drawn


def illumination_sequence(grey: np.ndarray, rng: Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Render one view under six lights.

    Args:
        grey: (H, W) uint8.
        rng: draws the lamps, and how each image is taken.

    Returns:
        Six (H, W) uint8 images, the first evenly lit; and (5, 3, 3) float64, identities.
    """
    light = grey.astype(np.float32) / 255
    images = [imaging.photograph_through(imaging.draw_photometry(rng, **REFERENCE), light)]
    median = max(float(np.median(light)), 1 / 255)
    for _ in TILTS:
        lit = light * lamp_shading(grey.shape, rng)
        drawn = imaging.draw_photometry(rng, **ILLUMINATION)
        # Metered: gamma leaves the median grey value unchanged; only the exposure's error shifts it.
        gain = 2.0 ** rng.uniform(*STOPS) * median ** (1 - drawn.gamma)
        images.append(imaging.photograph_through(replace(drawn, gain=gain), lit))
    return images, np.stack([np.eye(3)] * len(TILTS))


def lamp_shading(shape: tuple[int, int], rng: Generator) -> np.ndarray:
    """Return the factors on grey values of a lamp in front of the surface, (H, W) float32, median 1.

    A small lamp at height h above a point of a matt surface lights what lies at a distance r from that
    point by h / (h^2 + r^2)^1.5.
    """
    diagonal = np.hypot(*shape)
    direction, away = rng.uniform(0, 2 * np.pi), rng.uniform(*LAMP_AWAY) * diagonal
    above = rng.uniform(*LAMP_HEIGHT) * diagonal
    y, x = (np.arange(side) - (side - 1) / 2 for side in shape)
    x, y = x - away * np.cos(direction), y[:, None] - away * np.sin(direction)
    received = (above**2 + x**2 + y**2) ** -1.5
    return ((received / np.median(received)) ** (1 / DISPLAY_GAMMA)).astype(np.float32)


def make_splits(things: Mapping[str, str]) -> dict[str, Split]:
    """Make the release's six splits.

    Splits a, b and c test about half of the textures and train on the others. Textures of one thing
    stay together, and so do the two sequences of a texture. Each texture is tested in at least one of
    the three. With only two things, two of the three are the same partition.

    ``illum`` and ``view`` test one kind and train on the other, as the release's text says (its
    ``splits.json`` lists no training sequences for them). Unlike in the release, the two kinds show the
    same photographs, though different parts of them. ``full`` tests all.

    Args:
        things: the thing that each texture shows, by texture; two different things or more.
    """
    counts = Counter(things.values())
    order = list(counts)
    splits = {}
    for index, name in enumerate("abc", 1):
        # Start at the second third, so that split a, which the notebooks use, tests three things of the
        # packaged photographs. From the first third on it would test only two, since the motorcycle has
        # two photographs.
        start = round(index * len(order) / 3) % len(order)
        turned = order[start:] + order[:start]
        before = itertools.accumulate((counts[thing] for thing in turned), initial=0)
        tested = {thing for thing, n in zip(turned[:-1], before, strict=False) if 2 * n < len(things)}
        test = _both(texture for texture, thing in things.items() if thing in tested)
        train = _both(texture for texture, thing in things.items() if thing not in tested)
        splits[name] = Split(name, test, train)
    everything = _both(things)
    lit, seen = everything[: len(things)], everything[len(things) :]
    kinds = {"illum": (lit, seen), "view": (seen, lit), "full": (everything, ())}
    return splits | {name: Split(name, *sides) for name, sides in kinds.items()}


def _both(textures: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{kind}_{texture}" for kind, texture in itertools.product("iv", textures))


def write_hpatches(folder: Path, photographs: Sequence[Photograph], size: SequencesSize) -> None:
    """Generate sequences, their patches and their tasks into a folder.

    Args:
        folder: made if missing; gets ``sequences``, ``hpatches-release``, ``tasks`` and ``build.json``.
        photographs: one or more, see `textures`.
        size: of the images, and how many patches, pairs, queries and distractors.

    Raises:
        ValueError: a photograph cannot be read, or has too little texture for patches.
        OSError: the folder cannot be written.
    """
    things, made = {}, []
    for texture in textures(photographs, size.longest_side):
        things[texture.name] = texture.thing
        for kind, grey, make in (
            ("v", texture.viewpoint, viewpoint_sequence),
            ("i", texture.illumination, illumination_sequence),
        ):
            name = f"{kind}_{texture.name}"
            sequence = make(grey, drawing(size, name))
            write_homography_sequence(folder / SEQUENCES / name, *sequence)
            made.append(read_homography_sequence(folder / SEQUENCES / name))
    # Seeded by the split's name too, so that splits that test the same sequences have different pairs.
    pack(folder, made, make_splits(things), size, partial(drawing, size))
