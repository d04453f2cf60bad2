"""UBC PhotoTour (Brown, Hua and Winder, PAMI 2011) from a mirror: fetched, unpacked, verified.

The original hosts are gone and the mirror packed the archives anew, so no hash of theirs is known: a set
is verified by its content, and takes its folder only then.
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
# Seconds after which a connection is lost.
SILENCE = 60.0
_DAMAGED = zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, FileNotFoundError


def fetch(home: Path, count: int, mirror: str = MIRROR, keep_archive: bool = False) -> None:
    """Have a verified set in a folder; one that is there already is verified and left alone.

    An archive that lies beside the folder as ``NAME.zip`` is taken instead of the mirror's. Whatever
    stops the fetching, Ctrl-C included, the part that came stays, and the same call continues there.

    Args:
        home: the folder, named as the set; those above it are made if missing.
        count: of its patches.
        mirror: the http address in front of ``NAME.zip``.
        keep_archive: whether the archive stays once the set is in place.

    Raises:
        ValueError: the archive, its content or the set already there is not what it should be.
        OSError: the mirror cannot be reached, or the folder not written.
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
    """Fetch an http address to `archive`, which appears only when it is as long as the server said.

    What has come lies in ``ARCHIVE.part``, which a further call continues. That the file did not change
    between two calls, nobody checks before it is unpacked.

    Raises:
        OSError: the server refuses, the connection fails, or the folder cannot be written.
    """
    part = archive.with_name(f"{archive.name}.part")
    # The last byte comes twice, so that a part that is whole is a range that the server has.
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
        # A server's words may hold what a terminal obeys, which repr does not.
        raise OSError(f"{url}: {error!r}: run again to continue") from error
    os.replace(part, archive)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a set's files, side by side whatever their folder in the archive; all else stays packed.

    Raises:
        OSError: the folder cannot be written.
        zipfile.BadZipFile, zlib.error, EOFError, RuntimeError: a damaged archive, or none.
    """
    with zipfile.ZipFile(archive) as packed:
        for member in tqdm(packed.infolist(), desc=f"unpacking {archive.name}", disable=None):
            member.filename = PurePosixPath(member.filename).name
            if _MEMBER.fullmatch(member.filename):
                packed.extract(member, folder)


def verify_set(folder: Path, count: int) -> None:
    """Check all that loading a set would, every sheet's pixels included, and its number of patches.

    Raises:
        ValueError, FileNotFoundError: a file is missing or damaged, or there are other than `count`
            patches.
    """
    sheets, _, _, pairs = read_layout(folder, count)
    if pairs is None:
        raise ValueError(f"{folder / MATCHES} is missing")
    for sheet in tqdm(sheets, desc="checking sheets", unit="sheet", leave=False, disable=None):
        read_sheet(sheet)
