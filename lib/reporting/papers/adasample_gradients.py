"""AdaSample's Figure 3: does the matching distance stand in for the gradient's norm?

From the probe `lib.evaluation.gradient_norms`: S stages of training, C classes, c places a class, NaN
where a place holds no candidate.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from lib.reporting import plots
from lib.reporting.style import COLUMN_WIDTH, DOUBLE_WIDTH, GREY, PALETTE, panels

Probe = Mapping[str, np.ndarray]
WAYS = ("per class", "per batch")
STAGE = "share of training"


def probabilities(values: np.ndarray, way: str) -> np.ndarray:
    """p_i ∝ value (Eq. 7 and 11), summing to one.

    Args:
        values: (C, c), NaN where there is no candidate.
        way: "per class", as Alg. 1 draws, each class summing to one, or "per batch", all of them.

    Returns:
        (C, c), NaN where there is no candidate or where a class's values are all zero.
    """
    if way not in WAYS:
        raise ValueError(f"way must be one of {', '.join(WAYS)}, got {way!r}")
    total = np.nansum(values, axis=1 if way == "per class" else None, keepdims=True)
    return values / np.where(total > 0, total, np.nan)


def induced(probe: Probe, stage: int, way: str) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities that distances and that gradient norms induce, of the candidates of a stage.

    Returns:
        (m,) by matching distance and (m,) by the norm of the gradient by all parameters.
    """
    distance, norm = (probabilities(probe[name][stage], way) for name in ("distance", "full"))
    there = np.isfinite(distance) & np.isfinite(norm)
    return distance[there], norm[there]


def correlations(probes: Mapping[str, Probe]) -> pd.DataFrame:
    """Pearson's and Spearman's correlation of the induced probabilities, a row a stage of a run.

    Args:
        probes: by run.

    Returns:
        Columns `run`, `stage` (fraction of training), `way`, `pearson`, `spearman`.
    """
    rows = []
    for run, probe in probes.items():
        for number, stage in enumerate(probe["stage"]):
            for way in WAYS:
                pair = induced(probe, number, way)
                pearson, spearman = stats.pearsonr(*pair)[0], stats.spearmanr(*pair)[0]
                rows.append((run, round(float(stage), 3), way, pearson, spearman))
    return pd.DataFrame(rows, columns=["run", "stage", "way", "pearson", "spearman"])


def mean_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """`correlations` as a page shows it: the mean over runs, a row a stage, columns by way."""
    mean = table.groupby(["stage", "way"])[["pearson", "spearman"]].mean().unstack("way")
    mean.columns = [f"{name}, {way}" for name, way in mean.columns]
    least = table[table["way"] == WAYS[0]].groupby("stage")["pearson"].min()
    return mean.assign(**{f"least pearson, {WAYS[0]}": least}).rename_axis(STAGE)


def pearson_values(table: pd.DataFrame, seeds: int) -> dict[str, np.ndarray]:
    """Pearson's correlations per class for the claims: (seeds, stages of all runs of a seed)."""
    of = table[table["way"] == WAYS[0]].pivot(index="run", columns="stage", values="pearson")
    return {"pearson": of.to_numpy().reshape(seeds, -1)}


def constants(probe: Probe) -> list[np.ndarray]:
    """M of Eq. 23 for each sample: ‖∇_θ L‖ / ‖∇_x L‖, by stage.

    The denominator is the norm at the network's output, before normalisation, over the triplet's
    three patches. Samples whose hinge is zero have no gradient and no M.
    """
    found = []
    for full, raw in zip(probe["full"], probe["raw"].astype(np.float64), strict=True):
        output = np.sqrt((raw**2).sum(axis=-1))
        there = np.isfinite(full) & (output > 0)
        found.append(full[there] / output[there])
    return found


def constants_table(probes: Mapping[str, Probe]) -> pd.DataFrame:
    """How constant M is, over all runs: a row a stage.

    Returns:
        `median`, `5%` and `95%` of M over the median, `CV` (standard deviation over mean, the median
        over runs) and `zero hinge (%)`, the share of samples without a gradient.
    """
    rows = {}
    for number, (stage, of_runs) in enumerate(_by_stage(probes).items()):
        low, high = np.percentile(_relative(of_runs), [5, 95])
        losses = np.concatenate([probe["loss"][number].ravel() for probe in probes.values()])
        rows[stage] = {
            "median M": np.median(np.concatenate(of_runs)),
            "5% of it": low,
            "95% of it": high,
            "CV": np.median([of.std() / of.mean() for of in of_runs]),
            "zero hinge (%)": 100 * (losses[np.isfinite(losses)] <= 0).mean(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(STAGE)


def _by_stage(probes: Mapping[str, Probe]) -> dict[float, list[np.ndarray]]:
    """M of every run, by stage."""
    stages = next(iter(probes.values()))["stage"]
    by_run = zip(*map(constants, probes.values()), strict=True)
    return {round(float(stage), 3): list(of) for stage, of in zip(stages, by_run, strict=True)}


def _relative(of_runs: Sequence[np.ndarray]) -> np.ndarray:
    """M over its run's median, of all runs."""
    return np.concatenate([of / np.median(of) for of in of_runs])


def output_norms_table(probes: Mapping[str, Probe]) -> pd.DataFrame:
    """Eq. 24 on the real network: the norm at the positive's descriptor over 2 d, at the last stage.

    Args:
        probes: by loss, e.g. "HT" and "AHT".

    Returns:
        A row for each loss, way of writing the distance (through ‖x − y‖ as printed, or along the
        sphere the descriptors lie on) and side on which the negative was mined: `samples`, `median`
        and 5% and 95% of ‖∂L/∂x⁺‖ / 2d.
    """
    rows = []
    for loss, probe in probes.items():
        distance, positive_loss = probe["distance"][-1], probe["loss"][-1] > 0
        ways = {
            "through ‖x − y‖": probe["differences"][-1],
            "along the sphere": probe["sphere"][-1][..., 1],
        }
        for way, norms in ways.items():
            for side, wanted in (("anchor", 1), ("positive", 0)):
                there = np.isfinite(distance) & positive_loss & (probe["near_anchor"][-1] == wanted)
                ratio = norms[there].astype(np.float64) / (2 * distance[there])
                spread = np.percentile(ratio, [50, 5, 95]) if len(ratio) else [np.nan] * 3
                rows.append((loss, way, side, len(ratio), *spread))
    columns = ["loss", "gradient", "negative at", "samples", "median", "5%", "95%"]
    return pd.DataFrame(rows, columns=columns)


def probabilities_figure(probe: Probe, stages: Sequence[int], way: str, note: str) -> Figure:
    """Each candidate's probability by matching distance and by gradient norm, one panel a stage.

    Args:
        probe: of one run.
        stages: places in the probe's stages.
        way: "per class" or "per batch".
        note: what is shown; stands above.
    """
    pairs = [induced(probe, stage, way) for stage in stages]
    limit = 1.05 * max(float(np.max(pair)) for pair in pairs)
    looks = {"note": note, "ylabel": "p by matching distance", "sharey": True}
    with panels(DOUBLE_WIDTH, 2.5, len(stages), **looks) as (figure, [row]):
        for axes, stage, (distance, norm) in zip(row, stages, pairs, strict=True):
            axes.plot([0, limit], [0, limit], color=GREY, lw=0.8, ls="--")
            axes.plot(norm, distance, ".", ms=3, alpha=0.6, color=PALETTE[0], mew=0)
            pearson = np.corrcoef(norm, distance)[0, 1]
            share = f"{float(probe['stage'][stage]):.0%} of training"
            axes.set(title=f"{share}\nPearson {pearson:.2f}", xlabel="p by gradient norm")
            axes.set(xlim=(0, limit), ylim=(0, limit))
    return figure


def correlations_figure(table: pd.DataFrame, claimed: float, note: str) -> Figure:
    """Pearson's and Spearman's correlation against the share of training.

    Args:
        table: from `correlations`; runs make the band, their mean the line.
        claimed: the paper's lower bound, drawn in.
        note: stands above.
    """
    table = table.rename(columns={"stage": STAGE, "pearson": "Pearson", "spearman": "Spearman"})
    long = table.melt([STAGE, "way"], ["Pearson", "Spearman"], "kind", "correlation")
    size = (DOUBLE_WIDTH * 0.8, 2.6, len(WAYS))
    with panels(*size, note=note, legend=3, sharey=True) as (figure, [row]):
        for axes, way in zip(row, WAYS, strict=True):
            plots.curves(axes, long[long["way"] == way], STAGE, "correlation", "kind", marker=".")
            axes.axhline(claimed, color="black", lw=1, ls=":", label=f"the paper: above {claimed:g}")
            axes.set(title=f"normalised {way}", ylim=(0, 1))
            axes.label_outer()
    return figure


def constants_figure(probes: Mapping[str, Probe], note: str) -> Figure:
    """The distribution of M over its median at each stage: a constant would be a point at 1.

    Args:
        probes: by run; all runs' samples go together.
        note: stands above.
    """
    relative = {f"{stage:.0%}": _relative(of) for stage, of in _by_stage(probes).items()}
    with panels(COLUMN_WIDTH, 2.4, note=note, grid="y") as (figure, [[axes]]):
        looks = {"medianprops": {"color": PALETTE[1]}, "boxprops": {"color": PALETTE[0]}}
        names, values = list(relative), list(relative.values())
        axes.boxplot(values, tick_labels=names, whis=(5, 95), showfliers=False, **looks)
        axes.axhline(1, color=GREY, lw=0.8, ls=":")
        axes.set(xlabel="training done", ylabel="M over its median")
    return figure
