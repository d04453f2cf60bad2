"""A photograph of which embedded data is made: its file, or what is on record of it."""

from __future__ import annotations

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
        import cv2

        if self.path is None:
            raise FileNotFoundError(
                f"the photograph {self.name} (SHA-256 {self.sha256[:16]}…) is not here, and data is "
                "to be made of it: give the folder that holds it with --photos"
            )
        data = np.frombuffer(self.path.read_bytes(), np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE) if len(data) else None
        if image is None:
            raise ValueError(f"{self.path} is no image that can be read: remove or replace it")
        factor = longest_side / max(image.shape)
        if factor < 1:
            size = (round(image.shape[1] * factor), round(image.shape[0] * factor))
            image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        return image
