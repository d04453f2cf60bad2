"""What records say about training: searched rates and margins, triplets, topology, stages, epochs.

FPR95 is in percent.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured
from lib.study import records
from lib.study.artefacts.hynet import MARGINS, SHOWN, best_margin
from lib.study.artefacts.searches import searched_fpr95, searches_folder
from lib.study.artefacts.tcdesc import TOPOLOGY_PAIRS
from lib.study.catalogue import SEARCHED
from lib.study.claims import Values
from lib.study.claims.measured import fpr95_by_column
from lib.study.open import Runs, Study, open_study
from lib.study.report import frames
from lib.study.report.changes import changes

FPR95 = "FPR95 (%)"
# By the name in a record, how a measure of spread is called; each is 1 where all descriptors are one.
SPREAD = {
    "effective_rank": "effective rank",
    "first_share": "share of the first direction",
    "mean_cosine": "mean cosine, other points",
}
# How HyNet's epoch is chosen: not at all; by the mean of the very test sets, as its code does; or for
# each test set by the other.
LAST, ON_TESTS, ON_OTHER = "last", "on the tests", "on the other test"
# What TCDesc's setting, its length of training included, does by itself.
SETTING = {
    "TCDesc's setting on HardNet+": ("hardnet_long", "hardnet_aug"),
    "TCDesc's setting on DSM+": ("dsm_long", "dsm_aug"),
}
TOO_SHORT = "the quick training is too short to overfit, whatever the loss"


def rate_searches(study: Study) -> pd.DataFrame:
    """All runs of the searches for learning rates on record, recipes in the order of `SEARCHED`.

    Each was trained on one reserve scene and tested on the other.

    Returns:
        "recipe" (its label), "rate", "train_set", "seed", "FPR95 (%)" and "spread": by name and stage
        what `lib.benchmarks.descriptor_spread` measures, or {} of a run whose loss was not finite.
    """
    files = [searches_folder(study) / f"{name}.json" for name in SEARCHED]
    searches = [records.read(file) for file in files if file.exists()]
    rows = [{"recipe": s["label"], "spread": {}, **run} for s in searches for run in s["runs"]]
    return pd.DataFrame(rows).rename(columns={"fpr95": FPR95}).drop(columns="test_set")


def at_each_rate(runs: pd.DataFrame, lower: str, higher: str) -> pd.DataFrame:
    """Compare two recipes at each rate at which both were tried and, in the last row, each at its own.

    Args:
        runs: of `rate_searches`.
        lower, higher: labels; the first is said to have the lower FPR95.

    Returns:
        By "rate" the mean FPR95 of both, their "difference", and in how many runs, paired by train set
        and seed, the first one "is lower".
    """
    both = runs.pivot(index=["rate", "train_set", "seed"], columns="recipe", values=FPR95)
    both = both[[higher, lower]]
    best = both.groupby(level="rate").mean().idxmin()
    pairs = {f"{rate:g}": at_rate for rate, at_rate in both.dropna().groupby(level="rate")}
    pairs["own"] = pd.DataFrame({label: both[label].xs(rate) for label, rate in best.items()})
    rows = {}
    for rate, fpr95 in pairs.items():
        is_lower = f"{(fpr95[lower] < fpr95[higher]).sum()} of {len(fpr95)}"
        mean = fpr95.mean()
        rows[rate] = {**mean, "difference": mean[lower] - mean[higher], "is lower": is_lower}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("rate")


def at_best_margin(runs: Runs) -> Runs:
    """The runs of each similarity at its best margin, as rows of HyNet's Table 3: "hynet_h", "hynet_d"
    and "hynet_s"."""
    rows = {best_margin(similarity): f"hynet_{similarity}" for similarity in MARGINS}
    return [
        replace(run, job=replace(run.job, name=rows[run.job.name]))
        for run in runs
        if run.job.name in rows
    ]


def margins() -> pd.DataFrame:
    """By what the margins of HyNet's Table 3 were chosen: a row a similarity and margin, the mean FPR95
    on the reserve at its best "rate", and whether it is "taken"."""
    rows = []
    for similarity, keys in MARGINS.items():
        for margin, key in keys.items():
            fpr95 = pd.Series(searched_fpr95(open_study(), key))
            taken = "yes" if key == best_margin(similarity) else ""
            rows.append((SHOWN[similarity], margin, fpr95.idxmin(), fpr95.min(), taken))
    return pd.DataFrame(rows, columns=["similarity", "margin", "rate", FPR95, "taken"])


def zero_shares(runs: Runs) -> pd.DataFrame:
    """Whether margins bind. One row for each method: its "margin", and the "largest share" in percent of
    triplets without loss, which lie beyond the margin, at any recorded step of any seed.

    Args:
        runs: whose loss is a hinge or its square.
    """
    margin = {run.job.label: run.job.recipe.loss.options["margin"] for run in runs}
    largest = 100 * frames.steps(runs).groupby("label")["zero_share"].max()
    table = pd.DataFrame({"margin": margin}).rename_axis("method")
    return table.assign(**{"largest share": largest})


def at_chosen_epochs(epochs: pd.DataFrame) -> dict[str, np.ndarray]:
    """By choice of the epoch, `LAST`, `ON_TESTS` or `ON_OTHER`, (seeds, 1) mean FPR95 over two test
    sets.

    Args:
        epochs: of one method, a row a run, test set and `epoch` from 1, with `FPR95 (%)`.
    """
    table = epochs.pivot(index=["seed", "test_set"], columns="epoch", values=FPR95)
    values = table.to_numpy().reshape(epochs["seed"].nunique(), 2, -1)
    on_tests = values.mean(axis=1, keepdims=True).argmin(axis=2, keepdims=True)
    on_other = values.argmin(axis=2, keepdims=True)[:, ::-1]
    chosen = {LAST: np.full_like(on_other, -1), ON_TESTS: on_tests, ON_OTHER: on_other}
    return {name: np.take_along_axis(values, at, axis=2).mean(axis=1) for name, at in chosen.items()}


def topology_runs(runs: Runs) -> Runs:
    """The runs of TCDesc: those with a training curve of λ."""
    return [run for run in runs if "mean_lambda" in run.content.get("curve", {})]


def topology(runs: Runs) -> pd.DataFrame:
    """TCDesc's positives in training: one row for each method, means over all steps and seeds.

    Returns:
        `k / n (%)`, k as a share of the other pairs of a batch, which share of two neighbourhoods match
        by chance; the mean share of `matched (%)` neighbours; the `mean λ`, and the share of pairs
        `capped (%)`, whose λ is the largest, 0.5; the mean topology distance `d_T`; and the share of
        differences that lie `beyond (%)` the range of DSM's histogram.
    """
    runs = topology_runs(runs)
    means = frames.steps(runs).groupby("label", sort=False).mean(numeric_only=True)
    configs = pd.json_normalize([run.content["config"] for run in runs])
    neighbours = configs["recipe.positive.options.neighbours"]
    chance = 100 * neighbours / (configs["profile.budget.batch_pairs"] - 1)
    columns = {
        "k / n (%)": chance.groupby([run.job.label for run in runs]).first(),
        "matched (%)": 100 * means["matched_share"],
        "mean λ": means["mean_lambda"],
        "capped (%)": 100 * means["capped_share"],
        "d_T": means["d_topology"],
        "beyond (%)": 100 * means.get("beyond_share", np.nan),
    }
    return pd.DataFrame(columns, means.index.rename("Method"))


def changes_by_topology(runs: Runs, sets: Sequence[str]) -> pd.DataFrame:
    """By how much FPR95 changes with topology, all else the same, and with TCDesc's setting alone.

    Args:
        runs: a pair of `TOPOLOGY_PAIRS` or `SETTING` is shown where both of its methods have runs.
        sets: the data source's three sets, in the order of their roles.

    Returns:
        As `lib.study.report.changes.changes`.
    """
    pairs = {f"topology on {loss}": pair for loss, pair in TOPOLOGY_PAIRS.items()} | SETTING
    names = {run.job.name for run in runs}
    pairs = {changed: pair for changed, pair in pairs.items() if names.issuperset(pair)}
    compared = set().union(*pairs.values())
    return changes(fpr95_by_column([run for run in runs if run.job.name in compared], sets), pairs)


def fpr95_by_stage(runs: Runs) -> pd.DataFrame:
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


def overfitting_values(runs: Runs) -> Values:
    """Values of the claims on overfitting, one cell.

    Args:
        runs: as for `fpr95_by_stage`.

    Returns:
        For each key FPR95 on the test sets after the first stage, "first_{key}", and at the end,
        "last_{key}"; at the stage that has the lowest mean over the other seeds, "best_{key}", since the
        lowest of several stages would be below the last by chance alone; and the gap at the end,
        "gap_{key}".
    """
    values = {}
    for (key, label), method in fpr95_by_stage(runs).groupby(frames.METHOD, sort=False):
        by_stage = method.pivot(index="seed", columns="stage")
        test = by_stage["test"]
        others = {seed: test.drop(seed) if len(test) > 1 else test for seed in test.index}
        best = [test.loc[seed, rest.mean().idxmin()] for seed, rest in others.items()]
        columns = {"first": test.iloc[:, 0], "last": test.iloc[:, -1], "best": best}
        columns["gap"] = by_stage["gap"].iloc[:, -1]
        for name, column in columns.items():
            values[f"{name}_{key}"] = Measured(np.c_[column], label=f"{label} ({name})")
        if runs[0].content.get("profile") == "quick":
            values[f"best_{key}"] = TOO_SHORT
    return values
