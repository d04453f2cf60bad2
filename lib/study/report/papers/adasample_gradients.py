"""AdaSample's Figure 3: does the matching distance stand in for the gradient's norm?

From the probe `lib.probes.gradient_norms`: S stages of training, C classes, c places a class, NaN
where a place holds no candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured
from lib.study.open import Found
from lib.study.report.style import COLUMN_WIDTH, DOUBLE_WIDTH, GREY, PALETTE, panels

Probe = Mapping[str, np.ndarray]
STAGE = "fraction of training"
MEAN = "mean of the runs"
RESAMPLES = 1000
DRAWS = 100
# What the paper says that r is above.
CLAIMED = 0.8


@dataclass(frozen=True)
class Reading:
    """A way in which Figure 3's correlation can be taken.

    Attributes:
        scale: "class" divides the values of a class by their sum, which makes them the probabilities of
            Alg. 1; "none" leaves them as they are; "within" standardises them within the class, so that
            the correlation is the mean over classes of that within a class.
        size: patches that a class is cut down to, the anchor among them, at random; "own" for as many as
            the set itself has, generated ones (``*``) last; None for all.
        shuffled: the second quantity is dealt out anew among the candidates of each class.
        between: the two quantities, arrays of the probe, "output", the norm at the network's output, or
            "squared", the distance squared.
    """

    scale: str = "class"
    size: int | str | None = None
    shuffled: bool = False
    between: tuple[str, str] = ("distance", "full")


PER_CLASS, OWN_SIZES = "per class", "the set's class sizes"
READINGS = {
    PER_CLASS: Reading(),
    f"{PER_CLASS}, shuffled": Reading(shuffled=True),
    **{f"classes of {size}": Reading(size=size) for size in (2, 3, 5, 15)},
    OWN_SIZES: Reading(size="own"),
    f"{OWN_SIZES}, shuffled": Reading(size="own", shuffled=True),
    "not normalised": Reading("none"),
    "not normalised, shuffled": Reading("none", shuffled=True),
    "mean within a class": Reading("within"),
}
STEPS = {
    "full, at the output (Eq. 23)": Reading(between=("output", "full")),
    "at the output, distance (Eq. 24)": Reading(between=("distance", "output")),
    "full, distance": Reading(),
}


def probes_of(found: Sequence[Found], name: str = "adasample_aug_gen") -> dict[str, Probe]:
    """The probes of a recipe's runs, by run."""
    return {of.job.title: of.probe("gradient_norms") for of in found if of.job.name == name}


def paired(
    probe: Probe, stage: int, reading: Reading, random: np.random.Generator, draws: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The two quantities of the candidates of a stage, as a reading takes them.

    Args:
        probe: of a run.
        stage: place in its stages.
        reading: which quantities, of which candidates, on which scale.
        random: chooses and shuffles candidates.
        draws: how often.

    Returns:
        (draws, C, c) each, NaN where there is no candidate, or in classes that the scale cannot hold:
        of zeros alone for "class", of a single value for "within".
    """
    first, second = (_quantity(probe, name, stage) for name in reading.between)
    there = np.isfinite(first) & np.isfinite(second)
    size = probe["originals"][:, None] if reading.size == "own" else reading.size or there.shape[1] + 1
    keys = np.arange(there.shape[1]) if reading.size == "own" else random.random((draws, *there.shape))
    rank = np.where(there, keys, np.inf).argsort(axis=-1).argsort(axis=-1)
    kept = np.broadcast_to(there & (rank < size - 1), (draws, *there.shape))
    if reading.shuffled:
        dealt = np.where(kept, random.random(kept.shape), np.inf).argsort(axis=-1)
        place = (~kept).argsort(axis=-1, kind="stable").argsort(axis=-1)
        dealt = np.take_along_axis(dealt, place, axis=-1)
        second = np.take_along_axis(np.broadcast_to(second, kept.shape), dealt, axis=-1)
    first, second = (_scaled(np.where(kept, of, np.nan), reading.scale) for of in (first, second))
    both = np.isfinite(first) & np.isfinite(second)
    return np.where(both, first, np.nan), np.where(both, second, np.nan)


def _quantity(probe: Probe, name: str, stage: int) -> np.ndarray:
    if name == "output":
        return np.sqrt((probe["raw"][stage].astype(np.float64) ** 2).sum(axis=-1))
    if name == "squared":
        return probe["distance"][stage].astype(np.float64) ** 2
    return probe[name][stage].astype(np.float64)


def _scaled(values: np.ndarray, scale: str) -> np.ndarray:
    if scale == "none":
        return values
    count = np.maximum(np.isfinite(values).sum(axis=-1, keepdims=True), 1)
    total = np.nansum(values, axis=-1, keepdims=True)
    if scale == "class":
        return values / np.where(total > 0, total, np.nan)
    centred = values - total / count
    spread = np.sqrt(np.nansum(centred**2, axis=-1, keepdims=True) / count)
    return centred / np.where(spread > 0, spread, np.nan)


def pearson(
    probe: Probe, stage: int, reading: Reading, random: np.random.Generator
) -> tuple[float, np.ndarray]:
    """Pearson's correlation of the candidates of a stage as a reading takes them, and its bootstrap.

    Args:
        probe, stage, reading, random: as for `paired`.

    Returns:
        The correlation, over all draws where the reading has any; and (1000,) of classes drawn with
        replacement, a draw each. NaN where there is no variance, as in classes of two patches: their
        only candidate has the probability 1.
    """
    by_chance = reading.shuffled or isinstance(reading.size, int)
    x, y = paired(probe, stage, reading, random, DRAWS if by_chance else 1)
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1)
    sums = np.where(np.isfinite(x)[..., None], terms, 0).sum(axis=-2)
    classes = sums.shape[1]
    times = random.multinomial(classes, np.full(classes, 1 / classes), size=RESAMPLES)
    resampled = np.einsum("bc,bct->bt", times, sums[np.arange(RESAMPLES) % len(sums)])
    return float(_pearson(sums.sum(axis=(0, 1)))), _pearson(resampled)


def _pearson(sums: np.ndarray) -> np.ndarray:
    """(…) from (…, 6): the number of pairs, Σx, Σy, Σx², Σy² and Σxy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
        return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


def correlations(
    probes: Mapping[str, Probe], readings: Mapping[str, Reading] = READINGS
) -> pd.DataFrame:
    """Pearson's r with its 95% interval over classes, a row a reading, stage and run.

    Args:
        probes: by run, with the same stages.
        readings: by name.

    Returns:
        Columns `reading`, `stage` (fraction of training), `run`, `r`, `low`, `high`; the mean over the
        runs, each with classes of its own, is the run `MEAN`.
    """
    random, rows = np.random.default_rng(0), []
    for name, reading in readings.items():
        for number, stage in enumerate(next(iter(probes.values()))["stage"]):
            of_runs = [pearson(probe, number, reading, random) for probe in probes.values()]
            mean = tuple(np.mean(part, axis=0) for part in zip(*of_runs, strict=True))
            for run, (r, resampled) in zip((*probes, MEAN), (*of_runs, mean), strict=True):
                low, high = np.quantile(resampled, (0.025, 0.975))
                rows.append((name, round(float(stage), 3), run, r, low, high))
    return pd.DataFrame(rows, columns=["reading", "stage", "run", "r", "low", "high"])


def correlations_table(table: pd.DataFrame) -> pd.DataFrame:
    """`correlations` as a page shows it: the mean over runs, a row a reading, a column a stage.

    Args:
        table: of `correlations`.

    Returns:
        r by stage, its interval at the last one, and at how many stages r, and all of its interval, lies
        above `CLAIMED`; empty where there is no variance.
    """
    mean = table[table["run"] == MEAN]
    wide = mean.pivot(index="reading", columns="stage").loc[list(mean["reading"].unique())]
    shown = wide["r"].rename(columns=lambda stage: ("r at " + STAGE, f"{stage:g}"))
    last = wide["r"].columns[-1]
    shown["at the end, 95%", "from"] = wide["low"][last]
    shown["at the end, 95%", "to"] = wide["high"][last]
    stages, head = wide["r"].shape[1], f"stages above {CLAIMED:g}"
    for name, of in (("r", wide["r"]), ("interval", wide["low"])):
        above = (of > CLAIMED).sum(axis=1).map(f"{{}} of {stages}".format)
        shown[head, name] = above.where(wide["r"].notna().all(axis=1))
    shown.columns = pd.MultiIndex.from_tuples(shown.columns)
    return shown


def pearson_values(probes: Mapping[str, Probe], seeds: int) -> Measured:
    """r per class for the claims, (seeds, train sets × stages), with resamples of each run's classes.

    The runs of a train set stand side by side.
    """
    random = np.random.default_rng(0)
    of_runs = [
        [pearson(probe, stage, READINGS[PER_CLASS], random) for stage in range(len(probe["stage"]))]
        for probe in probes.values()
    ]
    r, resampled = (_by_seed([[of[at] for of in run] for run in of_runs], seeds) for at in (0, 1))
    classes = min(probe["full"].shape[1] for probe in probes.values())
    return Measured(r, resampled[None], freedom=classes - 1, units="classes")


def _by_seed(of_runs: Sequence, seeds: int) -> np.ndarray:
    """(seeds, train sets × stages, …) from (runs, stages, …)."""
    values = np.array(of_runs)
    stages, *each = values.shape[1:]
    return values.reshape(-1, seeds, stages, *each).swapaxes(0, 1).reshape(seeds, -1, *each)


def constants(probes: Mapping[str, Probe]) -> pd.DataFrame:
    """M of Eq. 23, ‖∇_θ L‖ / ‖∇_x L‖: a row a sample, with its "run", "stage" and "M", and what that is
    over the median of its run and stage, "relative".

    The denominator is the norm at the network's output, before normalisation, over the triplet's
    three patches. Samples whose hinge is zero have no gradient and no M.
    """
    parts = []
    for run, probe in probes.items():
        for number, stage in enumerate(probe["stage"].round(3)):
            full, output = probe["full"][number], _quantity(probe, "output", number)
            there = np.isfinite(full) & (output > 0)
            m = pd.Series(full[there] / output[there], name="M")
            parts.append(m.to_frame().assign(run=run, stage=stage, relative=m / m.median()))
    return pd.concat(parts, ignore_index=True)


def constants_table(probes: Mapping[str, Probe]) -> pd.DataFrame:
    """How constant M is, over all runs: a row a stage.

    Returns:
        `median`, `5%` and `95%` of M over the median, `CV` (standard deviation over mean, the median
        over runs) and `zero hinge (%)`, the share of samples without a gradient.
    """
    every = constants(probes)
    of, by_run = every.groupby("stage"), every.groupby(["stage", "run"])["M"]
    losses = np.concatenate([probe["loss"] for probe in probes.values()], axis=1)
    columns = {
        "median M": of["M"].median(),
        "5% of it": of["relative"].quantile(0.05),
        "95% of it": of["relative"].quantile(0.95),
        "CV": (by_run.std(ddof=0) / by_run.mean()).groupby("stage").median(),
        "zero hinge (%)": 100 * (losses <= 0).sum(axis=(1, 2)) / np.isfinite(losses).sum(axis=(1, 2)),
    }
    return pd.DataFrame(columns).rename_axis(STAGE)


def approximation_errors(probes: Mapping[str, Probe], seeds: int) -> np.ndarray:
    """How far Eq. 23 is off with one M a stage: the median of |M_i / M − 1| in percent, M the median.

    Returns:
        (seeds, train sets × stages); the runs of a train set stand side by side.
    """
    off = constants(probes).assign(off=lambda of: 100 * (of["relative"] - 1).abs())
    return _by_seed(off.pivot_table("off", "run", "stage", "median", sort=False).to_numpy(), seeds)


def output_norms_table(by_loss: Mapping[str, Mapping[str, Probe]]) -> pd.DataFrame:
    """Eq. 24 on the real network: the norm at the positive's descriptor over 2 d, at the last stage.

    Args:
        by_loss: probes by run, by loss, e.g. "HT" and "AHT".

    Returns:
        A row for each loss, way of writing the distance (through ‖x − y‖ as printed, or along the
        sphere the descriptors lie on) and side on which the negative was mined: `samples`, `median`
        and 5% and 95% of ‖∂L/∂x⁺‖ / 2d.
    """
    rows = []
    for loss, probes in by_loss.items():
        distance, losses, near, through, along = (
            np.concatenate([probe[name][-1] for probe in probes.values()]).astype(np.float64)
            for name in ("distance", "loss", "near_anchor", "differences", "sphere")
        )
        for way, norms in (("through ‖x − y‖", through), ("along the sphere", along[..., 1])):
            for side, wanted in (("anchor", 1), ("positive", 0)):
                there = np.isfinite(distance) & (losses > 0) & (near == wanted)
                ratio = norms[there] / (2 * distance[there])
                spread = np.percentile(ratio, [50, 5, 95]) if len(ratio) else [np.nan] * 3
                rows.append((loss, way, side, len(ratio), *spread))
    columns = ["loss", "gradient", "negative at", "samples", "median", "5%", "95%"]
    return pd.DataFrame(rows, columns=columns)


def probabilities_figure(probe: Probe, stages: Sequence[int], note: str) -> Figure:
    """Each candidate's probability by matching distance and by gradient norm, a column a stage.

    Above with all candidates of a class, below with as many patches a class as the set itself has.

    Args:
        probe: of one run.
        stages: places in the probe's stages.
        note: what is shown; stands above.
    """
    size = (DOUBLE_WIDTH, 4.4, len(stages), 2)
    looks = {"note": note, "xlabel": "p by gradient norm", "sharex": "row", "sharey": "row"}
    with panels(*size, **looks) as (figure, rows):
        for row, name, label in zip(rows, (PER_CLASS, OWN_SIZES), ("all", OWN_SIZES), strict=True):
            of_stages = [paired(probe, at, READINGS[name], np.random.default_rng(0)) for at in stages]
            limit = 1.05 * float(np.nanmax(of_stages))
            for axes, at, (distance, norm) in zip(row, stages, of_stages, strict=True):
                axes.plot([0, limit], [0, limit], color=GREY, lw=0.8, ls="--")
                axes.plot(norm.ravel(), distance.ravel(), ".", ms=3, alpha=0.6, color=PALETTE[0], mew=0)
                there = np.isfinite(norm)
                r = np.corrcoef(norm[there], distance[there])[0, 1]
                done = f"{float(probe['stage'][at]):.0%} of training\n" if name == PER_CLASS else ""
                axes.set(title=f"{done}r = {r:.2f}", xlim=(0, limit), ylim=(0, limit))
            row[0].set_ylabel(f"{label}:\np by matching distance")
    return figure


FIGURE_PANELS = {
    "Size of the classes": {
        PER_CLASS: (0, "all candidates of a class"),
        OWN_SIZES: (1, "as many as the set has"),
    },
    "All classes of one size": {
        "classes of 3": (2, "3 patches"),
        "classes of 5": (3, "5 patches"),
        "classes of 15": (6, "15 patches"),
    },
    "Not normalised": {
        "not normalised": (4, "all classes together"),
        "mean within a class": (5, "within a class, mean"),
    },
}


def correlations_figure(table: pd.DataFrame, note: str) -> Figure:
    """r by reading against the fraction of training: points with intervals over classes, and `CLAIMED`.

    Args:
        table: of `correlations`; the mean over runs is drawn.
        note: stands above.
    """
    mean = table[table["run"] == MEAN].set_index("reading")
    width = len(FIGURE_PANELS)
    looks = {"ylabel": "Pearson's r", "grid": "y", "sharey": True}
    with panels(DOUBLE_WIDTH, 3.5, width, note=note, **looks) as (figure, [row]):
        for axes, (title, series) in zip(row, FIGURE_PANELS.items(), strict=True):
            drawn = []
            for name, (colour, label) in series.items():
                line = {"color": PALETTE[colour], "ms": 4, "capsize": 2, "lw": 1.2}
                drawn.append((name, {"label": label, "marker": "o"} | line))
                if (shuffled := f"{name}, shuffled") in mean.index:
                    other = {"label": "… shuffled", "marker": "s", "ls": "--", "mfc": "white"}
                    drawn.append((shuffled, other | line))
            for place, (name, line) in enumerate(drawn):
                of = mean.loc[name]
                # Side by side, so that their intervals can be told apart.
                at = of["stage"] + 0.02 * (place - (len(drawn) - 1) / 2)
                bars = of[["low", "high"]].sub(of["r"], axis=0).abs().to_numpy().T
                axes.errorbar(at, of["r"], yerr=bars, **line)
            axes.axhline(CLAIMED, color="black", lw=1, ls=":")
            axes.set(title=title, xlabel=STAGE, ylim=(-0.2, 1.02))
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=7.5, handlelength=2.6)
            axes.label_outer()
        paper = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom", "fontsize": 7.5}
        row[-1].annotate(f"the paper: above {CLAIMED:g}", (1, CLAIMED + 0.01), **paper)
    return figure


def constants_figure(probes: Mapping[str, Probe], note: str) -> Figure:
    """The distribution of M over its median at each stage: a constant would be a point at 1.

    Args:
        probes: by run; all runs' samples go together.
        note: stands above.
    """
    by_stage = constants(probes).groupby("stage", sort=False)["relative"]
    with panels(COLUMN_WIDTH, 2.4, note=note, grid="y") as (figure, [[axes]]):
        looks = {"medianprops": {"color": PALETTE[1]}, "boxprops": {"color": PALETTE[0]}}
        names, values = zip(*((f"{stage:.0%}", of.to_numpy()) for stage, of in by_stage), strict=True)
        axes.boxplot(values, tick_labels=names, whis=(5, 95), showfliers=False, **looks)
        axes.axhline(1, color=GREY, lw=0.8, ls=":")
        axes.set(xlabel="training done", ylabel="M over its median")
    return figure
