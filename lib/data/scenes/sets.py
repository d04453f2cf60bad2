"""Patch sets of real places, by name.

``PLACE`` is the set for training and for FPR95. ``PLACE-wide`` has the same patches, with the widest
pair of each class as its matching pairs. ``PLACE-images`` has the images with their keypoints. The patch
sets exist at other tolerances too: ``PLACE-wide-5px``. Importing this module and computing digests is
cheap.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib import files
from lib.data import states
from lib.data.scenes.places import (
    IMAGES,
    MOST_SHARED,
    SHARED,
    Places,
    image_files,
    read_places,
    shared_matches,
)
from lib.files import make_checked

if TYPE_CHECKING:
    from lib.data.patchset import PatchSet
    from lib.data.scenes.correspondences import Scene
    from lib.data.scenes.whole_images import PosedPhotograph

WIDE, IMAGES_OF = "-wide", "-images"
# Px up to which a carried and a detected keypoint show one point: values shown, and that of training.
SHOWN, TRAINING = (1.5, 3.0, 5.0), 2.5
# Matches between scenes, as measured; copied beside the scenes, it saves measuring them again.
_MAKER = "places"
# What the photographs were when their scene was prepared, in its folder.
_PHOTOGRAPHS = "photographs.json"


@dataclass(frozen=True)
class SceneSets:
    """The sets of a folder of scenes.

    Attributes:
        root: the folder of scenes, optionally with ``scenes.json``; None if only the places and the
            names of the sets are wanted.
        folder: folder for the data made from the scenes.
        known: the places, if there is no `root`.
    """

    root: Path | None
    folder: Path
    known: Places | None = None

    @cached_property
    def places(self) -> Places:
        """The places and their roles; raises as `read_places`."""
        return read_places(self.root) if self.root else self.known

    @cached_property
    def _sets(self) -> Mapping[str, tuple[str, str, float]]:
        """Set name -> place, kind and tolerance (px).

        Raises:
            ValueError: sets of two places have one name, such as those of "a" and of "a-wide".
        """
        sizes = {"": TRAINING, **{f"-{pixels:g}px": pixels for pixels in SHOWN}}
        sets: dict[str, tuple[str, str, float]] = {}
        for place in self.places.scenes:
            own = {f"{place}{IMAGES_OF}": (place, IMAGES_OF, TRAINING)}
            for (size, pixels), kind in product(sizes.items(), ("", WIDE)):
                own[f"{place}{kind}{size}"] = place, kind, pixels
            if shared := sorted(own.keys() & sets.keys()):
                other = sets[shared[0]][0]
                raise ValueError(
                    f"{self.root}: {other!r} and {place!r} both have a set {shared[0]!r}: rename one"
                )
            sets |= own
        return sets

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all sets."""
        return tuple(self._sets)

    def digest(self, name: str) -> str:
        """Return 8 hexadecimal digits that identify what a set contains (`states.digest`)."""
        place, kind, pixels = self._sets[name]
        made_of = self._files_of(*self.places.scenes[place])
        limits = [self.places.most_classes]
        if kind == IMAGES_OF:
            reduction = self.places.most_images, self.places.most_keypoints
            limits += [most for most in reduction if most is not None]
        return states.digest([made_of, kind, pixels, *limits], maker=_MAKER)

    @cached_property
    def _files(self) -> list:
        """The scenes' files (`states.of_files`). A photograph that was replaced after its scene was
        prepared here has its CRC-32 too: its size may be the same."""
        rows = states.of_files(self.root, ["*/cameras/**/*", "*/sparse/**/*"], sized=["*/images/*"])
        changed = {
            path.relative_to(self.root).as_posix(): files.crc32(path)
            for scene in {name.partition("/")[0] for name, *_ in rows}
            for path in states.replaced(
                self.root / scene / IMAGES, self._prepared_from(scene, rows) / _PHOTOGRAPHS
            )
        }
        return [[*row, changed[row[0]]] if row[0] in changed else row for row in rows]

    def _files_of(self, *scenes: str) -> list:
        return [row for scene in scenes for row in _rows_of(scene, self._files)]

    def _prepared_from(self, scene: str, rows: list) -> Path:
        """Return the folder of a scene that is prepared from files of these `rows`."""
        return self.folder / f"{scene}-{states.digest(_rows_of(scene, rows), maker=_MAKER)}"

    def folder_of(self, name: str) -> Path:
        """Return the folder of a patch set and its wide pairs, or of a set of images; it may not exist
        yet."""
        place, kind, pixels = self._sets[name]
        if kind == IMAGES_OF:
            return self.folder / f"{name}-{self.digest(name)}"
        stem = f"{place}-{pixels:g}px"
        return self.folder / f"{stem}-{self.digest(stem if stem in self._sets else place)}"

    def load(self, name: str) -> PatchSet | tuple[Scene, ...]:
        """Load a set, made first if missing; a set of images is the place's `scenes`, each `reduced`.

        Raises:
            FileNotFoundError, ValueError: a scene's files are missing, damaged or unusable, or two
                places are the same place; the message names the folder and what to do.
            OSError: `folder` cannot be written.
        """
        from lib.data.scenes.correspondences import Tolerance
        from lib.data.scenes.prepared import write_images, write_place

        place, kind, pixels = self._sets[name]
        patches = self.folder_of(name)
        if kind == IMAGES_OF:
            prepared = tuple((self.root / scene, self._prepared(scene)) for scene in self._apart(place))
            limits = self.places.most_images, self.places.most_keypoints
            scenes = _read_images(prepared, *limits)
            make_checked(patches, patches.name, lambda new: write_images(new, scenes))
            return tuple(
                replace(scene, kept=np.load(patches / f"{scene.name}.npy", mmap_mode="r"))
                for scene in scenes
            )
        make_checked(
            patches,
            patches.name,
            lambda new: write_place(
                new, self.scenes(place), Tolerance(pixels), self.places.most_classes
            ),
        )
        return _read(patches, name, kind)

    def scenes(self, place: str) -> tuple[Scene, ...]:
        """Return a place's scenes, most images first, without those that share matches with one before.

        Raises:
            ValueError: one of the scenes shares verified matches with a scene of another place.
        """
        from lib.data.scenes.prepared import open_scene

        return tuple(open_scene(self.root / name, self._prepared(name)) for name in self._apart(place))

    def _apart(self, place: str) -> list[str]:
        """Return the names of a place's `scenes`, and raise as it does."""
        names, chosen = self.places.scenes[place], []
        shared = {frozenset(pair) for *pair, count in self._shared_matches if count > MOST_SHARED}
        for pair in shared:
            if len(pair.intersection(names)) == 1:
                raise ValueError(f"{' and '.join(sorted(pair))} in {self.root} share matches: one place")
        for name in sorted(names, key=lambda n: len(image_files(self.root / n)), reverse=True):
            if shared.isdisjoint(frozenset((name, other)) for other in chosen):
                chosen.append(name)
        return chosen

    def photographs(self, place: str, longest_side: int) -> Mapping[str, PosedPhotograph]:
        """Return the photographs of a place's largest scene by name, without lens distortion.

        Args:
            place: the place.
            longest_side: px; larger photographs are reduced to it.
        """
        from lib.data.scenes.prepared import MODEL
        from lib.data.scenes.whole_images import read_photographs, undistort

        largest = self.scenes(place)[0].name
        prepared, images = self._prepared(largest), self.root / largest / IMAGES
        made = prepared.with_name(f"{prepared.name}-{longest_side}px")
        make_checked(made, made.name, lambda new: undistort(new, images, prepared / MODEL, longest_side))
        return read_photographs(made)

    def _prepared(self, scene: str) -> Path:
        """Return the folder of a prepared scene, which is prepared first if missing."""
        from lib.data.scenes.prepared import prepare

        source, made = self.root / scene, self._prepared_from(scene, self._files)

        def make(new: Path) -> None:
            states.remember(image_files(source), new / _PHOTOGRAPHS)
            prepare(source, new)

        make_checked(made, scene, make)
        return made

    @cached_property
    def _shared_matches(self) -> list[tuple[str, str, int]]:
        """The `shared_matches` of all scenes: those that are written beside the scenes if these have not
        changed since, else measured once."""
        made_of = states.digest(self._files)
        beside = self.root / SHARED
        if beside.is_file():
            written = json.loads(beside.read_text())
            if written["files"] == made_of:
                return written["matches"]
        images = {name: image_files(self.root / name) for name in chain(*self.places.scenes.values())}

        def measure(new: Path) -> None:
            measured = {"files": made_of, "matches": shared_matches(images)}
            (new / SHARED).write_text(json.dumps(measured) + "\n")

        folder = self.folder / f"shared-{made_of}"
        make_checked(folder, "shared", measure)
        return json.loads((folder / SHARED).read_text())["matches"]


def place_of(name: str) -> str:
    """Return the place that a set is of: "castle" of "castle-wide", "castle-wide-3px" and
    "castle-images"."""
    return re.sub(rf"({IMAGES_OF}|{WIDE})?(-[\d.]+px)?$", "", name, count=1)


def _rows_of(scene: str, rows: list) -> list:
    return [row for row in rows if row[0].startswith(f"{scene}/")]


@lru_cache(maxsize=12)
def _read_images(
    prepared: Sequence[tuple[Path, Path]], most_images: int | None, most_keypoints: int | None
) -> tuple[Scene, ...]:
    """Open prepared scenes, each `reduced`; a process does so once, since a folder's name says what it
    contains."""
    from lib.data.scenes.correspondences import reduced
    from lib.data.scenes.prepared import open_scene

    return tuple(reduced(open_scene(*folders), most_images, most_keypoints) for folders in prepared)


@lru_cache(maxsize=24)
def _read(patches: Path, name: str, kind: str) -> PatchSet:
    """Read a written set; a process reads it once, since its folder's name says what it contains."""
    from lib.data.patchset import one_patch_a_point
    from lib.data.phototour import read_pairs, read_phototour
    from lib.data.scenes.prepared import WIDE_PAIRS

    patch_set = read_phototour(patches, patches / "decoded", name)
    patch_set = replace(patch_set, representatives=one_patch_a_point(patch_set.point_ids))
    if kind != WIDE:
        return patch_set
    return replace(patch_set, pairs=read_pairs(patches / WIDE_PAIRS, patch_set.point_ids))
