"""What choosing the epoch is worth, HyNet's and others' (Tian et al.); FPR95 is in percent."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.intervals import Measured
from lib.reporting import changes, frames
from lib.reporting.papers.hynet import FPR95, by_epoch_figure
from lib.study.open import Found

# How an epoch is chosen: not at all; by the mean of the very test sets, as HyNet's code does; or of each
# test set by the other.
CHOICES = ("last", "on the tests", "on the other test")


def by_stage(found: Sequence[Found]) -> pd.DataFrame:
    """FPR95 on all pairs at the end of each epoch, from 1: a row a run, test set and epoch.

    Args:
        found: of `lib.experiments.hynet.epochs`.

    Returns:
        As of `lib.reporting.frames.epochs`.
    """
    frame = frames.tidy(found, "fpr95_by_stage").rename(columns={"value": FPR95})
    return frame.assign(epoch=frame.groupby(["key", "seed", "test_set"]).cumcount() + 1)


def _chosen(of: pd.DataFrame) -> dict[str, np.ndarray]:
    """By choice (seeds, 1) mean FPR95 over two test sets."""
    table = of.pivot(index=["seed", "test_set"], columns="epoch", values=FPR95)
    values = table.to_numpy().reshape(of["seed"].nunique(), 2, -1)
    of_mean = values.mean(axis=1, keepdims=True).argmin(axis=2, keepdims=True).repeat(2, axis=1)
    of_other = values.argmin(axis=2, keepdims=True)[:, ::-1]
    at = dict(zip(CHOICES, (np.full_like(of_other, -1), of_mean, of_other), strict=True))
    return {name: np.take_along_axis(values, of, axis=2).mean(axis=1) for name, of in at.items()}


def epochs_table(found: Sequence[Found]) -> pd.DataFrame:
    """What choosing the epoch does to FPR95, a row a method: the mean of the last epoch; and under
    either choice its "change" from the last in points with the interval "from" and "to" over seeds.

    Args:
        found: of `lib.experiments.hynet.epochs`.
    """
    (last, *others), rows = CHOICES, {}
    for label, of in by_stage(found).groupby("label", sort=False):
        values = {name: Measured(each) for name, each in _chosen(of).items()}
        changed = changes.changes(values, {f"chosen {of}": (of, last) for of in others})
        rows[label] = {("FPR95", last): values[last].values.mean(), **changed.T.unstack().to_dict()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def epochs_values(found: Sequence[Found]) -> dict[str, np.ndarray]:
    """The values of the claims on it, (seeds, 1), by method and choice, e.g. "hynet_aug_last",
    "…_on_the_tests" and "…_on_the_other_test"."""
    return {
        f"{key}_{choice}".replace(" ", "_"): of
        for key, runs in by_stage(found).groupby("key", sort=False)
        for choice, of in _chosen(runs).items()
    }


def epochs_figure(found: Sequence[Found], note: str) -> Figure:
    """FPR95 on all pairs, a line a method, as `by_epoch_figure`."""
    return by_epoch_figure(by_stage(found), note)
