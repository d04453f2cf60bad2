"""Fetches the three sets of UBC PhotoTour (Brown, Hua and Winder, PAMI 2011) from a mirror.

``python -m lib.commands.fetch DIR`` leaves DIR/liberty, DIR/notredame and DIR/yosemite as
`lib.data.phototour` reads them, each verified and whole.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lib.data.fetching import MIRROR, fetch
from lib.data.phototour import KNOWN_COUNTS


def main(arguments: Sequence[str] | None = None, counts: Mapping[str, int] = KNOWN_COUNTS) -> int:
    """The command line; returns the exit status: 0, 1 if something failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.commands.fetch",
        description="Fetch the sets of UBC PhotoTour, verify them and put them in DIR/liberty, "
        "DIR/notredame and DIR/yosemite. Stopped in the middle, the same command continues.",
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="where the sets go; made if missing")
    known = f"which ones, of {', '.join(counts)} (default: all)"
    add("--sets", nargs="+", choices=list(counts), default=list(counts), metavar="SET", help=known)
    add("--mirror", default=MIRROR, metavar="URL", help=f"the address before NAME.zip ({MIRROR})")
    add("--keep-archives", action="store_true", help="keep DIR/NAME.zip once a set is in place")
    chosen = parser.parse_args(arguments)
    folder = chosen.folder
    if not chosen.mirror.startswith(("http://", "https://")):
        parser.error(f"--mirror {chosen.mirror!r} must start with http:// or https://")
    try:
        fetch(folder, chosen.sets, chosen.mirror, counts, keep_archives=chosen.keep_archives)
    except KeyboardInterrupt:
        print(f"\nStopped. What has come stays in {folder}; the same command continues.")
        return 130
    except (ValueError, OSError) as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    if all((folder / name).is_dir() for name in counts):
        print(f"All sets are there: ./run_all.sh --data {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
