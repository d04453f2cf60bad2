"""Where a study's sets come from: packaged photographs, a folder of them, scenes, or real sets.

A source's sets lie in collections: patches in PhotoTour's layout, HPatches patches, whole images. A
collection knows by a set's name its digest, its folder and the set itself. All are cheap to import and
to ask for digests; what makes or decodes pixels is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from lib.data import states
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
from lib.data.synthetic.sizes import SEQUENCES, ImagesSize, SequencesSize, SyntheticSize
from lib.files import make_checked

REAL_SETS = ("liberty", "notredame", "yosemite")
_READER, _GENERATOR = "lib.data.phototour", "lib.data.synthetic.writing"
_HPATCHES = ("lib.data.hpatches.classes", "lib.data.hpatches.tasks")
# With patches to train on; the others test on all their sequences, or train on what is no other kind.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN, _IMAGES = "-train", "-images"
_WHOLE_IMAGES = "lib.data.whole_images"
_SYNTHETIC_IMAGES = "lib.data.synthetic.whole_images"
# By kind of whole images the parts of the allotment that synthetic sets of it show. The first scene,
# on which the methods compared are trained, is in none.
KINDS = {
    **dict.fromkeys(("oxford_affine", "w1bs"), (HOMOGRAPHY,)),
    **dict.fromkeys(("eth", "imc", "landmarks"), SCENES[1:]),
}
# Of a released set: what is small is told by its content, what is an image by its size.
_SMALLEST_IMAGE = 100_000
_UNION = "lib.data.union"
# Between names in that of a union, and the split of HPatches that a part of it is trained on by.
_AND, _SPLIT = "+", "a"
_PHOTOS, _SCENES = "photos", "scenes"


class Origin(NamedTuple):
    """Where the data of a set comes from.

    Attributes:
        modules: the code that makes and reads it, by dotted names.
        content: what it is made of, or consists of; JSON-able.
        released: the folder where it was downloaded; None where it is generated.
    """

    modules: tuple[str, ...]
    content: object
    released: Path | None = None


class Collection:
    """Sets of one origin, released or generated. Subclasses are frozen dataclasses.

    Attributes:
        folder: where generated data and decoded patches lie.
        size: of what is generated, a dataclass.
        names: of all its sets.
        origin: by a set's name where its data comes from.
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
        origin = self.origin(name)
        size = self.size if origin.released is None else None
        return states.digest(origin.modules, origin.content, size)

    def folder_of(self, name: str) -> Path:
        """The folder of a set's files; a generated one may not be there yet."""
        shared = self.folder_name(name)
        return self.origin(name).released or self.folder / f"{shared}-{self.digest(shared)}"

    def load(self, name: str) -> Any:
        """A set, generated first where it is not there yet. Damaged files are set aside and made anew.

        Raises:
            ValueError: released files are damaged or do not belong together.
            FileNotFoundError: files, or the photographs of a set to generate, are missing.
            OSError: `folder` cannot be written.
        """
        folder = self.folder_of(name)
        if self.origin(name).released is None:
            make_checked(folder, self.folder_name(name), lambda new: self.generate(new, name))
        return self.read(folder, name)


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
    real: Path | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (*(REAL_SETS if self.real else ()), *self.photographs)

    def origin(self, name: str) -> Origin:
        if name in self.photographs:
            photographs = states.of_photographs(self.photographs[name])
            return Origin((_GENERATOR, _READER), [name, photographs])
        return Origin((_READER,), self._files[name], self.real / name)

    @cached_property
    def _files(self) -> Mapping[str, list]:
        patterns = {"read": ["*.txt"], "sized": ["*.bmp"]}
        return {name: states.of_files(self.real / name, **patterns) for name in REAL_SETS}

    def generate(self, folder: Path, name: str) -> None:
        import_module(_GENERATOR).write_scene(folder, name, self.photographs[name], self.size)

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
        splits = ("full",) if self.homographies else SPLITS
        trained = (self.train_set(split) for split in splits if split in PARTITIONS)
        return (*map(self.test_set, splits), *trained, *filter(None, [self.images]))

    @property
    def root(self) -> Path:
        """The folder that holds ``hpatches-release`` and ``tasks``; perhaps not there yet."""
        return self.folder_of(self.stem)

    def folder_name(self, name: str) -> str:
        return self.stem

    def origin(self, name: str) -> Origin:
        modules, content = self._made_of
        return Origin((*_HPATCHES, *modules), [name, content], self.real)

    @cached_property
    def _made_of(self) -> tuple[tuple[str, ...], list]:
        """The code that generates it, and of what."""
        if self.photographs:
            return ("lib.data.synthetic.sequences",), states.of_photographs(self.photographs)
        if self.homographies:
            files = [states.of_files(folder, read=["**/*"]) for folder in self.homographies]
            return ("lib.data.hpatches.building",), files
        patches = states.of_files(self.real / RELEASE, read=[], sized=["*/*.png"])
        return (), [patches, states.of_files(self.real / TASKS, read=["**/*.csv", "**/*.json"])]

    def generate(self, folder: Path, name: str) -> None:
        maker = import_module(self._made_of[0][0])
        if self.photographs:
            maker.write_hpatches(folder, self.photographs, self.size)
        else:
            maker.build_hpatches(folder, self.homographies, self.size)

    def read(self, folder: Path, name: str) -> Any:
        """An `HPatchesSplit` to test on, a `PatchSet` to train on, or `ImageSequences`."""
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
    """The sets of whole images of one source: generated of its photographs, or as downloaded.

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

    def origin(self, name: str) -> Origin:
        kind = self._kind(name)
        if self.real is None:
            content = [name, states.of_photographs(self.photographs(kind))]
            return Origin((_WHOLE_IMAGES, _SYNTHETIC_IMAGES), content)
        files = [path for path in (self.real / kind).rglob("*") if path.is_file()]
        sizes = {path.relative_to(self.real).as_posix(): path.stat().st_size for path in files}
        small = [path for path, size in sizes.items() if size <= _SMALLEST_IMAGE]
        content = states.of_files(self.real, read=small, sized=sorted(sizes.keys() - small))
        return Origin((_WHOLE_IMAGES,), content, self.real / kind)

    def photographs(self, kind: str) -> list[Photograph]:
        """Those that a synthetic set of a kind is made of."""
        return [photograph for part in KINDS[kind] for photograph in self.allotment[part]]

    def generate(self, folder: Path, name: str) -> None:
        kind = self._kind(name)
        write = getattr(import_module(_SYNTHETIC_IMAGES), f"write_{kind}")
        write(folder, self.photographs(kind), self.size)

    def read(self, folder: Path, name: str) -> object:
        return getattr(import_module(_WHOLE_IMAGES), f"read_{self._kind(name)}")(folder)

    def _kind(self, name: str) -> str:
        return name.removeprefix(f"{self.prefix}-")


@dataclass(frozen=True)
class Source:
    """Three patch sets that take the parts of Liberty, Notre Dame and Yosemite, and reserves.

    Attributes:
        name: "mini", "photos", "scenes" or "ubc".
        folder: where generated data and decoded patches lie.
        patches: all sets of patches but HPatches'.
        sets: names of the three, in that order; of scenes, the places to train on, however many.
        reserve: names of two further sets for searches, e.g. of learning rates; of five photographs one.
        allotment: of the photographs that data is generated from.
        own_hpatches: the study's own sets of HPatches patches; a real source may have none.
        real_hpatches: sets of real homography sequences beside them, where asked for.
        own_images: the study's own sets of whole images; a real source may have none.
        real_images: real ones beside them, where asked for.
        skipped: files of a folder of photographs that are none, and why.
    """

    name: str
    folder: Path
    patches: PatchSets | SceneSets
    sets: tuple[str, ...]
    reserve: tuple[str, ...]
    allotment: Allotment = field(default_factory=dict)
    own_hpatches: HPatchesSets | None = None
    real_hpatches: HPatchesSets | None = None
    own_images: WholeImages | None = None
    real_images: WholeImages | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def scenes(self) -> SceneSets | None:
        """The sets of real scenes, which a source of them alone has."""
        return self.patches if isinstance(self.patches, SceneSets) else None

    @property
    def real(self) -> Path | None:
        """The folder of the real sets; None where all is generated, or of scenes."""
        return None if self.scenes else self.patches.real

    @property
    def embedded(self) -> bool:
        """Whether the data is generated from photographs."""
        return self.scenes is None and self.real is None

    @property
    def tested(self) -> tuple[str, ...]:
        """`sets`, then the places that only test."""
        return (*self.sets, *(self.scenes.places.test if self.scenes else ()))

    def collection(self, name: str) -> Collection | SceneSets:
        """The collection that a set is in.

        Raises:
            ValueError: the source has no such set.
        """
        collections = (self.patches, *self.hpatches, *self.whole_images)
        by_set = {own: collection for collection in collections for own in collection.names}
        if name not in by_set:
            raise ValueError(f"no set {name!r} in source {self.name}: choose from {', '.join(by_set)}")
        return by_set[name]

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
        if _AND not in name:
            return self.collection(name).load(name)
        parts = [self.load(part) for part in name.split(_AND)]
        return import_module(_UNION).unite(parts, self.folder / "decoded", name)

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
        places = scenes.places
        return Source(_SCENES, folder, scenes, places.train_and_test, places.reserve, **others)
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
        others["own_images"] = WholeImages("ubc", folder, ImagesSize(), {}, real)
        patches = PatchSets(folder, size, {part: packaged[part] for part in RESERVE}, real)
        return Source("ubc", folder, patches, REAL_SETS, RESERVE, **others)
    scenes = {f"{kind}-{scene}": allotted[scene] for scene in SCENES}
    # Nothing here reads the second reserve; it is there for a confirmation of one's own.
    reserves = {part: allotted[part] for part in (*RESERVE, *CONFIRMATION) if part in allotted}
    return Source(
        name=kind,
        folder=folder,
        patches=PatchSets(folder, size, scenes | reserves),
        sets=tuple(scenes),
        reserve=tuple(part for part in RESERVE if part in reserves),
        allotment=allotted,
        own_hpatches=HPatchesSets(f"{kind}-hp", folder, sequences, allotted[HOMOGRAPHY]),
        own_images=WholeImages(kind, folder, ImagesSize(), allotted),
        skipped=skipped,
        **others,
    )
