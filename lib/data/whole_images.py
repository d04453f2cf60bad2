"""Sets that benchmarks of whole images are of, by name: ``mini-w1bs`` is the synthetic set of kind w1bs.

Of a kind the module `lib.data.KIND` has ``read(name, folder)``, which opens the released layout. One of
`lib.data.synthetic` makes the like of photographs: ``photographs(allotment)`` chooses them,
``write_KIND(folder, photographs, size)`` makes the set. Cheap to import and to ask for digests.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from lib.data import states
from lib.data.collection import Collection
from lib.data.synthetic.allotment import Allotment
from lib.data.synthetic.sizes import ImagesSize

# By kind the module that makes synthetic sets of it.
GENERATORS = {
    **{"oxford_affine": "posters", "w1bs": "posters"},
    **{"eth": "multiview", "imc": "multiview", "landmarks": "landmarks"},
}
KINDS = tuple(GENERATORS)
# Of a released set: what is small is told by its content, what is an image by its size.
_SMALLEST_IMAGE = 100_000


@dataclass(frozen=True)
class WholeImages(Collection):
    """The sets of one source: generated of its photographs, or as they were downloaded.

    Attributes:
        prefix: how their names begin, e.g. "mini".
        folder: where generated sets lie.
        size: of what is generated.
        allotment: of the photographs they are generated from.
        real: the folder that has released sets in folders of their kind's name; None where all are
            generated.
    """

    prefix: str
    folder: Path
    size: ImagesSize
    allotment: Allotment
    real: Path | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those there are."""
        return tuple(kind for kind in KINDS if self.real is None or (self.real / kind).is_dir())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.name(kind) for kind in self.kinds)

    def name(self, kind: str) -> str:
        """The name of its set of a kind."""
        return f"{self.prefix}-{kind}"

    def modules(self, name: str) -> tuple[str, ...]:
        kind = self._kind(name)
        generator = f"lib.data.synthetic.{GENERATORS[kind]}"
        return (f"lib.data.{kind}", *([] if self.real else [generator]))

    def content(self, name: str) -> object:
        if self.real is None:
            generator = import_module(self.modules(name)[1])
            return [name, states.of_photographs(generator.photographs(self.allotment))]
        sizes = {
            path.relative_to(self.real).as_posix(): path.stat().st_size
            for path in self.released(name).rglob("*")
            if path.is_file()
        }
        small = [path for path, size in sizes.items() if size <= _SMALLEST_IMAGE]
        return states.of_files(self.real, read=small, sized=sorted(sizes.keys() - small))

    def released(self, name: str) -> Path | None:
        return self.real and self.real / self._kind(name)

    def generate(self, folder: Path, name: str) -> None:
        generator = import_module(self.modules(name)[1])
        write = getattr(generator, f"write_{self._kind(name)}")
        write(folder, generator.photographs(self.allotment), self.size)

    def read(self, folder: Path, name: str) -> object:
        return import_module(self.modules(name)[0]).read(name, folder)

    def _kind(self, name: str) -> str:
        return name.removeprefix(f"{self.prefix}-")
