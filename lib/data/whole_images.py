"""Sets that benchmarks of whole images are of, by name: ``mini-w1bs`` is the embedded set of kind w1bs.

A kind is two modules of one name: `lib.data.KIND`, whose ``read(name, folder)`` opens the released
layout, and `lib.data.synthetic.KIND`, which makes the like of photographs:
``photographs(allotment)`` says of
which, ``write(folder, photographs, size)`` makes it. Cheap to import and to ask for digests.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from lib.data import states
from lib.data.synthetic.allotment import Allotment
from lib.data.synthetic.photographs import Photograph
from lib.files import make_checked

KINDS = ("oxford_affine", "w1bs", "eth", "imc", "landmarks")
# Of a released set: what is small is told by its content, what is an image by its size.
_SMALLEST_IMAGE = 100_000


@dataclass(frozen=True)
class ImagesSize:
    """Size of what is generated.

    Attributes:
        longest_side: px; larger photographs are reduced to it.
        seed: of everything drawn.
    """

    longest_side: int = 640
    seed: int = 0


@dataclass(frozen=True)
class WholeImages:
    """The sets of one source: generated of its photographs, or as they were downloaded.

    Attributes:
        stem: how their names begin, e.g. "mini".
        folder: where generated sets lie.
        size: of what is generated.
        allotment: of the photographs it is generated from.
        real: the folder that has released sets in folders of their kind's name; None where all is
            generated.
    """

    stem: str
    folder: Path
    size: ImagesSize
    allotment: Allotment
    real: Path | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those there are."""
        return tuple(of for of in KINDS if self.real is None or (self.real / of).is_dir())

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its sets."""
        return tuple(self.name(kind) for kind in self.kinds)

    def name(self, kind: str) -> str:
        """The name of its set of a kind."""
        return f"{self.stem}-{kind}"

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels."""
        kind = name.removeprefix(f"{self.stem}-")
        reader = f"lib.data.{kind}"
        if self.real is None:
            made_of = [name, states.of_photographs(self._photographs(kind))]
            return states.digest([reader, f"lib.data.synthetic.{kind}"], made_of, self.size)
        files = [path for path in (self.real / kind).rglob("*") if path.is_file()]
        small, large = [], []
        for path in files:
            told = path.relative_to(self.real).as_posix()
            (large if path.stat().st_size > _SMALLEST_IMAGE else small).append(told)
        return states.digest([reader], states.of_files(self.real, read=small, sized=large))

    def folder_of(self, name: str) -> Path:
        """The folder of a set's files; a generated one may not be there yet."""
        if self.real is not None:
            return self.real / name.removeprefix(f"{self.stem}-")
        return self.folder / f"{name}-{self.digest(name)}"

    def load(self, name: str) -> object:
        """A set as its kind's ``read`` gives it, generated first where it is not there yet.

        Raises:
            ValueError: files are damaged or do not belong together.
            FileNotFoundError: files, or the photographs of a set to generate, are missing.
            OSError: `folder` cannot be written.
        """
        kind, root = name.removeprefix(f"{self.stem}-"), self.folder_of(name)
        if self.real is None:
            generator = import_module(f"lib.data.synthetic.{kind}")
            photographs = self._photographs(kind)
            make_checked(root, name, lambda new: generator.write(new, photographs, self.size))
        return import_module(f"lib.data.{kind}").read(name, root)

    def _photographs(self, kind: str) -> tuple[Photograph, ...]:
        return import_module(f"lib.data.synthetic.{kind}").photographs(self.allotment)
