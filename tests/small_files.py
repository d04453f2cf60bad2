"""Small files for tests: a PhotoTour set, a folder of photographs, a changed line. And a command that
gets Ctrl-C while it works on such files."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np

from lib.data.patchset import LabelledPairs
from lib.data.phototour import write_pairs, write_patches


def write_set(folder: Path, count: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Write a set in the originals' layout, of two patches a point and three pairs. Return its patches
    and point ids."""
    rng = np.random.default_rng(seed)
    patches = rng.integers(0, 256, (count, 64, 64), dtype=np.uint8)
    points = np.arange(count) // 2
    pairs = LabelledPairs(np.array([0, 2, 4]), np.array([1, 9, 5]), np.array([True, False, True]))
    write_patches(folder, [(patches, points, np.arange(count) % 7, rng.random((count, 4)))])
    write_pairs(folder, pairs, points)
    return patches, points


def photo_folder(folder: Path, count: int = 5) -> Path:
    """Write a folder of photographs of smooth noise, 00.jpg and so on."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for index in range(count):
        noise = cv2.GaussianBlur(rng.integers(0, 256, (200, 240), dtype=np.uint8), (0, 0), 2)
        noise = cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX)
        cv2.imwrite(str(folder / f"{index:02d}.jpg"), noise)
    return folder


def write_oxford_sequence(folder: Path, images: Sequence[np.ndarray], homographies: np.ndarray) -> None:
    """Write six images and five homographies in the layout of the Oxford Affine set."""
    folder.mkdir(parents=True)
    for number, image in enumerate(images, 1):
        cv2.imwrite(str(folder / f"img{number}.png"), image)
    for number, homography in enumerate(homographies, 2):
        np.savetxt(folder / f"H1to{number}p", homography, fmt="%.17g")


def replace_line(path: Path, number: int, text: str) -> None:
    """Replace a line by a text; the first line is 1."""
    lines = path.read_text().splitlines()
    lines[number - 1] = text
    path.write_text("\n".join(lines) + "\n")


def interrupted(
    command: Sequence[str], begun: Callable[[], object], by: signal.Signals = signal.SIGINT
) -> tuple[int, str, str]:
    """Run a module of lib as a command, send it a signal once it has begun, by default Ctrl-C's, and
    return its exit status, stdout and stderr."""
    root = Path(__file__).resolve().parents[1]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-m", *command], cwd=root, **pipes) as process:
        while not begun():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(by)
        # Returns once no process, including those it started, holds stdout or stderr.
        try:
            output = process.communicate(timeout=20)
        finally:
            process.kill()
    return process.returncode, *output
