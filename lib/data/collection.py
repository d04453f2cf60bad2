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
        names: of all its sets.
        modules: by a set's name the code that makes and reads it, by dotted names.
        content: by a set's name what it is made of, or consists of, JSON-able.
        released: by a set's name the folder where it was downloaded; None where it is generated.
        generate: fills a folder with the files of a set, by folder and name.
        read: a set from its folder and name.
    """

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

    def make(self, name: str = "") -> None:
        """Generate a set that is to be generated, unless it is there; its name matters where sets do not
        share their files."""
        if self.released(name) is None:
            shared = self.folder_name(name)
            make_checked(self.folder_of(name), shared, lambda new: self.generate(new, name))
