"""Measures of the claims that no module measures by itself: they are derived from curves, arrays or
several numbers of a run.

    numbers = pd.concat([runs, without_loss(runs)])
    judged(read("dsm", "Figure 2"), numbers, study)

Each function returns tidy rows, one for each run and measure, with the columns `method`, `train`,
`seed`, `test`, `measure` and `value`. The test is the train set, unless a run has several numbers of one
measure.
"""

import numpy as np
import pandas as pd

from lib.analysis.correlations import MEAN, Reading, correlations
from lib.study.runs import Runs
from lib.study.tables import tenths

_RUN = ["method", "train", "seed"]
# The margins that DSM's Sec. 4.1 compares: HardNet's, and the best of its Figure 2.
_MARGINS = (1, 0.375)
_CONSTANT = "gradient_norms: median error of one constant M, at each stage of training"
# The probabilities are normalised over as many patches as a class has in the training set, or over the
# 15 among which AdaSample+* draws.
_CORRELATION = (
    "gradient_norms: Pearson correlation of the two kinds of probabilities, at each stage of training"
)
_READINGS = {_CORRELATION: Reading(size="own"), f"{_CORRELATION}, in classes of 15": Reading()}
_RISE = "intensity_changes: mean rise of FPR95 under changes of exposure"


def without_loss(runs: Runs) -> pd.DataFrame:
    """Return the share of triplets without a loss in training, in percent: the largest in a stretch
    between two points of the curve, and the mean of the last fifth of training.

    Methods whose loss has no margin are left out.
    """
    curves = runs.curves.query("curve == 'zero_share'")
    late = curves[curves["step"] > 0.8 * curves["step"].max()]
    largest = curves.groupby(_RUN)["value"].max()
    at_the_end = late.groupby(_RUN)["value"].mean()
    shares = {
        "curves: largest share of triplets with zero loss in a stretch of training": largest,
        "curves: share of triplets with zero loss, in the last fifth of training": at_the_end,
    }
    return _rows(100 * pd.DataFrame(shares))


def topology_in_training(runs: Runs) -> pd.DataFrame:
    """Return how far TCDesc's share of matched neighbours, in percent, and its mean λ (Eq. 11) rise from
    the first to the last tenth of training. Methods without a topology are left out."""
    early = "in the last tenth of the steps less"
    names = {
        "matched_share": f"curves: matched neighbours {early} those in the first",
        "mean_lambda": f"curves: mean λ {early} that in the first",
    }
    curves = runs.curves[runs.curves["curve"].isin(names)]
    rises = curves.groupby([*_RUN, "curve"])["value"].agg(
        lambda curve: tenths(curve)[1] - tenths(curve)[0]
    )
    rises = rises.unstack("curve")
    rises["matched_share"] *= 100
    return _rows(rises.rename(columns=names))


def triplets_in_batch(runs: Runs) -> pd.DataFrame:
    """Return what DSM's Figure 1 says of the triplets of a batch as large as in training, at its end:
    the shares that margins of 1 and 0.375 exclude, in percent, and the standard deviation of d_pos less
    that of d_neg.

    Source: DSM, Sec. 4.1 and Figure 1.

    Args:
        runs: with the probe `lib.analysis.triplets_in_batch`, whose "positive" and "negative" are (S, n)
            distances of S stages, the last at the end.
    """
    rows = []
    about = runs.table.set_index("run")[_RUN]
    for run, probe in runs.arrays("triplets_in_batch").items():
        d_pos = probe["positive"][-1].astype(float)
        d_neg = probe["negative"][-1].astype(float)
        shares = {
            f"triplets_in_batch: share excluded by a margin of {margin}": (
                100 * (d_neg - d_pos > margin).mean()
            )
            for margin in _MARGINS
        }
        spread = d_pos.std(ddof=1) - d_neg.std(ddof=1)
        shares["triplets_in_batch: standard deviation of d_pos less that of d_neg"] = spread
        rows.append({**about.loc[run], **shares})
    return _rows(pd.DataFrame(rows).set_index(_RUN))


def gradient_norms(runs: Runs) -> pd.DataFrame:
    """Return what AdaSample's Sec. 4.2 says of the norms of gradients at each stage of training.

    How far the full gradient is from one constant M times that at the output is the median error in
    percent. The correlation is that of the probabilities by distance and by gradient, normalised within
    each class (Figure 3). The test is the stage, in percent of training.

    Source: AdaSample, Eq. 23 and Sec. 5.4.

    Args:
        runs: with the probe `lib.analysis.gradient_norms`, whose "full", "output" and "distance" are
            (S, C, c) for S stages and c candidates of each of C classes, NaN where there is none.
    """
    probes = runs.arrays("gradient_norms")
    rows = []
    for run, probe in probes.items():
        for stage, full, output in zip(probe["stage"], probe["full"], probe["output"], strict=True):
            known = np.isfinite(full) & (output > 0)
            ratio = full[known] / output[known]
            error = 100 * np.median(np.abs(ratio / np.median(ratio) - 1))
            rows.append({"run": run, "stage": stage, "measure": _CONSTANT, "value": error})
    correlated = correlations(probes, _READINGS)
    correlated = correlated[correlated["run"] != MEAN]
    correlated = correlated.rename(columns={"reading": "measure", "r": "value"})
    numbers = pd.concat([pd.DataFrame(rows), correlated])
    numbers["test"] = (100 * numbers["stage"].astype(float)).map("{:.0f}% of training".format)
    return numbers.merge(runs.table[["run", *_RUN]])[[*_RUN, "test", "measure", "value"]]


def rise_under_exposure(runs: pd.DataFrame) -> pd.DataFrame:
    """Return by how many points FPR95 rises when the second patch of a pair has another exposure, the
    mean over the changes, for each test set.

    Source: HyNet, Sec. 3.1; the changes of exposure are ours.

    Args:
        runs: measured by `lib.benchmarks.intensity_changes`.
    """
    pattern = r"^intensity_changes\.fpr95\.(.+)$"
    measured = runs.assign(change=runs["measure"].str.extract(pattern, expand=False))
    measured = measured.dropna(subset="change")
    by_change = measured.pivot_table("value", [*_RUN, "test"], "change")
    rises = by_change.drop(columns="none").sub(by_change["none"], axis=0).mean(axis=1)
    return rises.rename("value").reset_index().assign(measure=_RISE)


def _rows(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with a row a run and a column a measure as tidy rows."""
    rows = numbers.melt(var_name="measure", ignore_index=False).reset_index()
    return rows.assign(test=rows["train"])
