"""Fetches one large file over HTTP, going on where an earlier try stopped (RFC 9110, section 14).

What has come so far lies in ``NAME.part``; ``NAME.part.json`` says of which file, in which state
(its ETag or date), it is the beginning. Only that state is continued, any other starts anew.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import logging
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm.auto import tqdm

from lib.files import write_bytes

_CHUNK = 1 << 16
# A try that gets further than every one before by this many bytes does not count as failed.
_HEADWAY = 1 << 20
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_USER_AGENT = "descriptor-study (urllib)"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How long a download puts up with a bad connection.

    Attributes:
        tries: failures in a row, without headway, after which it gives up.
        first_wait: seconds before the second try; each further wait is twice as long.
        longest_wait: seconds, the most it waits, whatever the server asks for.
        silence: seconds without a byte after which a connection counts as lost.
    """

    tries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 60.0
    silence: float = 60.0


@dataclass(frozen=True)
class _State:
    """One state of the file on the server; `total` is its size in bytes."""

    url: str
    total: int
    etag: str | None
    modified: str | None

    @property
    def validator(self) -> str | None:
        """What If-Range may hold: a strong ETag, else the date."""
        if self.etag and not self.etag.startswith("W/"):
            return self.etag
        return self.modified


class _Lost(Exception):
    """A try that failed for a reason that may pass; `wait` is what the server asked for, in s."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def part_path(target: Path) -> Path:
    """Where what has come of `target` lies until it is whole."""
    return target.with_name(target.name + ".part")


def download(
    url: str,
    target: Path,
    *,
    most: int,
    spare: int = 0,
    patience: Patience | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Fetch `url` to `target`, which appears only when it is as long as the server said.

    Whatever stops it, Ctrl-C included, what has come stays in `part_path(target)`, and the same call
    continues there.

    Args:
        url: http or https.
        target: its folder must be there.
        most: bytes; a longer file is refused before it is fetched.
        spare: bytes that must stay free on the disk beside the file.
        patience: with a bad connection, `Patience()` by default.
        sleep: waits some seconds.

    Raises:
        ValueError: no http address, or the file there is longer than `most` or of untold length.
        OSError: the server refuses, the connection fails too often, or the disk has too little room.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is no http or https address: name a mirror that starts with one")
    patience = patience or Patience()
    part = part_path(target)
    furthest, failures = _size(part), 0
    with tqdm(desc=target.name, unit="B", unit_scale=True, unit_divisor=1024, disable=None) as bar:
        while True:
            try:
                _once(url, part, most, spare, patience.silence, bar)
                break
            except _Lost as lost:
                have = _size(part)
                failures = 1 if have >= furthest + _HEADWAY else failures + 1
                furthest = max(furthest, have)
                if failures >= patience.tries:
                    kept = f"{have:,} bytes are kept in {part}: " if have else ""
                    raise OSError(
                        f"{url}: {lost}, {failures} times in a row. {kept}run the same command to "
                        f"{'continue' if have else 'try again'}, or name another mirror"
                    ) from lost
                wait = max(patience.first_wait * 2 ** (failures - 1), lost.wait)
                wait = min(wait, patience.longest_wait)
                log.warning("%s: %s; trying again in %.0f s", url, lost, wait)
                sleep(wait)
    os.replace(part, target)
    _note(part).unlink(missing_ok=True)


def _once(url: str, part: Path, most: int, spare: int, silence: float, bar: tqdm) -> None:
    """One request that leaves `part` whole, or raises."""
    known = _known(part, url)
    have = _size(part) if known and known.validator else 0
    if known and have == known.total:
        return
    headers = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"}
    if known and 0 < have < known.total:
        headers |= {"Range": f"bytes={have}-", "If-Range": known.validator}
    with _open(urllib.request.Request(url, headers=headers), part, silence) as response:
        if response.status == 206 and "Range" in headers:
            _check_continues(response, known, have, part)
            state = known
        else:
            if "Range" in headers:
                log.warning("%s: the server sends the whole file; starting anew", url)
            have, state = 0, _state_of(response, url)
        if state.total > most:
            raise ValueError(
                f"{url} has {state.total:,} bytes, more than the {most:,} that this archive can need: "
                "the mirror holds another file; name another mirror"
            )
        _check_room(part, state.total - _size(part), spare)
        try:
            with open(part, "ab" if have else "wb") as file:
                if not have:
                    write_bytes(_note(part), json.dumps(asdict(state)).encode())
                bar.reset(state.total)
                # What had come before is no part of the speed.
                bar.n = bar.last_print_n = bar.initial = have
                while have < state.total and (chunk := _read(response)):
                    file.write(chunk)
                    have += len(chunk)
                    bar.update(len(chunk))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _disk_error(error, part) from error
    if have != state.total:
        raise _Lost(f"cut off after {have:,} of {state.total:,} bytes")


def _open(request: urllib.request.Request, part: Path, silence: float) -> http.client.HTTPResponse:
    url = request.full_url
    try:
        response = urllib.request.urlopen(request, timeout=silence)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:
                _forget(part)
                raise _Lost("the server cannot continue the file kept; starting anew") from error
            answer = f"the server answers {error.code} {error.reason}"
            if error.code in _PASSING:
                raise _Lost(answer, _retry_after(error)) from error
        raise OSError(f"{url}: {answer}; check the address or name another mirror") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise OSError(
                f"{url}: the server's certificate is not to be trusted ({error.reason}); check the "
                "address and this machine's clock, or name another mirror"
            ) from error
        raise _Lost(f"no connection ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Lost(f"no answer ({error or type(error).__name__})") from error
    if response.status not in (200, 206):
        response.close()
        raise OSError(
            f"{url}: the server answers {response.status} where a file was asked for; "
            "check the address or name another mirror"
        )
    return response


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _Lost(f"connection lost ({error or type(error).__name__})") from error


def _state_of(response: http.client.HTTPResponse, url: str) -> _State:
    length = response.headers.get("Content-Length", "")
    encoding = response.headers.get("Content-Encoding", "identity")
    if response.status == 206 or not length.isdecimal() or encoding != "identity":
        raise ValueError(
            f"{url}: the server does not say how long the file is, so a whole one could not be told "
            "from one cut short; name another mirror"
        )
    headers = response.headers
    return _State(url, int(length), headers.get("ETag"), headers.get("Last-Modified"))


def _check_continues(response: http.client.HTTPResponse, known: _State, have: int, part: Path) -> None:
    """Whether a 206 answer is the rest of the file kept; some servers don't look at If-Range."""
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers.get("Content-Range", "").strip())
    rest = found is not None and tuple(map(int, found.groups())) == (have, known.total - 1, known.total)
    etag, modified = response.headers.get("ETag"), response.headers.get("Last-Modified")
    by_tag = known.etag is not None and etag is not None
    same = etag == known.etag if by_tag else modified in (known.modified, None)
    if not (rest and same):
        _forget(part)
        raise _Lost("the file on the server has changed; starting anew")


def _retry_after(error: urllib.error.HTTPError) -> float:
    asked = (error.headers.get("Retry-After") or "").strip()
    return float(asked) if asked.isdecimal() else 0.0


def _check_room(part: Path, coming: int, spare: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if free < coming + spare:
        raise OSError(
            errno.ENOSPC,
            f"{part.parent} has {free / 1e9:.1f} GB free; {coming / 1e9:.1f} GB to fetch and "
            f"{spare / 1e9:.1f} GB to unpack don't fit: make room or give another folder",
        )


def _disk_error(error: OSError, part: Path) -> OSError:
    if error.errno == errno.ENOSPC:
        advice = "the disk is full: make room and run the same command, what has come is kept"
    else:
        advice = f"{error.strerror or error}: give a folder that can be written"
    return OSError(error.errno, f"cannot write {part}: {advice}")


def _known(part: Path, url: str) -> _State | None:
    """The state that the part is the beginning of, or None where that is not certain."""
    try:
        state = _State(**json.loads(_note(part).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return state if state.url == url and isinstance(state.total, int) else None


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _forget(part: Path) -> None:
    for path in (part, _note(part)):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
