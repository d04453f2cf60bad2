"""Speed of describing images and of matching their descriptors, against what was set beforehand.

``python tests/speed_describing.py [--threads N]``. No test. At least 4 images a second at quick's width
and 1 at full width on two cores, of 2,000 keypoints each, extraction of patches included and detection
not; 8,000 descriptors matched with 8,000 in one second or less. Beside the seconds that passed stand
those of a core, which others on the machine change less.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import cv2
import faiss
import joblib
import numpy as np
import torch
from skimage import data

from lib.features.detectors import Detector, detect
from lib.features.matches import match
from lib.features.patches import extract
from lib.matching.networks import describe
from lib.models import hynet, l2net
from lib.profiles import PROFILES

KEYPOINTS, MATCHED, ROUNDS = 2000, 8000, 5
SIZE = (1024, 768)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=joblib.cpu_count(), help="default: all cores")
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    cv2.setNumThreads(threads)
    grey = cv2.resize(cv2.cvtColor(data.astronaut(), cv2.COLOR_RGB2GRAY), SIZE)
    regions = detect(grey, Detector(most=KEYPOINTS, contrast=0.005))
    print(f"{threads} threads, median of {ROUNDS} (seconds of cores in brackets)")
    show(f"extract {len(regions)} patches", lambda: extract(grey, regions))
    for name, wanted in (("quick", 4), ("paper", 1)):
        width = PROFILES[name].width
        for build in (l2net.build, hynet.build):
            network = build(width=width).eval().to(memory_format=torch.channels_last)
            of = f"describe, {type(network).__name__} at width {width:g}"
            taken = show(of, lambda network=network: describe(grey, regions, network))
            print(f"    {1 / taken:.1f} images a second; wanted: {wanted}")
    draw = np.random.default_rng(0)
    floats = draw.standard_normal((2, MATCHED, 128), dtype=np.float32)
    bits = draw.integers(0, 256, (2, MATCHED, 32), dtype=np.uint8)
    for kind, both in (("float", floats), ("packed", bits)):
        for told, ratio in (("mutual", None), ("mutual and ratio", 0.8)):
            show(
                f"match {MATCHED} x {MATCHED}, {kind}, {told}",
                lambda b=both, r=ratio: match(*b, ratio=r),
            )
    print("    wanted: 1 s")


def show(name: str, way: Callable[[], object]) -> float:
    """Print and return the median of the seconds that passed, the first round left out."""
    way()
    passed, of_cores = [], []
    for _ in range(ROUNDS):
        start, busy = time.perf_counter(), time.process_time()
        way()
        passed.append(time.perf_counter() - start)
        of_cores.append(time.process_time() - busy)
    median = statistics.median(passed)
    print(f"  {name:44} {median:7.3f} s ({statistics.median(of_cores):.3f})", flush=True)
    return median


if __name__ == "__main__":
    main()
