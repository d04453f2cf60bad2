"""Sets of HPatches patches by name: the real release, embedded sequences, or one's own homographies.

``STEM-a`` is what split a tests on, with its tasks; ``STEM-a-train`` is what it trains on, in classes
of 16 patches. Cheap to import and to ask for digests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lib.data import states
from lib.data.hpatches import RELEASE, TASKS
from lib.data.mini.photographs import Photograph
from lib.data.mini.sequences_size import SequencesSize
from lib.data.patchset import PatchSet
from lib.digests import value_digest
from lib.files import make_checked

if TYPE_CHECKING:
    from lib.data.hpatches.tasks import HPatchesSplit

_READERS = ("lib.data.hpatches.classes", "lib.data.hpatches.tasks")
# With patches to train on; the others test on all their sequences, or train on what is no other kind.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN = "-train"


@dataclass(frozen=True)
class HPatchesSets:
    """The sets of one collection of sequences.

    Attributes:
        stem: how the names of its sets begin, e.g. "mini-hp".
        splits: names of its splits.
        folder: where generated data and decoded patches lie.
        size: of what is generated.
        photographs: of which sequences are made.
        homographies: folders of homography sequences of which patches are made.
        real: the folder that holds ``hpatches-release`` and ``tasks``.
    """

    stem: str
    splits: tuple[str, ...]
    folder: Path
    size: SequencesSize
    photographs: tuple[Photograph, ...] = ()
    homographies: tuple[Path, ...] = ()
    real: Path | None = None

    def test_set(self, split: str) -> str:
        """The name of what a split tests on."""
        return f"{self.stem}-{split}"

    def train_set(self, split: str) -> str:
        """The name of what a split trains on."""
        return f"{self.stem}-{split}{_TRAIN}"

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its sets."""
        trained = [self.train_set(split) for split in self.splits if split in PARTITIONS]
        return (*(self.test_set(split) for split in self.splits), *trained)

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels.

        Generated sets: code, size, and hashes of the photographs or of the homography sequences' files.
        The release: the reader's code, names and sizes of its files, and what the tasks hold. Looked at
        once for each object.

        Raises:
            FileNotFoundError: a folder is missing.
        """
        return value_digest({"set": name, "sequences": self._sequences_digest})

    @cached_property
    def _sequences_digest(self) -> str:
        if self.photographs:
            made_of = states.of_photographs(self.photographs)
            return states.digest([*_READERS, "lib.data.mini.sequences"], made_of, self.size)
        if self.homographies:
            files = [states.of_files(folder, read=["**/*"]) for folder in self.homographies]
            return states.digest([*_READERS, "lib.data.hpatches.packing"], files, self.size)
        patches = states.of_files(self.real / RELEASE, read=[], sized=["*/*.png"])
        tasks = states.of_files(self.real / TASKS, read=["**/*.csv", "**/*.json"])
        return states.digest(_READERS, [patches, tasks])

    @property
    def root(self) -> Path:
        """The folder that holds ``hpatches-release`` and ``tasks``; perhaps not there yet."""
        return self.real or self.folder / f"{self.stem}-{self._sequences_digest}"

    def load(self, name: str) -> HPatchesSplit | PatchSet:
        """A set, generated first where it is not there yet.

        Raises:
            ValueError: files are damaged, or the split trains on nothing.
            FileNotFoundError: files are missing.
            OSError: `folder` cannot be written.
        """
        from lib.data.hpatches.classes import read_classes
        from lib.data.hpatches.release import find_split, open_sequences, read_splits
        from lib.data.hpatches.tasks import open_split

        self.make()
        split = name.removeprefix(f"{self.stem}-").removesuffix(_TRAIN)
        if not name.endswith(_TRAIN):
            return open_split(self.root / RELEASE, self.root / TASKS, split, name)
        sequences = find_split(read_splits(self.root / TASKS), split).train
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
            from lib.data.mini.sequences import write_hpatches

            write_hpatches(folder, self.photographs, self.size)
        else:
            from lib.data.hpatches.packing import build_hpatches
            from lib.data.hpatches.tasks import TaskSize

            size = self.size
            amounts = TaskSize(size.pairs, size.queries, size.distractors)
            limit = size.patches_per_sequence
            build_hpatches(folder, self.homographies, limit, amounts, size.seed)


def embedded_sets(
    stem: str, photographs: Sequence[Photograph], folder: Path, size: SequencesSize
) -> HPatchesSets:
    """Sequences made of photographs."""
    return HPatchesSets(stem, SPLITS, folder, size, tuple(photographs))


def built_sets(
    stem: str, homographies: Sequence[Path], folder: Path, size: SequencesSize
) -> HPatchesSets:
    """Patches cut from homography sequences, with one split that tests on all of them.

    Raises:
        FileNotFoundError: a folder is missing.
    """
    for path in homographies:
        if not path.is_dir():
            raise FileNotFoundError(f"{path} is no folder: give one that holds homography sequences")
    return HPatchesSets(stem, ("full",), folder, size, homographies=tuple(homographies))


def released_sets(stem: str, real: Path, folder: Path, size: SequencesSize) -> HPatchesSets:
    """The release as downloaded: ``hpatches-release`` and, beside it, the benchmark's tasks."""
    return HPatchesSets(stem, SPLITS, folder, size, real=real)
