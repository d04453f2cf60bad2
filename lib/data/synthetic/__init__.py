"""Homography sequences of photographs, and the sets of whole images that are made of them.

The modules: `photographs` (those that packages install), `imaging` (cameras in front of a poster, and
the images they take), `sequences` (homography sequences after HPatches, and of other nuisances),
`whole_images` (Oxford's affine set and W1BS). This module defines the sizes and the random generators.
"""

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

# Folder of the generated homography sequences, beside the patches cut from them.
SEQUENCES = "sequences"


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
    """Size of the sets of whole images that are made here.

    Attributes:
        longest_side: px; larger photographs are reduced to it.
        seed: seed of all random draws.
    """

    longest_side: int = 640
    seed: int = 0


def drawing(size: SequencesSize | ImagesSize, purpose: str) -> Generator:
    """Return a generator for one purpose, seeded by the size's seed and the purpose."""
    return np.random.default_rng([size.seed, zlib.crc32(purpose.encode())])
