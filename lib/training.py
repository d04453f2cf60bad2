"""The one training loop: every recipe of the study, from a set of patches to weights.

A step draws a pool of candidate patches, lets the sampler choose a pair a class, describes the pairs,
mines a negative for each, and follows the gradient of the weighted triplet loss (AdaSample, Alg. 1;
with a blind sampler and no weights it is HardNet's training).
"""

from __future__ import annotations

import os
import pickle
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lib import augmentation, parts
from lib.data.patchset import PatchSet
from lib.files import replacing
from lib.profiles import Profile
from lib.recipes import Recipe
from lib.samplers import candidates

# Curves of long runs are means over this many stretches of equal length.
CURVE_POINTS = 200
# Candidates described at once: what a core's cache holds, and what fills a GPU.
CANDIDATE_CHUNK = {"cpu": 128, "cuda": 8192}
Evaluate = Callable[[nn.Module], Mapping[str, float]]


@dataclass
class Trained:
    """What training leaves.

    Attributes:
        model: at the last step, on its device, in evaluation mode.
        stages: weights by fraction of training done, for the fractions the profile names; on the CPU.
        curve: by name, a value for each stretch of steps: "step", "loss" (unweighted batch mean),
            "d_pos" and "d_neg" (means, at the loss's power), "zero_share" (triplets without loss),
            "two_share" (classes of two candidates, which leave nothing to choose), and for AdaSample
            "exponent" (λ / L_avg).
        epochs: by test set, what ``evaluate`` gave at the end of each epoch.
        seconds: of wall clock, over all sittings.
    """

    model: nn.Module
    stages: dict[str, dict[str, Tensor]]
    curve: dict[str, list[float]]
    epochs: dict[str, list[float]]
    seconds: float


@dataclass
class _Progress:
    """All of a run that changes, as it goes into a checkpoint (besides weights and generators)."""

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
    """Trains one network.

    Args:
        recipe: the method.
        profile: the size.
        patch_set: where pairs are drawn from; each class has 2 patches or more.
        seed: of initialisation, dropout and every draw.
        device: "cpu", "cuda", …
        evaluate: called with the model in evaluation mode at the end of each epoch.
        checkpoint: a file that is written every ``checkpoint_seconds``, from which a killed run
            goes on to the same weights bit for bit, and which is removed at the end.
        on_step: called with steps done and steps in all.
        max_steps: stop after this many, keeping the schedule of the full run.

    Raises:
        ValueError: a batch that the set cannot fill, or a checkpoint that holds arbitrary objects.
        FloatingPointError: the loss is no longer finite.
    """
    budget = profile.budget_for(recipe)
    epoch_steps = max(1, budget.epoch_pairs // budget.batch_pairs)
    total = epoch_steps * budget.epochs
    stretch = max(1, total // CURVE_POINTS)

    _make_repeatable(seed, profile.threads)
    generator = torch.Generator(device).manual_seed(seed)
    bank = _bank(patch_set.patches, device)
    classes = candidates.group(patch_set.point_ids, device)
    generation = candidates.Generation(**recipe.generate.options) if recipe.generate else None
    turns = augmentation.Turns(**recipe.augment.options) if recipe.augment else None

    model = parts.build("model", recipe.model, width=profile.width).to(device)
    if profile.channels_last:
        model = model.to(memory_format=torch.channels_last)
    distance = parts.build("distance", recipe.distance)
    sampler = parts.build("sampler", recipe.sampler, distance=distance)
    loss_of = parts.build("loss", recipe.loss)
    mine = parts.function("negatives", recipe.negatives)
    weigh = parts.function("pair_weight", recipe.pair_weight) if recipe.pair_weight else None
    regularizers = [parts.build("regularizers", part) for part in recipe.regularizers]
    schedule = parts.function("schedule", recipe.schedule)
    optimizer = _optimizer(recipe, profile, model)
    raw = torch.compile(model.raw) if profile.compile else model.raw
    autocast = torch.autocast(
        torch.device(device).type, torch.bfloat16, enabled=profile.precision == "bfloat16"
    )

    def images_of(pool: candidates.Pool, turn: Tensor | None, place: tuple | Tensor) -> Tensor:
        patches = bank[pool.patch[place].to(bank.device)].to(device)
        return augmentation.cut(patches, pool.angle[place], None if turn is None else turn[place])

    def laid_out(pool: candidates.Pool, described: Tensor) -> Tensor:
        filled = described.new_zeros(*pool.valid.shape, described.shape[1])
        return filled.masked_scatter(pool.valid[:, :, None], described)

    @torch.no_grad()
    def evaluated(pool: candidates.Pool, turn: Tensor | None) -> Tensor:
        model.eval()
        rows, columns = pool.valid.nonzero(as_tuple=True)
        chunk = CANDIDATE_CHUNK[torch.device(device).type]
        described = []
        for row, column in zip(rows.split(chunk), columns.split(chunk), strict=True):
            with autocast:
                described.append(model.normalise(raw(images_of(pool, turn, (row, column)))))
        model.train()
        return laid_out(pool, torch.cat(described))

    stateful = {"model": model, "optimizer": optimizer, "sampler": sampler, "loss": loss_of}
    stateful = {name: part for name, part in stateful.items() if hasattr(part, "state_dict")}
    progress = _restore(checkpoint, stateful, generator) or _Progress()
    sums: dict[str, Tensor] = {}
    started = saved = time.monotonic()
    model.train()

    while progress.step < min(total, max_steps or total):
        done = progress.step / total
        _keep_stages(progress, profile.stages, done, model)
        for settings in optimizer.param_groups:
            settings["lr"] = profile.learning_rate_for(recipe) * schedule(done)

        pool = candidates.draw_pool(classes, budget.batch_pairs, generation, generator)
        turn = turns.draw(pool.valid.shape, generator) if turns else None
        rows = torch.arange(budget.batch_pairs, device=device)
        if sampler.reuse:
            with autocast:
                both_raw = raw(images_of(pool, turn, pool.valid))
            described = laid_out(pool, model.normalise(both_raw))
            choice = sampler.choose(pool, lambda of=described: of, generator)
            anchors, positives = described[rows, choice.anchor], described[rows, choice.positive]
        else:
            choice = sampler.choose(pool, lambda p=pool, t=turn: evaluated(p, t), generator)
            place = (rows.repeat(2), torch.cat([choice.anchor, choice.positive]))
            with autocast:
                both_raw = raw(images_of(pool, turn, place))
            anchors, positives = model.normalise(both_raw).chunk(2)

        d_pos = distance.paired(anchors, positives)
        d_neg = mine(anchors, positives, distance).distances(anchors, positives, distance)
        losses = loss_of(d_pos, d_neg)
        weights = 1.0 if weigh is None else weigh(choice.distance, choice.log_normaliser)
        weighted = weights * losses
        objective = weighted.mean() if recipe.reduction == "mean" else weighted.sum()
        for regularizer in regularizers:
            objective = objective + regularizer(anchors, positives, both_raw)

        optimizer.zero_grad(set_to_none=True)
        objective.backward()
        optimizer.step()

        loss = losses.detach().mean()
        if hasattr(sampler, "observe"):
            sampler.observe(loss)
        progress.step += 1
        seen = {
            "loss": loss,
            "d_pos": d_pos.detach().mean(),
            "d_neg": d_neg.detach().mean(),
            "zero_share": (losses.detach() <= 0).float().mean(),
            "two_share": (pool.counts == 2).float().mean(),
        }
        if getattr(sampler, "exponent", None) is not None:
            seen["exponent"] = sampler.exponent
        for name, value in seen.items():
            sums[name] = sums.get(name, 0) + value.double()

        if progress.step % stretch == 0 or progress.step == total:
            _close_stretch(progress, sums, stretch, recipe, seed)
            sums = {}
        if evaluate is not None and progress.step % epoch_steps == 0:
            model.eval()
            for test_set, value in evaluate(model).items():
                progress.epochs.setdefault(test_set, []).append(value)
            model.train()
        if on_step is not None:
            on_step(progress.step, total)
        now = time.monotonic()
        # Between stretches only, so that a checkpoint need not hold half a sum.
        if checkpoint is not None and not sums and now - saved >= checkpoint_seconds:
            progress.seconds += now - started
            started = saved = now
            _save(checkpoint, progress, stateful, generator)

    _keep_stages(progress, profile.stages, progress.step / total, model)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    progress.seconds += time.monotonic() - started
    model.eval()
    return Trained(model, progress.stages, progress.curve, progress.epochs, progress.seconds)


def _make_repeatable(seed: int, threads: int) -> None:
    torch.manual_seed(seed)
    if threads:
        torch.set_num_threads(threads)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    # The few operations without a repeatable form on some device are not ours to forbid.
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Nothing here reads memory it has not written, and filling it takes a fifth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def _bank(patches: np.ndarray, device: str) -> Tensor:
    with warnings.catch_warnings():
        # The patches are memory-mapped for reading, and nothing here writes to them.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        bank = torch.from_numpy(patches)
    return bank if torch.device(device).type == "cpu" else bank.to(device)


def _optimizer(recipe: Recipe, profile: Profile, model: nn.Module) -> torch.optim.Optimizer:
    known = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    name = recipe.optimizer.name
    if name not in known:
        raise ValueError(f"unknown optimizer {name!r}; there are: {', '.join(known)}")
    return known[name](model.parameters(), **recipe.optimizer.options)


def _keep_stages(progress: _Progress, stages: tuple[float, ...], done: float, model: nn.Module) -> None:
    for stage in stages:
        if done >= stage and str(stage) not in progress.stages:
            progress.stages[str(stage)] = {
                name: value.detach().cpu().clone() for name, value in model.state_dict().items()
            }


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
        progress.curve.setdefault(name, []).append(value)


def _save(
    path: Path,
    progress: _Progress,
    stateful: Mapping[str, nn.Module],
    generator: torch.Generator,
) -> None:
    content = {
        "progress": dict(vars(progress)),
        "parts": {name: part.state_dict() for name, part in stateful.items()},
        "generator": generator.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    with replacing(path) as half:
        torch.save(content, half)


def _restore(
    path: Path | None, stateful: Mapping[str, nn.Module], generator: torch.Generator
) -> _Progress | None:
    if path is None or not path.exists():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} is no checkpoint of this study: it holds objects that loading could execute, or "
            "is damaged. It was not loaded; remove it to train this run from its start"
        ) from error
    for name, part in stateful.items():
        part.load_state_dict(content["parts"][name])
    generator.set_state(content["generator"])
    torch.set_rng_state(content["torch"])
    if content["cuda"]:
        torch.cuda.set_rng_state_all(content["cuda"])
    return _Progress(**content["progress"])
