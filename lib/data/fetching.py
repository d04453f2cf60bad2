"""Fetch, unpack and verify UBC PhotoTour (Brown, Hua and Winder, PAMI 2011) from a mirror.

The original hosts are gone and the mirror re-packed the archives, so their hashes are unknown. A set is
therefore verified by its content, and moved to its folder only afterwards.
"""

import http.client
import os
import re
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from urllib.request import Request, urlopen

from tqdm.auto import tqdm

from lib.data.phototour import INFO, INTEREST, MATCHES, read_layout, read_sheet
from lib.files import make_once

MIRROR = "https://cmp.felk.cvut.cz/~mishkdmy/datasets/BrownPhotoTour/"
_MEMBER = re.compile(rf"patches\d{{4}}\.bmp|{re.escape(INFO)}|{re.escape(INTEREST)}|m50_\d+_\d+_\d\.txt")
# Seconds without data after which a connection counts as lost.
SILENCE = 60.0
_DAMAGED = zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, FileNotFoundError


def fetch(home: Path, count: int, mirror: str = MIRROR, keep_archive: bool = False) -> None:
    """Fetch a set into a folder and verify it; verify a set that is already there and leave it alone.

    An archive ``NAME.zip`` next to the folder is used instead of the mirror's. If the download stops for
    any reason, Ctrl-C included, the received part stays, and the same call continues from there.

    Args:
        home: the set's folder, named after the set; parent folders are made if missing.
        count: the set's number of patches.
        mirror: the http address in front of ``NAME.zip``.
        keep_archive: whether to keep the archive once the set is in place.

    Raises:
        ValueError: the archive, its content or the existing set is not as expected.
        OSError: the mirror cannot be reached, or the folder cannot be written.
    """
    archive = home.with_name(f"{home.name}.zip")

    def obtain(part: Path) -> None:
        if not archive.exists():
            download(f"{mirror.rstrip('/')}/{archive.name}", archive)
        try:
            unpack(archive, part)
            verify_set(part, count)
        except _DAMAGED as error:
            message = f"{archive} does not hold the whole set ({error!r})"
            raise ValueError(f"{message}: delete it and fetch it again") from error

    if home.exists():
        verify_set(home, count)
    else:
        make_once(home, home.name, obtain)
        if not keep_archive:
            archive.unlink(missing_ok=True)
    print(f"{home}: whole, {count:,} patches", flush=True)


def download(url: str, archive: Path) -> None:
    """Fetch an http address to `archive`, which appears only once it has the length the server stated.

    The received part is kept in ``ARCHIVE.part``, and another call continues it. A change of the
    server's file between two calls goes unnoticed until the archive is unpacked.

    Raises:
        OSError: the server refuses, the connection fails, or the folder cannot be written.
    """
    part = archive.with_name(f"{archive.name}.part")
    # Request the last byte again, so that the range exists on the server even if the part is complete.
    start = max(part.stat().st_size - 1, 0) if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={start}-"})
    try:
        with urlopen(request, timeout=SILENCE) as response, open(part, "ab") as file:
            file.truncate(start if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0)
            bar = {"total": response.length, "desc": part.stem, "disable": None}
            with tqdm.wrapattr(response, "read", **bar) as source:
                shutil.copyfileobj(source, file)
            if response.length:
                raise ConnectionError(f"cut off, {response.length:,} bytes are missing")
    except (OSError, http.client.HTTPException) as error:
        # A server's message may hold terminal control characters, which repr escapes.
        raise OSError(f"{url}: {error!r}: run again to continue") from error
    os.replace(part, archive)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a set's files into one folder, whatever their folder in the archive; skip other files.

    Raises:
        OSError: the folder cannot be written.
        zipfile.BadZipFile, zlib.error, EOFError, RuntimeError: the archive is damaged, or is none.
    """
    with zipfile.ZipFile(archive) as packed:
        for member in tqdm(packed.infolist(), desc=f"unpacking {archive.name}", disable=None):
            member.filename = PurePosixPath(member.filename).name
            if _MEMBER.fullmatch(member.filename):
                packed.extract(member, folder)


def verify_set(folder: Path, count: int) -> None:
    """Check all that loading a set would, including every sheet's pixels, and the number of patches.

    Raises:
        ValueError, FileNotFoundError: a file is missing or damaged, or the number of patches is not
            `count`.
    """
    sheets, _, _, pairs = read_layout(folder, count)
    if pairs is None:
        raise ValueError(f"{folder / MATCHES} is missing")
    for sheet in tqdm(sheets, desc="checking sheets", unit="sheet", leave=False, disable=None):
        read_sheet(sheet)
