"""Collections of sets by name: patches in PhotoTour's layout, HPatches patches, and whole images.

A collection knows by a set's name its digest, its folder and the set itself. All are cheap to import and
to ask for digests; what makes or decodes pixels is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from lib.data import states
from lib.data.hpatches import RELEASE, TASKS
from lib.data.synthetic.allotment import Allotment
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sizes import SEQUENCES, ImagesSize, SequencesSize, SyntheticSize
from lib.files import make_checked

REAL_SETS = ("liberty", "notredame", "yosemite")
_READER, _GENERATOR = "lib.data.phototour", "lib.data.synthetic.writing"
_HPATCHES = ("lib.data.hpatches.classes", "lib.data.hpatches.tasks")
# With patches to train on; the others test on all their sequences, or train on what is no other kind.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN, _IMAGES = "-train", "-images"
# By kind the module that makes synthetic sets of it.
GENERATORS = {
    "oxford_affine": "posters",
    "w1bs": "posters",
    "eth": "multiview",
    "imc": "multiview",
    "landmarks": "landmarks",
}
KINDS = tuple(GENERATORS)
# Of a released set: what is small is told by its content, what is an image by its size.
_SMALLEST_IMAGE = 100_000


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


@dataclass(frozen=True)
class PatchSets(Collection):
    """Sets in PhotoTour's layout: generated of photographs, and the released ones of a real source.

    Attributes:
        photographs: of which each generated set is made, by its name.
        real: the folder that holds `REAL_SETS`; None where all is generated.
    """

    folder: Path
    size: SyntheticSize
    photographs: Mapping[str, tuple[Photograph, ...]]
    real: Path | None

    @property
    def names(self) -> tuple[str, ...]:
        return (*(REAL_SETS if self.real else ()), *self.photographs)

    def modules(self, name: str) -> tuple[str, ...]:
        return (_GENERATOR, _READER) if name in self.photographs else (_READER,)

    def content(self, name: str) -> object:
        if name in self.photographs:
            return [name, states.of_photographs(self.photographs[name])]
        return self._files[name]

    @cached_property
    def _files(self) -> Mapping[str, list]:
        patterns = {"read": ["*.txt"], "sized": ["*.bmp"]}
        return {name: states.of_files(self.real / name, **patterns) for name in REAL_SETS}

    def released(self, name: str) -> Path | None:
        return None if name in self.photographs else self.real / name

    def generate(self, folder: Path, name: str) -> None:
        from lib.data.synthetic.writing import write_scene

        write_scene(folder, name, self.photographs[name], self.size)

    def read(self, folder: Path, name: str) -> Any:
        from lib.data.phototour import read_phototour, verify_counts

        generated = name in self.photographs
        patch_set = read_phototour(folder, (folder if generated else self.folder) / "decoded", name)
        verify_counts(patch_set)
        return patch_set


@dataclass(frozen=True)
class HPatchesSets(Collection):
    """The sets of one collection of sequences: of photographs, of one's own, or the release.

    Attributes:
        stem: how the names of its sets begin, e.g. "mini-hp".
        folder: where generated data and decoded patches lie.
        size: of what is generated.
        photographs: of which sequences are made.
        homographies: folders of homography sequences of which patches are made, with one split that
            tests on all of them.
        real: the folder that holds ``hpatches-release`` and ``tasks``, as downloaded.
    """

    stem: str
    folder: Path
    size: SequencesSize
    photographs: tuple[Photograph, ...] = ()
    homographies: tuple[Path, ...] = ()
    real: Path | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of its splits."""
        return ("full",) if self.homographies else SPLITS

    def test_set(self, split: str) -> str:
        """The name of what a split tests on."""
        return f"{self.stem}-{split}"

    def train_set(self, split: str) -> str:
        """The name of what a split trains on."""
        return f"{self.stem}-{split}{_TRAIN}"

    @property
    def images(self) -> str | None:
        """The name of its sequences' images; the release has none."""
        return None if self.real else f"{self.stem}{_IMAGES}"

    @property
    def names(self) -> tuple[str, ...]:
        tested = map(self.test_set, self.splits)
        trained = (self.train_set(split) for split in self.splits if split in PARTITIONS)
        return (*tested, *trained, *filter(None, [self.images]))

    @property
    def root(self) -> Path:
        """The folder that holds ``hpatches-release`` and ``tasks``; perhaps not there yet."""
        return self.folder_of(self.stem)

    def modules(self, name: str) -> tuple[str, ...]:
        if self.photographs:
            return (*_HPATCHES, "lib.data.synthetic.sequences")
        return (*_HPATCHES, "lib.data.hpatches.building") if self.homographies else _HPATCHES

    def content(self, name: str) -> object:
        return [name, self._made_of]

    @cached_property
    def _made_of(self) -> list:
        if self.photographs:
            return states.of_photographs(self.photographs)
        if self.homographies:
            return [states.of_files(folder, read=["**/*"]) for folder in self.homographies]
        patches = states.of_files(self.real / RELEASE, read=[], sized=["*/*.png"])
        return [patches, states.of_files(self.real / TASKS, read=["**/*.csv", "**/*.json"])]

    def released(self, name: str) -> Path | None:
        return self.real

    def folder_name(self, name: str) -> str:
        return self.stem

    def generate(self, folder: Path, name: str) -> None:
        from lib.data.hpatches.building import build_hpatches

        if self.photographs:
            from lib.data.synthetic.sequences import write_hpatches

            write_hpatches(folder, self.photographs, self.size)
        else:
            build_hpatches(folder, self.homographies, self.size)

    def read(self, folder: Path, name: str) -> Any:
        """A set of a folder with ``hpatches-release`` and ``tasks``: an `HPatchesSplit` to test on, a
        `PatchSet` to train on, or `ImageSequences`.

        Raises:
            ValueError: files are damaged.
            FileNotFoundError: files are missing.
        """
        from lib.data.hpatches.classes import read_classes
        from lib.data.hpatches.homographies import read_images
        from lib.data.hpatches.release import open_sequences, read_split
        from lib.data.hpatches.tasks import open_split

        release, tasks = folder / RELEASE, folder / TASKS
        if name == self.images:
            return read_images(name, self.homographies or [folder / SEQUENCES])
        split = name.removeprefix(f"{self.stem}-").removesuffix(_TRAIN)
        if name.endswith(_TRAIN):
            trained = open_sequences(release, read_split(tasks, split).train)
            return read_classes(trained, self.folder / "decoded", name)
        tested = open_split(release, tasks, split, name)
        kept = (replace(sequence, kept=not self.real) for sequence in tested.sequences)
        return replace(tested, sequences=tuple(kept))


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
