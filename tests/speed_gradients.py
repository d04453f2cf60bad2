"""Speed of gradient norms of single samples, in batches, against single backward passes.

``python tests/speed_gradients.py [--device cuda] [--threads N]``. No test: sides are measured in turns
within one process, since machines are shared.
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
from lib.objective import build as build_objective
from lib.probes.gradient_norms import Samples, per_sample_gradient_norms

SAMPLES = 64


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    for width in (1.0, profiles.find("quick").width):
        per_sample_gradients(width, chosen.device)


def per_sample_gradients(width: float, device: str) -> None:
    """Gradient norms of single samples in batches against a loop of single backward passes."""
    recipe = recipes.find("adasample_aug_gen")
    model = parts.build("model", recipe.model, width=width).to(device).eval()
    objective = build_objective(recipe, device)
    yes = torch.ones(SAMPLES, dtype=torch.bool, device=device)
    samples = Samples(255 * torch.rand(SAMPLES, 3, 1, 32, 32, device=device), yes, yes)

    norms = {
        "in batches": lambda: seconds_of(
            lambda: per_sample_gradient_norms(model, objective, samples), device
        ),
        "single backwards": lambda: seconds_of(
            lambda: looped_gradient_norms(model, objective, samples), device
        ),
    }
    title = f"Gradients of {SAMPLES} samples, AdaSample+*, width {width:g}"
    show(title, norms, lambda batched, looped: looped / batched)


def seconds_of(work: Callable[[], object], device: str) -> float:
    """Seconds that some work takes the second time."""
    for _ in range(2):
        started = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
