"""Embedded pairs after W1BS: geometry and illumination, which can be simulated.

Of each photograph the first and the last image of its homography sequences
(`lib.data.synthetic.sequences`):
seen at the steepest angle (G), and in another light (L). Sensor (infrared, a scanner), map to photo and
appearance (seasons, years) show other things than the photograph, or the same by other physics, so
those subsets are not made. Regions are discs around detections in the first image, carried to the
second with an error of localisation, HPatches' tough one; the released ones are MSER, Hessian-Affine
and FOCI, found in both.

That error was settled by SIFT alone, by the jitter and detections that HPatches' builder had before both
were fitted to the release: 18% of its matches were right and its mAUC was 3.9%. With the
easy one 84% are right, and the area under recall over 1 − precision, which ends where a descriptor's
last match is accepted, falls as descriptors get better.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib.data.hpatches.building import plan_patches
from lib.data.hpatches.homographies import read_homography_sequence, write_homography_sequence
from lib.data.hpatches.release import IMAGES
from lib.data.images import write_image
from lib.data.synthetic.oxford_affine import photographs, posters
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sequences import illumination_sequence, viewpoint_sequence
from lib.data.synthetic.sizes import ImagesSize
from lib.data.w1bs import PATCH
from lib.features.patches import sample

__all__ = ["photographs", "write"]
SUBSETS = {"G": viewpoint_sequence, "L": illumination_sequence}
# Regions of a pair.
MOST = 400
# Files of a release whose regions the two images have, and the second image, of 0 to 5.
REGIONS, SECOND = ("ref", "t1"), IMAGES - 1


def write(folder: Path, photographs: Sequence[Photograph], size: ImagesSize) -> None:
    """Generate the pairs of some photographs into a folder.

    Raises:
        ValueError: a photograph cannot be read, or has too little texture for regions.
        OSError: the folder cannot be written.
    """
    import cv2

    for shown, grey in posters(photographs, size.longest_side):
        for subset, make in SUBSETS.items():
            name = f"{subset}_{shown}"
            rng = np.random.default_rng([size.seed, zlib.crc32(name.encode())])
            images, homographies = make(grey, rng)
            # Regions are planned for a sequence of files.
            with tempfile.TemporaryDirectory() as scratch:
                write_homography_sequence(Path(scratch, name), images, homographies)
                plan = plan_patches(read_homography_sequence(Path(scratch, name)), MOST, size.seed)
            to_second = homographies[SECOND - 1]
            cut = [
                sample(images[which], carried, plan.regions(file), PATCH, cv2.BORDER_REPLICATE)
                for which, carried, file in zip(
                    (0, SECOND), (np.eye(3), to_second), REGIONS, strict=True
                )
            ]
            for number, patches in enumerate(cut, 1):
                column = patches.reshape(-1, PATCH)
                write_image(folder / subset / str(number) / f"{shown}.bmp", column)
