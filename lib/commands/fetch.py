"""Fetches the three sets of UBC PhotoTour (Brown, Hua and Winder, PAMI 2011) from a mirror.

``python -m lib.commands.fetch DIR`` leaves DIR/liberty, DIR/notredame and DIR/yosemite as
`lib.data.phototour` reads them. The original hosts are gone and the mirror packed the archives anew,
so no hash of theirs is known: a set is verified by its content, and stands in its place only then.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from tqdm.auto import tqdm

from lib.data import phototour
from lib.data.archives import Bounds, unpack
from lib.data.download import Patience, download, part_path
from lib.data.phototour import INFO, INTEREST, KNOWN_COUNTS, MATCHES, PER_SHEET, SHEET

MIRROR = "https://cmp.felk.cvut.cz/~mishkdmy/datasets/BrownPhotoTour/"
# Bytes at most: a sheet with header and palette, and a line of each text (9, 44 and 32 are usual).
_SHEET_BYTES = SHEET * SHEET + 4096
_INFO_LINE, _INTEREST_LINE, _MATCH_LINE = 64, 256, 128
# Pairs of the longest m50 file and, at most, of all that a set is distributed with.
_LONGEST_MATCHES, _ALL_MATCHES, _MATCH_FILES = 500_000, 1_000_000, 12


def bounds_of(name: str, count: int) -> Bounds:
    """What an archive of the set `name` with `count` patches can hold."""
    sheets = _sheets_of(count)
    texts = {INFO: count * _INFO_LINE, INTEREST: count * _INTEREST_LINE}

    def largest(file: str) -> int | None:
        if file in texts:
            return texts[file]
        if sheet := re.fullmatch(r"patches([0-9]{4})\.bmp", file):
            return _SHEET_BYTES if int(sheet[1]) < sheets else None
        if matches := re.fullmatch(r"m50_([0-9]{1,6})_[0-9]{1,6}_[0-9]\.txt", file):
            return min(int(matches[1]), _LONGEST_MATCHES) * _MATCH_LINE
        return None

    most_bytes = sheets * _SHEET_BYTES + sum(texts.values()) + _ALL_MATCHES * _MATCH_LINE
    return Bounds(name, largest, most_bytes, sheets + len(texts) + _MATCH_FILES)


def verify_set(folder: Path, count: int) -> None:
    """Check all that loading a set would, every sheet's pixels included, and its number of patches.

    Args:
        folder: as `phototour.read_phototour` takes it; the match file must be there too.
        count: patches that it must have.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the set has another number of patches.
    """
    # The reader itself would also write a copy of all patches, which here nobody needs.
    sheets = phototour.find_sheets(folder)
    point_ids = phototour.read_point_ids(folder / INFO, len(sheets), allow_single=False)
    if len(point_ids) != count:
        raise ValueError(
            f"{folder / INFO} has {len(point_ids):,} lines, the original {count:,}: "
            "the set is incomplete or another one"
        )
    phototour.read_pairs(folder / MATCHES, point_ids)
    if (folder / INTEREST).exists():
        phototour.read_image_ids(folder / INTEREST, count)
    for sheet in tqdm(sheets, desc="checking sheets", unit="sheet", leave=False, disable=None):
        phototour.read_sheet(sheet)


def fetch_set(
    folder: Path,
    name: str,
    mirror: str = MIRROR,
    counts: Mapping[str, int] = KNOWN_COUNTS,
    *,
    keep_archive: bool = False,
    patience: Patience | None = None,
) -> str:
    """Have a verified set in `folder`/`name`, fetched if it is not there.

    An archive that lies in `folder` as ``name.zip`` is taken instead of the mirror's.

    Args:
        folder: must be there.
        name: a key of `counts`.
        mirror: the address in front of ``name.zip``.
        counts: number of patches of each set.
        keep_archive: whether the archive stays once the set is in place.
        patience: with a bad connection.

    Returns:
        a line that says what was done.

    Raises:
        ValueError: the archive, its content or a set already there is not what it should be.
        OSError: the mirror cannot be reached, or the folder not written.
    """
    home, archive, count = folder / name, folder / f"{name}.zip", counts[name]
    with _alone(folder, name):
        if home.exists():
            _verify_present(home, count)
            return f"{name}: already there and whole, {count:,} patches; left alone"
        bounds = bounds_of(name, count)
        if not archive.exists():
            url = f"{mirror.rstrip('/')}/{name}.zip"
            print(f"{name}: fetching {url}", flush=True)
            # Packed, nothing is longer than unpacked by more than this; it may come with notes.
            most = bounds.most_bytes + bounds.most_bytes // 4
            download(url, archive, most=most, spare=bounds.most_bytes, patience=patience)
        skipped = _install(archive, home, bounds, count)
        if not keep_archive:
            archive.unlink()
    more = f"; not unpacked: {_listed(skipped)}" if skipped else ""
    return f"{name}: {count:,} patches in {home}{more}"


def fetch(
    folder: Path,
    sets: Sequence[str],
    mirror: str = MIRROR,
    counts: Mapping[str, int] = KNOWN_COUNTS,
    *,
    keep_archives: bool = False,
    patience: Patience | None = None,
) -> None:
    """Have verified sets in `folder`, one after the other; prints a line for each.

    Raises:
        ValueError, OSError: as `fetch_set`; also when the disk has too little room for the sets.
    """
    _make(folder)
    missing = [name for name in sets if not (folder / name).exists()]
    needed = sum(bounds_of(name, counts[name]).most_bytes for name in missing)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"{folder} has {free / 1e9:.1f} GB free, {', '.join(missing)} need up to "
            f"{needed / 1e9:.1f} GB unpacked, and an archive beside: make room, give another folder "
            "or fetch fewer with --sets",
        )
    for name in sets:
        done = fetch_set(folder, name, mirror, counts, keep_archive=keep_archives, patience=patience)
        print(done, flush=True)


def main(
    arguments: Sequence[str] | None = None,
    counts: Mapping[str, int] = KNOWN_COUNTS,
    patience: Patience | None = None,
) -> int:
    """The command line; returns the exit status: 0, 1 if something failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.commands.fetch",
        description="Fetch the sets of UBC PhotoTour, verify them and put them in DIR/liberty, "
        "DIR/notredame and DIR/yosemite. Stopped in the middle, the same command continues.",
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="where the sets go; made if missing")
    names, told = list(counts), f"which ones, of {', '.join(counts)} (default: all)"
    add("--sets", nargs="+", choices=names, default=names, metavar="SET", help=told)
    add("--mirror", default=MIRROR, metavar="URL", help=f"the address before NAME.zip ({MIRROR})")
    add("--keep-archives", action="store_true", help="keep DIR/NAME.zip once a set is in place")
    chosen = parser.parse_args(arguments)
    if not chosen.mirror.startswith(("http://", "https://")):
        parser.error(f"--mirror {chosen.mirror!r} must start with http:// or https://")
    try:
        fetch(
            chosen.folder,
            chosen.sets,
            chosen.mirror,
            counts,
            keep_archives=chosen.keep_archives,
            patience=patience,
        )
    except KeyboardInterrupt:
        parts = [part_path(chosen.folder / f"{name}.zip") for name in chosen.sets]
        kept = [f"{part} ({part.stat().st_size:,} bytes)" for part in parts if part.exists()]
        print(f"\nStopped. Kept: {', '.join(kept) or 'what was whole'}; the same command continues.")
        return 130
    except (ValueError, OSError) as error:
        print(f"fetch: {_message(error)}", file=sys.stderr)
        return 1
    if all((chosen.folder / name).is_dir() for name in counts):
        print(f"All sets are there: ./run_all.sh --data {chosen.folder}")
    return 0


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno, f"{folder} cannot be made ({error.strerror}): give another folder"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, f"{folder} cannot be written: give another folder")


def _message(error: Exception) -> str:
    """What an error says, without the number of the operating system's where it says what to do."""
    told = isinstance(error, OSError) and error.strerror and error.filename is None
    return error.strerror if told else str(error)


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[None]:
    """One process a set; what a killed one left half-unpacked is removed."""
    try:
        with FileLock(folder / f".{name}.lock", timeout=0):
            for left in folder.glob(f".{name}-*.part"):
                shutil.rmtree(left)
            yield
    except Timeout:
        raise OSError(
            f"another process is fetching {name} to {folder}: wait until it is done, or stop it"
        ) from None


def _install(archive: Path, home: Path, bounds: Bounds, count: int) -> list[str]:
    """Unpack beside `home`, verify, and rename; on any error nothing is left but the archive."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{home.name}-", suffix=".part", dir=home.parent))
    try:
        skipped = unpack(archive, temporary, bounds)
        try:
            verify_set(temporary, count)
        except (ValueError, FileNotFoundError) as error:
            told = str(error).replace(f"{temporary}{os.sep}", "")
            raise ValueError(
                f"{archive} does not hold {home.name}: {told}. Delete the archive and fetch it again, "
                "or from another mirror"
            ) from error
        os.chmod(temporary, 0o755)
        os.rename(temporary, home)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return skipped


def _verify_present(home: Path, count: int) -> None:
    try:
        verify_set(home, count)
    except (ValueError, FileNotFoundError) as error:
        raise ValueError(
            f"{home} is there but is not whole ({error}): move it away or delete it, and run again"
        ) from error


def _sheets_of(count: int) -> int:
    return -(-count // PER_SHEET)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


if __name__ == "__main__":
    sys.exit(main())
