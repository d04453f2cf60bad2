"""A mirror of three tiny PhotoTour sets, on loopback, for the tests of what fetches and unpacks them."""

from __future__ import annotations

import io
import re
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from small_files import write_set

from lib.data import fetching

COUNTS = {"liberty": 300, "notredame": 20, "yosemite": 256}


@dataclass
class Mirror:
    """A server on loopback and how it misbehaves. `asked` lists path and Range of each GET."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    halfway: Callable[[], object] | None = None
    released: threading.Event = field(default_factory=threading.Event)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


def handler_of(mirror: Mirror) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            mirror.asked.append((self.path, self.headers["Range"]))
            body = mirror.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            start = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
            if start and mirror.ranges:
                body = body[int(start[1]) :]
            self._answer(206 if start and mirror.ranges else 200, body)
            if mirror.halfway is not None:
                half, mirror.halfway = mirror.halfway, None
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                half()
                return
            self.wfile.write(body[: mirror.cuts.pop(0) if mirror.cuts else len(body)])

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class Server(ThreadingHTTPServer):
    """Does not report that a client hung up, which here is meant."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*_)


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror that answers until the block ends."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetching, "SILENCE", 5.0)
    kept = Mirror()
    with Server(("127.0.0.1", 0), handler_of(kept)) as server:
        kept.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join(10)


def packed(members: dict[str, bytes]) -> bytes:
    """A ZIP archive of them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@dataclass(frozen=True)
class Scenes:
    """The three tiny sets: their patches, their files and their archives."""

    patches: dict[str, np.ndarray]
    files: dict[str, dict[str, bytes]]
    archives: dict[str, bytes]


def tiny_scenes(root: Path) -> Scenes:
    patches = {name: write_set(root / name, count, seed=count)[0] for name, count in COUNTS.items()}
    files = {
        name: {path.name: path.read_bytes() for path in sorted((root / name).iterdir())}
        for name in COUNTS
    }
    return Scenes(patches, files, {name: packed(members) for name, members in files.items()})


def names_in(folder: Path) -> list[str]:
    """What lies in a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())
