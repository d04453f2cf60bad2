"""Sources of a study's sets: packaged photographs, a folder of photographs, scenes, or real sets.

A source groups its sets into collections: patches in PhotoTour's layout, HPatches patches, and whole
images. Given a set's name, a collection returns its digest, its folder or the set itself. Importing this
module and computing digests is cheap: code that makes or decodes pixels is imported only when needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from lib.data import states
from lib.data.hpatches import RELEASE, TASKS
from lib.data.scenes.places import Places
from lib.data.scenes.sets import SceneSets
from lib.data.synthetic import SEQUENCES, ImagesSize, SequencesSize, SyntheticSize
from lib.data.synthetic import photographs as allotments
from lib.data.synthetic.photographs import CONFIRMATION, RESERVE, SCENES, Allotment, Photograph
from lib.files import make_checked

REAL_SETS = ("liberty", "notredame", "yosemite")
# HPatches splits that get a training set here. Of the others, "full" tests on all sequences, and "illum"
# and "view" could train only on the other kind of sequence.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN, _IMAGES = "-train", "-images"
_AFFINE = "oxford_affine"
# Kind of whole images -> the parts of the allotment that its synthetic set shows. None includes the
# first scene, because the compared methods are trained on it.
KINDS = {
    **dict.fromkeys((_AFFINE, "w1bs"), (allotments.HOMOGRAPHY,)),
    **dict.fromkeys(("eth", "imc", "landmarks"), SCENES[1:]),
}
# Bytes. A digest of released whole images covers the content of files up to this size; of larger files,
# which are taken for images, it covers only the size.
_SMALLEST_IMAGE = 100_000
_WHOLE_IMAGES = "lib.data.whole_images"
_SYNTHETIC_IMAGES = "lib.data.synthetic.whole_images"
# Separator of the names in a union's name, and the HPatches split whose training set joins the union.
_AND, _SPLIT = "+", "a"
_MINI, _PHOTOS, _SCENES, FREE = "mini", "photos", "scenes", "free"
# The places of the repository, under free licences.
FREE_PLACES = Path(__file__).resolve().parents[2] / "data" / "places"
# The kinds of whole images that are made of places: no network that is compared is trained on them.
_OF_PLACES = ("eth", "imc", "landmarks")


@dataclass(frozen=True)
class Collection:
    """Sets of one kind, downloaded or generated.

    Attributes:
        stem: prefix of the names of its sets.
        folder: folder for generated data and decoded patches.
        size: size of the generated sets.
        photographs: photographs that sets are generated from.
        real: folder of the downloaded sets; None if all sets are generated.
    """

    stem: str
    folder: Path
    size: SyntheticSize | SequencesSize | ImagesSize
    photographs: Allotment | Sequence[Photograph] = ()
    real: Path | None = None

    def digest(self, name: str) -> str:
        """Return 8 hexadecimal digits that identify what a set contains; makes no pixels.

        They cover, for a generated set, its size and what it is made of; for a released set, its files.

        Raises:
            FileNotFoundError: a folder is missing.
        """
        return states.digest(self.made_of(name), None if self.released(name) else self.size)

    def folder_of(self, name: str) -> Path:
        """Return the folder of a set's files; a generated set's folder may not exist yet."""
        files = self.files_of(name)
        return self.released(name) or self.folder / f"{files}-{self.digest(files)}"

    def load(self, name: str) -> Any:
        """Load a set, generated first if missing. Damaged generated files are set aside and made anew.

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
        """Return a generated set's folder name without digest; sets that share files share the name."""
        return name

    def released(self, name: str) -> Path | None:
        """Return the folder of a downloaded set, or None for a generated set."""
        return self.real


class PatchSets(Collection):
    """Sets in PhotoTour's layout: released ones, and generated ones, each from its own photographs."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*(REAL_SETS if self.real else ()), *self.photographs)

    def released(self, name: str) -> Path | None:
        return None if name in self.photographs else self.real / name

    def made_of(self, name: str) -> object:
        if self.released(name):
            return self._files[name]
        return [name, states.of_photographs(self.photographs[name])]

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
    """HPatches sets: generated from photographs, built from homography sequences, or released.

    Attributes:
        homographies: folders of homography sequences that patches are cut from; the only split then
            tests on all of them.
    """

    homographies: tuple[Path, ...] = ()

    def test_set(self, split: str) -> str:
        """Return the name of a split's test set."""
        return f"{self.stem}-{split}"

    def train_set(self, split: str) -> str:
        """Return the name of a split's training set."""
        return f"{self.stem}-{split}{_TRAIN}"

    @property
    def images(self) -> str | None:
        """The name of the set of its sequences' images; None for the release, which has none."""
        return None if self.real else f"{self.stem}{_IMAGES}"

    @property
    def names(self) -> tuple[str, ...]:
        splits = ("full",) if self.homographies else SPLITS
        trained = (self.train_set(split) for split in splits if split in PARTITIONS)
        return (*map(self.test_set, splits), *trained, *filter(None, [self.images]))

    @property
    def root(self) -> Path:
        """The folder that holds ``hpatches-release`` and ``tasks``; it may not exist yet."""
        return self.folder_of(self.stem)

    def files_of(self, name: str) -> str:
        return self.stem

    def made_of(self, name: str) -> object:
        return [name, states.of_photographs(self.photographs) if self.photographs else self._files]

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
        """Read an `HPatchesSplit` to test on, a `PatchSet` to train on, or homography sequences."""
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


@dataclass(frozen=True)
class WholeImages(Collection):
    """Sets of whole images, made of a source's photographs and places, or released.

    Each released set is in a folder named after its kind.

    Attributes:
        scenes: the places that structure from motion, poses and retrieval are made of; None if they are
            made of photographs.
    """

    scenes: SceneSets | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the collection has."""
        return tuple(kind for kind in KINDS if self.real is None or (self.real / kind).is_dir())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(self.name, self.kinds))

    def name(self, kind: str) -> str:
        """Return the name of the set of a kind."""
        return f"{self.stem}-{kind}"

    def released(self, name: str) -> Path | None:
        return self.real and self.real / self._kind(name)

    def made_of(self, name: str) -> object:
        if self._is_of_places(name):
            return [name, [self.scenes.digest(place) for place in self._places()]]
        if self.real is None:
            return [name, states.of_photographs(self.shown(self._kind(name)))]
        files = [path for path in self.released(name).rglob("*") if path.is_file()]
        sizes = {path.relative_to(self.real).as_posix(): path.stat().st_size for path in files}
        small = [path for path, size in sizes.items() if size <= _SMALLEST_IMAGE]
        return states.of_files(self.real, small, sorted(sizes.keys() - small))

    def shown(self, kind: str) -> list[Photograph]:
        """Return the photographs that the synthetic set of a kind is made from."""
        return [photograph for part in KINDS[kind] for photograph in self.photographs[part]]

    def _is_of_places(self, name: str) -> bool:
        return self.scenes is not None and self._kind(name) in _OF_PLACES

    def _places(self) -> tuple[str, ...]:
        """The places that are shown: all to train on but the first, on which methods are compared."""
        return self.scenes.places.train_and_test[1:]

    def generate(self, name: str, folder: Path) -> None:
        kind = self._kind(name)
        if self._is_of_places(name):
            from lib.data.scenes import whole_images

            side = self.size.longest_side
            shown = {place: self.scenes.photographs(place, side) for place in self._places()}
            getattr(whole_images, f"write_{kind}")(folder, shown, self.size)
            return
        write = getattr(import_module(_SYNTHETIC_IMAGES), f"write_{kind}")
        write(folder, self.shown(kind), self.size)

    def read(self, name: str, folder: Path) -> Any:
        if self.real and self._kind(name) == _AFFINE:
            self._check_agreement(name, folder)
        return getattr(import_module(_WHOLE_IMAGES), f"read_{self._kind(name)}")(folder)

    def _check_agreement(self, name: str, folder: Path) -> None:
        """Refuse sequences whose images contradict their homographies.

        An empty folder that is named by the set's digest says that they passed before.
        """
        from lib.data.hpatches.agreement import check_agreement
        from lib.data.hpatches.homographies import read_homography_sequences

        def check(_: Path) -> None:
            for sequence in read_homography_sequences(folder):
                check_agreement(sequence)

        make_checked(self.folder / f"{name}-agrees-{self.digest(name)}", name, check)

    def _kind(self, name: str) -> str:
        return name.removeprefix(f"{self.stem}-")


@dataclass(frozen=True)
class Source:
    """Three patch sets in the roles of Liberty, Notre Dame and Yosemite, reserves, and further sets.

    Attributes:
        name: "free", "mini", "photos", "scenes" or "ubc".
        folder: folder for generated data and decoded patches.
        patches: all patch sets except HPatches'.
        sets: names of the three, in that order; for scenes, the places to train on, however many.
        reserve: names of two further sets for searches, e.g. of learning rates; five photographs give
            only one.
        own_hpatches: the study's own sets of HPatches patches; a real source may have none.
        real_hpatches: additional sets of real homography sequences, if requested.
        own_images: the study's own sets of whole images; a real source may have none.
        real_images: additional real sets of whole images, if requested.
        beside: patch sets of another source, to train on together with these ("castle+photos-a").
        skipped: files in a folder of photographs that are not photographs, and why.
        recorded: by set, the digests that a reference has; its pixels are not on this machine.
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
    recorded: Mapping[str, str] = field(default_factory=dict)
    # Digests computed before, by set: for some sets, many files are read.
    _digests: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def scenes(self) -> SceneSets | None:
        """The sets of real scenes; None for any other source."""
        return self.patches if isinstance(self.patches, SceneSets) else None

    @property
    def embedded(self) -> bool:
        """Whether the data is generated from photographs."""
        return self.name in (_MINI, _PHOTOS, FREE)

    @property
    def tested(self) -> tuple[str, ...]:
        """`sets`, then the places that are only tested on."""
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
        """The name of the union that "++" networks are trained on.

        It joins `sets` and an HPatches split's training set. Of generated scenes it has only the first,
        because whole images show the others.

        Raises:
            FileNotFoundError: a real source has no HPatches.
        """
        scenes = self.sets[:1] if self.embedded else self.sets
        return _AND.join([*scenes, self.homographies.train_set(_SPLIT)])

    def collection(self, name: str) -> Collection | SceneSets:
        """Return the collection that holds a set.

        Raises:
            ValueError: the source has no such set.
        """
        collections = (self.patches, *self.beside, *self.hpatches, *self.whole_images)
        by_set = {own: collection for collection in collections for own in collection.names}
        if name not in by_set:
            raise ValueError(f"no set {name!r} in source {self.name}: choose from {', '.join(by_set)}")
        return by_set[name]

    def digest(self, name: str) -> str:
        """Return 8 hexadecimal digits that identify what a set contains, as `Collection.digest`.

        A union's digest is computed from its parts' digests.

        Raises:
            ValueError: the source has no such set.
            FileNotFoundError: a real set's folder is missing.
        """
        if _AND in name:
            return states.union_digest([self.digest(part) for part in name.split(_AND)])
        if self.recorded:
            return self.recorded.get(name, "unlisted")
        if name not in self._digests:
            self._digests[name] = self.collection(name).digest(name)
        return self._digests[name]

    def scene_folder(self, name: str) -> Path:
        """Return the folder of a set's files, or of a union's copy; it may not exist yet."""
        if _AND in name:
            return self.folder / "decoded" / name
        return self.collection(name).folder_of(name)

    def load(self, name: str) -> Any:
        """Load a set, generated and decoded first if needed.

        Returns:
            For an HPatches split's test set, an `HPatchesSplit`; for the images of HPatches sets,
            homography sequences; for a place's images, its `Scene`s; for whole images, what the reader
            of their kind returns; otherwise, unions included, a `PatchSet`.

        Raises:
            ValueError: the source has no such set, or its files are damaged.
            FileNotFoundError: a real set's files, or a set's photographs to generate it from, are
                missing.
            OSError: `folder` cannot be written.
        """
        if self.recorded:
            raise FileNotFoundError(
                f"the photographs of {name} are not on this machine: name their folder in the "
                f'notebook\'s first cell, data = "{self.name}:DIR"'
            )
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
    recorded: Mapping[str, str] | None = None,
    places: Places | None = None,
) -> Source:
    """Open the source that a command line's `--data` or `--photos` names.

    Args:
        data: "free", "mini", "photos:DIR", "photos", "scenes:DIR", "scenes", or a folder that holds
            liberty, notredame and yosemite.
        folder: folder for generated data and decoded patches; made when first needed.
        size: size of the generated scenes.
        sequences: size of the generated homography sequences.
        homographies: folders of real homography sequences, which add the sets "real-hp-…".
        images: a folder of released sets of whole images, which adds the sets "real-…".
        recorded: for "photos" and "scenes", the digests of the sets of a reference, by name.
        places: for "scenes", the places of a reference.

    Raises:
        FileNotFoundError: a folder, or one of the three sets, is missing.
        ValueError: `data` names no data, or a folder has fewer than 5 readable photographs.
    """
    folder = Path(folder)
    kind, _, given = data.partition(":")
    others: dict[str, Any] = {}
    if homographies:
        own = tuple(homographies)
        others["real_hpatches"] = HPatchesSets("real-hp", folder, sequences, homographies=own)
    if images:
        others["real_images"] = WholeImages("real", folder, ImagesSize(), real=images)
    if data in (_PHOTOS, _SCENES) and recorded:
        others["recorded"] = recorded
    if kind == _SCENES and (given or places is not None):
        scenes = SceneSets(Path(given).resolve() if given else None, folder, places)
        # A folder without scenes is refused here, before anything is made.
        places = scenes.places
        return Source(_SCENES, folder, scenes, places.train_and_test, places.reserve, **others)
    if data == FREE:
        scenes = SceneSets(FREE_PLACES, folder)
        photographs = allotments.packaged_photographs()
        shown = photographs[allotments.HOMOGRAPHY]
        others["own_hpatches"] = HPatchesSets(f"{FREE}-hp", folder, sequences, shown)
        others["own_images"] = WholeImages(FREE, folder, ImagesSize(), photographs, scenes=scenes)
        places = scenes.places
        return Source(FREE, folder, scenes, places.train_and_test, places.reserve, **others)
    if kind == _PHOTOS and given:
        allotted, others["skipped"] = allotments.folder_photographs(Path(given))
    elif data == _PHOTOS and recorded:
        # Their names are enough: nothing is generated from photographs that are not here.
        allotted = dict.fromkeys((*SCENES, *RESERVE, allotments.HOMOGRAPHY), ())
    elif not data or kind == _PHOTOS:
        raise ValueError(f"{data!r} names no data: give 'mini', 'photos:DIR' or a folder of real sets")
    else:
        allotted = allotments.packaged_photographs()
    reserve = tuple(part for part in RESERVE if part in allotted)
    # No code here reads the second reserve, which is kept for the user's own confirmation.
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
