"""Measure time and memory of indexing a city's descriptors for retrieval, against a preset limit.

``python tests/speed_retrieval.py [--count 1000000]``. Not a test. A million descriptors of 128 floats,
in a file as in `lib.benchmarks.retrieval`, are indexed within 2 GiB. Their vocabulary is learned from
themselves. Memory depends far more on the number of features that k-means gets than on words or
iterations; time depends on all three. So k-means gets all features, as for the 65,536 words of Hamming
query expansion, and words and iterations are few by default.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import faiss
import joblib
import numpy as np

from lib.benchmarks import retrieval

LENGTH, BITS = 128, 128
# Features per image, the maximum of `lib.benchmarks.retrieval.DETECTOR`.
IMAGE = 3000
LIMIT = 2.0


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000, help="descriptors")
    parser.add_argument("--words", type=int, default=1000, help="of the vocabulary")
    parser.add_argument("--iterations", type=int, default=1, help="of k-means")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count(), help="default: all cores")
    chosen = parser.parse_args()
    faiss.omp_set_num_threads(chosen.threads)
    retrieval.SAMPLED, retrieval.ITERATIONS = (
        chosen.count // chosen.words,
        chosen.iterations,
    )
    with tempfile.TemporaryDirectory() as folder:
        descriptors = drawn(Path(folder, "descriptors"), chosen.count)
        print(f"{chosen.count} descriptors of {len(descriptors)} images, {chosen.threads} threads")
        show("before", 0.0)
        start = time.perf_counter()
        vocabulary = retrieval.learn(descriptors, chosen.words, BITS)
        iterations = f"{chosen.iterations} iterations"
        show(f"{len(vocabulary.centres)} words, {iterations}", time.perf_counter() - start)
        start = time.perf_counter()
        collection = retrieval.invert(vocabulary, descriptors)
        show(f"{len(collection.word)} features inverted", time.perf_counter() - start)
        start = time.perf_counter()
        print(f"  {collection.counts.nnz} words of images, {len(collection.idf)} idf")
        show("counts and idf", time.perf_counter() - start)
    print(f"  wanted: {LIMIT:g} GiB")


def drawn(file: Path, count: int) -> tuple[np.ndarray, ...]:
    """Write images' (n_i, 128) float32 unit descriptors to a file, few in memory at once."""
    draw = np.random.default_rng(0)
    bounds = [*range(0, count, IMAGE), count]
    with file.open("wb") as stream:
        for first, last in pairwise(bounds):
            block = draw.standard_normal((last - first, LENGTH), dtype=np.float32)
            stream.write((block / np.linalg.norm(block, axis=1, keepdims=True)).tobytes())
    descriptors = np.memmap(file, np.float32, "r", shape=(count, LENGTH))
    return tuple(descriptors[first:last] for first, last in pairwise(bounds))


def show(name: str, seconds: float) -> None:
    """Print a step, its seconds, and the largest resident memory so far, the file's pages included."""
    # Linux reports kibibytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  {name:36} {seconds:8.1f} s {peak:6.2f} GiB at most", flush=True)


if __name__ == "__main__":
    main()
