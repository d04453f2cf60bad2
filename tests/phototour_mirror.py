"""A loopback mirror of three tiny PhotoTour sets, for the tests of fetching and unpacking them."""

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
    """A loopback server and its faults. `asked` lists the path and Range of each GET."""

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
                callback, mirror.halfway = mirror.halfway, None
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                callback()
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
    """A server that ignores a client that hangs up, as tests intend."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*_)


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """Run a mirror until the block ends."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetching, "SILENCE", 5.0)
    mirror = Mirror()
    with Server(("127.0.0.1", 0), handler_of(mirror)) as server:
        mirror.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield mirror
        finally:
            server.shutdown()
            thread.join(10)


def packed(members: dict[str, bytes]) -> bytes:
    """Pack members into a ZIP archive."""
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
    """List a folder's names, hidden files too."""
    return sorted(path.name for path in folder.iterdir())
