"""Fetch UBC PhotoTour (Brown, Hua and Winder, PAMI 2011), or the photographs of the study's places.

``python -m lib.commands fetch DIR`` makes DIR/liberty, DIR/notredame and DIR/yosemite as
`lib.data.phototour` reads them, each verified and complete. With ``--places`` it makes DIR/scenes.json
and a folder a scene, as `lib.data.scenes` reads them, and prints whose the photographs are and under
which licences. Rerun the command to resume after a stop.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from lib.commands.options import exit_status
from lib.data.fetching import MIRROR, fetch
from lib.data.phototour import KNOWN_COUNTS
from lib.data.scenes.public import (
    REPOSITORIES,
    PublicScene,
    fetch_scene,
    public_scenes,
    write_roles,
    write_shared_matches,
)


def main(
    arguments: Sequence[str] | None = None,
    counts: Mapping[str, int] = KNOWN_COUNTS,
    scenes: Sequence[PublicScene] | None = None,
) -> int:
    """Run the command line and return the exit status: 0, 1 if something failed, 130 after Ctrl-C.

    Args:
        arguments: the command's arguments, by default those of the process.
        counts: number of patches by set.
        scenes: the scenes that can be fetched, by default those of the tables.
    """
    scenes = public_scenes() if scenes is None else scenes
    places = dict.fromkeys(scene.place for scene in scenes)
    evidence = dict.fromkeys(scene.place for scene in scenes if scene.evidence)
    parser = argparse.ArgumentParser(
        prog="python -m lib.commands fetch", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where all goes; made if missing")
    what = parser.add_mutually_exclusive_group().add_argument
    known = f"which sets, of {', '.join(counts)} (default: all)"
    what("--sets", nargs="+", choices=list(counts), default=list(counts), metavar="SET", help=known)
    free = ", ".join(place for place in places if place not in evidence)
    known = f"places instead of sets: those named, or {', '.join(evidence)}; also {free}"
    what("--places", nargs="*", choices=list(places), metavar="PLACE", help=known)
    add = parser.add_argument
    known = f"the address before NAME.zip ({MIRROR}) or OWNER/REPOSITORY ({REPOSITORIES})"
    add("--mirror", metavar="URL", help=known)
    kept = "keep DIR/NAME.zip or DIR/NAME.originals once a set or scene is in place"
    add("--keep-archives", action="store_true", help=kept)

    def run(options: argparse.Namespace) -> None:
        keep = options.keep_archives
        if options.places is None:
            for name in options.sets:
                fetch(options.folder / name, counts[name], options.mirror or MIRROR, keep)
            return
        chosen = options.places or evidence
        for scene in (scene for scene in scenes if scene.place in chosen):
            print(f"{scene.name}: {scene.author}; {scene.licence}; {scene.address}", flush=True)
            fetch_scene(options.folder / scene.name, scene, options.mirror or REPOSITORIES, keep)
            write_roles(options.folder, scenes)
        write_shared_matches(options.folder, scenes)

    return exit_status(parser, arguments, run)
