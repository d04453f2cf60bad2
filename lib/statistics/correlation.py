"""Pearson's correlation of two quantities of candidates that stand in classes, bootstrapped over these.

Arrays by name hold S stages of C classes with c places each, NaN where a place holds no candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

RESAMPLES, DRAWS = 1000, 100


@dataclass(frozen=True)
class Reading:
    """A way in which the correlation can be taken.

    Attributes:
        scale: "class" divides the values of a class by their sum, which makes them probabilities; "none"
            leaves them as they are; "within" standardises them within the class, so that the correlation
            is the mean over classes of that within a class.
        size: patches that a class is cut down to, the anchor among them, at random; "own" for as many as
            "originals" says, generated ones last; None for all.
        shuffled: the second quantity is dealt out anew among the candidates of each class.
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
    """The two quantities of the candidates of a stage, as a reading takes them.

    Args:
        arrays: (S, C, c) by name, and "originals", (C,) sizes of classes.
        stage: place in the stages.
        reading: which quantities, of which candidates, on which scale.
        random: chooses and shuffles candidates.
        draws: how often.

    Returns:
        (draws, C, c) each, NaN where there is no candidate, or in classes that the scale cannot hold:
        of zeros alone for "class", of a single value for "within".
    """
    first, second = (arrays[name][stage].astype(float) for name in reading.between)
    known = np.isfinite(first) & np.isfinite(second)
    size = arrays["originals"][:, None] if reading.size == "own" else reading.size or known.shape[1] + 1
    order = np.arange(known.shape[1]) if reading.size == "own" else random.random((draws, *known.shape))
    rank = np.where(known, order, np.inf).argsort(axis=-1).argsort(axis=-1)
    kept = np.broadcast_to(known & (rank < size - 1), (draws, *known.shape))
    first, second = (np.where(kept, values, np.nan) for values in (first, second))
    if reading.shuffled:
        # What is kept, in its own order and dealt out anew.
        places = (~kept).argsort(axis=-1, kind="stable")
        dealt = np.where(kept, random.random(kept.shape), np.inf).argsort(axis=-1)
        np.put_along_axis(second, places, np.take_along_axis(second, dealt, axis=-1), axis=-1)
    first, second = (_scaled(values, reading.scale) for values in (first, second))
    # Where one has no value the other has none either.
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
    """Pearson's correlation of the candidates of a stage as a reading takes them, and its bootstrap.

    Args:
        arrays, stage, reading, random: as for `paired`.

    Returns:
        (1 + `RESAMPLES`,) the correlation, over all draws where the reading has any; then those of
        classes drawn with replacement, a draw each. NaN where there is no variance, as in classes of two
        patches: their only candidate has the probability 1.
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
