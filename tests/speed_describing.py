"""Speed of describing images and of matching their descriptors, against limits set beforehand.

``python tests/speed_describing.py [--threads N]``. Not a test. Limits: on two cores, at least 4 images a
second at quick's width and 1 at full width, of 2,000 keypoints each, including the extraction of patches
but not detection; 8,000 descriptors matched with 8,000 in at most one second. The seconds of cores
follow the elapsed seconds, because other processes on the machine change them less.
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
from lib.features.networks import describe
from lib.features.patches import extract
from lib.models import hynet, l2net
from lib.profiles import PROFILES

KEYPOINTS, MATCHED, ROUNDS = 2000, 8000, 5
SIZE = (1024, 768)


def main() -> None:
    """Run the command line."""
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
    for name, required in (("quick", 4), ("paper", 1)):
        width = PROFILES[name].width
        for build in (l2net.L2Net, hynet.HyNet):
            network = build(width=width).eval().to(memory_format=torch.channels_last)
            title = f"describe, {type(network).__name__} at width {width:g}"
            seconds = show(title, lambda network=network: describe(grey, regions, network))
            print(f"    {1 / seconds:.1f} images a second; wanted: {required}")
    draw = np.random.default_rng(0)
    floats = draw.standard_normal((2, MATCHED, 128), dtype=np.float32)
    bits = draw.integers(0, 256, (2, MATCHED, 32), dtype=np.uint8)
    for kind, descriptors in (("float", floats), ("packed", bits)):
        for rule, ratio in (("mutual", None), ("mutual and ratio", 0.8)):
            show(
                f"match {MATCHED} x {MATCHED}, {kind}, {rule}",
                lambda d=descriptors, r=ratio: match(*d, ratio=r),
            )
    print("    wanted: 1 s")


def show(name: str, function: Callable[[], object]) -> float:
    """Print and return the median of the elapsed seconds, without the first round."""
    function()
    elapsed, core_seconds = [], []
    for _ in range(ROUNDS):
        start, core_start = time.perf_counter(), time.process_time()
        function()
        elapsed.append(time.perf_counter() - start)
        core_seconds.append(time.process_time() - core_start)
    median = statistics.median(elapsed)
    print(f"  {name:44} {median:7.3f} s ({statistics.median(core_seconds):.3f})", flush=True)
    return median


if __name__ == "__main__":
    main()
