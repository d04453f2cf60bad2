"""Speed of matching packed binary descriptors beside that of matching float ones.

``python tests/speed_matching.py [--count 8000]``. No test: sides are measured in turns within one
process, since machines are shared. Each finds the nearest descriptor of another image for every one.
faiss takes part where it is installed; the study itself does not need it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import cv2
import joblib
import numpy as np
import torch

# Bytes: 128 floats of 4, 256 bits.
FLOAT, BINARY = 128 * 4, 256 // 8
ROUNDS = 7
# Queries whose products with all others fit the cache better than all at once.
BLOCK = 500


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=8000, help="descriptors of either image")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count(), help="default: all cores")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    cv2.setNumThreads(chosen.threads)
    draw = np.random.default_rng(0)
    floats = draw.standard_normal((2, chosen.count, 128), dtype=np.float32)
    floats /= np.linalg.norm(floats, axis=2, keepdims=True)
    bits = draw.integers(0, 256, (2, chosen.count, BINARY), dtype=np.uint8)
    of_floats, of_bits = sides(floats, bits, chosen.threads)
    seconds = in_turns(of_floats | of_bits)
    print(f"{chosen.count} against {chosen.count}, {chosen.threads} threads, median of {ROUNDS - 1}:")
    for name, taken in seconds.items():
        print(f"  {name:36} {1e3 * taken:8.1f} ms")
    gain = min(seconds[name] for name in of_floats) / min(seconds[name] for name in of_bits)
    print(f"fastest packed against fastest float: {gain:.2f}, and {FLOAT // BINARY} times smaller")


def sides(
    floats: np.ndarray, bits: np.ndarray, threads: int
) -> tuple[dict[str, Callable[[], object]], dict[str, Callable[[], object]]]:
    """Ways to match by name: of (2, n, 128) unit vectors, and of (2, n, 32) packed bits."""
    ours, theirs = torch.from_numpy(floats)

    def product(block: int) -> None:
        for some in ours.split(block):
            (some @ theirs.T).argmax(1)

    of_floats = {
        "float, OpenCV": lambda: cv2.batchDistance(*floats, cv2.CV_32F, normType=cv2.NORM_L2, K=1),
        "float, torch's product": lambda: product(len(ours)),
        f"float, torch's product by {BLOCK}": lambda: product(BLOCK),
    }
    of_bits = {
        "packed, OpenCV": lambda: cv2.batchDistance(*bits, cv2.CV_32S, normType=cv2.NORM_HAMMING, K=1),
    }
    if find_spec("faiss"):
        faiss = import_module("faiss")
        faiss.omp_set_num_threads(threads)
        of_floats["float, faiss"] = lambda: faiss.knn(*floats, 1, metric=faiss.METRIC_INNER_PRODUCT)
        of_bits["packed, faiss"] = lambda: faiss.knn_hamming(*bits, 1)
    return of_floats, of_bits


def in_turns(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each, the first round left out."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(every[1:]) for name, every in taken.items()}


if __name__ == "__main__":
    main()
