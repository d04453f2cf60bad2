"""Sources of a study's sets: places of the repository, a folder of places, or the released sets.

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
from typing import TYPE_CHECKING, Any, ClassVar

from lib.data import states
from lib.data.hpatches import RELEASE, TASKS
from lib.data.scenes.places import Places
from lib.data.scenes.sets import SceneSets
from lib.data.synthetic import SEQUENCES, ImagesSize, SequencesSize
from lib.data.synthetic.photographs import Photograph, packaged_photographs
from lib.files import make_checked

if TYPE_CHECKING:
    from lib.data.patchset import PatchSet

REAL_SETS = ("liberty", "notredame", "yosemite")
# HPatches splits that get a training set here. Of the others, "full" tests on all sequences, and "illum"
# and "view" could train only on the other kind of sequence.
PARTITIONS = ("a", "b", "c")
SPLITS = (*PARTITIONS, "illum", "view", "full")
_TRAIN, _IMAGES = "-train", "-images"
_AFFINE = "oxford_affine"
# Kinds of whole images that are made of photographs, and those that are made of places.
_OF_PHOTOGRAPHS = (_AFFINE, "w1bs")
_OF_PLACES = ("eth", "imc", "landmarks")
KINDS = (*_OF_PHOTOGRAPHS, *_OF_PLACES)
# Bytes. A digest of released whole images covers the content of files up to this size; of larger files,
# which are taken for images, it covers only the size where they are compressed.
_SMALLEST_IMAGE = 100_000
_WHOLE_IMAGES = "lib.data.whole_images"
# Separator of the names in a union's name, and the HPatches split whose training set joins the union.
_AND, _SPLIT = "+", "a"
_PLACES, FREE = "places", "free"
# Data of which a reference has numbers, though nothing here makes its sets any more: planes that were
# textured with photographs.
_PHOTOS, _PHOTOS_SETS = "photos", ("photos-a", "photos-b", "photos-c")
_PHOTOS_RESERVE = ("reserve-a", "reserve-b")
# Those of the repository's places that searches train on where the data are others: they are never
# evidence, and differ in kind.
SEARCHED = ("boruszyn", "caliterra")
# The places of the repository, under free licences.
FREE_PLACES = Path(__file__).resolve().parents[2] / "data" / "places"


@dataclass(frozen=True)
class Collection:
    """Sets of one kind, downloaded or made here.

    Attributes:
        stem: prefix of the names of its sets.
        folder: folder for generated data and decoded patches.
        size: size of the generated sets.
        photographs: photographs that sets are made of.
        real: folder of the downloaded sets; None if all sets are generated.
    """

    # The one of `states.MAKERS` that generates its sets.
    maker: ClassVar[str]
    stem: str
    folder: Path
    size: SequencesSize | ImagesSize
    photographs: Sequence[Photograph] = ()
    real: Path | None = None

    def digest(self, name: str) -> str:
        """Return 8 hexadecimal digits that identify what a set contains; makes no pixels.

        They cover, for a generated set, its size, what it is made of and the version of what makes it;
        for a released set, its files.

        Raises:
            FileNotFoundError: a folder is missing.
        """
        if self.released(name):
            return states.digest(self.made_of(name))
        return states.digest(self.made_of(name), self.size, self.maker)

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


@dataclass(frozen=True)
class PatchSets:
    """Sets in PhotoTour's layout.

    Attributes:
        root: folder with a folder a set; None if only the names of the sets are wanted.
        folder: folder for decoded patches.
        names: the sets.
    """

    root: Path | None
    folder: Path
    names: tuple[str, ...] = REAL_SETS

    def digest(self, name: str) -> str:
        """Return 8 hexadecimal digits that identify what a set contains (`states.digest`).

        Raises:
            FileNotFoundError: the set's folder is missing.
        """
        return states.digest(states.of_files(self.folder_of(name), ["*.txt"], ["*.bmp"]))

    def folder_of(self, name: str) -> Path:
        """Return the folder of a set's files."""
        return self.root / name

    def load(self, name: str) -> PatchSet:
        """Load a set, decoded first if needed; raises as `lib.data.phototour.read_phototour`.

        A released set must have as many patches as the original.
        """
        from lib.data.phototour import KNOWN_COUNTS, read_phototour

        count = KNOWN_COUNTS.get(name)
        return read_phototour(self.folder_of(name), self.folder / "decoded", name, count)


@dataclass(frozen=True)
class HPatchesSets(Collection):
    """HPatches sets: made of photographs, built from homography sequences, or released.

    Attributes:
        homographies: folders of homography sequences that patches are cut from; the only split then
            tests on all of them.
    """

    maker = "hpatches"
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
        scenes: the places that structure from motion, poses and retrieval are made of.
    """

    maker = "whole_images"
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
        if self.real is None and self._kind(name) in _OF_PLACES:
            return [name, [self.scenes.digest(place) for place in self._places()]]
        if self.real is None:
            return [name, states.of_photographs(self.photographs)]
        files = [path for path in self.released(name).rglob("*") if path.is_file()]
        sizes = {path.relative_to(self.real).as_posix(): path.stat().st_size for path in files}
        small = [path for path, size in sizes.items() if size <= _SMALLEST_IMAGE]
        return states.of_files(self.real, small, sorted(sizes.keys() - small))

    def _places(self) -> tuple[str, ...]:
        """The places that are shown: all to train on but the first, on which methods are compared."""
        return self.scenes.places.train_and_test[1:]

    def generate(self, name: str, folder: Path) -> None:
        kind = self._kind(name)
        if kind in _OF_PHOTOGRAPHS:
            from lib.data.synthetic import whole_images

            shown = self.photographs
        else:
            from lib.data.scenes import whole_images

            side = self.size.longest_side
            shown = {place: self.scenes.photographs(place, side) for place in self._places()}
        getattr(whole_images, f"write_{kind}")(folder, shown, self.size)

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
    """Patch sets to train and test on, sets for searches, and further sets to test on.

    Attributes:
        name: "free", "places", "ubc" or "photos".
        folder: folder for generated data and decoded patches.
        patches: all patch sets except HPatches'.
        sets: names of those to train and test on: Liberty, Notre Dame and Yosemite, or places.
        reserve: names of further sets, on which searches are tested, e.g. of learning rates.
        own_hpatches: the study's own sets of HPatches patches; a real source may have none.
        real_hpatches: additional sets of real homography sequences, if requested.
        own_images: the study's own sets of whole images; a real source may have none.
        real_images: additional real sets of whole images, if requested.
        beside: patch sets of another source: those of the reserve, or sets to train on together with
            these ("castle+liberty").
        searched: sets that searches train on; empty: those of `lib.study.searches.pairs_of_sets`.
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
    beside: tuple[PatchSets | SceneSets, ...] = ()
    searched: tuple[str, ...] = ()
    recorded: Mapping[str, str] = field(default_factory=dict)
    # Digests computed before, by set: for some sets, many files are read.
    _digests: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def scenes(self) -> SceneSets | None:
        """The sets of real scenes; None for any other source."""
        return self.patches if isinstance(self.patches, SceneSets) else None

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

        It joins `sets` and an HPatches split's training set. Where whole images are made of the sets'
        own photographs, it has only the first of `sets`, because they show the others.

        Raises:
            FileNotFoundError: a real source has no HPatches.
        """
        images = self.own_images
        made = images is not None and images.real is None
        show_the_sets = made and images.scenes in (None, self.patches)
        joined = self.sets[:1] if show_the_sets else self.sets
        return _AND.join([*joined, self.homographies.train_set(_SPLIT)])

    def collection(self, name: str) -> Collection | PatchSets | SceneSets:
        """Return the collection that holds a set.

        Raises:
            ValueError: the source has no such set.
        """
        # Of two sets of one name, e.g. of a place that is also in the repository, the source's own.
        collections = (*self.beside, self.patches, *self.hpatches, *self.whole_images)
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
                f"the photographs of {name} are not on this machine: name a folder of places in the "
                f'notebook\'s first cell, data = "{_PLACES}:DIR"'
            )
        if _AND not in name:
            return self.collection(name).load(name)
        from lib.data.patchset import unite

        return unite([self.load(part) for part in name.split(_AND)], self.folder / "decoded", name)


def _made_here(free: SceneSets, folder: Path, sequences: SequencesSize) -> dict[str, Any]:
    """Return the HPatches sets and whole images that are made here: of the photographs that packages
    install, and of the repository's places."""
    shown = packaged_photographs()
    return {
        "own_hpatches": HPatchesSets(f"{FREE}-hp", folder, sequences, shown),
        "own_images": WholeImages(FREE, folder, ImagesSize(), shown, scenes=free),
    }


def open_source(
    data: str,
    folder: Path,
    sequences: SequencesSize = SequencesSize(),  # noqa: B008 (frozen)
    homographies: Sequence[Path] = (),
    *,
    images: Path | None = None,
    recorded: Mapping[str, str] | None = None,
    places: Places | None = None,
) -> Source:
    """Open the source that a command line's `--data` or `--places` names.

    Args:
        data: "free", "places:DIR", a folder that holds liberty, notredame and yosemite, or "places" or
            "photos" as a reference has them.
        folder: folder for generated data and decoded patches; made when first needed.
        sequences: size of the generated homography sequences.
        homographies: folders of real homography sequences, which add the sets "real-hp-…".
        images: a folder of released sets of whole images, which adds the sets "real-…".
        recorded: for "photos" and "places", the digests of the sets of a reference, by name.
        places: for "places", those of a reference.

    Raises:
        FileNotFoundError: a folder, or one of the three sets, is missing.
        ValueError: `data` names no data.
    """
    folder = Path(folder)
    kind, _, given = data.partition(":")
    others: dict[str, Any] = {}
    if homographies:
        own = tuple(homographies)
        others["real_hpatches"] = HPatchesSets("real-hp", folder, sequences, homographies=own)
    if images:
        others["real_images"] = WholeImages("real", folder, ImagesSize(), real=images)
    if data in (_PHOTOS, _PLACES) and recorded:
        others["recorded"] = recorded
    if kind == _PLACES and (given or places is not None):
        scenes = SceneSets(Path(given).resolve() if given else None, folder, places)
        # A folder without scenes is refused here, before anything is made.
        places = scenes.places
        free = SceneSets(FREE_PLACES, folder)
        if given and set(SEARCHED).isdisjoint(places.scenes):
            others |= {"beside": (free,), "searched": SEARCHED}
        # What a network was trained on must not be in what it is tested on.
        if free.places.scenes.keys().isdisjoint(places.scenes):
            others |= _made_here(free, folder, sequences)
        return Source(_PLACES, folder, scenes, places.train_and_test, places.reserve, **others)
    free = SceneSets(FREE_PLACES, folder)
    if data == FREE:
        others |= _made_here(free, folder, sequences)
        places = free.places
        return Source(FREE, folder, free, places.train_and_test, places.reserve, **others)
    if data == _PHOTOS and recorded:
        patches = PatchSets(None, folder, (*_PHOTOS_SETS, *_PHOTOS_RESERVE))
        others["own_hpatches"] = HPatchesSets(f"{_PHOTOS}-hp", folder, sequences)
        others["own_images"] = WholeImages(_PHOTOS, folder, ImagesSize())
        return Source(_PHOTOS, folder, patches, _PHOTOS_SETS, _PHOTOS_RESERVE, **others)
    if not data or kind == _PHOTOS:
        raise ValueError(f"{data!r} names no data: give 'free', 'places:DIR' or a folder of real sets")
    real = Path(data)
    for needed in (real / name for name in REAL_SETS):
        if not needed.is_dir():
            raise FileNotFoundError(f"{needed} is no folder: {', '.join(REAL_SETS)} are needed")
    if (real / RELEASE).is_dir() and (real / TASKS).is_dir():
        others["own_hpatches"] = HPatchesSets("hpatches", folder, sequences, real=real)
    others["own_images"] = WholeImages("ubc", folder, ImagesSize(), real=real)
    # The released sets are all tested on, so searches take places of the repository.
    others["beside"] = (free,)
    return Source("ubc", folder, PatchSets(real, folder), REAL_SETS, SEARCHED, **others)
