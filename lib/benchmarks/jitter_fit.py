"""Fits HPatches' jitter (`lib.data.hpatches.jitter`) to matching as others published it, by sequence.

The release says how much jittered and detected regions overlap at easy and hard, but not how far they
turn, shift, scale and stretch, nor how much they overlap at tough. Descriptors bear these unequally, so
their published mean AP at the three levels tells the proportions. Four parameters are sought:

- rotation: its standard deviation at the hard level, degrees;
- translation: its share of what lowers overlap, where shift, scale and anisotropy are measured in
  `UNITS`;
- anisotropy: its share of the rest, which scale and anisotropy divide;
- tough: the median overlap at tough.

The overlaps at easy and hard are held at the release's. The sum of squares is that of measured minus
published AP over descriptors, sequences and levels, after each descriptor's mean is taken off: another
implementation of a descriptor may be better or worse throughout. AP is measured with the same random
numbers for all parameters, at points spread evenly over the bounds and then around the best of them;
between the points it is interpolated.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from scipy.interpolate import RBFInterpolator
from scipy.optimize import least_squares
from scipy.special import expit, logit
from scipy.stats.qmc import Sobol
from torch import nn

from lib.benchmarks.neighbours import Table, nearest
from lib.benchmarks.ranking import average_precision
from lib.benchmarks.subject import describe
from lib.data.hpatches.building import plan_patches, sample
from lib.data.hpatches.homographies import HomographySequence
from lib.data.hpatches.jitter import MEDIAN_OVERLAP, Proportions
from lib.data.hpatches.release import FILES, LEVELS, as_64

BOUNDS = pd.DataFrame(
    {"rotation": (5.0, 30.0), "translation": (0.0, 0.5), "anisotropy": (0.0, 1.0), "tough": (0.5, 0.7)},
    index=["lowest", "highest"],
)
# Before the fit: what a parameter stays at that the numbers do not identify.
START = pd.Series({"rotation": 10.35, "translation": 1 / 3, "anisotropy": 0.5, "tough": 0.6})
# Radii of translation, octaves of scale and octaves of anisotropy that a share of 1 stands for.
UNITS = (0.15, 0.15, 0.2)
# At how many points AP is measured: over the bounds, then over so large a share of each around the best.
POINTS = (16, 16)
NARROWER = 0.5


def levels_of(parameters: Sequence[float]) -> tuple[Proportions, dict[str, float]]:
    """Proportions at the hard level, and the factors of the three levels.

    Args:
        parameters: in the order of `BOUNDS`.
    """
    rotation, translation, anisotropy, tough = parameters
    shares = (translation, (1 - translation) * (1 - anisotropy), (1 - translation) * anisotropy)
    bounds = [share * unit for share, unit in zip(shares, UNITS, strict=True)]
    hard = Proportions(0.0, *bounds).factor(MEDIAN_OVERLAP["hard"])
    proportions = Proportions(np.deg2rad(rotation), *(hard * bound for bound in bounds))
    easy = proportions.factor(MEDIAN_OVERLAP["easy"])
    return proportions, dict(zip(LEVELS, (easy, 1.0, proportions.factor(tough)), strict=True))


class Matching:
    """Mean AP of matching on homography sequences, as a function of the jitter's parameters.

    Args:
        sequences: S of them, whose patches are cut as `lib.data.hpatches.building` does.
        networks: D descriptors by name.
        limit, seed: as for `lib.data.hpatches.building.plan_patches`.
    """

    def __init__(
        self,
        sequences: Sequence[HomographySequence],
        networks: Mapping[str, nn.Module],
        limit: int | None = None,
        seed: int = 0,
    ):
        self.sequences, self.networks = sequences, networks
        self.regions = [plan_patches(one, limit, seed).regions(FILES[0]) for one in sequences]
        rng = np.random.default_rng(seed)
        shape = (len(LEVELS), len(sequences[0].homographies), 5)
        self.draws = [rng.standard_normal((*shape, len(regions))) for regions in self.regions]
        self.references = [
            self._described(sample(one.grey(0), np.eye(3), regions))
            for one, regions in zip(sequences, self.regions, strict=True)
        ]

    def __call__(self, parameters: Sequence[float]) -> np.ndarray:
        """(D, S, 3) percent, the mean over a sequence's images at each level."""
        proportions, factors = levels_of(parameters)
        by_sequence = []
        for sequence, regions, references, draws in zip(
            self.sequences, self.regions, self.references, self.draws, strict=True
        ):
            precision = []
            for image, homography in enumerate(sequence.homographies):
                grey = sequence.grey(image + 1)
                for level, level_draws in zip(LEVELS, draws[:, image], strict=True):
                    affines = proportions.affines(factors[level] * level_draws)
                    moved = regions[:, :, :2] @ affines + regions * [0, 0, 1]
                    views = self._described(sample(grey, homography, moved))
                    precision.append(list(map(_matching, references, views)))
            by_level = np.reshape(precision, (-1, len(LEVELS), len(self.networks))).mean(0)
            by_sequence.append(by_level.T)
        return np.stack(by_sequence, axis=1)

    def _described(self, patches: np.ndarray) -> list[np.ndarray]:
        described = [describe(network, as_64(patches)) for network in self.networks.values()]
        return [np.unpackbits(d, axis=1) if d.dtype == np.uint8 else d for d in described]


def _matching(reference: np.ndarray, view: np.ndarray) -> float:
    """AP in percent of N descriptors' nearest neighbours, as `lib.benchmarks.hpatches.matching`."""
    rows = torch.arange(2 * len(reference)).view(2, -1)
    table = Table.on("cpu", np.concatenate([reference, view]))
    distances, neighbours = nearest(table, *map(table.side, rows))
    return 100 * average_precision(distances, neighbours == rows[0], len(reference)).item()


def fitted_tables(matching: Matching, published: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Measures, fits, and measures at what was fitted.

    Args:
        matching: of D descriptors and S sequences.
        published: percent, a row a descriptor and sequence in matching's order, a column a level.

    Returns:
        By name: "parameters", as `parameters_table` has them; "cells", AP as published, before and
        after the fit, and the two's `residuals`; and "evaluations", AP of each cell at each point.
    """
    target = published.to_numpy(float).reshape(len(matching.networks), len(matching.sequences), -1)
    points = np.vstack([START, spread_points(*BOUNDS.to_numpy(), POINTS[0])])
    values = np.stack([matching(point) for point in points])
    lowest, highest = BOUNDS.to_numpy()
    best = fit(interpolated(points, values), target).to_numpy()
    half = NARROWER * (highest - lowest) / 2
    box = np.maximum(lowest, best - half), np.minimum(highest, best + half)
    closer = spread_points(*box, POINTS[1])
    points = np.vstack([points, closer])
    values = np.concatenate([values, [matching(point) for point in closer]])
    parameters = parameters_table(interpolated(points, values), target)
    cells = published.stack().rename_axis([*published.index.names, "level"]).to_frame("published")
    for name, measured in (("before", values[0]), ("after", matching(parameters["used"]))):
        cells[name] = measured.ravel()
        cells[f"residual {name}"] = residuals(measured, target).ravel()
    columns = ["/".join(cell) for cell in cells.index]
    evaluations = pd.DataFrame(values.reshape(len(points), -1), columns=columns)
    evaluations = pd.DataFrame(points, columns=BOUNDS.columns).join(evaluations)
    return {"parameters": parameters, "cells": cells, "evaluations": evaluations}


def spread_points(lowest: np.ndarray, highest: np.ndarray, count: int) -> np.ndarray:
    """(count, P) points spread evenly over a box of P sides; a count that is a power of 2 is best."""
    return lowest + (highest - lowest) * Sobol(len(lowest), rng=0).random(count)


def interpolated(points: np.ndarray, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """AP between the points at which it was measured.

    Args:
        points: (P, 4).
        values: (P, D, S, 3) percent.

    Returns:
        From (4,) parameters to (D, S, 3) percent.
    """
    logits = logit(values.clip(0.01, 99.99) / 100)

    def between(points: np.ndarray, values: np.ndarray) -> RBFInterpolator:
        return RBFInterpolator(points, values.reshape(len(points), -1), kernel="cubic", degree=2)

    # Easy and hard do not know tough's overlap, the last parameter.
    mild = between(_unit(points)[:, :-1], logits[..., :-1])
    tough = between(_unit(points), logits[..., -1])

    def predict(parameters: np.ndarray) -> np.ndarray:
        unit = _unit(parameters)[None]
        levels = [mild(unit[:, :-1]), tough(unit)]
        shaped = [level.reshape(*values.shape[1:-1], -1) for level in levels]
        return 100 * expit(np.concatenate(shaped, axis=-1))

    return predict


def residuals(measured: np.ndarray, published: np.ndarray) -> np.ndarray:
    """(D, S, 3) points: measured minus published AP, without each descriptor's mean."""
    difference = measured - published
    return difference - difference.mean(axis=(1, 2), keepdims=True)


def fit(
    predict: Callable[[np.ndarray], np.ndarray],
    published: np.ndarray,
    held: Mapping[str, float] | None = None,
) -> pd.Series:
    """The parameters, within `BOUNDS`, of the least sum of squared `residuals`.

    Args:
        predict: from (4,) parameters to (D, S, 3) percent.
        published: (D, S, 3) percent.
        held: parameters that are not sought, by name.
    """
    fitted = START.copy()
    fitted.update(pd.Series(held or {}, dtype=float))
    free = [name for name in BOUNDS if name not in (held or {})]
    lowest, highest = BOUNDS[free].to_numpy()

    def excess(values: np.ndarray) -> np.ndarray:
        fitted[free] = values
        return residuals(predict(fitted.to_numpy()), published).ravel()

    results = [
        least_squares(excess, start, bounds=(lowest, highest), x_scale=highest - lowest)
        for start in spread_points(lowest, highest, 8)
    ]
    fitted[free] = min(results, key=lambda result: result.cost).x
    return fitted


def parameters_table(predict: Callable[[np.ndarray], np.ndarray], published: np.ndarray) -> pd.DataFrame:
    """What the published numbers say on each parameter.

    Returns:
        A row a parameter: before; fitted; lowest and highest of the fits that leave out one descriptor
        or one sequence; identified, where all of these lie to one side of before; used, the fit that
        leaves those that are not identified as they were before.
    """
    refits = [
        fit(lambda x, a=axis, i=index: np.delete(predict(x), i, a), np.delete(published, index, axis))
        for axis in (0, 1)
        for index in range(published.shape[axis])
    ]
    lowest, highest = np.min(refits, axis=0), np.max(refits, axis=0)
    table = pd.DataFrame({"before": START, "fitted": fit(predict, published)})
    table = table.assign(lowest=lowest, highest=highest)
    table["identified"] = (lowest > table["before"]) | (highest < table["before"])
    table["used"] = fit(predict, published, START[~table["identified"]].to_dict())
    return table.rename_axis("parameter")


def _unit(points: np.ndarray) -> np.ndarray:
    """Parameters as shares of their bounds."""
    lowest, highest = BOUNDS.to_numpy()
    return (np.asarray(points) - lowest) / (highest - lowest)
