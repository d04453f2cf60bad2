"""Training as the records show it: searched rates and margins, triplets, topology, stages, epochs.

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
# Name of a spread measure in a record -> its name for readers; each is 1 if all descriptors are equal.
SPREAD = {
    "effective_rank": "effective rank",
    "first_share": "share of the first direction",
    "mean_cosine": "mean cosine, other points",
}
# Choices of HyNet's epoch: the last; the best by the mean of the test sets themselves, as in its code;
# or for each test set the best on the other.
LAST, ON_TESTS, ON_OTHER = "last", "on the tests", "on the other test"
# Pairs that show the effect of TCDesc's setting alone, its length of training included.
SETTING = {
    "TCDesc's setting on HardNet+": ("hardnet_long", "hardnet_aug"),
    "TCDesc's setting on DSM+": ("dsm_long", "dsm_aug"),
}
TOO_SHORT = "the quick training is too short to overfit, whatever the loss"


def rate_searches(study: Study) -> pd.DataFrame:
    """Return all recorded runs of the learning rate searches, recipes in the order of `SEARCHED`.

    Each was trained and tested on one of `searches.pairs_of_sets`.

    Returns:
        "recipe" (its label), "rate", "train_set", "seed", "FPR95 (%)" and "spread": the measures of
        `lib.benchmarks.descriptor_spread` by name and stage, or {} for a run whose loss was not finite.
    """
    files = [searches_folder(study) / f"{name}.json" for name in SEARCHED]
    searches = [records.read(file) for file in files if file.exists()]
    rows = [{"recipe": s["label"], "spread": {}, **run} for s in searches for run in s["runs"]]
    return pd.DataFrame(rows).rename(columns={"fpr95": FPR95}).drop(columns="test_set")


def at_each_rate(runs: pd.DataFrame, lower: str, higher: str) -> pd.DataFrame:
    """Compare two recipes at each learning rate tried for both and, in the last row, each at its best.

    Args:
        runs: from `rate_searches`.
        lower, higher: labels; the first is claimed to have the lower FPR95.

    Returns:
        By "rate", the mean FPR95 of both, their "difference", and "is lower", the number of runs, paired
        by train set and seed, in which the first is lower.
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
    """Return the runs of each similarity at its best margin, named as rows of HyNet's Table 3.

    The names are "hynet_h", "hynet_d" and "hynet_s".
    """
    rows = {best_margin(similarity): f"hynet_{similarity}" for similarity in MARGINS}
    return [
        replace(run, job=replace(run.job, name=rows[run.job.name]))
        for run in runs
        if run.job.name in rows
    ]


def margins() -> pd.DataFrame:
    """Tabulate how the margins of HyNet's Table 3 were chosen, one row per similarity and margin.

    Columns are the best "rate", the mean FPR95 on the reserve at it, and whether the margin is "taken".
    """
    rows = []
    for similarity, keys in MARGINS.items():
        for margin, key in keys.items():
            fpr95 = pd.Series(searched_fpr95(open_study(), key))
            taken = "yes" if key == best_margin(similarity) else ""
            rows.append((SHOWN[similarity], margin, fpr95.idxmin(), fpr95.min(), taken))
    return pd.DataFrame(rows, columns=["similarity", "margin", "rate", FPR95, "taken"])


def zero_shares(runs: Runs) -> pd.DataFrame:
    """Tabulate whether margins bind, one row per method.

    Columns are "margin" and "largest share": the largest percentage, at any recorded step of any seed,
    of triplets without loss, which lie beyond the margin.

    Args:
        runs: runs whose loss is a hinge or its square.
    """
    margin = {run.job.label: run.job.recipe.loss.options["margin"] for run in runs}
    largest = 100 * frames.steps(runs).groupby("label")["zero_share"].max()
    table = pd.DataFrame({"margin": margin}).rename_axis("method")
    return table.assign(**{"largest share": largest})


def at_chosen_epochs(epochs: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return (seeds, 1) mean FPR95 over two test sets for each choice of the epoch.

    Choices are `LAST`, `ON_TESTS` and `ON_OTHER`.

    Args:
        epochs: of one method, one row per run, test set and `epoch` from 1, with `FPR95 (%)`.
    """
    table = epochs.pivot(index=["seed", "test_set"], columns="epoch", values=FPR95)
    values = table.to_numpy().reshape(epochs["seed"].nunique(), 2, -1)
    on_tests = values.mean(axis=1, keepdims=True).argmin(axis=2, keepdims=True)
    on_other = values.argmin(axis=2, keepdims=True)[:, ::-1]
    chosen = {LAST: np.full_like(on_other, -1), ON_TESTS: on_tests, ON_OTHER: on_other}
    return {name: np.take_along_axis(values, at, axis=2).mean(axis=1) for name, at in chosen.items()}


def topology_runs(runs: Runs) -> Runs:
    """Return the runs of TCDesc: those with a training curve of λ."""
    return [run for run in runs if "mean_lambda" in run.content.get("curve", {})]


def topology(runs: Runs) -> pd.DataFrame:
    """Tabulate TCDesc's positives in training, one row per method, as means over all steps and seeds.

    Returns:
        `k / n (%)`, k as a share of the other pairs of a batch, which is the share of neighbours that
        match by chance; `matched (%)`, the mean share of matched neighbours; `mean λ`; `capped (%)`, the
        share of pairs with the largest λ, 0.5; `d_T`, the mean topology distance; and `beyond (%)`, the
        share of differences beyond the range of DSM's histogram.
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
    """Tabulate how FPR95 changes with topology, all else equal, and with TCDesc's setting alone.

    Args:
        runs: a pair of `TOPOLOGY_PAIRS` or `SETTING` is shown if both of its methods have runs.
        sets: the data source's three sets, in the order of their roles.

    Returns:
        As from `lib.study.report.changes.changes`.
    """
    pairs = {f"topology on {loss}": pair for loss, pair in TOPOLOGY_PAIRS.items()} | SETTING
    names = {run.job.name for run in runs}
    pairs = {changed: pair for changed, pair in pairs.items() if names.issuperset(pair)}
    compared = set().union(*pairs.values())
    return changes(fpr95_by_column([run for run in runs if run.job.name in compared], sets), pairs)


def fpr95_by_stage(runs: Runs) -> pd.DataFrame:
    """Tabulate FPR95 on all pairs by stage of training, in percent, one row per run and stage.

    Args:
        runs: from `lib.study.artefacts.tcdesc.overfitting`.

    Returns:
        `key`, `label` and `seed` of the run; `stage`; `train`, FPR95 on the train set; `test`, its mean
        over the test sets; and `gap`, `test` minus `train`.
    """
    table = frames.tidy(runs, "fpr95_by_stage").rename(columns={"metric": "stage"})
    table["on"] = np.where(table["test_set"] == table["train_set"], "train", "test")
    means = table.groupby([*frames.RUN, "stage", "on"], sort=False)["value"].mean().unstack("on")
    means = means[["train", "test"]].assign(gap=means["test"] - means["train"])
    return means.reset_index().astype({"stage": float})


def overfitting_values(runs: Runs) -> Values:
    """Return the values of the claims on overfitting, one cell each.

    Args:
        runs: as for `fpr95_by_stage`.

    Returns:
        For each key, FPR95 on the test sets after the first stage, "first_{key}"; at the end,
        "last_{key}"; and at the stage that has the lowest mean over the other seeds, "best_{key}",
        because the lowest of several stages would be below the last by chance alone; and the gap at the
        end, "gap_{key}".
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
