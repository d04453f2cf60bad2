"""Sets of HPatches patches by name: the real release, embedded sequences, or one's own homographies.

``STEM-a`` is what split a tests on, with its tasks; ``STEM-a-train`` is what it trains on, in classes
of 16 patches; ``STEM-images`` are the sequences that patches are cut of. Cheap to import and to ask for
digests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lib.data import states
from lib.data.hpatches import RELEASE, TASKS
from lib.data.patchset import PatchSet
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sizes import SequencesSize
from lib.files import make_checked

if TYPE_CHECKING:
    from lib.data.hpatches.images import ImageSequences
    from lib.data.hpatches.tasks import HPatchesSplit

_READERS = ("lib.data.hpatches.classes", "lib.data.hpatches.tasks")
# With patches to train on; the others test on all their sequences, or train on what is no other kind.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN, _IMAGES = "-train", "-images"


@dataclass(frozen=True)
class HPatchesSets:
    """The sets of one collection of sequences: of photographs, of one's own, or the release.

    Attributes:
        stem: how the names of its sets begin, e.g. "mini-hp".
        folder: where generated data and decoded patches lie.
        size: of what is generated.
        photographs: of which sequences are made.
        homographies: folders of homography sequences of which patches are made, with one split that
            tests on all of them.
        real: the folder that holds ``hpatches-release`` and ``tasks``, as downloaded.

    Raises:
        FileNotFoundError: a folder of homography sequences is missing.
    """

    stem: str
    folder: Path
    size: SequencesSize
    photographs: tuple[Photograph, ...] = ()
    homographies: tuple[Path, ...] = ()
    real: Path | None = None

    def __post_init__(self) -> None:
        for path in self.homographies:
            if not path.is_dir():
                raise FileNotFoundError(f"{path} is no folder: give one that holds homography sequences")

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
        """Of all its sets."""
        trained = [self.train_set(split) for split in self.splits if split in PARTITIONS]
        images = [self.images] if self.images else []
        return (*(self.test_set(split) for split in self.splits), *trained, *images)

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels.

        The first 8 are of content: size, and hashes of the photographs or of the homography sequences'
        files; of the release names and sizes of its files and what the tasks hold, looked at once for
        each object. The last 8 are of the code that makes and reads it.

        Raises:
            FileNotFoundError: a folder is missing.
        """
        return states.digest(self._modules, [name, self._content], self.size)

    @property
    def _modules(self) -> tuple[str, ...]:
        if self.photographs:
            return (*_READERS, "lib.data.synthetic.sequences")
        return (*_READERS, "lib.data.hpatches.packing") if self.homographies else _READERS

    @cached_property
    def _content(self) -> list:
        if self.photographs:
            return states.of_photographs(self.photographs)
        if self.homographies:
            return [states.of_files(folder, read=["**/*"]) for folder in self.homographies]
        patches = states.of_files(self.real / RELEASE, read=[], sized=["*/*.png"])
        tasks = states.of_files(self.real / TASKS, read=["**/*.csv", "**/*.json"])
        return [patches, tasks]

    @property
    def root(self) -> Path:
        """The folder that holds ``hpatches-release`` and ``tasks``; perhaps not there yet."""
        return self.real or self.folder / f"{self.stem}-{self.digest(self.stem)}"

    def load(self, name: str) -> HPatchesSplit | PatchSet | ImageSequences:
        """A set, generated first where it is not there yet.

        Raises:
            ValueError: files are damaged, or the split trains on nothing.
            FileNotFoundError: files are missing.
            OSError: `folder` cannot be written.
        """
        from lib.data.hpatches.classes import read_classes
        from lib.data.hpatches.images import read_images
        from lib.data.hpatches.kept import Kept
        from lib.data.hpatches.release import open_sequences, read_split
        from lib.data.hpatches.tasks import open_split

        self.make()
        if name == self.images:
            from lib.data.synthetic.sequences import SEQUENCES

            return read_images(name, self.homographies or [self.root / SEQUENCES])
        split = name.removeprefix(f"{self.stem}-").removesuffix(_TRAIN)
        if not name.endswith(_TRAIN):
            opened = open_split(self.root / RELEASE, self.root / TASKS, split, name)
            if self.real:
                return opened
            kept = (Kept(of.name, of.folder, of.count) for of in opened.sequences)
            return replace(opened, sequences=tuple(kept))
        sequences = read_split(self.root / TASKS, split).train
        if not sequences:
            raise ValueError(f"{self.root / TASKS}: split {split} trains on no sequence")
        return read_classes(
            open_sequences(self.root / RELEASE, sequences), self.folder / "decoded", name
        )

    def make(self) -> None:
        """Generate what is to be generated, unless it is there."""
        if self.real is None:
            make_checked(self.root, self.stem, self._generate)

    def _generate(self, folder: Path) -> None:
        if self.photographs:
            from lib.data.synthetic.sequences import write_hpatches

            write_hpatches(folder, self.photographs, self.size)
        else:
            from lib.data.hpatches.packing import build_hpatches

            build_hpatches(folder, self.homographies, self.size)
