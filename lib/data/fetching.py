"""UBC PhotoTour (Brown, Hua and Winder, PAMI 2011) from a mirror: fetched, unpacked, verified.

The original hosts are gone and the mirror packed the archives anew, so no hash of theirs is known: a set
is verified by its content, and takes its folder only then.
"""

import http.client
import logging
import os
import re
import shutil
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from tqdm.auto import tqdm

from lib.data import phototour
from lib.data.phototour import INFO, INTEREST, KNOWN_COUNTS, MATCHES, PER_SHEET, SHEET
from lib.digests import value_digest
from lib.files import explained_errors, make_once

MIRROR = "https://cmp.felk.cvut.cz/~mishkdmy/datasets/BrownPhotoTour/"
_MEMBER = re.compile(rf"patches\d{{4}}\.bmp|{re.escape(INFO)}|{re.escape(INTEREST)}|m50_\d+_\d+_\d\.txt")
# Bytes at most: a sheet with header and palette, a patch's lines of text, all match files of a set.
_SHEET_BYTES, _LINE_BYTES, _MATCH_BYTES = SHEET * SHEET + 4096, 320, 128_000_000
# A download gives up after so many failures in a row; one that brings further bytes starts the count
# anew. Seconds before the second try, doubled for each further one, and seconds of silence after which a
# connection counts as lost.
TRIES, FIRST_WAIT, SILENCE = 6, 1.0, 60.0
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_ANEW = "Delete it and fetch it again, or from another mirror"
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)

log = logging.getLogger(__name__)


def fetch(
    folder: Path,
    sets: Sequence[str] = tuple(KNOWN_COUNTS),
    mirror: str = MIRROR,
    counts: Mapping[str, int] = KNOWN_COUNTS,
    *,
    keep_archives: bool = False,
) -> None:
    """Have verified sets in `folder`/NAME, one after the other; prints what was done with each.

    An archive that lies in `folder` as ``NAME.zip`` is taken instead of the mirror's. Whatever stops the
    fetching, Ctrl-C included, what has come stays, and the same call continues there.

    Args:
        folder: made if missing.
        sets: keys of `counts`.
        mirror: the http address in front of ``NAME.zip``.
        counts: number of patches of each set.
        keep_archives: whether an archive stays once its set is in place.

    Raises:
        ValueError: an archive, its content or a set already there is not what it should be.
        OSError: the mirror cannot be reached, the folder not written, the disk has too little room, or
            another process fetches the set.
    """
    with explained_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in sets if not (folder / name).exists()]
    needed = sum(_unpacked_bytes(counts[name]) for name in missing)
    _require_room(folder, needed, f"{', '.join(missing)} unpacked, and an archive beside")
    for name in sets:
        home, archive = folder / name, folder / f"{name}.zip"
        if home.exists():
            verify_set(home, counts[name], home, "Move it away and run again")
            print(f"{name}: already there and whole, {counts[name]:,} patches; left alone")
            continue

        def obtain(part: Path, archive=archive, count=counts[name]) -> None:
            if not archive.exists():
                download(f"{mirror.rstrip('/')}/{archive.name}", archive)
            unpack(archive, part)
            verify_set(part, count, archive, _ANEW)

        try:
            make_once(home, name, obtain, wait=0)
        except TimeoutError:
            raise OSError(f"another process is fetching {name} to {folder}: wait for it") from None
        if not keep_archives:
            archive.unlink()
        print(f"{name}: {counts[name]:,} patches in {home}", flush=True)


def kept_parts(archive: Path) -> list[Path]:
    """What has come of an archive so far; the name says of which state of which file it is a part."""
    return sorted(archive.parent.glob(f"{archive.name}.*.part"))


def download(url: str, archive: Path) -> None:
    """Fetch an http address to `archive`, which appears only when it is as long as the server said.

    Raises:
        OSError: the server refuses, the connection fails too often, or the folder cannot be written.
    """
    failures = 0
    while not archive.exists():
        came = sum(part.stat().st_size for part in kept_parts(archive))
        try:
            _continue(url, archive)
        except (OSError, http.client.HTTPException) as error:
            more = sum(part.stat().st_size for part in kept_parts(archive))
            failures = 1 if more > came else failures + 1
            final = isinstance(error, urllib.error.HTTPError) and error.code not in _PASSING
            if final or failures >= TRIES:
                # A server's words may hold what a terminal obeys, which repr does not.
                count = f"{failures} times in a row; {more:,} bytes are kept"
                raise OSError(f"{url}: {error!r}, {count}: run again to continue") from error
            log.warning("%s: %r; trying again", url, error)
            time.sleep(FIRST_WAIT * 2 ** (failures - 1))


def _continue(url: str, archive: Path) -> None:
    """One try: asks for the file's state, then for what is missing of it."""
    head = urllib.request.Request(url, method="HEAD")
    with urllib.request.urlopen(head, timeout=SILENCE) as response:
        length = int(response.headers.get("Content-Length", -1))
        marks = [response.headers.get(name) for name in ("ETag", "Last-Modified")]
    part = archive.with_name(f"{archive.name}.{value_digest([url, length, marks])[:8]}.part")
    for other in set(kept_parts(archive)) - {part}:
        other.unlink()
    have = part.stat().st_size if part.exists() else 0
    if have != length:
        rest = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(rest, timeout=SILENCE) as response:
            have = have if response.status == 206 else 0
            bar = tqdm(
                desc=archive.name, unit="B", unit_scale=True, total=length, initial=have, disable=None
            )
            with bar, open(part, "ab" if have else "wb") as file:
                while chunk := response.read(1 << 16):
                    bar.update(file.write(chunk))
    if part.stat().st_size != length:
        raise ConnectionError(f"cut off after {part.stat().st_size:,} of {length:,} bytes")
    os.replace(part, archive)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a set's files, side by side whatever their folder in the archive; all else stays packed.

    Raises:
        ValueError: no ZIP archive, a damaged one, or a file twice in it.
        OSError: the folder cannot be written or has too little room.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            infos = [(PurePosixPath(info.filename).name, info) for info in packed.infolist()]
            members = [(name, info) for name, info in infos if _MEMBER.fullmatch(name)]
            if len(dict(members)) < len(members):
                raise zipfile.BadZipFile("it holds a file twice")
            _require_room(folder, sum(info.file_size for _, info in members), "unpacking")
            for name, info in tqdm(members, desc=f"unpacking {archive.name}", disable=None):
                with (
                    packed.open(info) as source,
                    explained_errors(folder),
                    open(folder / name, "wb") as target,
                ):
                    shutil.copyfileobj(source, target)
    except _DAMAGED as error:
        raise ValueError(f"{archive} is damaged or no archive of a set ({error!r}). {_ANEW}") from error


def verify_set(folder: Path, count: int, shown: Path, advice: str) -> None:
    """Check all that loading a set would, every sheet's pixels included, and its number of patches.

    Raises:
        ValueError: a file is missing or damaged, or there are other than `count` patches; it is said of
            `shown`, with the advice.
    """
    try:
        sheets, point_ids, _, pairs = phototour.read_layout(folder)
        if pairs is None:
            raise FileNotFoundError(f"{folder / MATCHES} is missing")
        if len(point_ids) != count:
            raise ValueError(f"{INFO} has {len(point_ids):,} lines, the original {count:,}")
        for sheet in tqdm(sheets, desc="checking sheets", unit="sheet", leave=False, disable=None):
            phototour.read_sheet(sheet)
    except (ValueError, FileNotFoundError) as error:
        reason = str(error).replace(f"{folder}{os.sep}", "")
        raise ValueError(f"{shown} does not hold the whole set ({reason}). {advice}") from error


def _unpacked_bytes(count: int) -> int:
    """The most that a set of so many patches has; packed, it is no longer."""
    return -(-count // PER_SHEET) * _SHEET_BYTES + count * _LINE_BYTES + _MATCH_BYTES


def _require_room(folder: Path, needed: int, purpose: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        lacking = f"{folder} has {free / 1e9:.1f} GB free of {needed / 1e9:.1f} GB"
        raise OSError(f"{lacking} needed for {purpose}: make room or fetch fewer with --sets")
