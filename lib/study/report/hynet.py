"""HyNet (Tian et al.): what its notebooks compute from records, beyond FPR95 and HPatches' numbers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured
from lib.study.artefacts.hynet import MARGINS, SHOWN, best_margin, searched_fpr95
from lib.study.claims import Claim
from lib.study.claims.measured import SEQUENCES_DRAWN, by_method
from lib.study.open import Record
from lib.study.report import frames

FPR95 = "FPR95 (%)"
# How an epoch is chosen: not at all; by the mean of the very test sets, as HyNet's code does; or of each
# test set by the other.
LAST, ON_TESTS, ON_OTHER = "last", "on the tests", "on the other test"
# Of `lib.benchmarks.imc`, by key: the columns of Table 4.
TASKS = {"stereo": "stereo", "multiview": "multi-view", "average": "average"}
# Of `lib.benchmarks.imc`: a single pair's scene, subset and photographs.
_SINGLE = {
    "stereo": r"stereo\.(?P<scene>.+)(?P<subset>)\.(?P<first>\d+)-(?P<second>\d+)",
    "multiview": r"multiview\.(?P<scene>.+)\.(?P<subset>\d+)\.(?P<first>\d+)-(?P<second>\d+)",
}


def at_best_margin(runs: Sequence[Record]) -> list[Record]:
    """The runs of each similarity at its best margin, as rows of Table 3: "hynet_h", "hynet_d" and
    "hynet_s"."""
    rows = {best_margin(similarity): f"hynet_{similarity}" for similarity in MARGINS}
    return [
        replace(run, job=replace(run.job, name=rows[run.job.name]))
        for run in runs
        if run.job.name in rows
    ]


def margins() -> pd.DataFrame:
    """By what Table 3's margins were chosen: a row a similarity and margin, the mean FPR95 on the
    reserve at its best "rate", and whether it is "taken"."""
    rows = []
    for similarity, keys in MARGINS.items():
        for margin, key in keys.items():
            fpr95 = pd.Series(searched_fpr95(key))
            taken = "yes" if key == best_margin(similarity) else ""
            rows.append((SHOWN[similarity], margin, fpr95.idxmin(), fpr95.min(), taken))
    return pd.DataFrame(rows, columns=["similarity", "margin", "rate", FPR95, "taken"])


def zero_shares(runs: Sequence[Record]) -> pd.DataFrame:
    """Whether margins bind: a row a method, its "margin" and, in percent, the largest share of triplets
    beyond it, those without loss, in any stretch of any seed's training.

    Args:
        runs: whose loss is a hinge or its square.
    """
    margin = pd.Series({run.job.label: run.job.recipe.loss.options["margin"] for run in runs})
    largest = 100 * frames.steps(runs).groupby("label")["zero_share"].max()
    table = pd.DataFrame({"margin": margin, "largest share": largest})
    return table.reindex(margin.index).rename_axis("method")


def at_chosen_epochs(epochs: pd.DataFrame) -> dict[str, np.ndarray]:
    """By choice of the epoch, `LAST`, `ON_TESTS` or `ON_OTHER`, (seeds, 1) mean FPR95 over two test
    sets.

    Args:
        epochs: of one method, a row a run, test set and `epoch` from 1, with `FPR95 (%)`.
    """
    table = epochs.pivot(index=["seed", "test_set"], columns="epoch", values=FPR95)
    values = table.to_numpy().reshape(epochs["seed"].nunique(), 2, -1)
    best_mean = values.mean(axis=1, keepdims=True).argmin(axis=2, keepdims=True).repeat(2, axis=1)
    best_other = values.argmin(axis=2, keepdims=True)[:, ::-1]
    chosen = {LAST: np.full_like(best_other, -1), ON_TESTS: best_mean, ON_OTHER: best_other}
    return {name: np.take_along_axis(values, at, axis=2).mean(axis=1) for name, at in chosen.items()}


def image_values(claim: Claim, runs: pd.DataFrame) -> dict[str, Measured]:
    """The values of a claim on Table 2, over seeds alone, or on Table 4, with resamples of photographs.

    The scenes stay fixed. A method of which one run lacks the number has no values: its other runs would
    flatter it.

    Args:
        claim: whose metric is a number's key, or "maa", whose cells are the two tasks.
        runs: of `lib.study.report.whole_images.numbers`.
    """
    names = ["stereo", "multiview"] if claim.metric == "maa" else [claim.metric]
    there = runs.reindex(columns=names).notna().all(axis=1)
    complete = runs[there.groupby(level="key").transform("all")]
    if complete.empty:
        return {}
    drawn, photographs = _over_photographs(complete, names)
    cells = [TASKS.get(name, name) for name in names]
    return by_method(complete[names].set_axis(cells, axis=1), cells, drawn, max(1, photographs - 1))


def _over_photographs(runs: pd.DataFrame, names: Sequence[str]) -> tuple[np.ndarray | None, int]:
    """Numbers of Table 4 when each scene's photographs are drawn anew, the same for all runs and tasks.

    Pairs share photographs: a pair comes as often as the first of its photographs is drawn, times as
    often as the second is. In multi-view so do the pairs within a subset, whose model stays as it is. Of
    n photographs the deviations are widened by √(n / (n − 1)).

    Returns:
        (1, runs, names, B) resamples, None where single pairs are not on record or `names` are others;
        and how many photographs a scene has at least.
    """
    by_task = {task: runs.columns.to_series().str.extract(key).dropna() for task, key in _SINGLE.items()}
    pairs = pd.concat(by_task.values())
    if not set(names) <= set(TASKS) or pairs.empty or runs[pairs.index].isna().any(axis=None):
        return None, 0
    moved = dict.fromkeys(_SINGLE, 0.0)
    counts, scenes = [], pairs["scene"].unique()
    for number, scene in enumerate(scenes):
        own = pairs[pairs["scene"] == scene]
        photographs = pd.Index(sorted({*own["first"], *own["second"]}, key=int))
        counts.append(count := len(photographs))
        random = np.random.default_rng([SEQUENCES_DRAWN, count, number])
        times = random.multinomial(count, np.full(count, 1 / count), SEQUENCES_DRAWN).T
        for task, all_pairs in by_task.items():
            own = all_pairs[all_pairs["scene"] == scene]
            weights = [times[photographs.get_indexer(own[side])] for side in ("first", "second")]
            means = _means(runs[own.index].to_numpy(float), np.prod(weights, axis=0), own["subset"])
            off = means - means.mean(axis=1, keepdims=True)
            moved[task] = moved[task] + np.sqrt(count / max(1, count - 1)) * off / len(scenes)
    moved["average"] = (moved["stereo"] + moved["multiview"]) / 2
    drawn = [runs[name].to_numpy(float)[:, None] + moved[name] for name in names]
    return np.stack(drawn, axis=1)[None], min(counts)


def _means(values: np.ndarray, weights: np.ndarray, subset: pd.Series) -> np.ndarray:
    """(runs, B) means over pairs, by (runs, pairs) values and (pairs, B) weights: of each size of subset
    by itself, and over the sizes; where no pair of a size is drawn, over all of its pairs."""
    sizes = subset.groupby(subset).transform("size").to_numpy()
    parts = []
    for size in np.unique(sizes):
        own = sizes == size
        drawn = np.where(weights[own].sum(axis=0) > 0, weights[own], 1)
        parts.append(values[:, own] @ drawn / drawn.sum(axis=0))
    return np.mean(parts, axis=0)
