"""Synthetic sets of whole images: a function for each kind in `lib.data.whole_images`, in its layout.

**Oxford's affine set**: six images of a poster under one of five nuisances. From image to image, one of
these grows: defocus, underexposure, JPEG compression, zoom and roll, or the angle to the poster's
normal. All else stays about the same: small turns and noise are drawn for every image, except under
compression, where the first image is stored at another quality. The steps follow the description of the
released sequences, which gives numbers for compression and zoom, and degrees for viewpoint.

The difficulty was set by looking at the images and by SIFT's score (kornia's), before any network of
this study was measured on them. In percent, by Mikolajczyk's protocol for descriptors, on the packaged
photographs, with Oxford's graf for comparison:

    blur 27, light 36, compression 24, zoom and rotation 24, viewpoint 29; graf 23

**W1BS**: geometry and illumination, which can be simulated. A pair is the first and the last image of a
homography sequence as `lib.data.synthetic.sequences` makes it of a photograph: the last is seen at the
steepest angle (G) or in another light (L). Sensor (infrared, a scanner), map to photo and appearance
(seasons, years) show other things than the photograph, or the same by other physics, so those subsets
are not made. Regions are discs around detections in the first image, carried to the second with
HPatches' tough localisation error. The released regions are MSER, Hessian-Affine and FOCI, detected in
both images.

That error was chosen by SIFT alone, with the jitter and detections that HPatches' builder had before
both were fitted to the release: 18% of SIFT's matches were right and its mAUC was 3.9%. With the easy
error 84% are right, and the area under recall over 1 − precision, which ends where a descriptor's last
match is accepted, falls as descriptors get better.

**Structure from motion and the image matching challenge**: walls of pieces of photographs, on part of a
cylinder, that cameras with known poses see from several sides. The pieces face different ways, stand out
unequally and hide each other. No two views are therefore related by one homography, and views from
opposite sides share little. The difficulty was set by SIFT alone and frozen.
The first column gives the share of right matches of OpenCV's SIFT on its own keypoints: mutually nearest
under a ratio of 0.9, right within 4 px, the mean over pairs of views that share a tenth, on the packaged
photographs. A test holds it between 5% and 40%. The last column gives how many images SIFT registers in
the benchmark, on patches that are cut as for networks:

                           right          registered
    structure from motion  34% and 34%    12 and 11 of 12, on COLMAP's keypoints
    the challenge          38% and 28%    65% and 72% of its subsets' images

**Oxford5k and Paris6k**: each photograph is in only one of the two cities. It is cut into parts, some of
which are landmarks. Each landmark is in a wall between two of the other parts, the distractors, which
also have walls of their own. Rendered images are graded by how much of the landmark they show. The
difficulty was set by RootSIFT alone (kornia's, on OpenCV's DoG keypoints) and frozen before any trained
network was evaluated. RootSIFT's mean average precision on the packaged photographs' cities:

    VisualIndex 48% and 43%, 45% over both
    Hamming query expansion 57% and 55%, with multiple assignment 60% and 60%

Each function fills a folder. It raises ValueError if a photograph cannot be read or has too little
texture for regions, and OSError if the folder cannot be written.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.random import Generator
from scipy.stats.qmc import LatinHypercube

from lib.data.cameras import Camera
from lib.data.hpatches.building import plan_patches
from lib.data.hpatches.homographies import read_homography_sequence, write_homography_sequence
from lib.data.images import write_image
from lib.data.synthetic import ImagesSize, drawing, imaging, sequences
from lib.data.synthetic.imaging import Site
from lib.data.synthetic.photographs import Photograph
from lib.data.whole_images import (
    CITIES,
    COVISIBLE,
    PATCH,
    draw_bags,
    write_challenge_scene,
    write_eth_scene,
    write_query,
)
from lib.features.keypoints import transfer
from lib.features.patches import sample

# W1BS: the kind of sequence of each subset, and the most regions of a pair.
CHANGES = {"G": sequences.viewpoint_sequence, "L": sequences.illumination_sequence}
MOST = 400

# Columns and rows of pieces that a photograph in a wall is cut into.
PIECES = (3, 2)
TILT = np.deg2rad(20.0)
# Largest distance by which a piece stands out or back, in radii of the wall.
RELIEF = 0.12
# How much larger a piece is than its place, so that few gaps are left.
OVERLAP = 1.05
# Focal length, in widths of the image.
FOCAL = 1.2
PITCH = np.deg2rad((-20.0, 10.0))
ROLL = np.deg2rad(15.0)
# Distance of a camera from the wall, relative to that from which the wall fills the image's width.
DISTANCE = (0.7, 1.6)
PHOTOMETRY = {"exposure": 0.5, "gamma": 0.5, "blur": 2.0, "noise": 10.0, "jpeg_quality": (20, 80)}


@dataclass(frozen=True)
class Arrangement:
    """A kind of wall and the cameras before it.

    Attributes:
        arc: angle of the cylinder that the wall covers, radians.
        views: number of cameras.
        size: width and height of their images, px.
        azimuth: largest angle of a camera to either side of the wall's middle, radians.
        aside: how far a camera looks past the middle at most, in breadths of the wall.
    """

    arc: float
    views: int
    size: tuple[int, int]
    azimuth: float
    aside: float


# Walls of scenes (ETH, IMC) and of cities (LANDMARK, STREET), where cameras look past the middle more.
ETH = Arrangement(np.deg2rad(190.0), 12, (480, 360), np.deg2rad(65.0), 0.15)
IMC = replace(ETH, views=9, azimuth=np.deg2rad(75.0))
LANDMARK = Arrangement(np.deg2rad(110.0), 10, (320, 240), np.deg2rad(55.0), 0.55)
STREET = replace(LANDMARK, views=6)
# Scenes, and photographs in each scene or city.
PLACES, TEXTURES = ("place1", "place2"), 3
# Landmarks among the six parts of a photograph in a city, and most queries of a landmark.
LANDMARKS, QUERIES = 2, 3
# Share of a landmark that an image of each grade shows: at least the first, and below the second.
SHARES = {"good": (0.6, np.inf), "ok": (0.25, 0.6), "junk": (0.02, 0.25)}
# Texels along each side of a plane that are tested for visibility, in the form that `np.mgrid` takes.
_POINTS = 12j


def write_oxford_affine(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write a sequence for each poster and nuisance."""
    for shown, grey in posters(photographs, size.longest_side).items():
        for nuisance, steps in sequences.NUISANCES.items():
            name = f"{nuisance}_{shown}"
            write_homography_sequence(
                folder / name, *sequences.nuisance_sequence(grey, steps, drawing(size, name))
            )


def write_w1bs(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write a pair of patch columns for each poster and subset."""
    for shown, grey in posters(photographs, size.longest_side).items():
        for subset, make in CHANGES.items():
            name = f"{subset}_{shown}"
            images, homographies = make(grey, drawing(size, name))
            # `plan_patches` needs a sequence that is read from files.
            with tempfile.TemporaryDirectory() as scratch:
                write_homography_sequence(Path(scratch, name), images, homographies)
                plan = plan_patches(read_homography_sequence(Path(scratch, name)), MOST, size.seed)
            first, last = ("1", 0, np.eye(3), "ref"), ("2", -1, homographies[-1], "t1")
            for number, index, homography, file in (first, last):
                regions = plan.regions(file)
                patches = sample(images[index], homography, regions, PATCH, cv2.BORDER_REPLICATE)
                write_image(folder / subset / number / f"{shown}.bmp", patches.reshape(-1, PATCH))


def posters(photographs: Sequence[Photograph], longest_side: int) -> dict[str, np.ndarray]:
    """Return (H, W) uint8 grey values of the photographs that no network is trained on, by name.

    They are those that split a of the homography sequences tests. A single photograph is also
    trained on; of it, only the part that its tested half's viewpoint sequence shows is returned.

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
    """Arrange textures side by side around the world's y axis, and place cameras in front of them.

    Args:
        textures: (H, W) each; a texel is as large as a world unit, before `OVERLAP`.
        arrangement: of the wall and the cameras.
        rng: draws the pieces' poses, and the cameras and their photometry.
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
    """Write a scene's ``images`` and their ``cameras``, numbered from 1 on."""
    names = [f"{number:04}.png" for number in range(1, len(images) + 1)]
    by_name = dict(zip(names, images, strict=True))
    write_eth_scene(folder, by_name, dict(zip(names, cameras, strict=True)))


def covisibility(site: Site, first: int, second: int) -> float:
    """Return the smaller share of what either view sees of the wall that the other sees too."""
    shares = []
    for view, other in ((first, second), (second, first)):
        camera = site.cameras[view]
        # Every eighth pixel is enough.
        pixels = np.mgrid[4 : camera.width : 8, 4 : camera.height : 8].reshape(2, -1).T
        planes = imaging.seen_planes(site, view, pixels)
        carried, _ = imaging.carried_pixels(site, view, other, pixels, planes)
        same = imaging.seen_planes(site, other, carried) == planes
        both = same & imaging.in_image(carried, site.cameras[other])
        shares.append(both.sum() / max(np.count_nonzero(planes >= 0), 1))
    return min(shares)


def write_eth(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write images and camera files of two scenes, one for each half of the photographs."""
    for scene, shown in zip(PLACES, _halves(photographs), strict=True):
        textures = [photograph.grey(size.longest_side) for photograph in shown]
        site = plan_wall(textures, ETH, drawing(size, f"eth {scene}"))
        write_posed(folder / scene, imaging.render_views(site, textures), site.cameras)


def write_imc(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write two scenes of the challenge, to which the photographs are dealt in turn."""
    dealt = list(itertools.chain(*_halves(photographs)))
    names = [f"{view:08}" for view in range(IMC.views)]
    for number, scene in enumerate(PLACES):
        textures = [photograph.grey(size.longest_side) for photograph in dealt[number :: len(PLACES)]]
        site = plan_wall(textures, IMC, drawing(size, f"imc {scene}"))
        images = dict(zip(names, imaging.render_views(site, textures), strict=True))
        cameras = dict(zip(names, site.cameras, strict=True))
        pairs = [
            (names[second], names[first])
            for first, second in itertools.combinations(range(IMC.views), 2)
            if covisibility(site, first, second) >= COVISIBLE
        ]
        bags = draw_bags(names, np.random.default_rng([size.seed, number]))
        write_challenge_scene(folder / scene, images, cameras, pairs, bags)


def write_landmarks(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Write both cities, one for each half of the photographs.

    Each landmark is in the middle of its own wall, between two distracting parts of photographs.
    Streets are walls of distracting parts alone.
    """
    for city, shown in zip(CITIES, _halves(photographs), strict=True):
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
            _write_queries(folder / city, name, images, site)
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
    """Write a wall's images below a city's folder; return the wall and the images' names."""
    site = plan_wall(textures, arrangement, rng)
    images = [f"{folder.name}_{name}_{number:06}" for number in range(arrangement.views)]
    for image, grey in zip(images, imaging.render_views(site, textures), strict=True):
        write_image(folder / "images" / f"{image}.jpg", grey)
    return site, images


def _write_queries(city: Path, landmark: str, images: Sequence[str], site: Site) -> None:
    """Write the queries of a wall's landmark and their lists.

    Queries are the first images graded good. Images are graded by how much of the landmark they show.
    """
    shown = {image: _shown(site, view) for view, image in enumerate(images)}
    graded = {
        grade: [image for image, (share, _) in shown.items() if least <= share < below]
        for grade, (least, below) in SHARES.items()
    }
    for number, image in enumerate(graded["good"][:QUERIES], 1):
        write_query(city, f"{landmark}_{number}", image, shown[image][1], graded)


def _shown(site: Site, view: int) -> tuple[float, np.ndarray]:
    """Return the share of the middle texture that a view shows, and the (4,) box around it.

    The box is left, top, right and bottom, px.
    """
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
    """Return the first `TEXTURES` photographs of each half: the second scene's, and the third's."""
    half = (len(photographs) + 1) // 2
    return [photographs[first:][:TEXTURES] for first in (0, half)]
