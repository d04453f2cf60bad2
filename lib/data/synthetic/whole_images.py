"""Synthetic sets of whole images, a function for each kind of `lib.data.whole_images`, in its layout.

**Oxford's affine set**: six images of a poster under one of five nuisances. What grows from image to
image is the defocus, the underexposure, the loss of JPEG, zoom and roll, or the angle to the poster's
normal; all else stays about as it was: small turns and noise are drawn for every image. The steps are
those that the released sequences are described by: compression and zoom are stated in numbers there,
viewpoint in degrees.

How hard they are was settled by looking at them and by SIFT's score (kornia's), before any network of
this study was measured on them. In percent, Mikolajczyk's by the protocol for descriptors, of the
packaged photographs, and Oxford's graf for comparison:

    blur 27, light 36, compression 24, zoom and rotation 24, viewpoint 29; graf 23

**W1BS**: geometry and illumination, which can be simulated. Of each photograph the first and the last
image of its homography sequences (`lib.data.synthetic.sequences`): seen at the steepest angle (G), and
in another light (L). Sensor (infrared, a scanner), map to photo and appearance (seasons, years) show
other things than the photograph, or the same by other physics, so those subsets are not made. Regions
are discs around detections in the first image, carried to the second with an error of localisation,
HPatches' tough one; the released ones are MSER, Hessian-Affine and FOCI, found in both.

That error was settled by SIFT alone, by the jitter and detections that HPatches' builder had before both
were fitted to the release: 18% of its matches were right and its mAUC was 3.9%. With the easy one 84%
are right, and the area under recall over 1 − precision, which ends where a descriptor's last match is
accepted, falls as descriptors get better.

**Structure from motion and the image matching challenge**: walls of pieces of photographs, around a part
of a cylinder, that cameras see from several sides, with known poses. The pieces face different ways,
stand out unequally and hide each other, so that no two views are related by one homography and views
from either side share little. How hard they are was settled by SIFT alone and frozen.
Of OpenCV's, on its own keypoints, which matches are right: those that are mutually nearest under a ratio
of 0.9, within 4 px, the mean over pairs of views that share a tenth, of the packaged photographs; a test
holds it between 5% and 40%. And how many images SIFT registers, by the benchmark, on patches that are
cut as networks' are:

                           right          registered
    structure from motion  34% and 34%    12 and 11 of 12, on COLMAP's keypoints
    the challenge          38% and 28%    65% and 72% of its subsets' images

**Oxford5k and Paris6k**: a photograph is in one of the two cities alone. It is cut into parts, of which
some are landmarks: each stands in a wall between two of the other parts, which distract, and walls of
these are seen elsewhere too. Photographs are graded by how much of the landmark they show. How hard they
are was settled by RootSIFT alone (kornia's, on OpenCV's DoG keypoints) and frozen before anything
trained was looked at. Its mean average precision on the packaged photographs' cities:

    VisualIndex 48% and 43%, 45% over both
    Hamming query expansion 57% and 55%, with multiple assignment 60% and 60%

Each function fills a folder, raises ValueError where a photograph cannot be read or has too little
texture for regions, and OSError where the folder cannot be written.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import h5py
import numpy as np
from numpy.random import Generator
from scipy.stats.qmc import LatinHypercube

from lib.data.cameras import write_strecha_camera
from lib.data.hpatches.building import plan_patches
from lib.data.hpatches.homographies import read_homography_sequence, write_homography_sequence
from lib.data.images import write_image
from lib.data.synthetic import ImagesSize, drawing, imaging, sequences
from lib.data.synthetic.imaging import Camera, Site
from lib.data.synthetic.photographs import Photograph
from lib.data.whole_images import COVISIBLE, PATCH
from lib.features.keypoints import transfer
from lib.features.patches import sample

# Of W1BS: what changes by subset, and regions of a pair at most.
CHANGES = {"G": sequences.viewpoint_sequence, "L": sequences.illumination_sequence}
MOST = 400

# Of a wall: columns and rows of pieces that a photograph is cut into.
PIECES = (3, 2)
TILT = np.deg2rad(20.0)
# How far a piece stands out or back, in radii of the wall.
RELIEF = 0.12
# How much larger a piece is than its place, so that few gaps are left.
OVERLAP = 1.05
# Focal length in widths of the image.
FOCAL = 1.2
PITCH = np.deg2rad((-20.0, 10.0))
ROLL = np.deg2rad(15.0)
# Of a camera from the wall, in the distance from which the wall fills the image's width.
DISTANCE = (0.7, 1.6)
PHOTOMETRY = {"exposure": 0.5, "gamma": 0.5, "blur": 2.0, "noise": 10.0, "jpeg_quality": (20, 80)}


@dataclass(frozen=True)
class Arrangement:
    """A kind of wall and the cameras before it.

    Attributes:
        arc: radians that the wall takes of the circle.
        views: how many cameras.
        size: width and height of their images, px.
        azimuth: radians that a camera stands to either side of the wall's middle at most.
        aside: how far it looks past the middle at most, in breadths of the wall.
    """

    arc: float
    views: int
    size: tuple[int, int]
    azimuth: float
    aside: float


# Of the walls of a scene, and of a city, where cameras look past the middle more often.
ETH = Arrangement(np.deg2rad(190.0), 12, (480, 360), np.deg2rad(65.0), 0.15)
IMC = replace(ETH, views=9, azimuth=np.deg2rad(75.0))
LANDMARK = Arrangement(np.deg2rad(110.0), 10, (320, 240), np.deg2rad(55.0), 0.55)
STREET = replace(LANDMARK, views=6)
# Scenes, photographs of one or of a city, and how many photographs each subset of the challenge's
# multi-view task has; its own are of 5, 10 and 25.
PLACES, TEXTURES = ("place1", "place2"), 3
BAGS = {"5bag_000": 5, "5bag_001": 5, "8bag_000": 8}
# Of each city what comes before a photograph's name in its queries.
PREFIXES = {"oxford5k": "oxc1_", "paris6k": ""}
# Of a photograph's six parts in a city how many are landmarks, and queries of one.
LANDMARKS, QUERIES = 2, 3
# Share of a landmark that a photograph of each grade shows: from the first up to below the second.
SHARES = {"good": (0.6, np.inf), "ok": (0.25, 0.6), "junk": (0.02, 0.25)}
# Texels a side of each plane at which it is asked whether they are seen, as numpy's grids take it.
_POINTS = 12j


def write_oxford_affine(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """A sequence of each poster and nuisance."""
    for shown, grey in posters(photographs, size.longest_side).items():
        for nuisance, steps in sequences.NUISANCES.items():
            name = f"{nuisance}_{shown}"
            write_homography_sequence(
                folder / name, *sequences.nuisance_sequence(grey, steps, drawing(size, name))
            )


def write_w1bs(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """A pair of each poster and subset."""
    for shown, grey in posters(photographs, size.longest_side).items():
        for subset, make in CHANGES.items():
            name = f"{subset}_{shown}"
            images, homographies = make(grey, drawing(size, name))
            # Regions are planned for a sequence of files.
            with tempfile.TemporaryDirectory() as scratch:
                write_homography_sequence(Path(scratch, name), images, homographies)
                plan = plan_patches(read_homography_sequence(Path(scratch, name)), MOST, size.seed)
            first, last = ("1", 0, np.eye(3), "ref"), ("2", -1, homographies[-1], "t1")
            for number, index, homography, file in (first, last):
                regions = plan.regions(file)
                patches = sample(images[index], homography, regions, PATCH, cv2.BORDER_REPLICATE)
                write_image(folder / subset / number / f"{shown}.bmp", patches.reshape(-1, PATCH))


def posters(photographs: Sequence[Photograph], longest_side: int) -> dict[str, np.ndarray]:
    """By name the (H, W) uint8 grey values of the photographs that split a of the homography sequences
    tests on, so that no network is trained on them.

    A photograph that is alone is trained on, too: of it the part that the viewpoint sequence of its
    tested half shows.

    Args:
        photographs: all those of the homography sequences.
        longest_side: px; larger ones are reduced to it.
    """
    cut = sequences.textures(photographs, longest_side)
    tested = sequences.make_splits({texture.name: texture.thing for texture in cut})["a"].test
    greys = [photograph.grey(longest_side) for photograph in photographs]
    if len(photographs) == 1:
        greys = [texture.viewpoint for texture in cut]
    pairs = zip(cut, greys, strict=True)
    return {texture.name: grey for texture, grey in pairs if f"v_{texture.name}" in tested}


def plan_wall(textures: Sequence[np.ndarray], arrangement: Arrangement, rng: Generator) -> Site:
    """Textures side by side around the world's y axis, and cameras before them.

    Args:
        textures: (H, W) each; a texel is as large as a world unit, before `OVERLAP`.
        arrangement: of the wall and the cameras.
        rng: the draw.
    """
    shapes = [texture.shape for texture in textures]
    radius = sum(wide for _, wide in shapes) / arrangement.arc

    def cuts(*sides: int) -> list[list[int]]:
        parts = zip(sides, PIECES, strict=True)
        return [np.linspace(0, side, n + 1).round().astype(int).tolist() for side, n in parts]

    def pose(x: float, y: float) -> tuple[list[float], np.ndarray]:
        turn = imaging.axis_rotation([0, 1, 0], -x / radius) @ imaging.random_tilt(TILT, rng)
        out = radius * (1 + RELIEF * rng.uniform(-1, 1))
        return [out * np.sin(x / radius), y, -out * np.cos(x / radius)], OVERLAP * turn

    planes = imaging.side_by_side(shapes, cuts, pose)
    focal, breadth = FOCAL * arrangement.size[0], 2 * radius * np.sin(min(arrangement.arc, np.pi) / 2)
    cameras = []
    # Stratified, so that scenes with few views are about equally hard.
    for draw in LatinHypercube(4, rng=rng).random(arrangement.views):
        yaw, roll = (2 * draw[:2] - 1) * (arrangement.azimuth, ROLL)
        pitch = PITCH[0] + draw[2] * (PITCH[1] - PITCH[0])
        distance = FOCAL * breadth * DISTANCE[0] * (DISTANCE[1] / DISTANCE[0]) ** draw[3]
        past = breadth * rng.uniform(-1, 1, 2) * (arrangement.aside, arrangement.aside / 2)
        view = focal, arrangement.size, distance, yaw, pitch, roll, [*past, -radius / 2]
        cameras.append(imaging.orbiting_camera(*view))
    return Site(planes, cameras, [imaging.draw_photometry(rng, **PHOTOMETRY) for _ in cameras])


def write_posed(folder: Path, images: Sequence[np.ndarray], cameras: Sequence[Camera]) -> None:
    """Write a scene's ``images`` with their ``cameras``, numbered from 1 on."""
    for number, (grey, camera) in enumerate(zip(images, cameras, strict=True), 1):
        name = f"{number:04}.png"
        write_image(folder / "images" / name, grey)
        write_strecha_camera(folder / "cameras" / f"{name}.camera", camera)


def covisibility(site: Site, first: int, second: int) -> float:
    """The share of what either view sees of the wall that the other sees too, the smaller of the two."""
    shares = []
    for view, other in ((first, second), (second, first)):
        camera = site.cameras[view]
        # Every eighth pixel will do.
        pixels = np.mgrid[4 : camera.width : 8, 4 : camera.height : 8].reshape(2, -1).T
        planes = imaging.seen_planes(site, view, pixels)
        carried, _ = imaging.carried_pixels(site, view, other, pixels, planes)
        same = imaging.seen_planes(site, other, carried) == planes
        both = same & imaging.in_image(carried, site.cameras[other])
        shares.append(both.sum() / max(np.count_nonzero(planes >= 0), 1))
    return min(shares)


def write_eth(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Images and camera files of two scenes, one of each half of the photographs."""
    for scene, shown in zip(PLACES, _halves(photographs), strict=True):
        textures = [photograph.grey(size.longest_side) for photograph in shown]
        site = plan_wall(textures, ETH, drawing(size, f"eth {scene}"))
        write_posed(folder / scene, imaging.render_views(site, textures), site.cameras)


def write_imc(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Two scenes of the challenge, to which the photographs are dealt in turn."""
    dealt = list(itertools.chain(*_halves(photographs)))
    names = [f"{view:08}" for view in range(IMC.views)]
    for number, scene in enumerate(PLACES):
        textures = [photograph.grey(size.longest_side) for photograph in dealt[number :: len(PLACES)]]
        site = plan_wall(textures, IMC, drawing(size, f"imc {scene}"))
        data = folder / scene / "set_100"
        for part in ("calibration", "new-vis-pairs", "sub_set"):
            (data / part).mkdir(parents=True)
        views = imaging.render_views(site, textures)
        for name, image, camera in zip(names, views, site.cameras, strict=True):
            write_image(data / "images" / f"{name}.jpg", image)
            with h5py.File(data / "calibration" / f"calibration_{name}.h5", "w") as file:
                file["K"], file["R"], file["T"] = camera.intrinsics, camera.rotation, camera.translation
        pairs = itertools.combinations(range(IMC.views), 2)
        shared = (pair for pair in pairs if covisibility(site, *pair) >= COVISIBLE)
        keys = [f"{names[second]}-{names[first]}" for first, second in shared]
        np.save(data / "new-vis-pairs" / f"keys-th-{COVISIBLE}.npy", keys)
        rng = np.random.default_rng([size.seed, number])
        for bag, count in BAGS.items():
            images = sorted(rng.choice(names, count, replace=False))
            lines = "".join(f"images/{image}.jpg\n" for image in images)
            (data / "sub_set" / f"{bag}.txt").write_text(lines)


def write_landmarks(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Both cities, one of each half of the photographs: a wall for each landmark, in the middle between
    parts of photographs that distract, and streets, walls of these alone."""
    for (city, prefix), shown in zip(PREFIXES.items(), _halves(photographs), strict=True):
        truth = folder / city / "gt_files"
        truth.mkdir(parents=True)
        landmarks: dict[str, np.ndarray] = {}
        distracting: list[np.ndarray] = []
        for photograph in shown:
            rows = np.array_split(photograph.grey(size.longest_side), 2)
            parts = [part for row in rows for part in np.array_split(row, 3, axis=1)]
            order = drawing(size, f"{city} {photograph.name}").permutation(len(parts))
            plain = re.sub(r"[^a-z0-9]+", "_", photograph.name.lower())
            landmarks |= {f"{plain}_{n}": parts[index] for n, index in enumerate(order[:LANDMARKS], 1)}
            distracting += [parts[index] for index in order[LANDMARKS:]]
        for name, part in landmarks.items():
            rng = drawing(size, f"{city} {name}")
            left, right = (distracting[k] for k in rng.choice(len(distracting), 2, replace=False))
            site, images = _write_wall(folder / city, name, [left, part, right], LANDMARK, rng)
            _write_queries(truth, name, prefix, images, site)
        for number, first in enumerate(range(0, len(distracting), 3), 1):
            rng = drawing(size, f"{city} street {number}")
            parts = distracting[first : first + 3]
            _write_wall(folder / city, f"street_{number}", parts, STREET, rng)


def _write_wall(
    folder: Path,
    name: str,
    textures: Sequence[np.ndarray],
    arrangement: Arrangement,
    rng: Generator,
) -> tuple[Site, list[str]]:
    """A wall, and the names of its images, which are written below a city's folder."""
    site = plan_wall(textures, arrangement, rng)
    images = [f"{folder.name}_{name}_{number:06}" for number in range(arrangement.views)]
    for image, grey in zip(images, imaging.render_views(site, textures), strict=True):
        write_image(folder / "images" / f"{image}.jpg", grey)
    return site, images


def _write_queries(truth: Path, landmark: str, prefix: str, images: Sequence[str], site: Site) -> None:
    """Queries for a wall's landmark, the first photographs that show it clearly, and their lists, by how
    much of it each photograph shows."""
    shown = {image: _shown(site, view) for view, image in enumerate(images)}
    graded = {
        grade: [image for image, (share, _) in shown.items() if least <= share < below]
        for grade, (least, below) in SHARES.items()
    }
    for number, image in enumerate(graded["good"][:QUERIES], 1):
        box = " ".join(f"{value:.1f}" for value in shown[image][1])
        (truth / f"{landmark}_{number}_query.txt").write_text(f"{prefix}{image} {box}\n")
        for grade, listed in graded.items():
            lines = "".join(f"{name}\n" for name in listed)
            (truth / f"{landmark}_{number}_{grade}.txt").write_text(lines)


def _shown(site: Site, view: int) -> tuple[float, np.ndarray]:
    """The share of the middle texture that a view shows, and the (4,) box around it: left, top, right
    and bottom, px."""
    camera = site.cameras[view]
    middle = [index for index, plane in enumerate(site.planes) if plane.photograph == 1]
    positions = []
    for index in middle:
        width, height = site.planes[index].width, site.planes[index].height
        texels = np.mgrid[1 : width - 2 : _POINTS, 1 : height - 2 : _POINTS].reshape(2, -1).T
        positions.append(transfer(site.homographies(view)[index], texels))
    pixels = np.concatenate(positions)
    shown = np.repeat(middle, len(texels))
    seen = imaging.in_image(pixels, camera) & (imaging.seen_planes(site, view, pixels) == shown)
    pixels = pixels[seen]
    box = np.r_[pixels.min(axis=0), pixels.max(axis=0)] if seen.any() else np.zeros(4)
    return float(seen.mean()), box


def _halves(photographs: Sequence[Photograph]) -> list[Sequence[Photograph]]:
    """The first `TEXTURES` of either half: of the second scene's photographs, and of the third's."""
    half = (len(photographs) + 1) // 2
    return [photographs[first:][:TEXTURES] for first in (0, half)]
