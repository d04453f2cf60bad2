"""The one training loop, which takes every recipe of the study from a set of patches to weights.

A step draws a pool of candidate patches, lets the sampler choose one pair per class, describes the
pairs, mines a negative for each, and follows the gradient of the weighted triplet loss. This is
AdaSample's Alg. 1 with the batch's mean in place of its sum. With a sampler that ignores descriptors
and no weights, it is HardNet's training.
"""

import io
import os
import pickle
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lib import parts
from lib.data.patchset import PatchSet
from lib.files import write_bytes
from lib.losses.descriptions import Descriptions, descriptions
from lib.models.exported import MAGNIFICATION
from lib.objective import MOST_ALONE
from lib.objective import build as build_objective
from lib.profiles import Profile
from lib.recipes import Budget, Recipe, check_rate
from lib.samplers.batches import Batch, open_batches
from lib.samplers.candidates import Choice, Sampler

# Raised by hand when training changes its numbers: it is part of a run's identity, so that no run made
# before counts as current. A golden test of losses and weights fails if someone forgets.
NUMERICS = 1
# Curves of long runs are means over this many stretches of equal length.
CURVE_POINTS = 200
# Candidates described at once: as many as fit a core's cache, or fill a GPU.
CANDIDATE_CHUNK = {"cpu": 128, "cuda": 8192}
Evaluate = Callable[[nn.Module], Mapping[str, float]]
# What torch.load raises on foreign bytes, depending on the first of them.
_UNREADABLE = (
    pickle.UnpicklingError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
    struct.error,
)


class ForeignCheckpoint(ValueError):
    """The error for a checkpoint file that is damaged or is not one of this run."""


@dataclass
class Trained:
    """The result of training.

    Attributes:
        model: the network after the last step, on its device, in evaluation mode. Its attribute
            `magnification` is that of places, as an exported network's.
        stages: for each fraction of training that the profile names, the tensors by part and name
            ("model/features.0.weight", …), including the state of losses and samplers; on the CPU.
        curve: by name, a value for each stretch of steps: "step", "loss" (unweighted batch mean),
            "d_pos" and "d_neg" (means, at the loss's power), "alone_share" (share of pairs without a
            negative), "zero_share" (share of triplets without loss), "two_share" (share of classes with
            two candidates, which leave nothing to choose), and for AdaSample "exponent" (λ / L_avg).
        epochs: by test set, the values that ``evaluate`` returned at the end of each epoch.
        seconds: wall-clock time, including that before any resumption.
    """

    model: nn.Module
    stages: dict[str, dict[str, Tensor]]
    curve: dict[str, list[float]]
    epochs: dict[str, list[float]]
    seconds: float


def steps_per_epoch(budget: Budget) -> int:
    """Return the number of training steps of an epoch."""
    return budget.epoch_pairs // budget.batch_pairs


def part_state(stage: Mapping[str, Tensor], part: str = "model") -> dict[str, Tensor]:
    """Return the state dict of one part of a stage, by default the network's weights."""
    prefix = f"{part}/"
    return {
        name.removeprefix(prefix): tensor for name, tensor in stage.items() if name.startswith(prefix)
    }


@dataclass
class _Progress:
    """The changing state of a run that a checkpoint holds besides weights and generators."""

    step: int = 0
    stages: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    curve: dict[str, list[float]] = field(default_factory=dict)
    epochs: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0


def train(
    recipe: Recipe,
    profile: Profile,
    patch_set: PatchSet,
    seed: int,
    *,
    device: str = "cpu",
    evaluate: Evaluate | None = None,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 60.0,
    on_step: Callable[[int, int], None] | None = None,
    max_steps: int | None = None,
) -> Trained:
    """Train one network.

    Args:
        recipe: the method.
        profile: the size and length of the run.
        patch_set: the set that pairs are drawn from, of uint8 patches; each class has 2 or more.
        seed: seed of initialisation, dropout and every draw.
        device: "cpu", "cuda", …
        evaluate: called with the model in evaluation mode at the end of each epoch. What it draws from
            torch's generators, or seeds there, changes nothing in training.
        checkpoint: a file that is written every ``checkpoint_seconds``, from which a killed run
            resumes and reaches the same weights bit for bit. It belongs to one run: the caller removes
            it once the result of training is stored elsewhere.
        on_step: called with the steps done and the total.
        max_steps: stop after this many steps, keeping the schedule of the full run.

    Raises:
        ValueError: the set's patches are not uint8, it cannot fill a batch, or the recipe names an
            unknown part.
        ForeignCheckpoint: the checkpoint is damaged, something else, or of a run with another recipe,
            size, patch set or seed, or it is past a stage that it did not keep.
        FloatingPointError: the loss is no longer finite.
        OSError: a checkpoint cannot be written; the previous one is unchanged.
    """
    if patch_set.patches.dtype != np.uint8:
        raise ValueError(f"patches are uint8 grey values, got {patch_set.patches.dtype}")
    budget = profile.budget_for(recipe)
    epoch_steps = steps_per_epoch(budget)
    total = epoch_steps * budget.epochs
    stretch = max(1, total // CURVE_POINTS)

    _make_repeatable(seed, profile.threads)
    generator = torch.Generator(device).manual_seed(seed)
    model = parts.build("model", recipe.model, width=profile.width).to(device)
    model.magnification = MAGNIFICATION
    if profile.channels_last:
        model = model.to(memory_format=torch.channels_last)
    batches = open_batches(recipe, patch_set, device, model.input_size)
    sampler = parts.build("sampler", recipe.sampler)
    objective = build_objective(recipe, device)
    weigh = parts.build("pair_weight", recipe.pair_weight)
    schedule = parts.build("schedule", recipe.schedule)
    optimizer = _optimizer(recipe, model)
    network = _Network(model, profile, device)

    named = {"model": model, "sampler": sampler, **dict(objective.parts())}
    stateful = {name: part for name, part in named.items() if hasattr(part, "state_dict")}
    restorable = {**stateful, "optimizer": optimizer}
    if hasattr(batches.points, "state_dict"):
        restorable["points"] = batches.points
    run = {} if checkpoint is None else _identity(recipe, profile, patch_set, seed)
    progress = _restore(checkpoint, run, restorable, generator) or _Progress()
    _check_stages(checkpoint, progress, profile.stages, total)
    sums: dict[str, Tensor] = {}
    started = saved = time.monotonic()
    model.train()

    while progress.step < min(total, max_steps or total):
        done = progress.step / total
        _keep_stages(progress, profile.stages, done, stateful)
        for settings in optimizer.param_groups:
            settings["lr"] = recipe.optimizer.options["lr"] * schedule(done)

        batch = batches.draw(budget.batch_pairs, generator)
        choice, described = network.pairs(batch, sampler, generator)
        triplets = objective.triplets(described)
        losses = objective.losses(triplets)
        weights = weigh(choice) if weigh else None
        minimised = objective.total(losses, described, weights)

        optimizer.zero_grad(set_to_none=True)
        minimised.backward()
        optimizer.step()

        if hasattr(sampler, "observe"):
            sampler.observe(triplets, losses)
        progress.step += 1
        observed = {
            "loss": losses.detach().mean(),
            "d_pos": triplets.positive.detach().mean(),
            "d_neg": triplets.negative.detach().mean(),
            "alone_share": (~triplets.negatives.found).float().mean(),
        }
        for part in (batch, *named.values()):
            observed |= getattr(part, "seen", {})
        for name, value in observed.items():
            sums[name] = sums.get(name, 0) + value.double()

        if progress.step % stretch == 0 or progress.step == total:
            _close_stretch(progress, sums, stretch, recipe, seed)
            sums = {}
        if evaluate is not None and progress.step % epoch_steps == 0:
            model.eval()
            # What it draws, such as a shuffled loader, would change the masks of dropout after it.
            with torch.random.fork_rng([device] if torch.device(device).type == "cuda" else []):
                values = evaluate(model)
            for test_set, value in values.items():
                progress.epochs.setdefault(test_set, []).append(value)
            model.train()
        if on_step is not None:
            on_step(progress.step, total)
        now = time.monotonic()
        # Save only between stretches, so that a checkpoint need not hold half a sum.
        if checkpoint is not None and not sums and now - saved >= checkpoint_seconds:
            progress.seconds += now - started
            started = saved = now
            _save(checkpoint, run, progress, restorable, generator)

    _keep_stages(progress, profile.stages, progress.step / total, stateful)
    progress.seconds += time.monotonic() - started
    model.eval()
    return Trained(model, progress.stages, progress.curve, progress.epochs, progress.seconds)


class _Network:
    """A model as training forwards it: in the profile's precision, compiled or not."""

    def __init__(self, model: nn.Module, profile: Profile, device: str):
        self.model = model
        self.raw = torch.compile(model.raw) if profile.compile else model.raw
        kind = torch.device(device).type
        self.chunk = CANDIDATE_CHUNK[kind]
        self.autocast = torch.autocast(kind, torch.bfloat16, enabled=profile.precision == "bfloat16")

    def pairs(
        self, batch: Batch, sampler: Sampler, generator: torch.Generator
    ) -> tuple[Choice, Descriptions]:
        """Return the pairs that the sampler chooses, and their descriptors with gradient."""
        if sampler.reuse:
            with self.autocast:
                output = self.raw(batch.images(batch.pool.valid))
            raw = _first(output)
            described = batch.lay_out(self.model.normalise(raw))
            choice = sampler.choose(batch.pool, lambda: described, generator)
            # Candidates were forwarded in order, so a candidate's rank is its row in the output.
            rank = (batch.pool.valid.flatten().cumsum(0) - 1).view(batch.pool.valid.shape)
            chosen = rank[choice.places]
            if isinstance(output, tuple):
                output = tuple(each[chosen] for each in output)
            else:
                output = output[chosen]
            return choice, descriptions(self.model, output)
        choice = sampler.choose(batch.pool, lambda: self._candidates(batch), generator)
        with self.autocast:
            output = self.raw(batch.images(choice.places))
        return choice, descriptions(self.model, output)

    @torch.no_grad()
    def _candidates(self, batch: Batch) -> Tensor:
        """Describe all candidates, (n, c, k), with running statistics and without dropout."""
        self.model.eval()
        rows, columns = batch.pool.valid.nonzero(as_tuple=True)
        described = []
        for chunk in zip(rows.split(self.chunk), columns.split(self.chunk), strict=True):
            with self.autocast:
                raw = _first(self.raw(batch.images(chunk)))
                described.append(self.model.normalise(raw))
        self.model.train()
        return batch.lay_out(torch.cat(described))


def _first(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Return the descriptors of a network's output, which may be a tuple of them and further tensors."""
    return output[0] if isinstance(output, tuple) else output


def _make_repeatable(seed: int, threads: int) -> None:
    torch.manual_seed(seed)
    if threads:
        torch.set_num_threads(threads)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    # Only warn: a few operations have no repeatable form on some device.
    torch.use_deterministic_algorithms(True, warn_only=True)
    # No code here reads uninitialised memory, and filling it takes a fifth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def _optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    known = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    name = recipe.optimizer.name
    if name not in known:
        raise ValueError(f"unknown optimizer {name!r}; there are: {', '.join(known)}")
    # torch takes a rate of 0, which trains nothing.
    if "lr" in recipe.optimizer.options:
        check_rate(recipe.optimizer.options["lr"])
    return known[name](model.parameters(), **recipe.optimizer.options)


def _keep_stages(
    progress: _Progress, stages: tuple[float, ...], done: float, stateful: Mapping[str, nn.Module]
) -> None:
    for stage in stages:
        if done < stage or str(stage) in progress.stages:
            continue
        tensors = progress.stages[str(stage)] = {}
        for name, part in stateful.items():
            for key, value in part.state_dict().items():
                tensors[f"{name}/{key}"] = value.detach().cpu().clone()


def _check_stages(
    checkpoint: Path | None, progress: _Progress, stages: tuple[float, ...], total: int
) -> None:
    """Refuse to go on past a stage that was not kept: later weights would be taken for its own."""
    last = (progress.step - 1) / total
    missed = [stage for stage in stages if stage <= last and str(stage) not in progress.stages]
    if missed:
        raise ForeignCheckpoint(
            f"{checkpoint} is past stages that it did not keep ({', '.join(map(str, missed))}): give "
            "this run a file of its own, or remove that one to train from the start"
        )


def _close_stretch(
    progress: _Progress, sums: Mapping[str, Tensor], stretch: int, recipe: Recipe, seed: int
) -> None:
    length = (progress.step - 1) % stretch + 1
    progress.curve.setdefault("step", []).append(progress.step)
    for name, total in sums.items():
        value = float(total) / length
        if name == "loss" and not np.isfinite(value):
            raise FloatingPointError(
                f"{recipe.label}, seed {seed}: the loss is {value} at step {progress.step}; "
                "take a lower learning rate"
            )
        if name == "alone_share" and value > MOST_ALONE:
            warnings.warn(
                f"{recipe.label}, seed {seed}: {value:.0%} of the pairs have no negative up to step "
                f"{progress.step}, because the descriptors have nearly collapsed",
                stacklevel=2,
            )
        progress.curve.setdefault(name, []).append(value)


def _identity(recipe: Recipe, profile: Profile, patch_set: PatchSet, seed: int) -> dict[str, str]:
    """Describe what decides the weights that a run reaches, by names for messages."""
    content = 0
    for array in (patch_set.patches, patch_set.point_ids):
        content = zlib.crc32(np.ascontiguousarray(array), content)
    return {
        "recipe": repr(replace(recipe, label="", rate_of=None, fixed=())),
        "budget": repr(profile.budget_for(recipe)),
        "width": repr(profile.width),
        "precision": profile.precision,
        "patch set": f"{len(patch_set.patches)} patches, {content:08x}",
        "seed": repr(seed),
    }


def _save(
    path: Path,
    run: Mapping[str, str],
    progress: _Progress,
    stateful: Mapping[str, nn.Module],
    generator: torch.Generator,
) -> None:
    content = {
        "run": dict(run),
        "progress": dict(vars(progress)),
        "parts": {name: part.state_dict() for name, part in stateful.items()},
        "generator": generator.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_bytes(path, buffer.getbuffer())


def _restore(
    path: Path | None,
    run: Mapping[str, str],
    stateful: Mapping[str, nn.Module],
    generator: torch.Generator,
) -> _Progress | None:
    if path is None or not path.exists():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        # A machine that is short of memory says nothing about the file.
        if isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error):
            raise
        raise _foreign(path) from error
    if not _is_checkpoint(content, stateful, generator):
        raise _foreign(path)
    for what, own in run.items():
        if content["run"].get(what) != own:
            raise ForeignCheckpoint(
                f"{path} is of a run with another {what}: give this run a file of its own, or remove "
                "that one to train from the start"
            )
    for name, part in stateful.items():
        part.load_state_dict(content["parts"][name])
    generator.set_state(content["generator"])
    torch.set_rng_state(content["torch"])
    if content["cuda"]:
        torch.cuda.set_rng_state_all(content["cuda"])
    return _Progress(**content["progress"])


def _is_checkpoint(
    content: object, stateful: Mapping[str, nn.Module], generator: torch.Generator
) -> bool:
    """Say whether a checkpoint's content has the names and shapes of this run's."""
    names = {"run", "progress", "parts", "generator", "torch", "cuda"}
    if not (isinstance(content, dict) and content.keys() == names):
        return False
    if not all(isinstance(content[name], dict) for name in ("run", "progress", "parts")):
        return False
    states = {"generator": generator.get_state(), "torch": torch.get_rng_state()}
    return (
        content["progress"].keys() == vars(_Progress()).keys()
        and content["parts"].keys() == stateful.keys()
        and all(_has_shape(content[name], state) for name, state in states.items())
        and all(_fits(part, content["parts"][name]) for name, part in stateful.items())
    )


def _fits(part: nn.Module | torch.optim.Optimizer, state: object) -> bool:
    """Say whether a state has the names of a part's own, and where they are fixed its shapes."""
    own = part.state_dict()
    if not (isinstance(state, dict) and state.keys() == own.keys()):
        return False
    if isinstance(part, nn.Module):
        return all(_has_shape(state[name], value) for name, value in own.items())
    if isinstance(part, torch.optim.Optimizer):
        parameters = [each for group in part.param_groups for each in group["params"]]
        if _groups(state) != _groups(own):
            return False
        # Beside tensors like the parameter, an optimiser keeps counts.
        return all(
            _has_shape(value, parameters[number]) or not getattr(value, "ndim", 0)
            for number, kept in state["state"].items()
            for value in kept.values()
        )
    return True


def _groups(state: Mapping) -> list[tuple[Set[str], int]]:
    """Return the names of an optimiser's settings and its number of parameters, group by group."""
    return [(group.keys(), len(group["params"])) for group in state["param_groups"]]


def _has_shape(value: object, like: Tensor) -> bool:
    return isinstance(value, Tensor) and value.shape == like.shape


def _foreign(path: Path) -> ForeignCheckpoint:
    return ForeignCheckpoint(
        f"{path} is no checkpoint of this study: it is damaged, or holds something else, perhaps "
        "objects that loading could execute, and was not loaded; remove it to train this run from its "
        "start"
    )
