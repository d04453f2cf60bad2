"""Pearson's correlation of two quantities of candidates that are grouped in classes (AdaSample, Fig. 3).

Probabilities that sum to one within a class depend on the class's size, and this alone correlates two
kinds of them. A `Reading` says what is correlated, and intervals are over classes, drawn with
replacement. Named arrays hold S stages of C classes with c slots each, NaN where a slot holds no
candidate, as `lib.analysis.gradient_norms` returns them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

# Resamples of classes, and draws of a reading that chooses or shuffles candidates.
RESAMPLES = 1000
DRAWS = 100
# In the column `run` of `correlations`.
MEAN = "mean of the runs"
# Arrays by name.
Probe = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Reading:
    """A way to compute the correlation.

    Attributes:
        scale: "class" divides the values of a class by their sum, which makes them probabilities; "none"
            leaves them unchanged; "within" standardises them within the class, so that the correlation
            is the mean over classes of the correlation within a class.
        size: number of patches, the anchor included, to which a class is cut at random; "own" cuts to
            the number in "originals" and drops generated patches, which come last; None keeps all.
        shuffled: whether the second quantity is permuted among the candidates of each class.
        between: the names of the two quantities.
    """

    scale: str = "class"
    size: int | str | None = None
    shuffled: bool = False
    between: tuple[str, str] = ("distance", "full")


def correlations(probes: Mapping[str, Probe], readings: Mapping[str, Reading]) -> pd.DataFrame:
    """Compute Pearson's r with its 95% interval over classes, a row a reading, stage and run.

    Args:
        probes: by run; all have the same "stage" (S,).
        readings: by name.

    Returns:
        Columns `reading`, `stage` (fraction of training), `run`, `r`, `low`, `high`. The run `MEAN` is
        the mean over the runs, each of which has its own classes.
    """
    random = np.random.default_rng(0)
    stages = next(iter(probes.values()))["stage"].astype(float).round(3)
    rows = []
    for (name, reading), (number, stage) in product(readings.items(), enumerate(stages)):
        by_run = {run: pearson(probe, number, reading, random) for run, probe in probes.items()}
        by_run[MEAN] = np.mean(list(by_run.values()), axis=0)
        for run, (r, *resampled) in by_run.items():
            low, high = np.quantile(resampled, (0.025, 0.975))
            rows.append((name, stage, run, r, low, high))
    return pd.DataFrame(rows, columns=["reading", "stage", "run", "r", "low", "high"])


def pearson(arrays: Probe, stage: int, reading: Reading, random: np.random.Generator) -> np.ndarray:
    """Compute Pearson's correlation over a stage's candidates under a reading, and its bootstrap.

    Args:
        arrays, stage, reading, random: as for `paired`.

    Returns:
        (1 + `RESAMPLES`,): the correlation, over all draws if the reading is random; then the
        correlations of classes drawn with replacement, one draw each. NaN where there is no variance, as
        in classes of two patches, whose only candidate has the probability 1.
    """
    by_chance = reading.shuffled or isinstance(reading.size, int)
    x, y = paired(arrays, stage, reading, random, DRAWS if by_chance else 1)
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1)
    # Sums over the candidates of a class suffice, so a resample of classes only adds them up.
    sums = np.where(np.isfinite(x)[..., None], terms, 0).sum(axis=-2)
    classes = sums.shape[1]
    times = random.multinomial(classes, np.full(classes, 1 / classes), size=RESAMPLES)
    drawn = np.arange(RESAMPLES) % len(sums)
    resampled = np.einsum("bc,bct->bt", times, sums[drawn])
    with np.errstate(divide="ignore", invalid="ignore"):
        n, x, y, xx, yy, xy = np.vstack([sums.sum(axis=(0, 1)), resampled]).T
        return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


def paired(
    arrays: Probe, stage: int, reading: Reading, random: np.random.Generator, draws: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two quantities of a stage's candidates under a reading.

    Args:
        arrays: by name, (S, C, c); and "originals", the (C,) sizes of the classes.
        stage: index of the stage.
        reading: which quantities, of which candidates, on which scale.
        random: generator that chooses and shuffles candidates.
        draws: number of random draws.

    Returns:
        (draws, C, c) each, NaN where there is no candidate, and in classes that cannot be scaled: all
        zeros for "class", a single value for "within".
    """
    first, second = (arrays[name][stage].astype(float) for name in reading.between)
    known = np.isfinite(first) & np.isfinite(second)
    kept = _kept(known, arrays, reading, random, draws)
    first, second = (np.where(kept, values, np.nan) for values in (first, second))
    if reading.shuffled:
        _shuffle(second, kept, random)
    first, second = (_scaled(values, reading.scale) for values in (first, second))
    # Where one quantity is NaN, make the other NaN too.
    return first + 0 * second, second + 0 * first


def _kept(
    known: np.ndarray, arrays: Probe, reading: Reading, random: np.random.Generator, draws: int
) -> np.ndarray:
    """Return which of the known candidates (C, c) a reading keeps, (draws, C, c)."""
    if reading.size == "own":
        size = arrays["originals"][:, None]
        order = np.arange(known.shape[1])
    else:
        size = reading.size or known.shape[1] + 1
        order = random.random((draws, *known.shape))
    rank = np.where(known, order, np.inf).argsort(axis=-1).argsort(axis=-1)
    # One patch of a class is its anchor.
    return np.broadcast_to(known & (rank < size - 1), (draws, *known.shape))


def _shuffle(values: np.ndarray, kept: np.ndarray, random: np.random.Generator) -> None:
    """Permute the kept values among the candidates of each class, in place."""
    # The kept candidates in their own order, and in a random one.
    slots = (~kept).argsort(axis=-1, kind="stable")
    dealt = np.where(kept, random.random(kept.shape), np.inf).argsort(axis=-1)
    np.put_along_axis(values, slots, np.take_along_axis(values, dealt, axis=-1), axis=-1)


def _scaled(values: np.ndarray, scale: str) -> np.ndarray:
    if scale == "none":
        return values
    total = np.nansum(values, axis=-1, keepdims=True)
    if scale == "class":
        return values / np.where(total > 0, total, np.nan)
    count = np.maximum(np.isfinite(values).sum(axis=-1, keepdims=True), 1)
    centred = values - total / count
    spread = np.sqrt(np.nansum(centred**2, axis=-1, keepdims=True) / count)
    return centred / np.where(spread > 0, spread, np.nan)
