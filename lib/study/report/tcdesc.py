"""TCDesc (Pan et al.): what topology does to λ, FPR95, neighbourhoods and matches, from records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured, side_by_side
from lib.study.artefacts.tcdesc import GRID, LOSSES
from lib.study.claims.measured import by_method, by_things, fpr95_by_column, hpatches_by_task
from lib.study.open import Record
from lib.study.report import frames, hpatches
from lib.study.report.changes import changes

Probe = Mapping[str, np.ndarray]
MATCHED, ALL_MATCH, UNSHARED = "matched (%)", "all match (%)", "of unshared (%)"
# What TCDesc's setting, its length of training included, does by itself.
SETTING: Mapping[str, tuple[str, str]] = {
    "TCDesc's setting on HardNet+": ("hardnet_long", "hardnet_aug"),
    "TCDesc's setting on DSM+": ("dsm_long", "dsm_aug"),
}
# By probe the keypoints that are matched.
DETECTORS = {"matches_on_dog": "own keypoints", "matches_on_brisk": "BRISK"}
KINDS = {"i": "illumination", "v": "viewpoint"}
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
    for label, of_method in frames.by_label(with_topology(runs)).items():
        config = of_method[0].content["config"]
        others = config["profile"]["budget"]["batch_pairs"] - 1
        curves = frames.steps(of_method)
        rows[label] = {
            "k / n (%)": 100 * config["recipe"]["positive"]["options"]["neighbours"] / others,
            MATCHED: 100 * curves["matched_share"].mean(),
            "mean λ": curves["mean_lambda"].mean(),
            "capped (%)": 100 * curves["capped_share"].mean(),
            "d_T": curves["d_topology"].mean(),
            "beyond (%)": 100 * curves.get("beyond_share", pd.Series(dtype=float)).mean(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("Method")


def mean_lambda(runs: Sequence[Record]) -> dict[str, Measured]:
    """By key (seeds, 1) the mean λ over all steps, of the runs of TCDesc."""
    steps = frames.steps(with_topology(runs))
    means = steps.groupby(frames.RUN, sort=False)[["mean_lambda"]].mean()
    return by_method(means, ["mean_lambda"], None)


def grid_values(runs: Sequence[Record]) -> dict[str, dict[str, Measured]]:
    """Values of the claims on Figure 3, by metric: "mean_lambda", and each task of HPatches by key and,
    with a cell for each k, by "gamma_0.5", …

    Args:
        runs: of `lib.study.artefacts.tcdesc.table1`.
    """
    numbers = hpatches.numbers([run for run in runs if run.job.name in GRID])
    values = {"mean_lambda": mean_lambda(runs)}
    for task in hpatches.TASKS:
        values[task] = by_key = hpatches_by_task(numbers, [task])
        for gamma in dict.fromkeys(gamma for _, gamma in GRID.values()):
            parts = [by_key[key] for key, cell in GRID.items() if cell[1] == gamma]
            by_key[f"gamma_{gamma:g}"] = replace(side_by_side(parts), label=f"γ = {gamma:g}")
    return values


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
    values = fpr95_by_column([run for run in runs if run.job.name in compared], sets)
    return changes(values, pairs)


def neighbourhoods(run: Record) -> Probe:
    """The probe `lib.probes.neighbourhoods` of a run, among points of its first test set."""
    return run.probe("neighbourhoods", run.job.sets_of("fpr95")[0])


def neighbourhoods_by_stage(runs: Sequence[Record]) -> pd.DataFrame:
    """Neighbourhoods through training, means over pairs: a row a run and stage.

    Returns:
        `key`, `label` and `seed` of the run; `stage`; the share of `matched (%)` neighbours, and that of
        pairs all of whose neighbours match, `all match (%)`; the topology distance `d_T`, and what it is
        `of unshared (%)`, the same weights if no neighbour were shared; the Euclidean distance `d_E`.
    """
    rows = []
    for run in runs:
        probe = neighbourhoods(run)
        topology = probe["topology"].astype(float).mean(axis=1)
        numbers = {
            "stage": probe["stage"].astype(float).round(3),
            MATCHED: 100 * probe["matched"].astype(float).mean(axis=1),
            ALL_MATCH: 100 * (probe["matched"] == 1).mean(axis=1),
            "d_T": topology,
            UNSHARED: 100 * topology / probe["unshared"],
            "d_E": probe["euclidean"].astype(float).mean(axis=1),
        }
        method = {"key": run.job.name, "label": run.job.label, "seed": run.job.seed}
        rows.append(pd.DataFrame(numbers).assign(**method))
    return pd.concat(rows, ignore_index=True)


def neighbourhood_values(runs: Sequence[Record]) -> dict[str, Measured]:
    """Values of the claims on Figure 1, (seeds, 1), shares in percent.

    Args:
        runs: of `lib.study.artefacts.tcdesc.figure1`.

    Returns:
        At the end of training "matched_{key}", "perfect_{key}", "topology_{key}" and "unshared_{key}",
        what `neighbourhoods_by_stage` has, and "half" of the neighbours; of TCDesc over the first and
        the last tenth of the steps "matched_first", "matched_last", "lambda_…" and "capped_…".
    """
    end = neighbourhoods_by_stage(runs).groupby([*frames.METHOD, "seed"], sort=False).last()
    named = {"matched": MATCHED, "perfect": ALL_MATCH, "topology": "d_T", "unshared": UNSHARED}
    values = {
        f"{name}_{key}": Measured(of_method[[column]].to_numpy(), label=label)
        for (key, label), of_method in end.groupby(level=frames.METHOD, sort=False)
        for name, column in named.items()
    }
    values["half"] = Measured(np.array([50.0]), label="half of them")
    curves = [run.content["curve"] for run in with_topology(runs)]
    scales = {"matched": ("matched_share", 100), "lambda": ("mean_lambda", 1)}
    scales["capped"] = ("capped_share", 100)
    for name, (curve, scale) in scales.items():
        tenths = scale * np.array([frames.tenths(pd.Series(of_run[curve])) for of_run in curves])
        for tenth, means in zip(("first", "last"), tenths.T, strict=True):
            values[f"{name}_{tenth}"] = Measured(means[:, None], label=f"the {tenth} tenth")
    return values


def match_probes(runs: Sequence[Record], images: str) -> list[tuple[Record, str, Probe]]:
    """Runs with the keypoints that were matched, of `DETECTORS`, and the probe of matches.

    Args:
        runs: of `lib.study.artefacts.tcdesc.figure2`.
        images: the name of the set of images.
    """
    return [
        (run, detector, run.probe(name, images))
        for name, detector in DETECTORS.items()
        for run in runs
        if (name, images) in run.job.probes
    ]


def matches(runs: Sequence[Record], images: str) -> pd.DataFrame:
    """Matches between two images of each sequence, a row a run and sequence.

    Args:
        runs, images: as for `match_probes`.

    Returns:
        `key`, `label` and `seed` of the run, the `detector`, the `sequence` and its `kind`, and how many
        matches are `right` and `wrong`.
    """
    rows = []
    for run, detector, probe in match_probes(runs, images):
        about = {"key": run.job.name, "label": run.job.label, "seed": run.job.seed}
        counts = {"right": probe["right"], "wrong": probe["matches"] - probe["right"]}
        rows.append(pd.DataFrame({"sequence": probe["name"], **counts, "detector": detector, **about}))
    table = pd.concat(rows, ignore_index=True).astype({"seed": "Int64"})
    return table.assign(kind=table["sequence"].str[0].map(KINDS))


def match_values(matched: pd.DataFrame) -> dict[str, dict[str, Measured]]:
    """Values of the claims on Figure 2 by metric, "right_illumination" and so on: by key a pair's
    matches on BRISK's keypoints, the mean over sequences, with resamples of what these show.

    Args:
        matched: of `matches`.
    """
    values = {}
    for kind, of_kind in matched[matched["detector"] == "BRISK"].groupby("kind"):
        for count in ("right", "wrong"):
            table = of_kind.pivot(index=frames.RUN, columns="sequence", values=count)
            means = table.mean(axis=1).to_frame(kind)
            parts = [(table, hpatches.things_shown(table.columns))]
            values[f"{count}_{kind}"] = by_things(means, parts)
    return values


def fpr95_by_stage(runs: Sequence[Record]) -> pd.DataFrame:
    """FPR95 on all pairs by stage of training, in percent: a row a run and stage.

    Args:
        runs: of `lib.study.artefacts.tcdesc.overfitting`.

    Returns:
        `key`, `label` and `seed` of the run; `stage`; FPR95 on the set trained on, `train`, the mean of
        those tested on, `test`, and by how much the latter is higher, the `gap`.
    """
    tidy = frames.tidy(runs, "fpr95_by_stage").rename(columns={"metric": "stage"})
    tidy["on"] = np.where(tidy["test_set"] == tidy["train_set"], "train", "test")
    means = tidy.groupby([*frames.RUN, "stage", "on"], sort=False)["value"].mean().unstack("on")
    table = means[["train", "test"]].assign(gap=means["test"] - means["train"]).reset_index()
    return table.astype({"stage": float})


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
    for (key, label), of_method in fpr95_by_stage(runs).groupby(frames.METHOD, sort=False):
        test, gap = (of_method.pivot(index="seed", columns="stage", values=v) for v in ("test", "gap"))
        lowest = [(test.drop(seed) if len(test) > 1 else test).mean().idxmin() for seed in test.index]
        best = [test.loc[seed, stage] for seed, stage in zip(test.index, lowest, strict=True)]
        first, last = test.iloc[:, 0], test.iloc[:, -1]
        columns = {"first": first, "last": last, "best": best, "gap": gap.iloc[:, -1]}
        for name, column in columns.items():
            values[f"{name}_{key}"] = Measured(np.c_[column], label=f"{label} ({name})")
        if runs[0].content.get("profile") == "quick":
            values[f"best_{key}"] = TOO_SHORT
    return values
