"""The embedded data: textured planes in 3D made of real photographs, seen by cameras, as patches.

The parts: `photographs` (which photograph goes where), `imaging` (planes, cameras, and what these
photograph), `scenes` (sites of planes and their patches, in PhotoTour's files), `sequences`
(homography sequences after HPatches, and of other nuisances), `whole_images` (sets of whole images).
Here stand the sizes, and where all draws begin.
"""

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

# The folder of generated homography sequences, beside the patches cut of them.
SEQUENCES = "sequences"


@dataclass(frozen=True)
class SyntheticSize:
    """Size of one generated set of scenes; the defaults are the quick profile's.

    Attributes:
        points_per_photo: 3D points asked of each photograph; one with little texture yields fewer.
        pairs: matching test pairs of a scene, and as many non-matching ones.
        photos_per_site: photographs arranged in one place and seen by the same cameras; a scene
            with more photographs has several sites.
        views: cameras that look at a site, the reference view included.
        longest_side: px; larger photographs are reduced to it.
        seed: of everything drawn.
    """

    points_per_photo: int = 600
    pairs: int = 5_000
    photos_per_site: int = 3
    views: int = 8
    longest_side: int = 640
    seed: int = 0


@dataclass(frozen=True)
class SequencesSize:
    """Size of the synthetic homography sequences; the defaults are the quick profile's.

    Attributes:
        longest_side: px; larger parts of photographs are reduced to it.
        patches_per_sequence: at most so many are kept of each sequence; None keeps all.
        pairs: verification pairs of each kind (matching, intra, inter).
        queries: of the retrieval task, at most a quarter of the patches that can be one.
        distractors: of the retrieval task, or as many as there are.
        seed: of everything drawn.
    """

    longest_side: int = 640
    patches_per_sequence: int | None = 200
    pairs: int = 20_000
    queries: int = 400
    distractors: int = 2_000
    seed: int = 0


@dataclass(frozen=True)
class ImagesSize:
    """Size of the synthetic sets of whole images.

    Attributes:
        longest_side: px; larger photographs are reduced to it.
        seed: of everything drawn.
    """

    longest_side: int = 640
    seed: int = 0


def drawing(size: SyntheticSize | SequencesSize | ImagesSize, purpose: str, *numbers: int) -> Generator:
    """What is drawn for a purpose, and perhaps for one of several under one name, from a size's seed."""
    return np.random.default_rng([size.seed, zlib.crc32(purpose.encode()), *numbers])
