"""Pearson's correlation of two quantities of candidates grouped in classes, bootstrapped over classes.

Named arrays hold S stages of C classes with c places each, NaN where a place holds no candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

RESAMPLES, DRAWS = 1000, 100


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


def paired(
    arrays: Mapping[str, np.ndarray],
    stage: int,
    reading: Reading,
    random: np.random.Generator,
    draws: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two quantities of a stage's candidates under a reading.

    Args:
        arrays: name -> (S, C, c), and "originals", (C,) sizes of classes.
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
    size = arrays["originals"][:, None] if reading.size == "own" else reading.size or known.shape[1] + 1
    order = np.arange(known.shape[1]) if reading.size == "own" else random.random((draws, *known.shape))
    rank = np.where(known, order, np.inf).argsort(axis=-1).argsort(axis=-1)
    kept = np.broadcast_to(known & (rank < size - 1), (draws, *known.shape))
    first, second = (np.where(kept, values, np.nan) for values in (first, second))
    if reading.shuffled:
        # The kept candidates in their own order, and in a random one.
        places = (~kept).argsort(axis=-1, kind="stable")
        dealt = np.where(kept, random.random(kept.shape), np.inf).argsort(axis=-1)
        np.put_along_axis(second, places, np.take_along_axis(second, dealt, axis=-1), axis=-1)
    first, second = (_scaled(values, reading.scale) for values in (first, second))
    # Where one quantity is NaN, make the other NaN too.
    return first + 0 * second, second + 0 * first


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


def pearson(
    arrays: Mapping[str, np.ndarray], stage: int, reading: Reading, random: np.random.Generator
) -> np.ndarray:
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
    sums = np.where(np.isfinite(x)[..., None], terms, 0).sum(axis=-2)
    classes = sums.shape[1]
    times = random.multinomial(classes, np.full(classes, 1 / classes), size=RESAMPLES)
    resampled = np.einsum("bc,bct->bt", times, sums[np.arange(RESAMPLES) % len(sums)])
    with np.errstate(divide="ignore", invalid="ignore"):
        n, x, y, xx, yy, xy = np.vstack([sums.sum(axis=(0, 1)), resampled]).T
        return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
