"""The embedded data: patches of 3D planes that are textured with real photographs and seen by cameras.

The modules: `photographs` (which photograph goes where), `imaging` (planes, cameras, and the images
taken of them), `scenes` (sites of planes and their patches, in PhotoTour's files), `sequences`
(homography sequences after HPatches, and of other nuisances), `whole_images` (sets of whole images).
This module defines the sizes and the random generators.
"""

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

# Folder of the generated homography sequences, beside the patches cut from them.
SEQUENCES = "sequences"


@dataclass(frozen=True)
class SyntheticSize:
    """Size of one generated set of scenes; the defaults are the quick profile's.

    Attributes:
        points_per_photo: most 3D points per photograph; one with little texture yields fewer.
        pairs: matching test pairs per scene; there are as many non-matching ones.
        photos_per_site: photographs arranged in one place and seen by the same cameras; a scene
            with more photographs has several sites.
        views: cameras that look at a site, including the reference view.
        longest_side: px; larger photographs are reduced to it.
        seed: seed of all random draws.
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
        patches_per_sequence: most patches kept of each sequence; None keeps all.
        pairs: verification pairs of each kind (matching, intra, inter).
        queries: most queries of the retrieval task; at most a quarter of the eligible patches.
        distractors: most distractors of the retrieval task; fewer where too few patches are left.
        seed: seed of all random draws.
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
        seed: seed of all random draws.
    """

    longest_side: int = 640
    seed: int = 0


def drawing(size: SyntheticSize | SequencesSize | ImagesSize, purpose: str, *numbers: int) -> Generator:
    """Return a generator for one purpose, seeded by the size's seed, the purpose and any `numbers`."""
    return np.random.default_rng([size.seed, zlib.crc32(purpose.encode()), *numbers])
