"""Speed of what the study spends its time on.

``python tests/speed_training.py [--device cuda] [--threads N] [--profile NAME]``. Not a test. The
alternatives take turns within one process, since machines are shared.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import joblib
import torch
from torch import Tensor

from lib import parts, profiles, recipes
from lib.bfloat16 import fast_convolutions
from lib.data.patchset import PatchSet
from lib.data.sources import open_source
from lib.losses.descriptions import drawn
from lib.losses.topology_weights import linear_combination, nearest
from lib.profiles import Profile
from lib.recipes import Budget, Part, Recipe
from lib.training import CANDIDATE_CHUNK, train

PAIRS = 128
# In a batch of TCDesc's.
MORE_PAIRS = 512
STEPS = 6
ROUNDS = 3
LOSSES = 100
# The first steps allocate memory and pick kernels.
WARM_UP = 2


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count(), help="default: all cores")
    parser.add_argument("--profile", default="standard", help="whose width and precision are timed")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    machine = torch.cuda.get_device_name() if args.device.startswith("cuda") else "CPU"
    size = replace(sized(args.profile), threads=args.threads)
    print(
        f"{machine}, {args.threads} threads, torch {torch.__version__}, {PAIRS} pairs a step, "
        f"width {size.width:g}, {size.precision}"
    )
    plain = replace(size, precision="float32", channels_last=False, compile=False)
    with tempfile.TemporaryDirectory() as folder, fast_convolutions(args.device):
        patches = open_source("free", Path(folder)).load("banana")
        training_step(size, plain, patches, args.device)
        adasample_step(size, patches, args.device)
        dsm_loss(patches, args.device)
        hynet_step(size, patches, args.device)
        topology_step(size, patches, args.device)


def training_step(size: Profile, plain: Profile, patches: PatchSet, device: str) -> None:
    """The profile's step against the plain form: float32, contiguous NCHW, eager."""
    recipe = recipes.find("hardnet_aug_gen")
    steps = {
        "the profile": lambda: step_seconds(recipe, size, patches, device),
        "plain form": lambda: step_seconds(recipe, plain, patches, device),
    }
    show(
        f"Training step of HardNet+* of {2 * PAIRS} patches",
        steps,
        lambda ours, theirs: theirs / ours,
        "2.5 or more",
    )


def adasample_step(size: Profile, patches: PatchSet, device: str) -> None:
    """AdaSample's step against HardNet*'s and the forward passes over the candidates."""
    blind, sampling = recipes.find("hardnet_aug_gen"), recipes.find("adasample_aug_gen")
    candidates = PAIRS * sampling.generate.options["patches_per_class"]
    steps = {
        "AdaSample+*'s step": lambda: step_seconds(sampling, size, patches, device),
        "HardNet+*'s step": lambda: step_seconds(blind, size, patches, device),
        f"{candidates:,} candidates": lambda: forward_seconds(sampling, size, candidates, device),
    }
    show("Training step of AdaSample+*", steps, lambda whole, *costs: whole / sum(costs), "1.2 or less")


def dsm_loss(patches: PatchSet, device: str) -> None:
    """The share that DSM's loss adds to a step with the hinge at evening size, on one thread."""
    size, hinged = sized("evening"), recipes.find("hardnet_aug")
    steps = {
        "the step": lambda: step_seconds(hinged, size, patches, device),
        "hinge in it": lambda: loss_seconds(hinged.loss, device),
        "DSM's loss": lambda: loss_seconds(recipes.find("dsm_aug").loss, device),
    }
    title = f"DSM's loss in a step of HardNet+ at evening size, {size.threads} thread"
    show(title, steps, lambda step, hinge, cdf: (cdf - hinge) / step, "0.03 or less")


def hynet_step(size: Profile, patches: PatchSet, device: str) -> None:
    """HyNet's step against one with L2-Net's network, all else equal."""
    hynet = recipes.find("hynet_aug")
    plain = replace(hynet, model=recipes.find("sosnet_aug").model)
    steps = {
        "HyNet's": lambda: step_seconds(hynet, size, patches, device),
        "L2-Net's network": lambda: step_seconds(plain, size, patches, device),
    }
    show("Training step of HyNet+", steps, lambda ours, theirs: ours / theirs, "1.5 or less")


def topology_step(size: Profile, patches: PatchSet, device: str) -> None:
    """TCDesc's step against one with HardNet's positives, all else equal; and its least-squares
    problems solved together against one at a time."""
    size = replace(size, budget=few_steps(MORE_PAIRS))
    tcdesc = recipes.find("tcdesc_hn_aug")
    plain = replace(tcdesc, positive=recipes.find("hardnet_aug").positive)
    k = tcdesc.positive.options["neighbours"]
    steps = {
        "TCDesc's": lambda: step_seconds(tcdesc, size, patches, device),
        "HardNet's": lambda: step_seconds(plain, size, patches, device),
        "its least squares": lambda: weights_seconds(linear_combination, k, device),
        "one at a time": lambda: weights_seconds(one_at_a_time, k, device),
    }
    title = f"Training step of TCDesc-HN+, {MORE_PAIRS} pairs"
    show(title, steps, lambda ours, theirs, *_: ours / theirs, "1.3 or less")


def show(
    title: str,
    measures: dict[str, Callable[[], float]],
    ratio: Callable[..., float],
    target: str = "",
) -> None:
    """Print the medians of measures that take turns, and their ratio with its target."""
    seconds = in_turns(*measures.values())
    print(f"\n{title}")
    for name, median in zip(measures, seconds, strict=True):
        print(f"  {name:<18}{1000 * median:8.2f} ms")
    print(f"  ratio             {ratio(*seconds):8.2f}", f"(wanted: {target})" if target else "")


def weights_seconds(weigh: Callable[[Tensor, Tensor], Tensor], neighbours: int, device: str) -> float:
    """Seconds to compute the topology weights of a batch's anchors and positives and their gradient."""
    descriptors = torch.nn.functional.normalize(torch.randn(2, MORE_PAIRS, 128, device=device), dim=2)
    near, descriptors = [nearest(side, neighbours) for side in descriptors], descriptors.requires_grad_()
    started = now(device)
    weights = [weigh(side, side[indices]) for side, indices in zip(descriptors, near, strict=True)]
    torch.stack(weights).abs().sum().backward()
    return now(device) - started


def one_at_a_time(centres: Tensor, near: Tensor) -> Tensor:
    """`linear_combination` as a loop of least-squares problems."""
    problems = zip(centres, near, strict=True)
    return torch.stack([torch.linalg.lstsq(rows.T, x[:, None]).solution[:, 0] for x, rows in problems])


def few_steps(pairs: int) -> Budget:
    return Budget(batch_pairs=pairs, epoch_pairs=pairs * (WARM_UP + STEPS), epochs=1)


def sized(profile: str) -> Profile:
    """A profile with few enough steps to be timed."""
    budget = few_steps(PAIRS)
    return replace(profiles.find(profile), budget=budget, stages=())


def now(device: str) -> float:
    """The time once the device has finished its work."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


def in_turns(*measures: Callable[[], float]) -> list[float]:
    """The median seconds of each measure over rounds in which each takes its turn."""
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [statistics.median(seconds) for seconds in zip(*rounds, strict=True)]


def step_seconds(recipe: Recipe, size: Profile, patches: PatchSet, device: str) -> float:
    """Median seconds of a training step after the warm-up."""
    moments: list[float] = []
    train(recipe, size, patches, 0, device=device, on_step=lambda *_: moments.append(now(device)))
    lengths = [after - before for before, after in pairwise(moments)]
    return statistics.median(lengths[WARM_UP:])


def loss_seconds(loss: Part, device: str) -> float:
    """Median seconds of a loss of given distances and of its gradient, after the warm-up."""
    module = parts.build("loss", loss).to(device)
    lengths = []
    for _ in range(WARM_UP + LOSSES):
        positive, negative = torch.rand(2, PAIRS, device=device, requires_grad=True).unbind()
        started = now(device)
        module(drawn(positive, negative)).mean().backward()
        lengths.append(now(device) - started)
    return statistics.median(lengths[WARM_UP:])


@torch.no_grad()
def forward_seconds(recipe: Recipe, size: Profile, count: int, device: str) -> float:
    """Seconds to forward ``count`` ready-made inputs, as the sampler's candidates are forwarded."""
    model = parts.build("model", recipe.model, width=size.width).to(device).eval()
    if size.channels_last:
        model = model.to(memory_format=torch.channels_last)
    kind = torch.device(device).type
    chunks = torch.rand(count, 1, 32, 32, device=device).split(CANDIDATE_CHUNK[kind])
    lengths = []
    for _ in range(1 + STEPS // 2):
        started = now(device)
        for chunk in chunks:
            with torch.autocast(kind, torch.bfloat16, enabled=size.precision == "bfloat16"):
                model.normalise(model.raw(chunk))
        lengths.append(now(device) - started)
    return statistics.median(lengths[1:])


if __name__ == "__main__":
    main()
