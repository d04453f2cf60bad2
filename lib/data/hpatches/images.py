"""Homography sequences as an evaluation gets them that finds points in their images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lib.data.hpatches.homographies import HomographySequence, read_homography_sequences

# Which two images of a sequence are matched, of 0 to 5: the reference, and the middle one of the others.
MATCHED = (0, 3)


@dataclass(frozen=True)
class ImageSequences:
    """Sequences by name, each of six images."""

    name: str
    sequences: tuple[HomographySequence, ...]


def read_images(name: str, folders: Sequence[Path]) -> ImageSequences:
    """Open sequences under a name; as `read_homography_sequences`, which may raise."""
    return ImageSequences(name, tuple(read_homography_sequences(*folders)))
