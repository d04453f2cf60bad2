"""Where a study's three patch sets come from: embedded photographs, a folder of them, or real sets.

Cheap to import and to ask for digests; what makes or decodes pixels is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lib.data import states
from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches_sets import HPatchesSets
from lib.data.manifest import read_manifest
from lib.data.patchset import PatchSet
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
from lib.data.synthetic.sizes import MiniSize, SequencesSize
from lib.data.whole_images import KINDS, ImagesSize, WholeImages
from lib.files import make_checked

if TYPE_CHECKING:
    from lib.data.hpatches.images import ImageSequences
    from lib.data.hpatches.tasks import HPatchesSplit

REAL_SETS = ("liberty", "notredame", "yosemite")
_READER, _UNION = "lib.data.phototour", "lib.data.union"
_GENERATOR = "lib.data.synthetic.writing"
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
    size: MiniSize
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

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels.

        The first 8 are of content (`states.content_half`): of generated sets size and the photographs'
        names and hashes; of real ones names and sizes of their files and what the text files hold,
        looked at once for each object; of unions their parts. The last 8 are of the code that generates
        and reads them.

        Raises:
            ValueError: the source has no such set.
            FileNotFoundError: a real set's folder is missing.
        """
        if _AND in name:
            return states.union_digest([_UNION], [self.digest(part) for part in name.split(_AND)])
        if (sets := self._sets_of(name)) is not None:
            return sets.digest(name)
        if name not in self.photographs:
            return states.digest([_READER], self._files[name])
        made_of = [name, states.of_photographs(self.photographs[name])]
        return states.digest([_GENERATOR, _READER], made_of, self.size)

    @cached_property
    def _files(self) -> Mapping[str, list]:
        return {
            name: states.of_files(self.real / name, read=["*.txt"], sized=["*.bmp"])
            for name in self.sets
        }

    def scene_folder(self, name: str) -> Path:
        """The folder of a set's files; a generated one may not be there yet. A union has none but the
        copy's."""
        if _AND in name:
            return self.folder / "decoded" / name
        if (sets := self._sets_of(name)) is not None:
            return sets.root if isinstance(sets, HPatchesSets) else sets.folder_of(name)
        if name not in self.photographs:
            return self.real / name
        return self.folder / f"{name}-{self.digest(name)}"

    def load(self, name: str) -> PatchSet | HPatchesSplit | ImageSequences | Any:
        """A set, generated and decoded first where it is not there yet; what an HPatches split tests
        on is a split with its tasks, images are sequences, of whole images what their kind reads,
        everything else a set of patches, a union too.

        Generated and decoded files that are damaged are set aside and made anew.

        Raises:
            ValueError: the source has no such set, or its files are damaged.
            FileNotFoundError: a real set's files, or the photographs of one to generate, are missing.
            OSError: `folder` cannot be written.
        """
        from lib.data.phototour import read_phototour, verify_counts
        from lib.data.synthetic.writing import write_scene
        from lib.data.union import unite

        if _AND in name:
            parts = [self.load(part) for part in name.split(_AND)]
            return unite(parts, self.folder / "decoded", name)
        if (sets := self._sets_of(name)) is not None:
            return sets.load(name)
        scene = self.scene_folder(name)
        if name in self.photographs:
            photographs = self.photographs[name]
            make_checked(scene, name, lambda new: write_scene(new, name, photographs, self.size))
            return read_phototour(scene, scene / "decoded", name)
        patch_set = read_phototour(scene, self.folder / "decoded", name)
        verify_counts(patch_set)
        return patch_set

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
        return tuple(sets for sets in (self.own_hpatches, self.real_hpatches) if sets is not None)

    @property
    def whole_images(self) -> tuple[WholeImages, ...]:
        """All sets of whole images, the study's own first."""
        return tuple(sets for sets in (self.own_images, self.real_images) if sets is not None)

    @property
    def lacking_images(self) -> tuple[str, ...]:
        """The kinds of whole images that the study has none of."""
        there = self.own_images.kinds if self.own_images else ()
        return tuple(kind for kind in KINDS if kind not in there)

    def _sets_of(self, name: str) -> HPatchesSets | WholeImages | SceneSets | None:
        """The sets that a set is among, None for a set of another kind.

        Raises:
            ValueError: the source has no such set.
        """
        scenes = () if self.scenes is None else (self.scenes,)
        collections = (*scenes, *self.hpatches, *self.whole_images)
        for sets in collections:
            if name in sets.names:
                return sets
        known = (*self.sets, *self.reserve, *self.confirmation)
        if name in known:
            return None
        known += tuple(n for sets in collections for n in sets.names)
        raise ValueError(f"no set {name!r} in source {self.name}: choose from {known}")


def open_source(
    data: str,
    folder: Path,
    size: MiniSize,
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
    folder, (kind, _, photos) = Path(folder), data.partition(":")
    beside = None
    if homographies:
        beside = HPatchesSets("real-hp", folder, sequences, homographies=tuple(homographies))
    images_beside = WholeImages("real", folder, ImagesSize(), {}, images) if images else None
    skipped: Mapping[str, str] = {}
    if kind == _SCENES and (photos or manifest is not None):
        root = Path(photos).resolve() if photos else None
        sets = SceneSets(root, folder, None if root else read_manifest(manifest))
        # Refused now, before anything is made.
        sets.places  # noqa: B018
        beside_scenes = {"real_hpatches": beside, "real_images": images_beside}
        return Source(_SCENES, folder, size, {}, scenes=sets, **beside_scenes)
    if data == "mini":
        allotted = packaged_photographs()
    elif kind == _PHOTOS and photos:
        allotted, skipped = folder_photographs(Path(photos))
    elif data == _PHOTOS and manifest is not None:
        allotted = read_manifest(manifest).photographs
    elif not data or kind == _PHOTOS:
        raise ValueError(f"{data!r} names no data: give 'mini', 'photos:DIR' or a folder of real sets")
    else:
        real, own = _real(Path(data)), None
        if (real / RELEASE).is_dir() and (real / TASKS).is_dir():
            own = HPatchesSets("hpatches", folder, sequences, real=real)
        spare = {part: of for part, of in packaged_photographs().items() if part in RESERVE}
        own_images = WholeImages("ubc", folder, ImagesSize(), {}, real)
        return Source("ubc", folder, size, spare, real, own, beside, own_images, images_beside)
    own = HPatchesSets(f"{kind}-hp", folder, sequences, allotted[HOMOGRAPHY])
    own_images = WholeImages(kind, folder, ImagesSize(), allotted)
    return Source(kind, folder, size, allotted, None, own, beside, own_images, images_beside, skipped)


def _real(folder: Path) -> Path:
    if not folder.is_dir():
        choices = f"'mini', 'photos:DIR' or a folder that holds {', '.join(REAL_SETS)}"
        raise FileNotFoundError(f"{folder} is no folder: give {choices}")
    for name in REAL_SETS:
        if not (folder / name).is_dir():
            raise FileNotFoundError(f"{folder / name} is missing: unpack {name} there")
    return folder
