"""Sequences whose patches stay in memory: decoding them is a third of what HPatches' tasks take."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lib.data.hpatches.release import Sequence

# Images of all sequences together: what is generated at the quick size, 200 MB.
IMAGES = 256


@dataclass(frozen=True)
class Kept(Sequence):
    """A sequence of generated patches, which nothing changes while a process reads them."""

    def patches(self, file: str) -> np.ndarray:
        """As `Sequence.patches` has it, read-only and decoded once by a process."""
        return _decoded(Sequence(self.name, self.folder, self.count), file)


@lru_cache(IMAGES)
def _decoded(sequence: Sequence, file: str) -> np.ndarray:
    patches = sequence.patches(file)
    patches.flags.writeable = False
    return patches
