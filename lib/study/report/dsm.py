"""DSM (Zhang and Rusinkiewicz): what its notebooks compute from records.

FPR95 and shares are in percent. Figure 1 is of the probe `lib.probes.triplets_in_batch`, Figure 3 of
`lib.probes.moving_histogram`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

from lib.data.landmarks import CITIES
from lib.statistics.intervals import Measured
from lib.study.artefacts.dsm import BITS, FIGURE4_BINARY, FIGURE4_REAL, FIGURE4_SIGNS, MARGINS
from lib.study.claims.measured import by_things, fpr95_by_column, hpatches_by_task
from lib.study.open import Record
from lib.study.report import frames, hpatches

Probe = Mapping[str, np.ndarray]
RESAMPLES = 400
# The standard deviation of the logistic distribution whose CDF is σ(x).
LOGISTIC = math.pi / math.sqrt(3)
# Engines of `lib.benchmarks.retrieval`, by key: as the printed Table 2 names them.
PROTOCOLS = {"visual_index": "Visual Index", "hqe_single": "HQE (SA)", "hqe_multiple": "HQE (MA)"}


def triplets(run: Record) -> dict[int, np.ndarray]:
    """The triplets of a run at the end of its training.

    Returns:
        By the number of pairs that negatives were mined among, first that of the run's own batches,
        (2, T) d_pos and d_neg.
    """
    probe = run.probe("triplets_in_batch")
    positive, own, of_all = (
        probe[name][-1].astype(np.float64) for name in ("positive", "negative", "negative_of_all")
    )
    by_size = {int(probe["batch_pairs"]): own, len(positive): of_all}
    return {size: np.stack([positive, negative]) for size, negative in by_size.items()}


def excluded(d_pos: np.ndarray, d_neg: np.ndarray, margins: Sequence[float]) -> dict[str, np.ndarray]:
    """By margin as text the percentage of triplets (…, T) that it excludes, (…)."""
    return {f"{margin:g}": 100 * (d_neg - d_pos > margin).mean(axis=-1) for margin in margins}


def triplet_table(runs: Sequence[Record], margins: Sequence[float]) -> pd.DataFrame:
    """How many triplets each margin excludes at the end of training, a row a run and size of batch.

    Returns:
        Means and standard deviations (`sd`) of the two distances and the ratio of the latter, the
        percentage excluded by each margin, and under `in training` that of the run's own margin, in
        training mode over the last tenth of the steps.
    """
    rows = {}
    for run in runs:
        _, own = frames.tenths(pd.Series(run.content["curve"]["zero_share"]))
        for place, (pairs, (d_pos, d_neg)) in enumerate(triplets(run).items()):
            shares = excluded(d_pos, d_neg, margins)
            rows[run.job.label, run.job.seed, pairs] = {
                ("d_pos", "mean"): d_pos.mean(),
                ("d_pos", "sd"): d_pos.std(),
                ("d_neg", "mean"): d_neg.mean(),
                ("d_neg", "sd"): d_neg.std(),
                ("sd", "ratio"): d_pos.std() / d_neg.std(),
                **{("excluded (%) by", margin): share for margin, share in shares.items()},
                # In training, negatives are those of its own batches.
                ("in training", "own (%)"): np.nan if place else 100 * own,
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["run", "seed", "pairs"])


def triplet_values(runs: Sequence[Record], margins: Sequence[float]) -> dict[str, Measured]:
    """The values of the claims on Figure 1, with negatives of batches as in training.

    Args:
        runs: of the first method, the HardNet of the paper's figure, and of others, which do not count.
        margins: those asked about.

    Returns:
        (seeds, 1) with resamples of the triplets: by "excluded_{margin}" the percentage that a margin
        excludes, and by "deviation_positive" and "deviation_negative" the standard deviations.
    """

    def numbers(d_pos: np.ndarray, d_neg: np.ndarray) -> dict[str, np.ndarray]:
        shares = excluded(d_pos, d_neg, margins)
        spreads = {"deviation_positive": d_pos.std(axis=-1), "deviation_negative": d_neg.std(axis=-1)}
        return {f"excluded_{margin}": share for margin, share in shares.items()} | spreads

    label, own_runs = next(iter(frames.by_label(runs).items()))
    by_run = [triplets(run) for run in own_runs]
    pairs = min(by_run[0])
    both = np.stack([by_size[pairs] for by_size in by_run], axis=1)
    count = both.shape[-1]
    again = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    own, drawn = numbers(*both), numbers(*both[..., again])
    about = (count - 1, (f"batches of {pairs}",), label, "triplets")
    return {name: Measured(own[name][:, None], drawn[name][None, :, None], *about) for name in own}


def zero_shares(runs: Sequence[Record], over: str | Callable[[pd.Series], float]) -> pd.DataFrame:
    """What of the curve of triplets without loss, in percent: a row a seed, a column a static margin."""
    curves = frames.steps([run for run in runs if run.job.recipe.loss.name == "hinge"])
    return 100 * curves.groupby(["seed", "key"])["zero_share"].agg(over).unstack("key")


def last_fifth(curve: pd.Series) -> float:
    """The mean over the last fifth of training."""
    return curve[-max(1, round(len(curve) / 5)) :].mean()


def margin_values(runs: Sequence[Record], sets: Sequence[str]) -> dict[str, Mapping[str, np.ndarray]]:
    """The values of the claims on Figure 2 other than FPR95's, by metric and key, (seeds, 1).

    "best_margin" is each seed's margin with the lowest mean FPR95, as a distance from 0 to 2;
    "zero_share" the triplets without loss in the last fifth of training, and "largest_zero_share" the
    most at any margin and step, in percent.
    """
    fpr95, best = fpr95_by_column(runs, sets), {}
    for kind, scale in (("real", 1.0), ("binary", 2 / BITS)):
        means = {m: fpr95[key].values.mean(axis=1) for m, key in MARGINS[kind].items() if key in fpr95}
        if means:
            best[f"best_margin_{kind}"] = scale * pd.DataFrame(means).idxmin(axis=1).to_numpy()[:, None]
    last, most = zero_shares(runs, last_fifth), zero_shares(runs, "max")
    most = most.T.groupby(lambda key: "zero_share_" + key.partition("_")[0]).max().T
    return {
        "best_margin": best,
        "zero_share": {key: last[[key]].to_numpy() for key in last},
        "largest_zero_share": {kind: most[[kind]].to_numpy() for kind in most},
    }


def fixed_weights(x: np.ndarray, mean: float, deviation: float) -> dict[str, np.ndarray]:
    """CDFs and slopes σ(βx) of softplus, at x, beside which a CDF of this mean and deviation stands."""
    return {
        "Gaussian": ndtr((x - mean) / deviation),
        "logistic": expit((x - mean) / deviation * LOGISTIC),
        "softplus, same spread": expit(x / deviation * LOGISTIC),
        "softplus, β = 1": expit(x),
    }


def histogram_density(probe: Probe, stage: int) -> tuple[np.ndarray, np.ndarray]:
    """(B,) the density of a stage's histogram in about 64 wider bins, and their (B + 1,) edges."""
    step = max(1, len(probe["edges"]) // 64)
    edges = probe["edges"][::step].astype(np.float64)
    return np.diff(probe["cdf"][stage][::step]) / np.diff(edges), edges


def histogram_table(probe: Probe) -> pd.DataFrame:
    """DSM's histogram through training, a row a stage.

    Returns:
        Mean and standard deviation of what it is of; under `largest gap` the largest distance of its CDF
        from each of `fixed_weights`; `p` of the hypothesis that triplets are Gaussian; and the weights
        of a batch's hardest and easiest triplet.
    """
    mean, deviation = (probe[name].astype(np.float64)[:, None] for name in ("mean", "deviation"))
    others = fixed_weights(probe["edges"].astype(np.float64), mean, deviation)
    gaps = {name: np.abs(probe["cdf"] - weights).max(axis=1) for name, weights in others.items()}
    columns = {
        ("d_pos - d_neg", "mean"): probe["mean"],
        ("d_pos - d_neg", "sd"): probe["deviation"],
        **{("largest gap", name): gap for name, gap in gaps.items()},
        ("Gaussian?", "p"): probe["p"],
        ("weights of a batch", "hardest"): probe["hardest"],
        ("weights of a batch", "easiest"): probe["easiest"],
    }
    stages = pd.Index(probe["stage"].astype(np.float64).round(3), name="stage")
    return pd.DataFrame(columns, index=stages)


def histogram_values(runs: Sequence[Record]) -> dict[str, Measured | np.ndarray]:
    """The values of the claims on Figure 3.

    Returns:
        Of the first run, (1, stages): "gaussian_distance", the largest gap between its CDF and that of
        a Gaussian of its mean and variance, and "hardest_weight" and "easiest_weight" of a batch.
        "mean_weight" (seeds, 1) over all of training, and "half" (1,), which it is compared with.
    """
    table = histogram_table(runs[0].probe("moving_histogram"))
    cells = tuple(f"{stage:.0%} of training" for stage in table.index)
    by_stage = {
        "gaussian_distance": table["largest gap", "Gaussian"],
        "hardest_weight": table["weights of a batch", "hardest"],
        "easiest_weight": table["weights of a batch", "easiest"],
    }
    mean_weight = frames.steps(runs).groupby("seed", sort=False)["mean_weight"].mean()
    return {
        **{key: Measured(values.to_numpy()[None], cells=cells) for key, values in by_stage.items()},
        "mean_weight": mean_weight.to_numpy()[:, None],
        "half": np.array([0.5]),
    }


def mean_weights(runs: Sequence[Record]) -> pd.DataFrame:
    """The mean weight of a batch's triplets at each step, `mean weight`, with the runs' `label` and
    `seed`.

    Of a hinge it is the share of triplets that it does not leave out; the hardest half, weighted so that
    the mean is 1, is left out.
    """
    steps = frames.steps(runs)
    steps["mean weight"] = steps["mean_weight"].fillna(1 - steps["zero_share"])
    return steps.dropna(subset="mean weight")


def by_kind(runs: pd.DataFrame, further: Iterable[str] = ()) -> dict[str, pd.DataFrame]:
    """The rows of Figures 4 and 5, "real" and "binary"; real-valued descriptors by their signs are among
    the binary.

    Args:
        runs: as of `lib.study.report.frames.wide`.
        further: keys of further real-valued rows.
    """
    signs, keys = [f"{name}_signs" for name in FIGURE4_SIGNS], runs.index.get_level_values("key")
    rows = {"real": ("sift", *FIGURE4_REAL, *further), "binary": ("orb", *signs, *FIGURE4_BINARY)}
    return {kind: pd.concat([runs[keys == key] for key in row]) for kind, row in rows.items()}


def values_by_level(runs: pd.DataFrame) -> dict[str, Measured]:
    """HPatches' three tasks by key and level, e.g. "dsm_aug_tough".

    Args:
        runs: of `lib.study.report.hpatches.numbers`.
    """
    return {
        f"{key}_{level}": measured
        for level in hpatches.LEVELS
        for key, measured in hpatches_by_task(hpatches.at_level(runs, level)).items()
    }


def retrieval_values(runs: pd.DataFrame) -> dict[str, Measured]:
    """The values of the claims on Table 2, its columns as cells, with resamples of the landmarks.

    A drawn landmark brings all of its queries, and each city's are drawn from its own.

    Args:
        runs: of `lib.study.report.whole_images.numbers`.
    """
    cells = {f"{key}.{city}": f"{city}, {name}" for city in CITIES for key, name in PROTOCOLS.items()}
    queries = [runs[[name for name in runs if name.startswith(f"{cell}.")]] for cell in cells]
    landmarks = [(own, own.columns.str.replace(r"_\d+$", "", regex=True)) for own in queries]
    return by_things(runs[[*cells]].rename(columns=cells), landmarks)
