"""Where a study's three patch sets come from: embedded photographs, a folder of them, or real sets.

Cheap to import and to ask for digests; what makes or decodes pixels is imported where it is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lib.data.hpatches_sets import (
    RELEASE,
    TASKS,
    HPatchesSets,
    built_sets,
    embedded_sets,
    released_sets,
)
from lib.data.mini import MiniSize
from lib.data.mini.photographs import (
    SCENES,
    Photograph,
    folder_photographs,
    packaged_photographs,
)
from lib.data.mini.sequences_size import SequencesSize
from lib.data.patchset import PatchSet
from lib.digests import code_digest, value_digest
from lib.files import make_once

if TYPE_CHECKING:
    from lib.data.hpatches.tasks import HPatchesSplit

REAL_SETS = ("liberty", "notredame", "yosemite")
RESERVE = ("reserve-a", "reserve-b")
_GENERATOR = "lib.data.mini.writing"
_PHOTOS_PREFIX = "photos:"


@dataclass(frozen=True)
class Source:
    """Three patch sets that take the parts of Liberty, Notre Dame and Yosemite, and a reserve.

    Attributes:
        name: "mini", "photos" or "ubc".
        embedded: whether the data is generated from photographs.
        sets: names of the three, in that order.
        reserve: names of further sets, on which learning rates are set.
        folder: where generated data and decoded patches lie.
        size: of what is generated.
        photographs: of each generated set.
        real: the folder of the real sets, or None.
        own_hpatches: the study's own sets of HPatches patches; a real source may have none.
        real_hpatches: sets of real homography sequences beside them, where asked for.
        skipped: files of a folder of photographs that could not be read.
    """

    name: str
    embedded: bool
    sets: tuple[str, ...]
    reserve: tuple[str, ...]
    folder: Path
    size: MiniSize
    photographs: Mapping[str, tuple[Photograph, ...]] = field(default_factory=dict)
    real: Path | None = None
    skipped: int = 0
    own_hpatches: HPatchesSets | None = None
    real_hpatches: HPatchesSets | None = None

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels.

        Generated sets: generator's code, size and the photographs' bytes. Real sets: names and
        sizes of their files, and what the text files hold.

        Raises:
            ValueError: the source has no such set.
            FileNotFoundError: a real set's folder is missing.
        """
        self._check(name)
        if (sets := self._hpatches_of(name)) is not None:
            return sets.digest(name)
        if self.real is not None and name in self.sets:
            return _folder_digest(self.real / name)
        return value_digest(
            {
                "generator": _generator_digest(),
                "set": name,
                "size": asdict(self.size),
                "photographs": [(p.name, p.sha256) for p in self.photographs[name]],
            }
        )

    def scene_folder(self, name: str) -> Path:
        """The folder of a set's files; a generated one may not be there yet."""
        self._check(name)
        if (sets := self._hpatches_of(name)) is not None:
            return sets.root
        if self.real is not None and name in self.sets:
            return self.real / name
        return self.folder / f"{name}-{self.digest(name)}"

    def load(self, name: str) -> PatchSet | HPatchesSplit:
        """A set, generated and decoded first where it is not there yet; what an HPatches split tests
        on is a split with its tasks, everything else a set of patches.

        Raises:
            ValueError: the source has no such set, or its files are damaged.
            FileNotFoundError: a real set's files are missing.
            OSError: `folder` cannot be written.
        """
        from lib.data.phototour import read_phototour, verify_counts

        self._check(name)
        if (sets := self._hpatches_of(name)) is not None:
            return sets.load(name)
        scene = self.scene_folder(name)
        if name in self.photographs:
            _generate(scene, name, self.photographs[name], self.size)
            return read_phototour(scene, scene / "decoded", name)
        patch_set = read_phototour(scene, self.folder / "decoded", name)
        verify_counts(patch_set)
        return patch_set

    def prepare(self, names: Iterable[str], jobs: int = 1) -> None:
        """Generate and decode sets, `jobs` at a time; raises what `load` raises."""
        # Sets of one stem come of one generation.
        one_each = {getattr(self._hpatches_of(name), "stem", name): name for name in names}
        if jobs <= 1:
            for name in one_each.values():
                self.load(name)
            return
        from joblib import Parallel, delayed

        Parallel(n_jobs=jobs)(delayed(_load_only)(self, name) for name in one_each.values())

    @property
    def homographies(self) -> HPatchesSets:
        """The study's own sets of HPatches patches.

        Raises:
            FileNotFoundError: a real source has none.
        """
        if self.own_hpatches is None:
            raise FileNotFoundError(
                f"{self.real} lacks {RELEASE} or {TASKS}: unpack HPatches' patches there, and put the "
                "benchmark's tasks with splits.json beside them"
            )
        return self.own_hpatches

    @property
    def hpatches(self) -> tuple[HPatchesSets, ...]:
        """All sets of HPatches patches, the study's own first."""
        return tuple(sets for sets in (self.own_hpatches, self.real_hpatches) if sets is not None)

    def _hpatches_of(self, name: str) -> HPatchesSets | None:
        return next((sets for sets in self.hpatches if name in sets.names), None)

    def _check(self, name: str) -> None:
        known = (*self.sets, *self.reserve, *(n for sets in self.hpatches for n in sets.names))
        if name not in known:
            raise ValueError(f"no set {name!r} in source {self.name}: choose from {known}")


def open_source(
    data: str,
    folder: Path,
    size: MiniSize,
    sequences: SequencesSize = SequencesSize(),  # noqa: B008 (frozen)
    homographies: Sequence[Path] = (),
    *,
    allotment: Path | None = None,
) -> Source:
    """The source that a command line's `--data` or `--photos` means.

    Args:
        data: "mini", "photos:DIR", or a folder that holds liberty, notredame and yosemite.
        folder: where generated data and decoded patches go; made when first needed.
        size: of what is generated.
        sequences: likewise, of homography sequences.
        homographies: folders of real homography sequences, for sets "real-hp-…" beside the others.

    Raises:
        FileNotFoundError: a folder, or one of the three sets in it, is missing.
        ValueError: a folder of photographs has fewer than 5 that can be read.
    """
    folder = Path(folder)
    packaged = packaged_photographs()
    reserve = {name: packaged[name] for name in RESERVE}
    beside = built_sets("real-hp", homographies, folder, sequences) if homographies else None
    if data == "mini" or data.startswith(_PHOTOS_PREFIX):
        name, allotted, skipped = "mini", packaged, 0
        if data != "mini":
            name = "photos"
            allotted, skipped = folder_photographs(Path(data.removeprefix(_PHOTOS_PREFIX)))
        photographs = {f"{name}-{scene}": allotted[scene] for scene in SCENES}
        return Source(
            name,
            True,
            tuple(photographs),
            RESERVE,
            folder,
            size,
            {**photographs, **reserve},
            skipped=skipped,
            own_hpatches=embedded_sets(f"{name}-hp", allotted["homography"], folder, sequences),
            real_hpatches=beside,
        )
    real = Path(data)
    if not real.is_dir():
        raise FileNotFoundError(
            f"{data} is no folder: give 'mini', 'photos:DIR' or a folder that holds "
            f"{', '.join(REAL_SETS)}"
        )
    for name in REAL_SETS:
        if not (real / name).is_dir():
            raise FileNotFoundError(f"{real / name} is missing: unpack {name} there")
    unpacked = (real / RELEASE).is_dir() and (real / TASKS).is_dir()
    own = released_sets("hpatches", real, folder, sequences) if unpacked else None
    return Source(
        "ubc",
        False,
        REAL_SETS,
        RESERVE,
        folder,
        size,
        reserve,
        real,
        own_hpatches=own,
        real_hpatches=beside,
    )


def _load_only(source: Source, name: str) -> None:
    source.load(name)


@cache
def _generator_digest() -> str:
    return code_digest([_GENERATOR])


def _folder_digest(folder: Path) -> str:
    from lib.data.phototour import INFO, MATCHES

    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing: unpack the set there")
    names = sorted(p.name for p in folder.iterdir() if p.suffix in {".bmp", ".txt"})
    return value_digest(
        {
            "sizes": [(name, (folder / name).stat().st_size) for name in names],
            "texts": {
                name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
                for name in (INFO, MATCHES)
                if name in names
            },
        }
    )


def _generate(scene: Path, name: str, photographs: tuple[Photograph, ...], size: MiniSize) -> None:
    from lib.data.mini.writing import write_scene

    make_once(scene, name, lambda folder: write_scene(folder, name, photographs, size))
