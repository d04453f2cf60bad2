"""The photographs that the pinned packages install and that homography sequences are made of."""

import csv
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.files import sha256

# With each photograph's licence, as the package's documentation gives it.
PACKAGED = Path(__file__).with_name("packaged.csv")


@dataclass(frozen=True)
class Photograph:
    """A photograph's file.

    Attributes:
        name: without file extension, e.g. "rocket".
        path: of the file.
        licence: the licence's name, and the photograph's owner.
    """

    name: str
    path: Path
    licence: str = "as its owner states"

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes."""
        return sha256(self.path)

    def grey(self, longest_side: int) -> np.ndarray:
        """Read (H, W) uint8 grey values, reduced so that neither side is longer than `longest_side` px.

        Raises:
            ValueError: the file is not a readable image.
        """
        from lib.data.images import decode_grey, reduced

        image = decode_grey(self.path)
        if image is None:
            raise ValueError(f"{self.path} is no image that can be read: remove or replace it")
        return reduced(image, longest_side)


def packaged_photographs() -> tuple[Photograph, ...]:
    """Return the photographs of `PACKAGED`.

    A photograph that is missing from its package raises an error only when it is read.
    """
    photographs = []
    with PACKAGED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            # Find the package without importing it, which may be slow.
            folder = Path(importlib.util.find_spec(row["package"]).origin).parent
            photographs.append(Photograph(row["name"], folder / row["file"], row["licence"]))
    return tuple(photographs)
