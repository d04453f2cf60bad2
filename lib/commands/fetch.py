"""Fetch the three sets of UBC PhotoTour (Brown, Hua and Winder, PAMI 2011) from a mirror.

``python -m lib.commands.fetch DIR`` makes DIR/liberty, DIR/notredame and DIR/yosemite as
`lib.data.phototour` reads them, each verified and complete. Rerun the command to resume after a stop.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lib.commands.options import exit_status
from lib.data.fetching import MIRROR, fetch
from lib.data.phototour import KNOWN_COUNTS


def main(arguments: Sequence[str] | None = None, counts: Mapping[str, int] = KNOWN_COUNTS) -> int:
    """Run the command line and return the exit status: 0, 1 if something failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="where the sets go; made if missing")
    known = f"which ones, of {', '.join(counts)} (default: all)"
    add("--sets", nargs="+", choices=list(counts), default=list(counts), metavar="SET", help=known)
    add("--mirror", default=MIRROR, metavar="URL", help=f"the address before NAME.zip ({MIRROR})")
    add("--keep-archives", action="store_true", help="keep DIR/NAME.zip once a set is in place")

    def run(options: argparse.Namespace) -> None:
        for name in options.sets:
            fetch(options.folder / name, counts[name], options.mirror, options.keep_archives)

    return exit_status(parser, arguments, run)


if __name__ == "__main__":
    sys.exit(main())
