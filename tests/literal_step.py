"""Training steps written out from the papers' equations: one loop per index, and float64 behind the
network. Of `lib` they use only the networks and the patches of a batch."""

from __future__ import annotations

import math

import torch
from literal_dsm import MovingHistogram
from torch import Tensor, nn

from lib.data.patchset import PatchSet
from lib.models.exported import NETWORKS
from lib.models.l2net_binary import L2NetBinary
from lib.profiles import Profile
from lib.recipes import Recipe
from lib.samplers.batches import open_batches


def weights_after(recipe: Recipe, profile: Profile, data: PatchSet, seed: int, steps: int) -> dict:
    """The network's state dict after some steps of HardNet, HardNet-GOR, AdaSample, DSM or TCDesc."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    # Dropout draws values in memory order.
    network = NETWORKS[recipe.model.name]
    model = network(profile.width, **recipe.model.options).to(memory_format=torch.channels_last)
    model.train()
    batches = open_batches(recipe, data)
    budget = profile.budget
    total = budget.epochs * (budget.epoch_pairs // budget.batch_pairs)
    momenta = {name: None for name, _ in model.named_parameters()}
    average, histogram = None, MovingHistogram()
    for step in range(steps):
        batch = batches.draw(budget.batch_pairs, generator)
        pool, n = batch.pool, budget.batch_pairs
        anchor = uniform(pool.counts, generator)
        if recipe.sampler.name == "random_pair":
            offset = 1 + uniform(pool.counts - 1, generator)
            positive, drawn_distances = (anchor + offset) % pool.counts, None
        else:
            exponent = 0.0 if average is None else recipe.sampler.options["lam"] / average
            positive, drawn_distances = drawn(recipe, model, batch, anchor, exponent, generator)
        rows = torch.arange(n)
        raw = model.raw(batch.images((rows.repeat(2), torch.cat([anchor, positive])))).double()
        output = raw.tanh() if network is L2NetBinary else raw / (raw**2).sum(1, keepdim=True).sqrt()
        a, p = list(output[:n]), list(output[n:])
        if recipe.loss.name == "cdf":
            losses = dynamic(recipe, a, p, histogram)
        else:
            losses = [triplet(recipe, a, p, i) for i in range(n)]
        weights = [1.0] * n
        if drawn_distances is not None:
            weights = [1 / max(d, 0.01) for d in drawn_distances]
            weights = [w * n / sum(weights) for w in weights]
        objective = sum(w * loss for w, loss in zip(weights, losses, strict=True)) / n
        for part in recipe.regularizers:
            objective = objective + part.options["weight"] * spread(a, p)
        model.zero_grad()
        objective.backward()
        descend(recipe, profile, model, momenta, step / total)
        mean = float(sum(float(loss) for loss in losses) / n)
        average = mean if average is None else 0.9 * average + 0.1 * mean
    return model.state_dict()


def uniform(limit: Tensor, generator: torch.Generator) -> Tensor:
    return (torch.rand(limit.shape, generator=generator, dtype=torch.float64) * limit).long()


def distance(name: str, x: Tensor, y: Tensor, power: int) -> Tensor:
    if name == "angular":
        angle = 2 * torch.atan2(
            ((x - y) ** 2).sum().add(1e-6).sqrt(), ((x + y) ** 2).sum().add(1e-6).sqrt()
        )
        return angle**power
    squared = ((x - y) ** 2).sum()
    return squared if power == 2 else (squared + 1e-6).sqrt()


def triplet(recipe: Recipe, a: list[Tensor], p: list[Tensor], i: int) -> Tensor:
    """max(1 + d_pos − d_neg, 0) with the hardest negative of the recipe's blocks."""
    name, power = recipe.distance.name, recipe.distance.options["power"]
    candidates = []
    for j in range(len(a)):
        if j != i:
            if recipe.negatives.options["scope"] == "within":
                candidates += [distance(name, a[i], a[j], power), distance(name, p[i], p[j], power)]
            else:
                candidates += [distance(name, a[i], p[j], power), distance(name, a[j], p[i], power)]
    allowed = [d for d in candidates if float(d) >= 0.008**power]
    positive = mixed(recipe, a, p, i, distance(name, a[i], p[i], power))
    return (1 + positive - min(allowed, key=float)).clamp(min=0)


def mixed(recipe: Recipe, a: list[Tensor], p: list[Tensor], i: int, pair_distance: Tensor) -> Tensor:
    """d⁺ of pair i: its distance, or λ d_T + (1 − λ) d_E (TCDesc, Eq. 6 to 8, 10, 11)."""
    if recipe.positive.name == "pair":
        return pair_distance
    n, k = len(a), recipe.positive.options["neighbours"]
    vectors, neighbours = [], []
    for side in (a, p):
        nearest = sorted((float((side[i] - side[j]).norm()), j) for j in range(n) if j != i)[:k]
        columns = torch.stack([side[j] for _, j in nearest], dim=1)
        weights = torch.linalg.inv(columns.T @ columns) @ (columns.T @ side[i])
        neighbours.append([j for _, j in nearest])
        vectors.append({j: weight for (_, j), weight in zip(nearest, weights, strict=True)})
    union = {*neighbours[0], *neighbours[1]}
    topology = sum(abs(vectors[0].get(j, 0.0) - vectors[1].get(j, 0.0)) for j in union) / k
    shared = len({*neighbours[0]} & {*neighbours[1]})
    lam = min((shared / k) ** recipe.positive.options["gamma"], 0.5)
    return lam * topology + (1 - lam) * pair_distance


def dynamic(
    recipe: Recipe, a: list[Tensor], p: list[Tensor], histogram: MovingHistogram
) -> list[Tensor]:
    """w_i (d_pos − d_neg), after the batch is counted into the histogram (DSM, Eq. 4 and 5)."""
    n = len(a)

    def metric(x: Tensor, y: Tensor) -> Tensor:
        if recipe.distance.name == "hamming":
            return (256 - (x * y).sum()) / 2 * (2 / 256)
        return (2 - 2 * (x * y).sum() + 2e-6).sqrt()

    def signs(x: Tensor) -> Tensor:
        return torch.tensor([1.0 if value > 0 else -1.0 for value in x], dtype=torch.float64)

    binary = recipe.model.name == "l2net_binary"
    at_test = [[signs(x) if binary else x.detach() for x in side] for side in (a, p)]
    differences, mined = [], []
    for i in range(n):
        pairs = [((0, i), (1, j)) for j in range(n) if j != i]
        pairs += [((1, i), (0, j)) for j in range(n) if j != i]
        negative, closest = None, math.inf
        for (side, x), (other_side, y) in pairs:
            d = float(metric(at_test[side][x], at_test[other_side][y]))
            if (2 * 2 / 256 if binary else 0.008) <= d < closest:
                negative, closest = ((side, x), (other_side, y)), d
        (side, x), (other_side, y) = negative
        differences.append(
            mixed(recipe, a, p, i, metric(a[i], p[i])) - metric((a, p)[side][x], (a, p)[other_side][y])
        )
        positive = mixed(recipe, *at_test, i, metric(at_test[0][i], at_test[1][i]))
        mined.append(float(positive) - closest)
    histogram.update(mined)
    return [histogram.cdf(value) * d for value, d in zip(mined, differences, strict=True)]


def drawn(recipe: Recipe, model: nn.Module, batch, anchor: Tensor, exponent: float, generator):
    """Draw positives by p_i ∝ d^(λ / L_avg) (Eq. 13); return them and their d."""
    model.eval()
    probabilities, distances = [], []
    with torch.no_grad():
        for row in range(len(anchor)):
            candidates = range(int(batch.pool.counts[row]))
            images = batch.images((torch.full((len(candidates),), row), torch.arange(len(candidates))))
            descriptors = model(images).double()
            d = [
                float(distance(recipe.distance.name, descriptors[c], descriptors[anchor[row]], 1))
                for c in candidates
            ]
            d = [0.0 if c == int(anchor[row]) else max(value, 1e-6) for c, value in enumerate(d)]
            largest = max(d)
            powers = [math.pow(value / largest, exponent) if value else 0.0 for value in d]
            width = batch.pool.valid.shape[1] - len(powers)
            probabilities.append([value / sum(powers) for value in powers] + [0.0] * width)
            distances.append(d)
    model.train()
    positive = torch.multinomial(torch.tensor(probabilities), 1, generator=generator).squeeze(1)
    return positive, [distances[row][int(candidate)] for row, candidate in enumerate(positive)]


def spread(a: list[Tensor], p: list[Tensor]) -> Tensor:
    """M1² + max(0, M2 − 1/k) over non-matching pairs (GOR)."""
    products = [a[i] @ p[j] for i in range(len(a)) for j in range(len(p)) if i != j]
    first = sum(products) / len(products)
    second = sum(x**2 for x in products) / len(products)
    return first**2 + (second - 1 / len(a[0])).clamp(min=0)


@torch.no_grad()
def descend(recipe: Recipe, profile: Profile, model: nn.Module, momenta: dict, progress: float) -> None:
    """SGD with momentum, dampening and weight decay, at the schedule's rate."""
    options = recipe.optimizer.options
    factor = 1 - progress
    if recipe.schedule.name == "steps":
        factor = 0.1 ** sum(progress >= milestone for milestone in (30 / 90, 60 / 90, 80 / 90))
    for name, weight in model.named_parameters():
        gradient = weight.grad + options["weight_decay"] * weight
        if momenta[name] is None:
            momenta[name] = gradient.clone()
        else:
            momenta[name] = options["momentum"] * momenta[name] + (1 - options["dampening"]) * gradient
        weight -= options["lr"] * factor * momenta[name]
