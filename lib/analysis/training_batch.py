"""Batches drawn once, as a recipe's training draws them, and described by the networks of all stages."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from lib import parts
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.losses.descriptions import Descriptions, descriptions
from lib.samplers import candidates
from lib.samplers.batches import Batch, Batches, open_batches

SEED = 0
CHUNK = 256


@dataclass(frozen=True)
class TrainingBatch:
    """Candidates of n classes, at most c each, on the device of the networks that describe them.

    Attributes:
        drawn: which patches the candidates are.
        images: (n, c, 1, S, S) float32, 0 to 255; zero at empty slots.
        anchor: (n,) int64, the slot of the anchor.
    """

    drawn: Batch
    images: Tensor
    anchor: Tensor

    @property
    def pool(self) -> candidates.Pool:
        """Which patches the candidates are, and in which slots."""
        return self.drawn.pool

    @torch.no_grad()
    def raw_descriptors(self, model: nn.Module) -> Tensor:
        """Describe the candidates by a network in its current mode: (n, c, k), before normalisation;
        zero at empty slots."""
        outputs = [model.raw(images) for images in self.images[self.pool.valid].split(CHUNK)]
        return self.drawn.lay_out(torch.cat([o[0] if isinstance(o, tuple) else o for o in outputs]))

    def shuffled(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Return all candidates in random order, in batches of about the size of a training step."""
        images = self.images[self.pool.valid]
        order = torch.randperm(len(images), generator=generator).to(images.device)
        return images[order].tensor_split(max(1, len(images) // (2 * len(self.anchor))))

    def pairs(self, model: nn.Module, raw: Tensor, positive: Tensor) -> Descriptions:
        """Return the anchors with one candidate each, as training would describe them.

        Args:
            model: normalises the descriptors.
            raw: (n, c, k) from `raw_descriptors`.
            positive: (n,) slots of the candidates.
        """
        chosen = candidates.Choice(self.anchor, positive)
        return descriptions(model, raw[chosen.places])


@torch.no_grad()
def with_statistics(model: nn.Module, batches: Sequence[Tensor]) -> nn.Module:
    """Return a network whose batch norms have seen data, for evaluation at the very start of training.

    Args:
        model: in evaluation mode.
        batches: images (m, 1, S, S), 0 to 255, each passed as training would pass a batch, but without
            dropout.

    Returns:
        A copy in evaluation mode whose running statistics are the means of the batches' statistics; the
        network itself if its batch norms, if it has any, have seen a step.
    """
    known = copy.deepcopy(model)
    norms = [layer for layer in known.modules() if isinstance(layer, nn.BatchNorm2d)]
    if all(norm.num_batches_tracked > 0 for norm in norms):
        return model
    for norm in norms:
        norm.momentum = None  # a cumulative average
        norm.train()
    for images in batches:
        known(images)
    return known.eval()


@contextmanager
def in_training_mode(model: nn.Module, device: torch.device) -> Iterator[nn.Module]:
    """Yield a copy of a network in training mode, with repeatable dropout that leaves other random draws
    unchanged."""
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device]):
        torch.manual_seed(SEED)
        yield copy.deepcopy(model).train()


def unit(model: nn.Module, raw: Tensor) -> Tensor:
    """Normalise raw descriptors (…, k) by the network's own normalisation."""
    return model.normalise(raw.flatten(0, -2)).view(raw.shape)


def draw(subject: Subject, train_set: PatchSet, generator: torch.Generator) -> TrainingBatch:
    """Draw a batch of the size that the subject was trained with.

    Args:
        subject: a trained network; its recipe says how candidates are made, and its
            `batch_pairs` how many pairs a batch has.
        train_set: set that classes are drawn from.
        generator: on the CPU, so that a seed draws the same on every device.

    Returns:
        A batch on the subject's device.
    """
    batch = _batches(subject, train_set).draw(subject.batch_pairs, generator)
    anchor = candidates.uniform_below(batch.pool.counts, generator).to(subject.device)
    images = batch.images(batch.pool.valid)
    laid_out = batch.lay_out(images.flatten(1)).unflatten(2, images.shape[1:])
    pool = candidates.Pool(*(value.to(subject.device) for value in vars(batch.pool).values()))
    return TrainingBatch(replace(batch, pool=pool), laid_out.to(subject.device), anchor)


def draw_images(subject: Subject, train_set: PatchSet, pairs: Sequence[int]) -> list[Tensor]:
    """Draw batches of pairs as the subject's training does, the same for each of its stages.

    Args:
        subject: a network trained on random pairs.
        train_set: set that classes are drawn from.
        pairs: number of pairs in each batch.

    Returns:
        For each batch, images (2n, 1, S, S) float32, 0 to 255, of its n anchors and then its n
        positives, on the subject's device.
    """
    batches = _batches(subject, train_set)
    images = []
    sampler = parts.build("sampler", subject.recipe.sampler)
    # On the CPU, so that the same is drawn for every device.
    generator = torch.Generator().manual_seed(SEED)
    for n in pairs:
        batch = batches.draw(n, generator)
        choice = sampler.choose(batch.pool, lambda: None, generator)
        images.append(batch.images(choice.places).to(subject.device))
    return images


def at_stages(
    stages: Mapping[float, nn.Module],
    at_stage: Callable[[float, nn.Module], Mapping[str, object]],
    **once: object,
) -> dict[str, np.ndarray]:
    """Stack arrays over S stages of training.

    Args:
        stages: networks by fraction of training.
        at_stage: maps a fraction and its network to arrays or tensors, the same names at each stage.
        once: arrays or tensors that are the same at all stages.

    Returns:
        "stage" (S,) float32, the fractions; every array of `at_stage`, stacked (S, …); those of `once`.
    """
    rows = [at_stage(*stage) for stage in stages.items()]
    stacked = {name: np.stack([array(row[name]) for row in rows]) for name in rows[0]}
    same = {name: array(value) for name, value in once.items()}
    return {"stage": np.array(list(stages), np.float32)} | stacked | same


def array(value: object) -> np.ndarray:
    """Convert a tensor on any device, or whatever NumPy takes, to an array."""
    return value.cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _batches(subject: Subject, train_set: PatchSet) -> Batches:
    size = next(iter(subject.stages.values())).input_size
    return open_batches(subject.recipe, train_set, size=size)
