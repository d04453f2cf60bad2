"""Sets of patches of real places, by name.

``PLACE`` is what networks train on and what FPR95 is measured on; ``PLACE-wide`` has the same patches
with the widest pair of each class; ``PLACE-images`` are its images with their keypoints. Each is there
at other tolerances too: ``PLACE-wide-5px``. Cheap to import and to ask for digests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

from lib.data import states
from lib.data.scenes.places import MOST_SHARED, Places, image_files, read_places, shared_matches
from lib.data.states import Manifest
from lib.files import make_checked

if TYPE_CHECKING:
    from lib.data.patchset import PatchSet
    from lib.data.scenes.correspondences import Scene

WIDE, IMAGES_OF = "-wide", "-images"
# Px up to which a carried keypoint and a found one show one point: those shown, and that of training.
SHOWN, TRAINING = (1.5, 3.0, 5.0), 2.5
_CODE = ("lib.data.scenes.prepared", "lib.data.scenes.places", "lib.data.phototour")
_SHARED = "shared.json"


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

    @cached_property
    def _sets(self) -> Mapping[str, tuple[str, str, float]]:
        """By a set's name its place, its kind and its tolerance (px)."""
        sizes = {"": TRAINING, **{f"-{pixels:g}px": pixels for pixels in SHOWN}}
        sets = {}
        for place in self.places.scenes:
            for (size, pixels), kind in product(sizes.items(), ("", WIDE)):
                sets[f"{place}{kind}{size}"] = place, kind, pixels
            sets[f"{place}{IMAGES_OF}"] = place, IMAGES_OF, TRAINING
        return sets

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its sets."""
        return tuple(self._sets)

    def digest(self, name: str) -> str:
        """16 hex digits that tell one state of a set's data from another (`states.digest`)."""
        if self.root is None:
            code = states.code_half(states.digest(_CODE, None))
            return self.manifest.sets.get(name, "unlisted") + code
        place, kind, pixels = self._sets[name]
        return states.digest(_CODE, [self._files_of(*self.places.scenes[place]), kind, pixels])

    @cached_property
    def _files(self) -> list:
        return states.of_files(self.root, ["*/cameras/**/*", "*/sparse/**/*"], sized=["*/images/*"])

    def _files_of(self, *scenes: str) -> list:
        return [row for scene in scenes for row in self._files if row[0].startswith(f"{scene}/")]

    def folder_of(self, name: str) -> Path:
        """The folder of a set of patches, which its wide pairs share; perhaps not there yet."""
        place, _, pixels = self._sets[name]
        stem = f"{place}-{pixels:g}px"
        return self.folder / f"{stem}-{self.digest(stem if stem in self._sets else place)}"

    def load(self, name: str) -> PatchSet | tuple[Scene, ...]:
        """A set, made first where it is not there yet; of images, as `scenes` gives them.

        Raises:
            FileNotFoundError, ValueError: a scene's files are missing, damaged or of no use, or two
                places show one; the message names the folder and what to do.
            OSError: `folder` cannot be written.
        """
        from lib.data.phototour import read_pairs, read_phototour
        from lib.data.scenes.correspondences import Tolerance
        from lib.data.scenes.prepared import WIDE_PAIRS, write_place

        place, kind, pixels = self._sets[name]
        if kind == IMAGES_OF:
            return self.scenes(place)
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
            ValueError: one of them shares verified matches with a scene of another place.
        """
        from lib.data.scenes.prepared import open_scene, prepare

        names, opened = self.places.scenes[place], {}
        shared = {frozenset(pair) for *pair, count in self._shared_matches if count > MOST_SHARED}
        for pair in shared:
            if len(pair.intersection(names)) == 1:
                raise ValueError(f"{' and '.join(sorted(pair))} in {self.root} share matches: one place")
        for name in sorted(names, key=lambda n: len(image_files(self.root / n)), reverse=True):
            if shared.isdisjoint(frozenset((name, other)) for other in opened):
                digest = states.digest(["lib.data.scenes.prepared"], self._files_of(name))
                source, made = self.root / name, self.folder / f"{name}-{digest}"
                make_checked(made, name, partial(prepare, source))
                opened[name] = open_scene(source, made)
        return tuple(opened.values())

    @cached_property
    def _shared_matches(self) -> list[tuple[str, str, int]]:
        """As `shared_matches` of all scenes, measured once."""
        images = {name: image_files(self.root / name) for name in chain(*self.places.scenes.values())}

        def measure(new: Path) -> None:
            (new / _SHARED).write_text(json.dumps(shared_matches(images)) + "\n")

        folder = self.folder / f"shared-{states.digest(['lib.data.scenes.places'], self._files)}"
        make_checked(folder, "shared", measure)
        return json.loads((folder / _SHARED).read_text())
