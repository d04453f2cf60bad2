"""A batch as a recipe's training draws it, drawn once and looked at by the networks of every stage."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib.batches import open_batches
from lib.benchmarks.subject import Subject
from lib.data.patchset import PatchSet
from lib.descriptions import Descriptions, descriptions
from lib.samplers import candidates

CHUNK = 256


@dataclass(frozen=True)
class TrainingBatch:
    """Candidates of n classes, c at most, on the device of the networks that look at them.

    Attributes:
        pool: which patches they are.
        images: (n, c, 1, S, S) float32, 0 to 255; zero at empty places.
        anchor: (n,) int64, the anchor's place.
    """

    pool: candidates.Pool
    images: Tensor
    anchor: Tensor

    @torch.no_grad()
    def raw_descriptors(self, model: nn.Module) -> Tensor:
        """(n, c, k) by a network in its present mode, before normalisation; zero at empty places."""
        valid = self.pool.valid
        outputs = [model.raw(images) for images in self.images[valid].split(CHUNK)]
        described = torch.cat([out[0] if isinstance(out, tuple) else out for out in outputs])
        filled = described.new_zeros(*valid.shape, described.shape[1])
        return filled.masked_scatter(valid[:, :, None], described)

    def shuffled(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        """All candidates in random order, in batches of about the images that a step of training has."""
        images = self.images[self.pool.valid]
        order = torch.randperm(len(images), generator=generator).to(images.device)
        return images[order].tensor_split(max(1, len(images) // (2 * len(self.anchor))))

    def pairs(self, model: nn.Module, raw: Tensor, positive: Tensor) -> Descriptions:
        """The anchors with one candidate each, as training would describe them.

        Args:
            model: whose normalisation it is.
            raw: (n, c, k) of `raw_descriptors`.
            positive: (n,) places of the candidates.
        """
        chosen = candidates.Choice(self.anchor, positive)
        return descriptions(model, raw[chosen.places])


@torch.no_grad()
def with_statistics(model: nn.Module, batches: Sequence[Tensor]) -> nn.Module:
    """A network whose batch norms know some data, for evaluation at the very start of training.

    Args:
        model: in evaluation mode.
        batches: images (m, 1, S, S), 0 to 255, each passed as training would pass a batch, but without
            dropout.

    Returns:
        A copy in evaluation mode whose running statistics are the means of those of the batches; the
        network itself where its batch norms, if it has any, have seen a step.
    """
    if not any(norm.num_batches_tracked == 0 for norm in _batch_norms(model)):
        return model
    model = copy.deepcopy(model)
    for norm in _batch_norms(model):
        norm.momentum = None  # a cumulative average
        norm.train()
    for images in batches:
        model(images)
    return model.eval()


def _batch_norms(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]


def unit(model: nn.Module, raw: Tensor) -> Tensor:
    """Descriptors (…, k) from raw ones (…, k), by the network's own normalisation."""
    return model.normalise(raw.flatten(0, -2)).view(raw.shape)


def draw(subject: Subject, train_set: PatchSet, generator: torch.Generator) -> TrainingBatch:
    """Draws a batch of the size that the subject was trained with.

    Args:
        subject: a trained network; its recipe says how candidates are made, its record how many
            pairs a batch has.
        train_set: where classes are drawn from.
        generator: on the CPU, so that a seed draws the same on every device.

    Returns:
        A batch on the subject's device.
    """
    size = next(iter(subject.stages.values())).input_size
    batch = open_batches(subject.recipe, train_set, size=size).draw(subject.batch_pairs, generator)
    anchor = candidates.uniform_below(batch.pool.counts, generator)
    images = batch.images(batch.pool.valid)
    filled = images.new_zeros(*batch.pool.valid.shape, *images.shape[1:])
    filled[batch.pool.valid] = images
    device = subject.device
    moved = candidates.Pool(*(getattr(batch.pool, name).to(device) for name in vars(batch.pool)))
    return TrainingBatch(moved, filled.to(device), anchor.to(device))
