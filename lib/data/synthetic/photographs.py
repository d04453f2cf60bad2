"""A photograph of which embedded data is made: its file, or what is on record of it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib.files import sha256


@dataclass(frozen=True)
class Photograph:
    """A photograph's file.

    Attributes:
        name: without ending, e.g. "astronaut".
        path: of the file; None where only its hash is known.
        licence: its name, and whose the photograph is.
        recorded: the hash of a photograph that is not here.
    """

    name: str
    path: Path | None
    licence: str
    recorded: str | None = None

    @property
    def sha256(self) -> str:
        """Hash of the file's bytes."""
        return self.recorded or sha256(self.path)

    def grey(self, longest_side: int) -> np.ndarray:
        """(H, W) uint8 grey values, reduced so that neither side is longer than `longest_side` px.

        Raises:
            FileNotFoundError: the photograph is not here.
            ValueError: the file is no image that can be read.
        """
        from lib.data.images import decode_grey, reduced

        if self.path is None:
            raise FileNotFoundError(f"photograph {self.name} is not here: give it with --photos")
        image = decode_grey(self.path)
        if image is None:
            raise ValueError(f"{self.path} is no image that can be read: remove or replace it")
        return reduced(image, longest_side)
