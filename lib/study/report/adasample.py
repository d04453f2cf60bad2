"""AdaSample (Zhang et al.): what its notebooks compute from records.

Table 3's tests (Sec. 5.4), which test gave its printed p-values, and Figure 3 with Eq. 12, 22 to 24 from
the probe `lib.probes.gradient_norms`: S stages of training, C classes, c places a class, NaN where a
place holds no candidate. FPR95 is in percent, p and power are in [0, 1].
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from lib.statistics import significance
from lib.statistics.correlation import Reading, pearson
from lib.statistics.intervals import Measured
from lib.study.open import Runs
from lib.study.printed import printed
from lib.study.report.frames import wide, with_columns

# By run its probe.
Probes = Mapping[str, Mapping[str, np.ndarray]]
MEAN = "mean of the runs"
# What the paper says that Pearson's r is above.
CLAIMED = 0.8
LEVEL = 0.05
# Of the power asked about: runs of each method, the effects tried, and the power that is wanted.
RUNS, WANTED = (5, 10, 20), 0.8
EFFECTS = np.arange(24) / 5


# Table 3


# Of a comparison, one column of the paper's six; the lower method is the one that has a p-value.
COMPARED = ["lower_mean", "lower_std", "higher_mean", "higher_std", "gain", "p"]
# The paper's of each method; half a unit of the last digit that is printed of p, and what rounding adds.
PRINTED_RUNS, HALF = 5, 0.5e-3 + 1e-9
# What the printed p-values fit best, see `forms_table`.
LIKELIEST = "normal, continuity + ties"


def comparisons() -> pd.DataFrame:
    """Table 3 with one row a column of the paper, indexed by the columns' short names.

    Returns:
        "lower_mean", "lower_std", "higher_mean", "higher_std" in percent, "gain" in percent, "p"; the
        lower method is the one that has a p-value.
    """
    table = printed("adasample", "table3")
    tested = table["key"].isin(table.query("statistic == 'p_value'")["key"])
    names = table["statistic"].replace({"relative_gain": "gain", "p_value": "p"})
    lower, higher = (names.str.replace("seed_", whose) for whose in ("lower_", "higher_"))
    table["name"] = lower.where(tested, higher)
    table = with_columns(table).rename(columns={"column": "train>test"})
    return wide(table, "name", ["train>test"])[COMPARED].rename_axis(columns=None)


def forms_table(paper: pd.DataFrame) -> pd.DataFrame:
    """What each form of the test would need to give the printed p-values, best form first.

    The paper names the Mann-Whitney test and a significance level. Of five runs against five, ties
    allowed, each form of it (exact or asymptotic, with continuity correction or without, one- or
    two-sided) can give only few values, which are all enumerated.

    Args:
        paper: the printed `comparisons`.

    Returns:
        Indexed by "form" and "sides": "fits", how many of the p-values it can give, "untied", how many
        of them without tied runs; then for each comparison the U with the fewest tied runs, with the
        sizes of the tied groups in brackets, or NaN.
    """
    outcomes, p_values = significance.mann_whitney_outcomes(PRINTED_RUNS, PRINTED_RUNS)
    ties = outcomes["ties"].str.replace(r"(.+)", r" (\1)", regex=True)
    outcomes["shown"] = outcomes["u"].map("{:g}".format) + ties
    rows = {}
    for form, p in p_values.items():
        first = {name: outcomes[(p - value).abs() <= HALF].head(1) for name, value in paper["p"].items()}
        first = pd.concat(first).droplevel(1)
        rows[form] = {"fits": len(first), "untied": (first["tied"] == 0).sum(), **first["shown"]}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["form", "sides"])
    table = table[["fits", "untied", *paper.index]]
    return table.sort_values(["fits", "untied"], ascending=False, kind="stable")


def holm_table(paper: pd.DataFrame) -> pd.DataFrame:
    """Holm's correction over the paper's own six p-values, as printed and made exact.

    Args:
        paper: the printed comparisons.

    Returns:
        The baseline's "FPR95"; p "as printed" and its "Holm"; the "U" with the fewest tied runs that it
        came from by the likeliest form, NaN where that cannot give it; the exact p of this U, "at least"
        and "at most" since it depends on where ties are, each with its "Holm".
    """
    outcomes, p_values = significance.mann_whitney_outcomes(PRINTED_RUNS, PRINTED_RUNS)
    implied = []
    for value in paper["p"]:
        best = outcomes[(p_values[LIKELIEST, 1] - value).abs() <= HALF].iloc[0]
        alike = (outcomes[["u", "ties"]] == best[["u", "ties"]]).all(axis=1)
        implied.append([best["u"], *outcomes.loc[alike, "at_most"].agg(["min", "max"])])
    u, least, most = np.transpose(implied)
    columns = {
        ("HardNet+*", "FPR95"): paper["higher_mean"],
        ("as printed", "p"): paper["p"],
        ("as printed", "Holm"): significance.holm(paper["p"]),
        ("implied", "U"): u,
    }
    for head, exact in (("exact, at least", least), ("exact, at most", most)):
        columns |= {(head, "p"): exact, (head, "Holm"): significance.holm(exact)}
    return pd.DataFrame(columns, index=paper.index)


def p_table(lower: pd.DataFrame, higher: pd.DataFrame) -> pd.DataFrame:
    """Runs tested: one-sided p in three forms, Holm's correction of the exact one, effect sizes.

    Args:
        lower, higher: a row a run, a column a comparison; `lower` is said to be lower.

    Returns:
        Columns "U"; p "exact", "asympt." and with continuity correction "contin.", and "Holm"; "A", the
        probability that a run of `lower` is the better one, with its interval (Newcombe).
    """
    tested = significance.mann_whitney(lower, higher)
    effect, low, high = significance.vargha_delaney(higher, lower)
    columns = {
        ("", "U"): tested["u"],
        ("one-sided p", "exact"): tested["exact"],
        ("one-sided p", "asympt."): tested["asymptotic"],
        ("one-sided p", "contin."): tested["continuity"],
        ("over six", "Holm"): significance.holm(tested["exact"]),
        ("effect", "A"): effect,
        ("A, 95%", "from"): low,
        ("A, 95%", "to"): high,
    }
    return pd.DataFrame(columns, index=lower.columns)


def power_table(effects: pd.Series) -> pd.DataFrame:
    """Power of the exact one-sided test at given effects, and the effect that a wanted power takes.

    Args:
        effects: by comparison, as of `lib.statistics.significance.effect_sizes`.

    Returns:
        One row a comparison with its "effect", columns (level of the test, number of runs); then "sum",
        the number of rejections to expect of as many tests with these effects, and the effect "for 80%"
        power, NaN if none of `EFFECTS` has it.
    """
    levels = {"one test at 5%": LEVEL, "first of six by Holm": LEVEL / 6}
    columns = {("", "effect"): [*effects, np.nan, np.nan]}
    for (name, alpha), n in product(levels.items(), RUNS):
        tried = [*effects, *EFFECTS]
        powers = significance.power(tried, runs=n, alpha=alpha, simulations=2000)
        own, curve = np.split(powers.to_numpy(), [len(effects)])
        enough = np.interp(WANTED, curve, EFFECTS, right=np.nan)
        columns[name, f"n={n}"] = [*own, own.sum(), enough]
    index = pd.Index([*effects.index, "sum", f"for {100 * WANTED:.0f}%"], name=effects.index.name)
    return pd.DataFrame(columns, index=index)


# Figure 3


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
# Eq. 12: the squared distance in place of the loss.
LOSS_READINGS = {
    "all classes": Reading("none", between=("squared", "loss")),
    "within a class": Reading("within", between=("squared", "loss")),
}


def probes_of(runs: Runs, name: str = "adasample_aug_gen") -> Probes:
    """The probes of a recipe's runs, by run, each with "squared", the distance squared."""
    probes = {run.job.title: run.probe("gradient_norms") for run in runs if run.job.name == name}
    return {run: {**probe, "squared": probe["distance"] ** 2} for run, probe in probes.items()}


def correlations(probes: Probes, readings: Mapping[str, Reading] = READINGS) -> pd.DataFrame:
    """Pearson's r with its 95% interval over classes, a row a reading, stage and run.

    Args:
        probes: by run, with the same stages.
        readings: by name.

    Returns:
        Columns `reading`, `stage` (fraction of training), `run`, `r`, `low`, `high`; the mean over the
        runs, each with classes of its own, is the run `MEAN`.
    """
    random = np.random.default_rng(0)
    rows = []
    stages = next(iter(probes.values()))["stage"].astype(float).round(3)
    for (name, reading), (number, stage) in product(readings.items(), enumerate(stages)):
        by_run = {run: pearson(probe, number, reading, random) for run, probe in probes.items()}
        by_run[MEAN] = np.mean(list(by_run.values()), axis=0)
        for run, (r, *resampled) in by_run.items():
            rows.append((name, stage, run, r, *np.quantile(resampled, (0.025, 0.975))))
    return pd.DataFrame(rows, columns=["reading", "stage", "run", "r", "low", "high"])


def pearson_values(probes: Probes, seeds: int) -> Measured:
    """r per class for the claims, (seeds, train sets × stages), with resamples of each run's classes.

    The runs of a train set stand side by side.
    """
    random = np.random.default_rng(0)
    values = _by_seed(
        [
            [pearson(probe, stage, READINGS[PER_CLASS], random) for stage in range(len(probe["stage"]))]
            for probe in probes.values()
        ],
        seeds,
    )
    classes = min(probe["full"].shape[1] for probe in probes.values())
    return Measured(values[..., 0], values[None, ..., 1:], freedom=classes - 1, units="classes")


def _by_seed(by_run: Sequence, seeds: int) -> np.ndarray:
    """(seeds, train sets × stages, …) from (runs, stages, …)."""
    values = np.array(by_run)
    by_train_set = values.reshape(-1, seeds, *values.shape[1:])
    return by_train_set.swapaxes(0, 1).reshape(seeds, -1, *values.shape[2:])


def constants(probes: Probes) -> pd.DataFrame:
    """M of Eq. 23, ‖∇_θ L‖ / ‖∇_x L‖: a row a sample, with its "run", "stage" and "M", and what that is
    over the median of its run and stage, "relative".

    The denominator is the norm at the network's output, before normalisation, over the triplet's
    three patches. Samples whose hinge is zero have no gradient and no M.
    """
    parts = []
    for run, probe in probes.items():
        for stage, full, output in zip(probe["stage"], probe["full"], probe["output"], strict=True):
            known = np.isfinite(full) & (output > 0)
            m = full[known] / output[known]
            columns = {"M": m, "run": run, "stage": stage.round(3), "relative": m / np.median(m)}
            parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def approximation_errors(probes: Probes, seeds: int) -> np.ndarray:
    """How far Eq. 23 is off with one M a stage: the median of |M_i / M − 1| in percent, M the median.

    Returns:
        (seeds, train sets × stages); the runs of a train set stand side by side.
    """
    table = constants(probes)
    table["off"] = 100 * (table["relative"] - 1).abs()
    return _by_seed(table.pivot_table("off", "run", "stage", "median", sort=False).to_numpy(), seeds)


# Eq. 12 and 13, and footnote 5


def hinge_table(probes: Probes) -> pd.DataFrame:
    """Loss against squared distance over the candidates of a training batch, a row a stage.

    Returns:
        Index the fraction of training; Pearson's r of the loss and d_pos² with its 95% interval over
        classes, of all classes together and as the mean within a class; `power`, the median of d_pos²/L
        over positive losses, by what power of d_pos² the loss grows there, with its 5% and 95%; and
        the fraction of zero hinges.
    """
    mean = correlations(probes, LOSS_READINGS).query("run == @MEAN")
    r = mean.pivot(index="stage", columns="reading", values=["r", "low", "high"])
    parts = {"r": "r", "from": "low", "to": "high"}
    columns = {
        (f"r, {name}", head): r[part, name] for name in LOSS_READINGS for head, part in parts.items()
    }
    squared, losses = (
        np.concatenate([probe[name] for probe in probes.values()], axis=1)
        for name in ("squared", "loss")
    )
    power = squared / np.where(losses > 0, losses, np.nan)
    percentiles = np.nanpercentile(power, [50, 5, 95], axis=(1, 2))
    columns |= zip(product(["power"], ("median", "5%", "95%")), percentiles, strict=True)
    columns["fraction", "zero"] = (losses <= 0).sum(axis=(1, 2)) / np.isfinite(losses).sum(axis=(1, 2))
    return pd.DataFrame(columns).rename("{:g}".format).rename_axis("fraction of training")
