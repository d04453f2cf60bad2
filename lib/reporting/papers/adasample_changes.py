"""What FPR95 changes by from one method to another, with intervals.

FPR95 is in percent, the mean over the test sets; changes are in points, negative for the better. The
intervals are those of `lib.intervals`: over seeds, paired where they are shared, and jointly over test
points.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from lib.intervals import Estimate, Measured, contrast
from lib.reporting.claims.measured import fpr95_by_column
from lib.reporting.papers.adasample_significance import LABELS
from lib.study.open import Found


def methods(found: Sequence[Found]) -> dict[str, Measured]:
    """By label each method's FPR95, (seeds, test sets), and what it would be on other test points.

    Args:
        found: runs on one train set, methods in the order to show.
    """
    job = found[0].job
    by_key = fpr95_by_column(found, (job.train_set, *job.sets_of("fpr95")))
    return {of.label: of for of in by_key.values()}


def levels(found: Sequence[Found]) -> pd.DataFrame:
    """Each method's learning rate and mean FPR95.

    Args:
        found: as for `methods`.

    Returns:
        By "method" its "rate", the "mean" and its interval "from" and "to", and the number of "seeds".
    """
    rates = {run.job.label: run.job.recipe.optimizer.options["lr"] for run in found}
    rows = {
        label: {"rate": f"{rates[label]:g}", **_with_interval("mean", contrast([(1.0, of)]))}
        | {"seeds": len(of.values)}
        for label, of in methods(found).items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def changes(found: Sequence[Found], pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """What FPR95 changes by from one method to another.

    Args:
        found: as for `methods`.
        pairs: by what is changed, the labels of the method with it and of the one without.

    Returns:
        By "changed" the "change" in points and its interval "from" and "to".
    """
    of = methods(found)
    rows = {
        name: _with_interval("change", contrast([(1.0, of[after]), (-1.0, of[before])]))
        for name, (after, before) in pairs.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("changed")


def at_one_rate(own: Sequence[Found], shared: Sequence[Found]) -> pd.DataFrame:
    """AdaSample+* against HardNet+*, each at its own learning rate and both at one.

    Args:
        own: runs of both; those on the train set of `shared` are taken.
        shared: runs of both on one train set at one rate.

    Returns:
        A row either way: the "rate" and "mean" FPR95 of both, and the "change" in points from
        HardNet+* to AdaSample+* with its interval.
    """
    alike = [run for run in own if run.job.train_set == shared[0].job.train_set]
    rows = {}
    for name, found in {"each at its own": alike, "both at one": shared}.items():
        level = levels(found)
        changed = changes(found, {"": (LABELS["lower"], LABELS["higher"])})
        of_each = level.loc[[LABELS["higher"], LABELS["lower"]], ["rate", "mean"]].stack()
        rows[name] = pd.concat([of_each, pd.concat({"AdaSample+* − HardNet+*": changed.loc[""]})])
    return pd.DataFrame(rows).T.infer_objects().rename_axis("learning rates")


def _with_interval(name: str, estimate: Estimate) -> dict[str, float]:
    low, high = estimate.limits()
    return {name: estimate.value, "from": low, "to": high}
