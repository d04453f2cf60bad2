"""UBC PhotoTour (Brown, Hua and Winder, PAMI 2011) from a mirror: fetched, unpacked, verified.

The original hosts are gone and the mirror packed the archives anew, so no hash of theirs is known: a set
is verified by its content, and stands in its place only then. What has come of an archive lies in
``NAME.zip.part``; ``NAME.zip.part.json`` says of which state of which file it is the beginning, and only
that is continued (RFC 9110, section 14).
"""

import errno
import http.client
import json
import logging
import os
import re
import shutil
import struct
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
from lib.files import make_once, told, write_bytes

MIRROR = "https://cmp.felk.cvut.cz/~mishkdmy/datasets/BrownPhotoTour/"
_MEMBER = re.compile(rf"patches\d{{4}}\.bmp|{re.escape(INFO)}|{re.escape(INTEREST)}|m50_\d+_\d+_\d\.txt")
# Bytes at most: a sheet with header and palette, a patch's lines of text, all match files of a set.
_SHEET_BYTES, _LINE_BYTES, _MATCH_BYTES = SHEET * SHEET + 4096, 320, 128_000_000
_CHUNK = 1 << 16
# Failures in a row after which a download gives up; a try that gets further than every one before by
# HEADWAY bytes is none. Seconds before the second try, doubled for each further one; and without a byte
# after which a connection counts as lost.
TRIES, HEADWAY, FIRST_WAIT, SILENCE = 6, 1 << 20, 1.0, 60.0
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_ANEW = "Delete it and fetch it again, or from another mirror"
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, UnicodeError, RuntimeError)

log = logging.getLogger(__name__)


class _Lost(Exception):
    """A try failed for a reason that may pass."""


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
    with told(folder):
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

        def obtain(part: Path, home=home, archive=archive, count=counts[name]) -> None:
            if not archive.exists():
                url = f"{mirror.rstrip('/')}/{archive.name}"
                print(f"{home.name}: fetching {url}", flush=True)
                download(url, archive, _unpacked_bytes(count))
            unpack(archive, part, _unpacked_bytes(count))
            verify_set(part, count, archive, _ANEW)

        try:
            make_once(home, name, obtain, wait=0)
        except TimeoutError:
            raise OSError(f"another process is fetching {name} to {folder}: wait for it") from None
        if not keep_archives:
            archive.unlink()
        print(f"{name}: {counts[name]:,} patches in {home}", flush=True)


def part_path(archive: Path) -> Path:
    """Where what has come of an archive lies until it is whole."""
    return archive.with_name(archive.name + ".part")


def download(url: str, target: Path, most: int) -> None:
    """Fetch an http address to `target`, which appears only when it is as long as the server said.

    Raises:
        ValueError: the file there is longer than `most` bytes or of untold length.
        OSError: the server refuses, the connection fails too often, or the folder cannot be written.
    """
    part = part_path(target)
    furthest, failures = _size(part), 0
    with tqdm(desc=target.name, unit="B", unit_scale=True, disable=None) as bar:
        while True:
            try:
                _continue(url, part, most, bar)
                break
            except _Lost as lost:
                have = _size(part)
                failures = 1 if have >= furthest + HEADWAY else failures + 1
                furthest = max(furthest, have)
                if failures >= TRIES:
                    raise OSError(
                        f"{url}: {lost}, {failures} times in a row; {have:,} bytes are kept in {part}: "
                        "run the same command to continue, or name another mirror"
                    ) from lost
                log.warning("%s: %s; trying again", url, lost)
                time.sleep(FIRST_WAIT * 2 ** (failures - 1))
    os.replace(part, target)
    _note(part).unlink(missing_ok=True)


def _continue(url: str, part: Path, most: int, bar: tqdm) -> None:
    """One request that leaves `part` whole, or raises."""
    known = _known(url, part)
    have = _size(part) if known else 0
    if known and have == known["total"]:
        return
    headers = {"User-Agent": "descriptor-study (urllib)", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": known["validator"]}
    with _opened(urllib.request.Request(url, headers=headers), part) as response:
        if response.status == 206 and have:
            rest = f"bytes {have}-{known['total'] - 1}/{known['total']}"
            # Some servers don't look at If-Range.
            same = _validator(response) in (known["validator"], None)
            if response.headers.get("Content-Range", "").strip() != rest or not same:
                _note(part).unlink(missing_ok=True)
                raise _Lost("the file on the server has changed; starting anew")
        else:
            length = response.headers.get("Content-Length", "")
            if response.status != 200 or not length.isdecimal():
                raise ValueError(
                    f"{url}: the server does not say how long the file is; name another mirror"
                )
            have, known = 0, {"url": url, "total": int(length), "validator": _validator(response)}
            part.unlink(missing_ok=True)
            write_bytes(_note(part), json.dumps(known).encode())
        if known["total"] > most:
            _note(part).unlink(missing_ok=True)
            raise ValueError(
                f"{url} has {known['total']:,} bytes, a set {most:,} at most: name another mirror"
            )
        with told(part), open(part, "ab" if have else "wb") as file:
            bar.reset(known["total"])
            # What had come before is no part of the speed.
            bar.n = bar.last_print_n = bar.initial = have
            while chunk := _received(response):
                have += file.write(chunk)
                bar.update(len(chunk))
    if have != known["total"]:
        raise _Lost(f"cut off after {have:,} of {known['total']:,} bytes")


def _opened(request: urllib.request.Request, part: Path) -> http.client.HTTPResponse:
    try:
        return urllib.request.urlopen(request, timeout=SILENCE)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            _note(part).unlink(missing_ok=True)
            raise _Lost("the server cannot continue the file kept; starting anew") from error
        # The server's own words may hold what a terminal obeys.
        answer = f"the server answers {error.code} {http.client.responses.get(error.code, '')}".strip()
        if error.code in _PASSING:
            raise _Lost(answer) from error
        raise OSError(f"{request.full_url}: {answer}; name another mirror") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Lost(f"no connection ({_printable(error)})") from error


def _received(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _Lost(f"connection lost ({_printable(error)})") from error


def _validator(response: http.client.HTTPResponse) -> str | None:
    """What If-Range may hold: a strong ETag, else the date."""
    etag = response.headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified")


def _known(url: str, part: Path) -> dict | None:
    """The state that the part is the beginning of, or None where that is not certain."""
    try:
        state = json.loads(_note(part).read_bytes())
        return state if state["url"] == url and state["validator"] and state["total"] >= 0 else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def unpack(archive: Path, folder: Path, most: int) -> None:
    """Unpack a set's files, side by side whatever their folder in the archive; all else stays packed.

    Nothing is written but `folder`/NAME of a file that a set has, and no more than an archive's list of
    members claims.

    Raises:
        ValueError: no ZIP archive, a damaged one, a file twice, or more than `most` bytes in it.
        OSError: the folder cannot be written or has too little room.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            members: dict[str, zipfile.ZipInfo] = {}
            for info in packed.infolist():
                name = PurePosixPath(info.filename).name
                if _MEMBER.fullmatch(name) and members.setdefault(name, info) is not info:
                    raise zipfile.BadZipFile(f"it holds {name} twice")
            total = sum(info.file_size for info in members.values())
            if total > most:
                raise zipfile.BadZipFile(
                    f"it claims to hold {total:,} bytes, a set has {most:,} at most"
                )
            _require_room(folder, total, "unpacking; the archive is kept")
            bar = tqdm(members.items(), desc=f"unpacking {archive.name}", unit="file", disable=None)
            for name, info in bar:
                with packed.open(info) as source, told(folder), open(folder / name, "wb") as target:
                    shutil.copyfileobj(source, target)
    except _DAMAGED as error:
        reason = f"damaged or no archive of a set ({_printable(error)})"
        raise ValueError(f"{archive} is refused: {reason}. {_ANEW}") from error


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
        raise OSError(
            errno.ENOSPC,
            f"{folder} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB are needed for {purpose}: "
            "make room, give another folder or fetch fewer with --sets",
        )


def _printable(error: Exception) -> str:
    """An error's words, which may be a stranger's, without what a terminal obeys."""
    return "".join(c if c.isprintable() else "?" for c in str(error) or type(error).__name__)


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
