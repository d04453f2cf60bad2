"""HyNet's Tables 2 and 4 (Tian et al.): structure from motion, and the image matching challenge."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.statistics.intervals import Measured
from lib.study.claims import Claim
from lib.study.claims.measured import SEQUENCES_DRAWN as DRAWN
from lib.study.claims.measured import OfClaim, by_method
from lib.study.printed import BENCHMARKS, printed
from lib.study.report import frames

# Of `lib.benchmarks.sfm`: what readers are told. Dense points need CUDA, and nothing measures them.
STATISTICS = {
    "keypoints": "keypoints",
    "images": "images",
    "sparse_points": "sparse points",
    "dense_points": "dense points",
    "observations": "observations",
    "track_length": "track length",
    "reprojection_error": "reprojection error (px)",
    "rotation_error": "rotation error (°)",
    "position_error": "position error (%)",
}
# Of `lib.benchmarks.imc`, by key: the columns of Table 4.
TASKS = {"stereo": "stereo", "multiview": "multi-view", "average": "average"}
BESIDE = {
    "matches": "matches",
    "inliers": "inliers",
    "registered": "registered (%)",
    "degensac": "DEGENSAC",
    "keynet": "Key.Net",
}
# Rows of Table 4, by ours.
ROWS = {f"keynet_{name}": f"{name}_aug" for name in ("hardnet", "sosnet", "hynet")}


def table2_printed() -> pd.DataFrame:
    """Table 2 as printed, with units: index `scene`, `Method`, columns as of `STATISTICS`."""
    table = printed("hynet", "table2")
    units = table["unit"].replace({"1": "", "images": ""})
    digits = zip(table["value"], table["decimals"], strict=True)
    shown = table.assign(shown=[f"{value:.{of}f}" for value, of in digits] + units)
    wide = shown.pivot_table("shown", ["test", "label"], "statistic", aggfunc="first", sort=False)
    wide = wide[[name for name in STATISTICS if name in wide]].fillna("")
    return wide.rename(columns=STATISTICS).rename_axis(index=["scene", "Method"], columns=None)


def table2(runs: pd.DataFrame) -> pd.DataFrame:
    """Ours: index `scene`, `Method`, columns of `STATISTICS` and `n`, the runs; means over seeds.

    Missing is what the model of one run had not, and what is not measured. Behind ours on a scene of the
    benchmark stand the rows that the benchmark itself prints of it.
    """
    of_method = runs.groupby(level=frames.METHOD, sort=False)
    count = of_method.size()
    mean = frames.means(runs).where(of_method.count().eq(count, axis=0))
    scenes = [name.removeprefix("keypoints.") for name in runs if name.startswith("keypoints.")]
    parts = {}
    for scene in scenes:
        names = [f"{statistic}.{scene}" for statistic in STATISTICS]
        part = mean.reindex(columns=names).set_axis([*STATISTICS.values()], axis=1)
        parts[scene] = part.assign(n=count).droplevel("key")
        if len(rows := _benchmark(scene)):
            parts[scene] = pd.concat([parts[scene], rows.reindex(columns=parts[scene].columns)])
    return pd.concat(parts, names=["scene", "Method"])


def _benchmark(scene: str) -> pd.DataFrame:
    """What ETH's benchmark prints of a scene, which HyNet's Table 2 rounds: index label, columns of
    `STATISTICS`; no rows of a scene that is none of its."""
    rows = printed("eth", "sfm", BENCHMARKS).query("test == @scene")
    wide = rows.pivot_table("value", "label", "statistic", sort=False).rename(columns=STATISTICS)
    return wide.rename(index="{}, as printed".format)


def table4(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 4 and ours, mAA at 10° in percent, as `lib.study.report.frames.beside`, of our methods alone
    and with what else is known of them."""
    table = printed("hynet", "table4").replace({"task": {"": "average"}, "key": ROWS})
    paper = table[table["key"].isin(ROWS.values())].pivot_table("value", ["key", "row"], "task")
    means = frames.means(runs).droplevel("label")
    more = {("", told): means[name] for name, told in BESIDE.items()}
    ours = runs.rename(columns=TASKS)
    return frames.beside(paper.rename_axis(frames.METHOD), ours, TASKS.values(), more, [runs])


def claim_values(runs: pd.DataFrame) -> OfClaim:
    """The values of a claim on Table 2, over seeds alone, or on Table 4, with resamples of photographs.

    Its metric is a number's key, or "maa", whose cells are the two tasks. The scenes stay fixed. A
    method of which one run has no such number has no values: its other runs would flatter it.
    """

    def values(claim: Claim) -> Mapping[str, Measured]:
        names = ["stereo", "multiview"] if claim.metric == "maa" else [claim.metric]
        there = runs.reindex(columns=names).notna().all(axis=1)
        some = runs[there.groupby(level="key").transform("all")]
        if some.empty:
            return {}
        shown = [TASKS.get(name, name) for name in names]
        drawn, photographs = _over_photographs(some, names)
        table = some[names].set_axis(shown, axis=1)
        return by_method(table, shown, drawn, max(1, photographs - 1))

    return values


# Of `lib.benchmarks.imc`: a single pair's scene, subset and photographs.
_SINGLE = {
    "stereo": r"stereo\.(?P<place>.+)(?P<subset>)\.(?P<first>\d+)-(?P<second>\d+)",
    "multiview": r"multiview\.(?P<place>.+)\.(?P<subset>\d+)\.(?P<first>\d+)-(?P<second>\d+)",
}


def _over_photographs(runs: pd.DataFrame, names: Sequence[str]) -> tuple[np.ndarray | None, int]:
    """Numbers of Table 4 when each place's photographs are drawn anew, the same for all runs and tasks.

    Pairs share photographs: a pair comes as often as the first of its photographs is drawn, times as
    often as the second is. In multi-view so do the pairs within a subset, whose model stays as it is. Of
    n photographs the deviations are widened by √(n / (n − 1)).

    Returns:
        (1, runs, names, B) resamples, None where single pairs are not on record or `names` are others;
        and how many photographs a place has at least.
    """
    pairs = {task: runs.columns.to_series().str.extract(of).dropna() for task, of in _SINGLE.items()}
    every = pd.concat(pairs.values())
    if not set(names) <= set(TASKS) or every.empty or runs[every.index].isna().any(axis=None):
        return None, 0
    moved = dict.fromkeys(_SINGLE, 0.0)
    counts, places = [], every["place"].unique()
    for number, place in enumerate(places):
        here = every[every["place"] == place]
        photographs = pd.Index(sorted({*here["first"], *here["second"]}, key=int))
        counts.append(count := len(photographs))
        random = np.random.default_rng([DRAWN, count, number])
        times = random.multinomial(count, np.full(count, 1 / count), DRAWN).T
        for task, of in pairs.items():
            of = of[of["place"] == place]
            weights = [times[photographs.get_indexer(of[side])] for side in ("first", "second")]
            means = _means(runs[of.index].to_numpy(float), np.prod(weights, axis=0), of["subset"])
            off = means - means.mean(axis=1, keepdims=True)
            moved[task] = moved[task] + np.sqrt(count / max(1, count - 1)) * off / len(places)
    moved["average"] = (moved["stereo"] + moved["multiview"]) / 2
    drawn = [runs[name].to_numpy(float)[:, None] + moved[name] for name in names]
    return np.stack(drawn, axis=1)[None], min(counts)


def _means(values: np.ndarray, weights: np.ndarray, subset: pd.Series) -> np.ndarray:
    """(runs, B) means over pairs, by (runs, pairs) values and (pairs, B) weights: of each size of subset
    by itself, and over the sizes; where no pair of a size is drawn, over all of its pairs."""
    sizes = subset.groupby(subset).transform("size").to_numpy()
    parts = []
    for size in np.unique(sizes):
        of = sizes == size
        drawn = np.where(weights[of].sum(axis=0) > 0, weights[of], 1)
        parts.append(values[:, of] @ drawn / drawn.sum(axis=0))
    return np.mean(parts, axis=0)
