"""Where a study's sets come from: packaged photographs, a folder of them, scenes, or real sets.

A source's sets lie in collections: patches in PhotoTour's layout, HPatches patches, whole images. A
collection knows by a set's name its digest, its folder and the set itself. All are cheap to import and
to ask for digests; what makes or decodes pixels is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from lib.data import states
from lib.data.hpatches import RELEASE, TASKS
from lib.data.scenes.sets import SceneSets
from lib.data.states import Manifest, read_manifest
from lib.data.synthetic import SEQUENCES, ImagesSize, SequencesSize, SyntheticSize
from lib.data.synthetic import photographs as allotments
from lib.data.synthetic.photographs import CONFIRMATION, RESERVE, SCENES, Allotment, Photograph
from lib.files import make_checked

REAL_SETS = ("liberty", "notredame", "yosemite")
# With patches to train on; the others test on all their sequences, or train on what is no other kind.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN, _IMAGES = "-train", "-images"
# By kind of whole images the parts of the allotment that synthetic sets of it show. The first scene,
# on which the methods compared are trained, is in none.
KINDS = {
    **dict.fromkeys(("oxford_affine", "w1bs"), (allotments.HOMOGRAPHY,)),
    **dict.fromkeys(("eth", "imc", "landmarks"), SCENES[1:]),
}
# Of a released set: what is small is told by its content, what is an image by its size.
_SMALLEST_IMAGE = 100_000
_READER, _WHOLE_IMAGES = "lib.data.phototour", "lib.data.whole_images"
_SYNTHETIC_IMAGES = "lib.data.synthetic.whole_images"
# Between names in that of a union, and the split of HPatches that a part of it is trained on by.
_AND, _SPLIT = "+", "a"
_MINI, _PHOTOS, _SCENES = "mini", "photos", "scenes"


@dataclass(frozen=True)
class Collection:
    """Sets of one kind, downloaded or generated.

    Attributes:
        stem: how the names of its sets begin.
        folder: where generated data and decoded patches lie.
        size: of what is generated.
        photographs: of which sets are generated.
        real: the folder of what was downloaded; None where all is generated.
    """

    stem: str
    folder: Path
    size: SyntheticSize | SequencesSize | ImagesSize
    photographs: Allotment | Sequence[Photograph] = ()
    real: Path | None = None

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels.

        The first 8 are of content (`states.content_half`): of generated sets size and what they are made
        of; of released ones their files. The last 8 are of the code that makes and reads them.

        Raises:
            FileNotFoundError: a folder is missing.
        """
        return states.digest(*self.made_of(name), None if self.released(name) else self.size)

    def folder_of(self, name: str) -> Path:
        """The folder of a set's files; a generated one may not be there yet."""
        files = self.files_of(name)
        return self.released(name) or self.folder / f"{files}-{self.digest(files)}"

    def load(self, name: str) -> Any:
        """A set, generated first where it is not there yet. Damaged files are set aside and made anew.

        Raises:
            ValueError: released files are damaged or do not belong together.
            FileNotFoundError: files, or the photographs of a set to generate, are missing.
            OSError: `folder` cannot be written.
        """
        folder = self.folder_of(name)
        if self.released(name) is None:
            make_checked(folder, self.files_of(name), partial(self.generate, name))
        return self.read(name, folder)

    def files_of(self, name: str) -> str:
        """What a generated set's folder is called before its digest; sets that share files share it."""
        return name

    def released(self, name: str) -> Path | None:
        """The folder in which a set was downloaded; None where it is generated."""
        return self.real


class PatchSets(Collection):
    """Sets in PhotoTour's layout: generated, each of its own photographs, and the released ones."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*(REAL_SETS if self.real else ()), *self.photographs)

    def released(self, name: str) -> Path | None:
        return None if name in self.photographs else self.real / name

    def made_of(self, name: str) -> tuple[tuple[str, ...], object]:
        if self.released(name):
            return (_READER,), self._files[name]
        photographs = states.of_photographs(self.photographs[name])
        return ("lib.data.synthetic.scenes", _READER), [name, photographs]

    @cached_property
    def _files(self) -> Mapping[str, list]:
        return {name: states.of_files(self.real / name, ["*.txt"], ["*.bmp"]) for name in REAL_SETS}

    def generate(self, name: str, folder: Path) -> None:
        from lib.data.synthetic.scenes import write_scene

        write_scene(folder, name, self.photographs[name], self.size)

    def read(self, name: str, folder: Path) -> Any:
        from lib.data.phototour import KNOWN_COUNTS, read_phototour

        decoded = (self.folder if self.released(name) else folder) / "decoded"
        return read_phototour(folder, decoded, name, KNOWN_COUNTS.get(name))


@dataclass(frozen=True)
class HPatchesSets(Collection):
    """The sets of one collection of sequences: of photographs, of one's own, or the release.

    Attributes:
        homographies: folders of homography sequences of which patches are made, with one split that
            tests on all of them.
    """

    homographies: tuple[Path, ...] = ()

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

    def files_of(self, name: str) -> str:
        return self.stem

    def made_of(self, name: str) -> tuple[tuple[str, ...], object]:
        content: object = self._files
        if self.photographs:
            maker, content = ("lib.data.synthetic.sequences",), states.of_photographs(self.photographs)
        else:
            maker = ("lib.data.hpatches.building",) if self.homographies else ()
        return ("lib.data.hpatches.tasks", *maker), [name, content]

    @cached_property
    def _files(self) -> list:
        if self.real is None:
            return [states.of_files(folder, ["**/*"]) for folder in self.homographies]
        tasks = states.of_files(self.real / TASKS, ["**/*.csv", "**/*.json"])
        return [states.of_files(self.real / RELEASE, [], ["*/*.png"]), tasks]

    def generate(self, name: str, folder: Path) -> None:
        if self.photographs:
            from lib.data.synthetic.sequences import write_hpatches

            write_hpatches(folder, self.photographs, self.size)
        else:
            from lib.data.hpatches.building import build_hpatches

            build_hpatches(folder, self.homographies, self.size)

    def read(self, name: str, folder: Path) -> Any:
        """An `HPatchesSplit` to test on, a `PatchSet` to train on, or homography sequences."""
        from lib.data.hpatches.homographies import read_homography_sequences
        from lib.data.hpatches.release import open_sequences, read_classes, read_splits
        from lib.data.hpatches.tasks import open_split

        release, tasks = folder / RELEASE, folder / TASKS
        if name == self.images:
            return read_homography_sequences(*(self.homographies or [folder / SEQUENCES]))
        split = name.removeprefix(f"{self.stem}-").removesuffix(_TRAIN)
        if name == self.train_set(split):
            sequences = open_sequences(release, read_splits(tasks)[split].train)
            return read_classes(sequences, self.folder / "decoded", name)
        tested = open_split(release, tasks, split, name)
        kept = (replace(sequence, kept=not self.real) for sequence in tested.sequences)
        return replace(tested, sequences=tuple(kept))


class WholeImages(Collection):
    """Sets of whole images: generated of a source's allotment of photographs, or the released ones, each
    in a folder of its kind's name."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those there are."""
        return tuple(kind for kind in KINDS if self.real is None or (self.real / kind).is_dir())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(self.name, self.kinds))

    def name(self, kind: str) -> str:
        """The name of its set of a kind."""
        return f"{self.stem}-{kind}"

    def released(self, name: str) -> Path | None:
        return self.real and self.real / self._kind(name)

    def made_of(self, name: str) -> tuple[tuple[str, ...], object]:
        if self.real is None:
            photographs = states.of_photographs(self.shown(self._kind(name)))
            return (_WHOLE_IMAGES, _SYNTHETIC_IMAGES), [name, photographs]
        files = [path for path in self.released(name).rglob("*") if path.is_file()]
        sizes = {path.relative_to(self.real).as_posix(): path.stat().st_size for path in files}
        small = [path for path, size in sizes.items() if size <= _SMALLEST_IMAGE]
        return (_WHOLE_IMAGES,), states.of_files(self.real, small, sorted(sizes.keys() - small))

    def shown(self, kind: str) -> list[Photograph]:
        """The photographs that a synthetic set of a kind is made of."""
        return [photograph for part in KINDS[kind] for photograph in self.photographs[part]]

    def generate(self, name: str, folder: Path) -> None:
        kind = self._kind(name)
        write = getattr(import_module(_SYNTHETIC_IMAGES), f"write_{kind}")
        write(folder, self.shown(kind), self.size)

    def read(self, name: str, folder: Path) -> Any:
        return getattr(import_module(_WHOLE_IMAGES), f"read_{self._kind(name)}")(folder)

    def _kind(self, name: str) -> str:
        return name.removeprefix(f"{self.stem}-")


@dataclass(frozen=True)
class Source:
    """Three patch sets that take the parts of Liberty, Notre Dame and Yosemite, and reserves.

    Attributes:
        name: "mini", "photos", "scenes" or "ubc".
        folder: where generated data and decoded patches lie.
        patches: all sets of patches but HPatches'.
        sets: names of the three, in that order; of scenes, the places to train on, however many.
        reserve: names of two further sets for searches, e.g. of learning rates; of five photographs one.
        own_hpatches: the study's own sets of HPatches patches; a real source may have none.
        real_hpatches: sets of real homography sequences beside them, where asked for.
        own_images: the study's own sets of whole images; a real source may have none.
        real_images: real ones beside them, where asked for.
        beside: sets of patches of another source, to train on together with these ("castle+photos-a").
        skipped: files of a folder of photographs that are none, and why.
    """

    name: str
    folder: Path
    patches: PatchSets | SceneSets
    sets: tuple[str, ...]
    reserve: tuple[str, ...]
    own_hpatches: HPatchesSets | None = None
    real_hpatches: HPatchesSets | None = None
    own_images: WholeImages | None = None
    real_images: WholeImages | None = None
    beside: tuple[PatchSets, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def scenes(self) -> SceneSets | None:
        """The sets of real scenes, which a source of them alone has."""
        return self.patches if isinstance(self.patches, SceneSets) else None

    @property
    def embedded(self) -> bool:
        """Whether the data is generated from photographs."""
        return self.name in (_MINI, _PHOTOS)

    @property
    def tested(self) -> tuple[str, ...]:
        """`sets`, then the places that only test."""
        return (*self.sets, *(self.scenes.places.test if self.scenes else ()))

    @property
    def hpatches(self) -> tuple[HPatchesSets, ...]:
        """All sets of HPatches patches, the study's own first."""
        return tuple(filter(None, (self.own_hpatches, self.real_hpatches)))

    @property
    def whole_images(self) -> tuple[WholeImages, ...]:
        """All sets of whole images, the study's own first."""
        return tuple(filter(None, (self.own_images, self.real_images)))

    @property
    def homographies(self) -> HPatchesSets:
        """The study's own sets of HPatches patches.

        Raises:
            FileNotFoundError: a real source has none.
        """
        if self.own_hpatches is None:
            raise FileNotFoundError(f"{self.name} lacks {RELEASE} or {TASKS} with splits.json")
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

    def collection(self, name: str) -> Collection | SceneSets:
        """The collection that a set is in.

        Raises:
            ValueError: the source has no such set.
        """
        collections = (self.patches, *self.beside, *self.hpatches, *self.whole_images)
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
            return states.union_digest([self.digest(part) for part in name.split(_AND)])
        return self.collection(name).digest(name)

    def manifest(self, names: Iterable[str]) -> Manifest:
        """What sets contain; raises as `digest`."""
        sets = {name: states.content_half(self.digest(name)) for name in names}
        photographs = self.own_images.photographs if self.name == _PHOTOS else {}
        return Manifest(sets, photographs, self.scenes and self.scenes.places)

    def scene_folder(self, name: str) -> Path:
        """The folder of a set's files, perhaps not there yet; of a union that of its copy."""
        if _AND in name:
            return self.folder / "decoded" / name
        return self.collection(name).folder_of(name)

    def load(self, name: str) -> Any:
        """A set, generated and decoded first where it is not there yet.

        Returns:
            `HPatchesSplit` of what an HPatches split tests on; homography sequences of images; of
            whole images what their kind reads; of everything else, a union too, a `PatchSet`.

        Raises:
            ValueError: the source has no such set, or its files are damaged.
            FileNotFoundError: a real set's files, or the photographs of one to generate, are missing.
            OSError: `folder` cannot be written.
        """
        if _AND not in name:
            return self.collection(name).load(name)
        from lib.data.patchset import unite

        return unite([self.load(part) for part in name.split(_AND)], self.folder / "decoded", name)


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
        manifest: for "photos" and "scenes", a file as `lib.data.states` reads it: its sets have digests,
            and can be loaded where they have been generated before.

    Raises:
        FileNotFoundError: a folder, the manifest, or one of the three sets is missing.
        ValueError: no data named, or a folder of photographs has fewer than 5 that can be read.
    """
    folder, (kind, _, given) = Path(folder), data.partition(":")
    others: dict[str, Any] = {}
    if homographies:
        own = tuple(homographies)
        others["real_hpatches"] = HPatchesSets("real-hp", folder, sequences, homographies=own)
    if images:
        others["real_images"] = WholeImages("real", folder, ImagesSize(), real=images)
    if kind == _SCENES and (given or manifest is not None):
        root = Path(given).resolve() if given else None
        scenes = SceneSets(root, folder, None if root else read_manifest(manifest))
        # A folder that holds none is refused here, before anything is made.
        places = scenes.places
        return Source(_SCENES, folder, scenes, places.train_and_test, places.reserve, **others)
    if kind == _PHOTOS and given:
        allotted, others["skipped"] = allotments.folder_photographs(Path(given))
    elif data == _PHOTOS and manifest is not None:
        allotted = read_manifest(manifest).photographs
    elif not data or kind == _PHOTOS:
        raise ValueError(f"{data!r} names no data: give 'mini', 'photos:DIR' or a folder of real sets")
    else:
        allotted = allotments.packaged_photographs()
    reserve = tuple(part for part in RESERVE if part in allotted)
    # Nothing here reads the second reserve; it is there for a confirmation of one's own.
    generated = {part: allotted[part] for part in (*RESERVE, *CONFIRMATION) if part in allotted}
    if kind in (_MINI, _PHOTOS):
        sets = {f"{kind}-{scene}": allotted[scene] for scene in SCENES}
        patches = PatchSets("", folder, size, sets | generated)
        homography = allotted[allotments.HOMOGRAPHY]
        others["own_hpatches"] = HPatchesSets(f"{kind}-hp", folder, sequences, homography)
        others["own_images"] = WholeImages(kind, folder, ImagesSize(), allotted)
        return Source(kind, folder, patches, tuple(sets), reserve, **others)
    real = Path(data)
    for needed in (real / name for name in REAL_SETS):
        if not needed.is_dir():
            raise FileNotFoundError(f"{needed} is no folder: {', '.join(REAL_SETS)} are needed")
    if (real / RELEASE).is_dir() and (real / TASKS).is_dir():
        others["own_hpatches"] = HPatchesSets("hpatches", folder, sequences, real=real)
    others["own_images"] = WholeImages("ubc", folder, ImagesSize(), real=real)
    patches = PatchSets("", folder, size, generated, real)
    return Source("ubc", folder, patches, REAL_SETS, reserve, **others)
