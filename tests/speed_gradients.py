"""Speed of gradient norms of single samples, in batches, against single backward passes.

``python tests/speed_gradients.py [--device cuda] [--threads N]``. This is no test. The two sides are
measured in turns within one process, because machines are shared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import joblib
import torch
from looped_gradients import looped_gradient_norms
from speed_training import show

from lib import parts, profiles, recipes
from lib.analysis.gradient_norms import Samples, per_sample_gradient_norms
from lib.objective import build as build_objective

SAMPLES = 64


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for width in (1.0, profiles.find("quick").width):
        per_sample_gradients(width, arguments.device)


def per_sample_gradients(width: float, device: str) -> None:
    """Time gradient norms of single samples in batches against a loop of single backward passes."""
    recipe = recipes.find("adasample_aug_gen")
    model = parts.build("model", recipe.model, width=width).to(device).eval()
    objective = build_objective(recipe, device)
    all_true = torch.ones(SAMPLES, dtype=torch.bool, device=device)
    samples = Samples(255 * torch.rand(SAMPLES, 3, 1, 32, 32, device=device), all_true, all_true)

    sides = {
        "in batches": lambda: seconds_of(
            lambda: per_sample_gradient_norms(model, objective, samples), device
        ),
        "single backwards": lambda: seconds_of(
            lambda: looped_gradient_norms(model, objective, samples), device
        ),
    }
    title = f"Gradients of {SAMPLES} samples, AdaSample+*, width {width:g}"
    show(title, sides, lambda batched, looped: looped / batched)


def seconds_of(work: Callable[[], object], device: str) -> float:
    """Seconds that `work` takes the second time."""
    for _ in range(2):
        started = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
