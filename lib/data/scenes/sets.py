"""Sets of patches of real places, by name.

``PLACE`` is what networks train on and what FPR95 is measured on; ``PLACE-wide`` has the same patches
with the widest pair of each class; ``PLACE-images`` are its images with their keypoints. Each is there
at other tolerances too: ``PLACE-wide-5px``. Cheap to import and to ask for digests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from lib.data import states
from lib.data.manifest import Manifest
from lib.data.scenes.places import CAMERAS, IMAGES, SPARSE, Places, image_files, read_places
from lib.files import make_checked

if TYPE_CHECKING:
    from lib.data.patchset import PatchSet
    from lib.data.scenes.prepared import Scene

WIDE, IMAGES_OF = "-wide", "-images"
# Px up to which a carried keypoint and a found one show one point: those shown, and that of training.
SHOWN, TRAINING = (1.5, 3.0, 5.0), 2.5
_CODE = ("lib.data.scenes.patches", "lib.data.scenes.overlap", "lib.data.phototour")
_SHARED = "shared.json"


@dataclass(frozen=True)
class SceneImages:
    """A place's images with keypoints that are carried between them.

    Attributes:
        name: of the set.
        scenes: those of the place that share nothing with each other.
    """

    name: str
    scenes: tuple[Scene, ...]


@dataclass(frozen=True)
class SceneSets:
    """The sets of a folder of scenes.

    Attributes:
        root: the folder, perhaps with ``scenes.json``; None where only the sets' digests are wanted.
        folder: where what is made of them lies.
        manifest: without a root, what says the places and what their sets contain.
    """

    root: Path | None
    folder: Path
    manifest: Manifest | None = None

    @cached_property
    def places(self) -> Places:
        """What the scenes are for; raises as `read_places`."""
        return read_places(self.root) if self.root else self.manifest.places

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its sets."""
        sizes = ("", *(f"-{pixels:g}px" for pixels in SHOWN))
        kinds = [f"{kind}{size}" for size in sizes for kind in ("", WIDE)]
        return tuple(f"{place}{kind}" for place in self.places.scenes for kind in (*kinds, IMAGES_OF))

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another; makes no pixels."""
        place, kind, pixels = self._parts(name)
        if self.root is None:
            return self.manifest.sets.get(name, "unlisted") + states.code_half(
                states.digest(_CODE, None)
            )
        files = [row for scene in self.places.scenes[place] for row in self._files_of(scene)]
        return states.digest(_CODE, [files, kind, pixels])

    @cached_property
    def _files(self) -> list:
        patterns = [f"*/{folder}/**/*" for folder in (CAMERAS, SPARSE)]
        return states.of_files(self.root, read=patterns, sized=[f"*/{IMAGES}/*"])

    def _files_of(self, scene: str) -> list:
        return [row for row in self._files if row[0].startswith(f"{scene}/")]

    def folder_of(self, name: str) -> Path:
        """The folder of a set of patches; perhaps not there yet."""
        place, _, pixels = self._parts(name)
        stem = f"{place}-{pixels:g}px"
        return self.folder / f"{stem}-{self.digest(stem)}"

    def load(self, name: str) -> PatchSet | SceneImages:
        """A set, made first where it is not there yet.

        Raises:
            FileNotFoundError, ValueError: a scene's files are missing, damaged or of no use, or two
                places show one; the message names the folder and what to do.
            OSError: `folder` cannot be written.
        """
        from lib.data.phototour import read_pairs, read_phototour
        from lib.data.scenes.correspondences import Tolerance
        from lib.data.scenes.patches import WIDE_PAIRS, write_place

        place, kind, pixels = self._parts(name)
        if kind == IMAGES_OF:
            return SceneImages(name, self.scenes(place))
        patches = self.folder_of(name)
        make_checked(
            patches, patches.name, lambda new: write_place(new, self.scenes(place), Tolerance(pixels))
        )
        patch_set = read_phototour(patches, patches / "decoded", name)
        if kind != WIDE:
            return patch_set
        return replace(patch_set, pairs=read_pairs(patches / WIDE_PAIRS, patch_set.point_ids))

    def scenes(self, place: str) -> tuple[Scene, ...]:
        """A place's scenes, those with most images first, less those that share matches with one before.

        Raises:
            ValueError: a scene of another place shares verified matches with one of this.
        """
        from lib.data.scenes.prepared import open_scene, prepare

        taken: list[str] = []
        # Of a place of one scene too, which may be another place's.
        shared = self._shared
        for name in sorted(self.places.scenes[place], key=self._count, reverse=True):
            if not any(frozenset((name, other)) in shared for other in taken):
                taken.append(name)
        opened = []
        for name in taken:
            source, made = self.root / name, self.folder / f"{name}-{self._scene_digest(name)}"
            make_checked(made, name, lambda new, source=source: prepare(source, new))
            opened.append(open_scene(source, made))
        return tuple(opened)

    def _count(self, scene: str) -> int:
        return len(image_files(self.root / scene))

    def _scene_digest(self, scene: str) -> str:
        return states.digest(["lib.data.scenes.prepared"], self._files_of(scene))

    @cached_property
    def _shared(self) -> Mapping[frozenset[str], int]:
        """By pair of scenes the verified matches of their most similar images, where these are many."""
        from lib.data.scenes.overlap import MOST_SHARED, described, shared

        def measure(new: Path) -> None:
            images = {name: described(image_files(self.root / name)) for name in place_of}
            counts = [[*pair, shared(*(images[n] for n in pair))] for pair in combinations(images, 2)]
            (new / _SHARED).write_text(json.dumps(counts) + "\n")

        place_of = {scene: place for place, names in self.places.scenes.items() for scene in names}
        folder = self.folder / f"shared-{states.digest(['lib.data.scenes.overlap'], self._files)}"
        make_checked(folder, "shared", measure)
        many = {
            frozenset((one, other)): count
            for one, other, count in json.loads((folder / _SHARED).read_text())
            if count > MOST_SHARED
        }
        for pair, count in many.items():
            if len({place_of[scene] for scene in pair}) > 1:
                raise ValueError(
                    f"{' and '.join(sorted(pair))} in {self.root} share {count} verified matches: they "
                    "show one place, so name them under one in scenes.json"
                )
        return many

    def _parts(self, name: str) -> tuple[str, str, float]:
        """The place, the kind and the tolerance (px) that a set's name says."""
        for place in sorted(self.places.scenes, key=len, reverse=True):
            if name == place or name.startswith(f"{place}-"):
                rest = name.removeprefix(place)
                kind = next((kind for kind in (WIDE, IMAGES_OF) if rest.startswith(kind)), "")
                size = rest.removeprefix(kind).removeprefix("-").removesuffix("px")
                return place, kind, float(size or TRAINING)
        raise ValueError(f"{self.root} has no set {name!r}: choose from {', '.join(self.names)}")
