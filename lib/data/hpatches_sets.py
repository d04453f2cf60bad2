"""Sets of HPatches patches by name: the real release, synthetic sequences, or one's own homographies.

``STEM-a`` is what split a tests on, with its tasks; ``STEM-a-train`` is what it trains on, in classes
of 16 patches; ``STEM-images`` are the sequences that patches are cut of. Cheap to import and to ask for
digests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lib.data import states
from lib.data.collection import Collection
from lib.data.hpatches import RELEASE, TASKS
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sizes import SEQUENCES, SequencesSize

_READERS = ("lib.data.hpatches.classes", "lib.data.hpatches.tasks")
# With patches to train on; the others test on all their sequences, or train on what is no other kind.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN, _IMAGES = "-train", "-images"


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
            return (*_READERS, "lib.data.synthetic.sequences")
        return (*_READERS, "lib.data.hpatches.building") if self.homographies else _READERS

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
