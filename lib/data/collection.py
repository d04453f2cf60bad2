"""What collections of sets have in common: by a set's name its digest, its folder and the set itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lib.data import states
from lib.files import make_checked


class Collection:
    """Sets of one origin, released or generated. Subclasses are frozen dataclasses.

    Attributes:
        folder: where generated data and decoded patches lie.
        size: of what is generated, a dataclass.
    """

    folder: Path
    size: object

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its sets."""
        raise NotImplementedError

    def modules(self, name: str) -> tuple[str, ...]:
        """The code that makes and reads a set, by dotted names."""
        raise NotImplementedError

    def content(self, name: str) -> object:
        """What a set is made of, or consists of, JSON-able."""
        raise NotImplementedError

    def released(self, name: str) -> Path | None:
        """The folder of a set that was downloaded; None where it is generated."""
        raise NotImplementedError

    def generate(self, folder: Path, name: str) -> None:
        """Fill a folder with the files of a set that is generated."""
        raise NotImplementedError

    def read(self, folder: Path, name: str) -> Any:
        """A set from its folder."""
        raise NotImplementedError

    def folder_name(self, name: str) -> str:
        """How a generated set's folder is called before its digest; sets that share files share it."""
        return name

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels.

        The first 8 are of content (`states.content_half`): of generated sets size and what they are made
        of; of released ones their files. The last 8 are of the code that makes and reads them.

        Raises:
            FileNotFoundError: a folder is missing.
        """
        size = self.size if self.released(name) is None else None
        return states.digest(self.modules(name), self.content(name), size)

    def folder_of(self, name: str) -> Path:
        """The folder of a set's files; a generated one may not be there yet."""
        shared = self.folder_name(name)
        return self.released(name) or self.folder / f"{shared}-{self.digest(shared)}"

    def load(self, name: str) -> Any:
        """A set, generated first where it is not there yet. Damaged files are set aside and made anew.

        Raises:
            ValueError: released files are damaged or do not belong together.
            FileNotFoundError: files, or the photographs of a set to generate, are missing.
            OSError: `folder` cannot be written.
        """
        self.make(name)
        return self.read(self.folder_of(name), name)

    def make(self, name: str) -> None:
        """Generate a set that is to be generated, unless it is there."""
        if self.released(name) is None:
            shared = self.folder_name(name)
            make_checked(self.folder_of(name), shared, lambda new: self.generate(new, name))
