"""DSM's Figures 1, 3 and 4 (Zhang and Rusinkiewicz): its triplets, its histogram, and HPatches.

Figure 2, and what the paper does not ask of the margin, are in `lib.study.report.papers.dsm_margins`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator
from scipy.special import expit, ndtr

from lib.statistics.intervals import Measured
from lib.study.artefacts.dsm import FIGURE4_BINARY, FIGURE4_REAL, FIGURE4_SIGNS, tested_on
from lib.study.claims import Claim
from lib.study.claims.measured import OfClaim, hpatches_by_task
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import frames, hpatches, plots
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, panels

Probe = Mapping[str, np.ndarray]
RESAMPLES = 400
DIFFERENCE, WEIGHT = "d$_{pos}$ − d$_{neg}$", "mean weight of a batch"
# The standard deviation of the logistic distribution whose CDF is σ(x).
LOGISTIC = math.pi / math.sqrt(3)


def stated_margins() -> list[float]:
    """The margins of real-valued descriptors that the paper names, ascending: 0.375 and HardNet's."""
    stated = printed("dsm", "margins")
    return sorted(stated.loc[stated["unit"] == "1", "value"])


def triplets(record: Found) -> dict[int, np.ndarray]:
    """The triplets of a run at the end of its training: by the number of pairs that negatives were mined
    among, first that of its own batches, (2, T) d_pos and d_neg.

    Args:
        record: with the probe `lib.probes.triplets_in_batch`.
    """
    probe = record.probe("triplets_in_batch")
    positive, *negatives = (
        probe[name][-1].astype(np.float64) for name in ("positive", "negative", "negative_of_all")
    )
    sizes = (int(probe["batch_pairs"]), len(positive))
    return {size: np.stack([positive, of]) for size, of in zip(sizes, negatives, strict=True)}


def excluded(d_pos: np.ndarray, d_neg: np.ndarray, margins: Sequence[float]) -> dict[str, np.ndarray]:
    """By margin as text the percentage of triplets (…, T) that it excludes, (…)."""
    return {f"{margin:g}": 100 * (d_neg - d_pos > margin).mean(axis=-1) for margin in margins}


def figure1(found: Sequence[Found], margins: Sequence[float], note: str = "") -> Figure:
    """Each triplet by its two distances, a column a method, a row a size of batch; the decision boundary
    and margins, of which the smallest tells the colours.

    Args:
        found: runs as for `triplets`, of which the first of each method is drawn.
        margins: ascending.
        note: stands above.
    """
    of = {label: triplets(runs[0]) for label, runs in frames.by_label(found).items()}
    rows = max(map(len, of.values()))
    farthest = max(both.max() for by_size in of.values() for both in by_size.values())
    limit = 1.08 * max(farthest, 1.3 * margins[-1])
    looks = {"note": note, "xlabel": "d$_{pos}$", "ylabel": "d$_{neg}$", "legend": 3}
    size = (0.8 * DOUBLE_WIDTH, 0.7 + 2.5 * rows, len(of), rows)
    with panels(*size, sharex=True, sharey=True, **looks) as (figure, grid):
        for column, (label, by_size) in zip(grid.T, of.items(), strict=True):
            for axes, (pairs, both) in zip(column, by_size.items(), strict=True):
                _scatter(axes, both, margins, limit)
                said = [f"{share:.1f}% by {by}" for by, share in excluded(*both, margins).items()]
                axes.set_title(f"{label}\n{pairs} pairs; excluded: {', '.join(said)}", fontsize=7)
    return figure


def _scatter(axes: Axes, both: np.ndarray, margins: Sequence[float], limit: float) -> None:
    beyond = both[1] - both[0] > margins[0]
    dots = {"ls": "none", "ms": 2.6, "mew": 0, "alpha": 0.65}
    kinds = (("used", ~beyond, PALETTE[2], "^"), ("excluded", beyond, PALETTE[0], "o"))
    for name, some, colour, marker in kinds:
        named = f"{name} by margin {margins[0]:g}"
        axes.plot(*both[:, some], marker=marker, color=colour, label=named, **dots)
    axes.plot([0, limit], [0, limit], color=PALETTE[1], label="decision boundary", lw=1.2)
    for margin in margins:
        axes.plot([0, limit], [margin, limit + margin], color="black", ls=":", lw=1)
        # Along the line's upper end, where no triplet lies.
        along = {"rotation": 45, "rotation_mode": "anchor", "va": "bottom", "ha": "right"}
        axes.text(limit - margin, limit, f"margin {margin:g}", fontsize=7, **along)
    axes.set(xlim=(0, limit), ylim=(0, limit), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(0.5))


def figure1_table(found: Sequence[Found], margins: Sequence[float]) -> pd.DataFrame:
    """How many triplets each margin excludes at the end of training, a row a run and size of batch.

    Args:
        found: as for `triplets`.
        margins: ascending.

    Returns:
        Means and standard deviations (`sd`) of the two distances and the ratio of the latter, the
        percentage excluded by each margin, and under `in training` that of the run's own margin, in
        training mode over the last tenth of the steps.
    """
    rows = {}
    for record in found:
        _, own = frames.tenths(pd.Series(record.content["curve"]["zero_share"]))
        for place, (pairs, (d_pos, d_neg)) in enumerate(triplets(record).items()):
            shares = excluded(d_pos, d_neg, margins)
            rows[record.job.label, record.job.seed, pairs] = {
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


def figure1_values(found: Sequence[Found], margins: Sequence[float]) -> dict[str, Measured]:
    """The values of the claims on Figure 1, with negatives of batches as in training.

    Args:
        found: as for `triplets`; the runs of the first method, the HardNet of the paper's figure, count.
        margins: those asked about.

    Returns:
        (seeds, 1) with resamples of the triplets: by "excluded_{margin}" the percentage that a margin
        excludes, and by "deviation_positive" and "deviation_negative" the standard deviations.
    """

    def numbers(d_pos: np.ndarray, d_neg: np.ndarray) -> dict[str, np.ndarray]:
        shares = excluded(d_pos, d_neg, margins)
        spreads = {"deviation_positive": d_pos.std(axis=-1), "deviation_negative": d_neg.std(axis=-1)}
        return {f"excluded_{margin}": share for margin, share in shares.items()} | spreads

    label, runs = next(iter(frames.by_label(found).items()))
    of_runs = [triplets(run) for run in runs]
    pairs = min(of_runs[0])
    both = np.stack([by_size[pairs] for by_size in of_runs], axis=1)
    count = both.shape[-1]
    again = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    own, drawn = numbers(*both), numbers(*both[..., again])
    about = (count - 1, (f"batches of {pairs}",), label, "triplets")
    return {name: Measured(own[name][:, None], drawn[name][None, :, None], *about) for name in own}


def _alternatives(x: np.ndarray, mean: float, deviation: float) -> dict[str, np.ndarray]:
    """CDFs, or fixed weights, beside which DSM's stands, at x."""
    return {
        "Gaussian": ndtr((x - mean) / deviation),
        "logistic": expit((x - mean) / deviation * LOGISTIC),
        "softplus, same spread": expit(x / deviation * LOGISTIC),
        "softplus, β = 1": expit(x),
    }


def figure3_table(probe: Probe) -> pd.DataFrame:
    """DSM's histogram through training, a row a stage.

    Args:
        probe: `lib.probes.moving_histogram` of a run.

    Returns:
        Mean and standard deviation of what it is of; under `largest gap` the largest distance of its CDF
        from that of a Gaussian and of a logistic distribution of the same two, and from softplus' slope
        σ(βx) at the same spread and at β = 1; `p` of the hypothesis that triplets are Gaussian; and the
        weights of a batch's hardest and easiest triplet.
    """
    mean, deviation = (probe[name].astype(np.float64)[:, None] for name in ("mean", "deviation"))
    others = _alternatives(probe["edges"].astype(np.float64), mean, deviation)
    columns = {
        ("d_pos - d_neg", "mean"): probe["mean"],
        ("d_pos - d_neg", "sd"): probe["deviation"],
        **{("largest gap", name): np.abs(probe["cdf"] - of).max(axis=1) for name, of in others.items()},
        ("Gaussian?", "p"): probe["p"],
        ("weights of a batch", "hardest"): probe["hardest"],
        ("weights of a batch", "easiest"): probe["easiest"],
    }
    stages = pd.Index(probe["stage"].astype(np.float64).round(3), name="stage")
    return pd.DataFrame(columns, index=stages)


def figure3(record: Found, note: str = "") -> Figure:
    """The PDF at the end of training, the CDF with the weights of a batch, and how both came about.

    Args:
        record: of DSM, with the probe `lib.probes.moving_histogram`.
        note: stands above.
    """
    probe = record.probe("moving_histogram")
    x, mean, deviation = probe["edges"], probe["mean"][-1], probe["deviation"][-1]
    others, stages = _alternatives(x, mean, deviation), probe["stage"]
    with panels(DOUBLE_WIDTH, 4.9, 2, 2, note=note, grid="both") as (figure, grid):
        (pdf, weights), (drift, pace) = grid
        pdf.stairs(*_density(probe, -1), fill=True, color=PALETTE[5], alpha=0.6, lw=0)
        fit = {"color": "black", "ls": "--", "lw": 1, "label": "Gaussian of its mean\nand deviation"}
        normal = np.exp(-(((x - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
        pdf.plot(x, normal, **fit)
        pdf.set(title="PDF at the end of training", xlabel=DIFFERENCE, ylabel="density")
        colours = colormaps["cividis_r"](np.linspace(0.1, 1, len(stages)))
        for number, (stage, colour) in enumerate(zip(stages, colours, strict=True)):
            drift.stairs(*_density(probe, number), color=colour, label=f"{stage:.0%}")
        drift.set(title="PDF through training", xlabel=DIFFERENCE, ylabel="density")

        weights.plot(x, probe["cdf"][-1], color=PALETTE[0], lw=2, label="CDF")
        dots = {"ls": "none", "marker": "o", "ms": 4, "mfc": "none", "color": PALETTE[1], "mew": 0.8}
        weights.plot(probe["values"][-1], probe["weights"][-1], label="weights of a batch", **dots)
        for name, colour, line in (
            ("Gaussian", "black", "--"),
            ("softplus, same spread", PALETTE[2], "-."),
            ("softplus, β = 1", PALETTE[3], ":"),
        ):
            weights.plot(x, others[name], color=colour, ls=line, lw=1.1, label=name)
        weights.set(xlabel=DIFFERENCE, ylabel="weight, or slope by d$_{pos}$", ylim=(-0.03, 1.03))
        weights.set_title("CDF and weights, and what is fixed")

        curve = frames.steps([record]).rename(columns={"mean_weight": WEIGHT})
        plots.curves(pace, curve, "step", WEIGHT, "label", color=PALETTE[0], ls="-")
        pace.axhline(0.5, color=GREY, lw=1, ls=":")
        pace.set(ylim=(0, 1), title="What the weights make of the learning rate")
        # Where there are triplets at any stage, and a little more.
        some = ((probe["cdf"] > 1e-3) & (probe["cdf"] < 1 - 1e-3)).any(axis=0)
        for axes, place in ((pdf, "upper right"), (weights, "lower right"), (drift, "upper right")):
            axes.set_xlim(x[some][0] - 0.1, x[some][-1] + 0.1)
            axes.legend(loc=place, fontsize=7, handlelength=1.8)
    return figure


def _density(probe: Probe, stage: int) -> tuple[np.ndarray, np.ndarray]:
    """The density of a stage's histogram in 64 wider bins, and their edges."""
    step = max(1, len(probe["edges"]) // 64)
    edges = probe["edges"][::step].astype(np.float64)
    return np.diff(probe["cdf"][stage][::step]) / np.diff(edges), edges


def figure3_values(found: Sequence[Found]) -> dict[str, Measured | np.ndarray]:
    """The values of the claims on Figure 3.

    Args:
        found: runs of DSM, the first with the probe `lib.probes.moving_histogram`.

    Returns:
        Of the first run, (1, stages): "gaussian_distance", the largest gap between its CDF and that of
        a Gaussian of its mean and variance, and "hardest_weight" and "easiest_weight" of a batch.
        "mean_weight" (seeds, 1) over all of training, and beside it "half" (1,).
    """
    table = figure3_table(found[0].probe("moving_histogram"))
    cells = tuple(f"{stage:.0%} of training" for stage in table.index)
    of_stages = {
        "gaussian_distance": table["largest gap", "Gaussian"],
        "hardest_weight": table["weights of a batch", "hardest"],
        "easiest_weight": table["weights of a batch", "easiest"],
    }
    mean_weight = frames.steps(found).groupby("seed", sort=False)["mean_weight"].mean()
    return {
        **{key: Measured(of.to_numpy()[None], cells=cells) for key, of in of_stages.items()},
        "mean_weight": mean_weight.to_numpy()[:, None],
        "half": np.array([0.5]),
    }


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


def figure4_runs(found: Sequence[Found], study: Study) -> dict[str, pd.DataFrame]:
    """HPatches' numbers of Figure 4's rows `by_kind`, as `lib.study.report.hpatches.numbers`."""
    return by_kind(hpatches.numbers([*found, *frames.by_sign(found)], tested_on(study)))


def figure4_values(runs: Mapping[str, pd.DataFrame]) -> OfClaim:
    """The values of a claim on Figure 4, by its metric.

    Args:
        runs: of `figure4_runs`.

    Returns:
        For one of the tasks that task, by key; for "map_by_level" the three tasks, by key and level,
        e.g. "dsm_aug_tough".
    """
    every = pd.concat(runs.values())

    def values(claim: Claim) -> Mapping[str, Measured]:
        if claim.metric in hpatches.TASKS:
            return hpatches_by_task(every, [claim.metric])
        return {
            f"{key}_{level}": of
            for level in hpatches.LEVELS
            for key, of in hpatches_by_task(hpatches.at_level(every, level)).items()
        }

    return values
