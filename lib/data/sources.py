"""Where a study's three patch sets come from: packaged photographs, a folder of them, or real sets.

Cheap to import and to ask for digests; what makes or decodes pixels is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lib.data import states
from lib.data.collection import REAL_SETS, Collection, HPatchesSets, PatchSets, WholeImages
from lib.data.hpatches import RELEASE, TASKS
from lib.data.manifest import Manifest, read_manifest
from lib.data.scenes.sets import SceneSets
from lib.data.synthetic.allotment import (
    CONFIRMATION,
    HOMOGRAPHY,
    RESERVE,
    SCENES,
    Allotment,
    folder_photographs,
    packaged_photographs,
)
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sizes import ImagesSize, SequencesSize, SyntheticSize

_UNION = "lib.data.union"
_PHOTOS, _SCENES = "photos", "scenes"
# Between names in that of a union, and the split of HPatches that a part of it is trained on by.
_AND, _SPLIT = "+", "a"


@dataclass(frozen=True)
class Source:
    """Three patch sets that take the parts of Liberty, Notre Dame and Yosemite, and reserves.

    Attributes:
        name: "mini", "photos", "scenes" or "ubc".
        folder: where generated data and decoded patches lie.
        size: of what is generated.
        allotment: of the photographs that data is generated from.
        real: the folder of the real sets; None where all is generated.
        own_hpatches: the study's own sets of HPatches patches; a real source may have none.
        real_hpatches: sets of real homography sequences beside them, where asked for.
        own_images: the study's own sets of whole images; a real source may have none.
        real_images: real ones beside them, where asked for.
        scenes: the sets of real scenes, which a source of them alone has.
        skipped: files of a folder of photographs that are none, and why.
    """

    name: str
    folder: Path
    size: SyntheticSize
    allotment: Allotment
    real: Path | None = None
    own_hpatches: HPatchesSets | None = None
    real_hpatches: HPatchesSets | None = None
    own_images: WholeImages | None = None
    real_images: WholeImages | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    scenes: SceneSets | None = None

    @property
    def embedded(self) -> bool:
        """Whether the data is generated from photographs."""
        return self.real is None and self.scenes is None

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the three, in that order; of scenes, the places to train on, however many."""
        if self.scenes is not None:
            return self.scenes.places.train_and_test
        return tuple(f"{self.name}-{scene}" for scene in SCENES) if self.embedded else REAL_SETS

    @property
    def tested(self) -> tuple[str, ...]:
        """`sets`, then the places that only test."""
        return (*self.sets, *(self.scenes.places.test if self.scenes else ()))

    @property
    def reserve(self) -> tuple[str, ...]:
        """Names of two further sets for searches, e.g. of learning rates; of five photographs one."""
        if self.scenes is not None:
            return self.scenes.places.reserve
        return tuple(part for part in RESERVE if part in self.allotment)

    @property
    def confirmation(self) -> tuple[str, ...]:
        """Names of two more that nothing reads before a last confirmation, or none."""
        return tuple(part for part in CONFIRMATION if part in self.allotment)

    @property
    def photographs(self) -> Mapping[str, tuple[Photograph, ...]]:
        """Of each generated set of patches."""
        if self.scenes is not None:
            return {}
        scenes = {f"{self.name}-{scene}": self.allotment[scene] for scene in SCENES if self.embedded}
        return scenes | {part: self.allotment[part] for part in (*self.reserve, *self.confirmation)}

    @cached_property
    def collections(self) -> tuple[Collection | SceneSets, ...]:
        """All that sets are among."""
        patches = self.scenes or PatchSets(self.folder, self.size, self.photographs, self.real)
        return (patches, *self.hpatches, *self.whole_images)

    def collection(self, name: str) -> Collection | SceneSets:
        """The collection that a set is in.

        Raises:
            ValueError: the source has no such set.
        """
        for collection in self.collections:
            if name in collection.names:
                return collection
        known = ", ".join(name for collection in self.collections for name in collection.names)
        raise ValueError(f"no set {name!r} in source {self.name}: choose from {known}")

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another, as `Collection.digest` says;
        of a union, of its parts' digests.

        Raises:
            ValueError: the source has no such set.
            FileNotFoundError: a real set's folder is missing.
        """
        if _AND in name:
            return states.union_digest([_UNION], [self.digest(part) for part in name.split(_AND)])
        return self.collection(name).digest(name)

    def manifest(self, names: Iterable[str]) -> Manifest:
        """What sets contain; raises as `digest`."""
        sets = {name: states.content_half(self.digest(name)) for name in names}
        photographs = self.allotment if self.name == _PHOTOS else {}
        return Manifest(sets, photographs, self.scenes and self.scenes.places)

    def scene_folder(self, name: str) -> Path:
        """The folder of a set's files, perhaps not there yet; of a union that of its copy."""
        if _AND in name:
            return self.folder / "decoded" / name
        return self.collection(name).folder_of(name)

    def load(self, name: str) -> Any:
        """A set, generated and decoded first where it is not there yet.

        Returns:
            `HPatchesSplit` of what an HPatches split tests on; `ImageSequences` of their images; of
            whole images what their kind reads; of everything else, a union too, a `PatchSet`.

        Raises:
            ValueError: the source has no such set, or its files are damaged.
            FileNotFoundError: a real set's files, or the photographs of one to generate, are missing.
            OSError: `folder` cannot be written.
        """
        from lib.data.union import unite

        if _AND in name:
            parts = [self.load(part) for part in name.split(_AND)]
            return unite(parts, self.folder / "decoded", name)
        return self.collection(name).load(name)

    @property
    def homographies(self) -> HPatchesSets:
        """The study's own sets of HPatches patches.

        Raises:
            FileNotFoundError: a real source has none.
        """
        if self.own_hpatches is None:
            raise FileNotFoundError(f"{self.real} lacks {RELEASE} or {TASKS} with splits.json")
        return self.own_hpatches

    @property
    def united(self) -> str:
        """The name of the union that networks called "++" are trained on: the real three, or the first
        generated scene since whole images are of the others, and what a split of HPatches trains on.

        Raises:
            FileNotFoundError: a real source has no HPatches.
        """
        scenes = self.sets[:1] if self.embedded else self.sets
        return _AND.join([*scenes, self.homographies.train_set(_SPLIT)])

    @property
    def hpatches(self) -> tuple[HPatchesSets, ...]:
        """All sets of HPatches patches, the study's own first."""
        return tuple(filter(None, (self.own_hpatches, self.real_hpatches)))

    @property
    def whole_images(self) -> tuple[WholeImages, ...]:
        """All sets of whole images, the study's own first."""
        return tuple(filter(None, (self.own_images, self.real_images)))


def open_source(
    data: str,
    folder: Path,
    size: SyntheticSize,
    sequences: SequencesSize = SequencesSize(),  # noqa: B008 (frozen)
    homographies: Sequence[Path] = (),
    *,
    images: Path | None = None,
    manifest: Path | None = None,
) -> Source:
    """The source that a command line's `--data` or `--photos` means.

    Args:
        data: "mini", "photos:DIR", "photos", "scenes:DIR", "scenes", or a folder that holds liberty,
            notredame and yosemite.
        folder: where generated data and decoded patches go; made when first needed.
        size: of what is generated.
        sequences: likewise, of homography sequences.
        homographies: folders of real homography sequences, for sets "real-hp-…" beside the others.
        images: a folder with released sets of whole images, for sets "real-…" beside the others.
        manifest: for "photos" and "scenes", a file of `lib.data.manifest`: its sets have digests, and
            can be loaded where they have been generated before.

    Raises:
        FileNotFoundError: a folder, the manifest, or one of the three sets is missing.
        ValueError: no data named, or a folder of photographs has fewer than 5 that can be read.
    """
    folder, (kind, _, given) = Path(folder), data.partition(":")
    real_hpatches = HPatchesSets("real-hp", folder, sequences, homographies=tuple(homographies))
    others = {
        "real_hpatches": real_hpatches if homographies else None,
        "real_images": WholeImages("real", folder, ImagesSize(), {}, images) if images else None,
    }
    if kind == _SCENES and (given or manifest is not None):
        root = Path(given).resolve() if given else None
        scenes = SceneSets(root, folder, None if root else read_manifest(manifest))
        # A folder that holds none is refused here, before anything is made.
        _ = scenes.places
        return Source(_SCENES, folder, size, {}, scenes=scenes, **others)
    packaged, skipped = packaged_photographs(), {}
    if data == "mini":
        allotted = packaged
    elif kind == _PHOTOS and given:
        allotted, skipped = folder_photographs(Path(given))
    elif data == _PHOTOS and manifest is not None:
        allotted = read_manifest(manifest).photographs
    elif not data or kind == _PHOTOS:
        raise ValueError(f"{data!r} names no data: give 'mini', 'photos:DIR' or a folder of real sets")
    else:
        real = Path(data)
        for needed in (real / name for name in REAL_SETS):
            if not needed.is_dir():
                raise FileNotFoundError(f"{needed} is no folder: {', '.join(REAL_SETS)} are needed")
        if (real / RELEASE).is_dir() and (real / TASKS).is_dir():
            others["own_hpatches"] = HPatchesSets("hpatches", folder, sequences, real=real)
        reserve = {part: packaged[part] for part in RESERVE}
        own_images = WholeImages("ubc", folder, ImagesSize(), {}, real)
        return Source("ubc", folder, size, reserve, real, own_images=own_images, **others)
    others["own_hpatches"] = HPatchesSets(f"{kind}-hp", folder, sequences, allotted[HOMOGRAPHY])
    others["own_images"] = WholeImages(kind, folder, ImagesSize(), allotted)
    return Source(kind, folder, size, allotted, skipped=skipped, **others)
