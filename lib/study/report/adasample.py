"""AdaSample (Zhang et al.): what its notebooks compute from records.

For Table 3 (Sec. 5.4): its tests, and the test that gave its printed p-values. For Figure 3 and Eq. 12,
22 to 24: numbers from the probe `lib.probes.gradient_norms`, with S stages of training, C classes and c
places a class, NaN where a place holds no candidate. FPR95 is in percent, p and power are in [0, 1].
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

# Run -> its probe.
Probes = Mapping[str, Mapping[str, np.ndarray]]
MEAN = "mean of the runs"
# Pearson's r is above this value according to the paper.
CLAIMED = 0.8
LEVEL = 0.05
# For `power_table`: runs of each method, the wanted power, and the effects tried.
RUNS, WANTED = (5, 10, 20), 0.8
EFFECTS = np.arange(24) / 5


# Table 3


# Columns of a comparison, which is one of the paper's six columns; the lower method has the p-value.
COMPARED = ["lower_mean", "lower_std", "higher_mean", "higher_std", "gain", "p"]
# The paper's runs of each method; half a unit of the last printed digit of p, plus rounding error.
PRINTED_RUNS, HALF = 5, 0.5e-3 + 1e-9
# The form of the test that fits the printed p-values best; see `forms_table`.
LIKELIEST = "normal, continuity + ties"


def comparisons() -> pd.DataFrame:
    """Return Table 3 with one row per column of the paper, indexed by the columns' short names.

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
    """Compare forms of the test by how many of the printed p-values they can give, best form first.

    The paper names the Mann-Whitney test and a significance level. For five runs against five, ties
    allowed, each form of it (exact or asymptotic, with continuity correction or without, one- or
    two-sided) can give only a few values, all of which are enumerated.

    Args:
        paper: the printed `comparisons`.

    Returns:
        Indexed by "form" and "sides": "fits", how many of the p-values the form can give, and "untied",
        how many of them without tied runs; then for each comparison the U with the fewest tied runs,
        with the sizes of the tied groups in brackets, or NaN.
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
    """Apply Holm's correction to the paper's own six p-values, as printed and made exact.

    Args:
        paper: the printed comparisons.

    Returns:
        The baseline's "FPR95"; p "as printed" and its "Holm"; "U", the one with the fewest tied runs
        that gives the printed p by the likeliest form; the exact p of this U, "at least" and "at
        most" because it depends on where the ties are, each with its "Holm".
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
    """Test runs: one-sided p in three forms, Holm's correction of the exact one, and effect sizes.

    Args:
        lower, higher: one row per run, one column per comparison; `lower` is lower under the
            alternative.

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
    """Tabulate the power of the exact one-sided test at given effects, and the effect for 80% power.

    Args:
        effects: by comparison, from `lib.statistics.significance.effect_sizes`.

    Returns:
        One row per comparison with its "effect" and its power, columns (level of the test, number of
        runs); then "sum", the expected number of rejections over these tests, and "for 80%", the effect
        with that power, NaN if none of `EFFECTS` has it.
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
    """Return the probes of a recipe's runs, by run, each with "squared", the squared distance."""
    probes = {run.job.title: run.probe("gradient_norms") for run in runs if run.job.name == name}
    return {run: {**probe, "squared": probe["distance"] ** 2} for run, probe in probes.items()}


def correlations(probes: Probes, readings: Mapping[str, Reading] = READINGS) -> pd.DataFrame:
    """Compute Pearson's r with its 95% interval over classes, one row per reading, stage and run.

    Args:
        probes: run -> probe, with the same stages.
        readings: name -> reading.

    Returns:
        Columns `reading`, `stage` (fraction of training), `run`, `r`, `low`, `high`. The run `MEAN` is
        the mean over the runs, each of which has its own classes.
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
    """Return r per class for the claims, (seeds, train sets × stages), with resamples of classes.

    Classes are resampled for each run. The probes of a train set's runs are adjacent.
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
    """Reshape (runs, stages, …) to (seeds, train sets × stages, …)."""
    values = np.array(by_run)
    by_train_set = values.reshape(-1, seeds, *values.shape[1:])
    return by_train_set.swapaxes(0, 1).reshape(seeds, -1, *values.shape[2:])


def constants(probes: Probes) -> pd.DataFrame:
    """Compute M of Eq. 23, ‖∇_θ L‖ / ‖∇_x L‖, with one row per sample.

    Columns are "M", "run", "stage" and "relative", M over the median of its run and stage. The
    denominator is the norm at the network's output, before normalisation, over the triplet's three
    patches. Samples whose hinge is zero have no gradient and no M.
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
    """Return the error of Eq. 23 with one M per stage, in percent.

    It is the median of |M_i / M − 1|, M the median.

    Returns:
        (seeds, train sets × stages); the probes of a train set's runs are adjacent.
    """
    table = constants(probes)
    table["off"] = 100 * (table["relative"] - 1).abs()
    return _by_seed(table.pivot_table("off", "run", "stage", "median", sort=False).to_numpy(), seeds)


# Eq. 12 and 13, and footnote 5


def hinge_table(probes: Probes) -> pd.DataFrame:
    """Compare loss and squared distance over the candidates of a training batch, one row per stage.

    Returns:
        Indexed by the fraction of training: Pearson's r of the loss and d_pos² with its 95% interval
        over classes, over all classes together and as the mean within a class; `power`, the power of
        d_pos² with which the loss grows, as the median of d_pos²/L over positive losses, with its 5% and
        95%; and the fraction of zero hinges.
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
