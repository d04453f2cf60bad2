"""TCDesc (Pan et al.): what topology does to λ and FPR95, and whether training overfits."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured
from lib.study.artefacts.tcdesc import LOSSES
from lib.study.claims.measured import fpr95_by_column
from lib.study.open import Record
from lib.study.report import frames
from lib.study.report.changes import changes

# What TCDesc's setting, its length of training included, does by itself.
SETTING: Mapping[str, tuple[str, str]] = {
    "TCDesc's setting on HardNet+": ("hardnet_long", "hardnet_aug"),
    "TCDesc's setting on DSM+": ("dsm_long", "dsm_aug"),
}
TOO_SHORT = "the quick training is too short to overfit, whatever the loss"


def with_topology(runs: Sequence[Record]) -> list[Record]:
    """The runs of TCDesc, whose curves tell λ."""
    return [run for run in runs if "mean_lambda" in run.content.get("curve", {})]


def topology_in_training(runs: Sequence[Record]) -> pd.DataFrame:
    """What TCDesc's positive saw in training, a row a method, over all of its steps and seeds.

    Returns:
        `k / n (%)`, k as a share of the other pairs of a batch, which share of two neighbourhoods match
        by chance; the mean share of `matched (%)` neighbours; the `mean λ`, and the share of pairs
        `capped (%)`, whose λ is the largest, 0.5; the mean topology distance `d_T`; and the share of
        differences that lie `beyond (%)` the range of DSM's histogram.
    """
    rows = {}
    for label, method in frames.by_label(with_topology(runs)).items():
        config = method[0].content["config"]
        means = frames.steps(method).mean(numeric_only=True)
        others = config["profile"]["budget"]["batch_pairs"] - 1
        rows[label] = {
            "k / n (%)": 100 * config["recipe"]["positive"]["options"]["neighbours"] / others,
            "matched (%)": 100 * means["matched_share"],
            "mean λ": means["mean_lambda"],
            "capped (%)": 100 * means["capped_share"],
            "d_T": means["d_topology"],
            "beyond (%)": 100 * means.get("beyond_share", np.nan),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("Method")


def changes_by_topology(runs: Sequence[Record], sets: Sequence[str]) -> pd.DataFrame:
    """What topology changes in FPR95, all else alike, and what TCDesc's setting alone.

    Args:
        runs: of the pairs of `LOSSES` and `SETTING` both runs, or neither; others are left out.
        sets: the data source's three sets, in the order of their roles.

    Returns:
        As `lib.study.report.changes.changes`.
    """
    pairs = {f"topology on {loss}": pair for loss, pair in LOSSES.items()} | SETTING
    names = {run.job.name for run in runs}
    pairs = {changed: pair for changed, pair in pairs.items() if names.issuperset(pair)}
    compared = {key for pair in pairs.values() for key in pair}
    return changes(fpr95_by_column([run for run in runs if run.job.name in compared], sets), pairs)


def fpr95_by_stage(runs: Sequence[Record]) -> pd.DataFrame:
    """FPR95 on all pairs by stage of training, in percent: a row a run and stage.

    Args:
        runs: of `lib.study.artefacts.tcdesc.overfitting`.

    Returns:
        `key`, `label` and `seed` of the run; `stage`; FPR95 on the set trained on, `train`, the mean of
        those tested on, `test`, and by how much the latter is higher, the `gap`.
    """
    table = frames.tidy(runs, "fpr95_by_stage").rename(columns={"metric": "stage"})
    table["on"] = np.where(table["test_set"] == table["train_set"], "train", "test")
    means = table.groupby([*frames.RUN, "stage", "on"], sort=False)["value"].mean().unstack("on")
    means = means[["train", "test"]].assign(gap=means["test"] - means["train"])
    return means.reset_index().astype({"stage": float})


def overfitting_values(runs: Sequence[Record]) -> dict[str, Measured | str]:
    """Values of the claims on overfitting, one cell.

    Args:
        runs: as for `fpr95_by_stage`.

    Returns:
        Of each key FPR95 on the test sets after the first stage, "first_{key}", at the end, "last_…",
        and at the stage that is lowest in the mean over the other seeds, "best_…", since the lowest of
        several would be below the last by chance alone; and the gap at the end, "gap_…".
    """
    values = {}
    for (key, label), method in fpr95_by_stage(runs).groupby(frames.METHOD, sort=False):
        test, gap = (method.pivot(index="seed", columns="stage", values=v) for v in ("test", "gap"))
        others = {seed: test.drop(seed) if len(test) > 1 else test for seed in test.index}
        best = [test.loc[seed, rest.mean().idxmin()] for seed, rest in others.items()]
        first, last = test.iloc[:, 0], test.iloc[:, -1]
        columns = {"first": first, "last": last, "best": best, "gap": gap.iloc[:, -1]}
        for name, column in columns.items():
            values[f"{name}_{key}"] = Measured(np.c_[column], label=f"{label} ({name})")
        if runs[0].content.get("profile") == "quick":
            values[f"best_{key}"] = TOO_SHORT
    return values
