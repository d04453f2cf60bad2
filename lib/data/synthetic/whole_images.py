"""Sets of whole images made of photographs: Oxford's affine set and W1BS, each in its own layout.

**Oxford's affine set**: six images of a poster under one of five nuisances. From image to image, one of
these grows: defocus, underexposure, JPEG compression, zoom and roll, or the angle to the poster's
normal. All else stays about the same: small turns and noise are drawn for every image, except under
compression, where the first image is stored at another quality. The steps follow the description of the
released sequences, which gives numbers for compression and zoom, and degrees for viewpoint.

The difficulty was set by looking at the images and by SIFT's score (kornia's), before any network of
this study was measured on them. In percent, by Mikolajczyk's protocol for descriptors, on the packaged
photographs, with Oxford's graf for comparison:

    blur 27, light 36, compression 24, zoom and rotation 24, viewpoint 29; graf 22

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

Each function fills a folder. It raises ValueError if a photograph cannot be read or has too little
texture for regions, and OSError if the folder cannot be written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from lib.data.hpatches.building import plan_patches
from lib.data.hpatches.homographies import read_homography_sequence, write_homography_sequence
from lib.data.images import write_image
from lib.data.synthetic import ImagesSize, drawing, sequences
from lib.data.synthetic.photographs import Photograph
from lib.data.whole_images import PATCH
from lib.features.patches import sample

# W1BS: the kind of sequence of each subset, and the most regions of a pair.
CHANGES = {"G": sequences.viewpoint_sequence, "L": sequences.illumination_sequence}
MOST = 400


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
