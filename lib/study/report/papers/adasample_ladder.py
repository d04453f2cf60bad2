"""From HardNet+* to AdaSample+* one choice at a time (Sec. 5.2), and what generated positives do.

FPR95 is in percent, the mean over the test sets; changes are those of `lib.study.report.changes`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured, contrast, relative_gain
from lib.study.artefacts.adasample import LADDER
from lib.study.audit.p_values import comparisons
from lib.study.open import Found
from lib.study.report import changes, frames
from lib.study.report.changes import with_interval
from lib.study.report.papers.adasample_significance import LABELS

# The two columns of Table 3 that are trained on the first set.
FIRST_SET = ["Lib>Ntr", "Lib>Yos"]
# By what is changed alone, the method with it and the method without.
GENERATION: Mapping[str, tuple[str, str]] = {
    "generation, HardNet": ("HardNet, generation alone", "HardNet"),
    "then momentum 0.5 for 0.9": ("HardNet*", "HardNet, generation alone"),
    "generation, AdaSample": ("AdaSample*", "AdaSample"),
    "generation, Hardpos": ("Hardpos*", "Hardpos"),
    "AdaSample for HardNet": ("AdaSample", "HardNet"),
    "AdaSample* for HardNet*": ("AdaSample*", "HardNet*"),
    "Hardpos for AdaSample": ("Hardpos", "AdaSample"),
    "Hardpos* for AdaSample*": ("Hardpos*", "AdaSample*"),
}

# By label, which of the sampling and its weights a method has.
CROSSING: Mapping[str, str] = {
    "… negatives within": "λ = 0, w_i = 1",
    "… w_i = 1/d, λ = 0": "λ = 0, w_i = 1/d",
    "… λ = 10, w_i = 1": "λ = 10, w_i = 1",
    "AdaSample+*": "λ = 10, w_i = 1/d",
}
CROSSED: Mapping[str, tuple[str, str]] = {
    "sampling, w_i = 1": ("λ = 10, w_i = 1", "λ = 0, w_i = 1"),
    "sampling, w_i = 1/d": ("λ = 10, w_i = 1/d", "λ = 0, w_i = 1/d"),
    "w_i, λ = 0": ("λ = 0, w_i = 1/d", "λ = 0, w_i = 1"),
    "w_i, λ = 10": ("λ = 10, w_i = 1/d", "λ = 10, w_i = 1"),
    "sampling and w_i": ("λ = 10, w_i = 1/d", "λ = 0, w_i = 1"),
}


def generation(found: Sequence[Found]) -> pd.DataFrame:
    """Changes of `GENERATION`, and last by how much AdaSample's by generation exceeds HardNet's."""
    of = changes.methods(found)
    table = changes.changes(of, GENERATION)
    labels = (*GENERATION["generation, AdaSample"], *GENERATION["generation, HardNet"])
    both = contrast(list(zip((1.0, -1.0, -1.0, 1.0), (of[label] for label in labels), strict=True)))
    table.loc["generation, AdaSample − HardNet"] = with_interval("change", both)
    return table


def crossed(found: Sequence[Found]) -> pd.DataFrame:
    """Changes of `CROSSED`: the sampling and w_i, each with and without the other."""
    return changes.changes(crossing(found), CROSSED)


def crossing(found: Sequence[Found]) -> dict[str, Measured]:
    """The methods of `CROSSING`, by what they have, as `lib.study.report.changes.methods`."""
    of = changes.methods(found)
    return {shown: of[label] for label, shown in CROSSING.items()}


def two_patches(found: Sequence[Found]) -> pd.DataFrame:
    """By "method", of the classes drawn in training, the "share" that had two patches, mean over steps
    and seeds, 0 to 1."""
    shares = frames.steps(found).groupby("label", sort=False)["two_share"].mean()
    return shares.rename("share").rename_axis("method").to_frame()


def rungs(found: Sequence[Found]) -> list[Found]:
    """The runs of `lib.study.artefacts.adasample.LADDER`, without what stands beside them."""
    return [run for run in found if run.job.name in LADDER]


def gains(found: Sequence[Found]) -> pd.DataFrame:
    """The relative gain of the whole ladder and of its last rung, beside the one that is printed.

    Args:
        found: as for `lib.study.report.ladder.rungs_table`.

    Returns:
        By "from, to" the gain "ours" in percent of the first one's FPR95 with its interval, and the gain
        "printed" in Table 3, of the mean of the two columns that are trained on the first set.
    """
    of, paper = changes.methods(found), comparisons().loc[FIRST_SET].mean()
    first, below, last = [list(of)[place] for place in (0, -2, -1)]
    rows = {
        f"{before}, {last}": with_interval("ours", relative_gain(of[last], of[before]))
        for before in (first, below)
    }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("from, to")
    printed = 100 * (1 - paper["lower_mean"] / paper["higher_mean"])
    return table.assign(printed=[printed, np.nan])


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
        changed = changes.changes(changes.methods(found), {"": (LABELS["lower"], LABELS["higher"])})
        of_each = changes.levels_at_rates(found).loc[list(LABELS.values()), ["rate", "mean"]].stack()
        rows[name] = pd.concat([of_each, pd.concat({"AdaSample+* − HardNet+*": changed.loc[""]})])
    return pd.DataFrame(rows).T.infer_objects().rename_axis("learning rates")
