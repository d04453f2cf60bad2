"""Tables of AdaSample's Table 3 (Sec. 5.4): the paper beside our runs, and how far either carries.

A comparison is one column of the paper's six, by its short name (`lib.reporting.tables.COLUMN_NAMES`);
the lower method is AdaSample+*, the higher one HardNet+*. FPR95 is in percent, p and power in [0, 1].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from lib import significance
from lib.reporting import printed_p_values
from lib.reporting.printed import printed
from lib.reporting.tables import COLUMN_NAMES, column_name, roles_of, values_of_methods

if TYPE_CHECKING:
    from lib.study.open import Found

LOWER, HIGHER = "adasample_aug_gen", "hardnet_aug_gen"
LABELS = {HIGHER: "HardNet+*", LOWER: "AdaSample+*"}
LEVEL = 0.05
EFFECTS = tuple(step / 5 for step in range(24))


def paper_comparisons() -> pd.DataFrame:
    """Table 3 as printed: as `printed_p_values.comparisons`, indexed by the columns' short names."""
    table = printed_p_values.comparisons(printed("adasample", "table3"))
    names = [column_name(*name.split(" → ")) for name in table.index]
    return table.set_axis(pd.Index(names, name="train>test"), axis=0)


def our_comparisons(ours: pd.DataFrame) -> pd.DataFrame:
    """Our runs in the layout of `paper_comparisons`; standard deviations with n − 1, p exact.

    Args:
        ours: of `lib.reporting.tables.fpr95_by_column`, with both methods and two seeds or more.

    Raises:
        ValueError: a method is missing or has one seed only.
    """
    lower, higher = _runs(ours)
    means = {"lower_mean": lower.mean(0), "higher_mean": higher.mean(0)}
    spread = {"lower_std": lower.std(0, ddof=1), "higher_std": higher.std(0, ddof=1)}
    gain = 100 * (means["higher_mean"] - means["lower_mean"]) / means["higher_mean"]
    tested = significance.mann_whitney(lower, higher)
    table = pd.DataFrame({**means, **spread, "gain": gain, "p": tested.exact}, index=_index())
    return table[printed_p_values.COLUMNS]


def table3(paper: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Table 3 with the paper's values and ours side by side, one row a comparison.

    Args:
        paper, ours: of `paper_comparisons` and `our_comparisons`.
    """
    both = {"paper": paper, "ours": ours}
    columns = {}
    for whose, which in itertools.product(both, ("higher", "lower")):
        label = f"{LABELS[HIGHER if which == 'higher' else LOWER]}, {whose}"
        for statistic in ("mean", "std"):
            columns[(label, statistic)] = both[whose][f"{which}_{statistic}"]
    columns |= {("gain (%)", whose): of["gain"] for whose, of in both.items()}
    columns |= {("p", "printed"): paper["p"], ("p", "exact"): ours["p"]}
    return pd.DataFrame(columns)


def tests_table(ours: pd.DataFrame) -> pd.DataFrame:
    """Our runs tested: one-sided p in three forms, Holm's correction of the exact one, effect sizes.

    Args:
        ours: as in `our_comparisons`.

    Returns:
        Columns "U"; p "exact", "asympt." and with continuity correction "contin.", and "Holm"; "A", the
        probability that a run of AdaSample is the better one, with its intervals by bootstrap and by
        Newcombe.
    """
    lower, higher = _runs(ours)
    tested = significance.mann_whitney(lower, higher)
    effect = significance.vargha_delaney(higher, lower)
    columns = {
        ("", "U"): tested.u,
        ("one-sided p", "exact"): tested.exact,
        ("one-sided p", "asympt."): tested.asymptotic,
        ("one-sided p", "contin."): tested.continuity,
        ("over six", "Holm"): significance.holm(tested.exact),
        ("effect", "A"): effect.value,
        ("A, bootstrap", "from"): effect.low,
        ("A, bootstrap", "to"): effect.high,
        ("A, Newcombe", "from"): effect.score_low,
        ("A, Newcombe", "to"): effect.score_high,
    }
    return pd.DataFrame(columns, index=_index())


def coverage_table(
    effects: Sequence[float] = (0.0, 1.0, 2.0, 3.0),
    *,
    runs: int = 5,
    draws: int = 600,
    resamples: int = 399,
    seed: int = 0,
) -> pd.DataFrame:
    """How often either 95% interval of A holds the true one, for normal runs, by simulation.

    Args:
        effects: differences of the means in standard deviations.
        runs: of each method.
        draws: comparisons simulated for each effect.
        resamples: of each bootstrap.
        seed: of the draws.

    Returns:
        Indexed by "effect": "true A", and the shares "bootstrap" and "Newcombe".
    """
    random = np.random.default_rng(seed)
    rows = {}
    for effect in effects:
        truth = stats.norm.cdf(effect / math.sqrt(2))
        better, worse = random.normal(size=(2, runs, draws))
        found = significance.vargha_delaney(worse + effect, better, resamples=resamples)
        rows[effect] = {
            "true A": truth,
            "bootstrap": ((found.low <= truth) & (truth <= found.high)).mean(),
            "Newcombe": ((found.score_low <= truth) & (truth <= found.score_high)).mean(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("effect")


def survivors_table(
    holm_on_paper: pd.DataFrame, tested: pd.DataFrame, level: float = LEVEL
) -> pd.DataFrame:
    """In how many comparisons the null hypothesis is rejected, the paper's and ours.

    Args:
        holm_on_paper: of `lib.reporting.printed_p_tables.holm_table`.
        tested: of `tests_table`.
        level: of the test, or of the family of six.

    Returns:
        One row a rule: "rejected" and the names of the comparisons that are "not" rejected. Where the
        exact p is not certain, a comparison counts as rejected if its largest is.
    """
    rules = {
        "paper, p as printed": holm_on_paper[("as printed", "p")],
        "paper, Holm on them": holm_on_paper[("as printed", "Holm")],
        "paper, exact p of the same U": holm_on_paper[("exact, at most", "p")],
        "paper, Holm on the exact p": holm_on_paper[("exact, at most", "Holm")],
        "ours, exact p": tested[("one-sided p", "exact")],
        "ours, Holm on the exact p": tested[("over six", "Holm")],
    }
    rows = {
        rule: {
            "rejected": int((p <= level).sum()),
            "not rejected": ", ".join(p.index[p > level]) or "none",
        }
        for rule, p in rules.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"at {100 * level:g}%")


def pair_errors(found: Sequence[Found], sets: Sequence[str]) -> pd.DataFrame:
    """FPR95's uncertainty from the test pairs, of each run on each test set.

    Args:
        found: runs with the probe `distance_histogram`.
        sets: the data source's three sets, in the order of their roles.

    Returns:
        Index ("key", "seed", "column"): "from_bins" and "recorded", FPR95 in percent, and the
        "standard_error" of `lib.significance.fpr95_error`.
    """
    role = roles_of(sets)
    rows = {}
    for record in found:
        for test_set in record.job.sets_of("fpr95"):
            probe = record.probe("distance_histogram", test_set)
            error = significance.fpr95_error(probe["matching"], probe["non_matching"])
            column = column_name(role[record.job.train_set], role[test_set])
            rows[(record.job.name, record.job.seed, column)] = {
                "from_bins": error.value,
                "recorded": record.fpr95(test_set),
                "standard_error": error.standard_error,
            }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = pd.MultiIndex.from_tuples(rows, names=["key", "seed", "column"])
    return frame


def errors_table(paper: pd.DataFrame, ours: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """The seeds' standard deviation beside the standard error that the test pairs alone leave.

    Args:
        paper, ours: of `paper_comparisons` and `our_comparisons`.
        errors: of `pair_errors`.

    Returns:
        For each comparison and method "seeds" and "pairs" in points of FPR95: the paper's pairs from
        the binomial distribution, ours the root mean square over seeds; the last row says in how
        many comparisons the pairs' is the larger.
    """
    squares = (errors["standard_error"] ** 2).groupby(level=["key", "column"]).mean()
    columns = {}
    for key, which in ((HIGHER, "higher"), (LOWER, "lower")):
        columns[(f"{LABELS[key]}, paper", "seeds")] = paper[f"{which}_std"]
        columns[(f"{LABELS[key]}, paper", "pairs")] = significance.binomial_error(paper[f"{which}_mean"])
    for key, which in ((HIGHER, "higher"), (LOWER, "lower")):
        columns[(f"{LABELS[key]}, ours", "seeds")] = ours[f"{which}_std"]
        columns[(f"{LABELS[key]}, ours", "pairs")] = np.sqrt(squares[key].reindex(ours.index))
    return pd.DataFrame(columns, index=paper.index)


def larger_table(errors: pd.DataFrame, runs: int = 5) -> pd.DataFrame:
    """In how many cells of `errors_table` the test pairs leave more uncertainty than the seeds.

    The paper does not say what its standard deviations divide by; both are counted.

    Args:
        errors: of `errors_table`.
        runs: of each method, in the paper.
    """
    unbiased = math.sqrt(runs / (runs - 1))
    rows = {}
    for name, whose, factor in (
        ("paper, its std by n - 1", "paper", 1.0),
        ("paper, its std by n", "paper", unbiased),
        ("ours", "ours", 1.0),
    ):
        groups = [f"{label}, {whose}" for label in LABELS.values()]
        larger = [errors[(group, "pairs")] > factor * errors[(group, "seeds")] for group in groups]
        rows[name] = {"pairs > seeds": int(np.sum(larger)), "of": int(np.size(larger))}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("whose")


def effect_sizes(compared: pd.DataFrame, runs: int = 5) -> pd.Series:
    """Difference of the means in pooled standard deviations, corrected for few runs (Hedges, 1981).

    Args:
        compared: of `paper_comparisons` or `our_comparisons`.
        runs: of each method.
    """
    pooled = np.sqrt((compared["lower_std"] ** 2 + compared["higher_std"] ** 2) / 2)
    few = 1 - 3 / (4 * (2 * runs - 2) - 1)
    return (few * (compared["higher_mean"] - compared["lower_mean"]) / pooled).rename("effect")


def power_curves(
    effects: Sequence[float] = EFFECTS,
    runs: Sequence[int] = (5, 10, 20),
    alphas: Mapping[str, float] | None = None,
    *,
    simulations: int = 2000,
) -> pd.DataFrame:
    """Power of the exact one-sided test by effect.

    Args:
        effects: in standard deviations.
        runs: of each method, a curve each.
        alphas: levels by name; by default 5% and Holm's strictest step over six.
        simulations: draws.

    Returns:
        Indexed by "effect", columns (name of the level, number of runs).
    """
    levels = alphas or {"one test at 5%": LEVEL, "first of six by Holm": LEVEL / len(COLUMN_NAMES)}
    curves = {
        (name, n): significance.power(effects, runs=n, alpha=alpha, simulations=simulations)["exact"]
        for name, alpha in levels.items()
        for n in runs
    }
    return pd.DataFrame(curves)


def power_table(curves: pd.DataFrame, effects: pd.Series, wanted: float = 0.8) -> pd.DataFrame:
    """Power at given effects, read from the curves, and the effect that a wanted power takes.

    Args:
        curves: of `power_curves`.
        effects: by comparison; below the curves' least or above their largest, the ends count.
        wanted: power.

    Returns:
        One row a comparison with its "effect"; then "sum", the number of rejections to expect of as
        many tests with these effects, and the effect "for 80%" power, NaN if no effect drawn has it.
    """
    heads = [(name, f"n={n}") for name, n in curves.columns]
    at = curves.index.to_numpy()
    columns = [np.interp(effects, at, curves[curve]) for curve in curves.columns]
    table = pd.DataFrame(dict(zip(heads, columns, strict=True)), index=effects.index)
    needed = [
        np.interp(wanted, curves[curve], at) if curves[curve].max() >= wanted else np.nan
        for curve in curves.columns
    ]
    table.loc["sum"] = table.sum()
    table.loc[f"for {100 * wanted:.0f}%"] = needed
    table.insert(0, ("", "effect"), effects)
    return table.rename_axis(effects.index.name)


def _runs(ours: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    values = values_of_methods(ours)
    missing = [key for key in LABELS if key not in values]
    if missing:
        raise ValueError(f"no runs of {', '.join(missing)}; both methods are needed")
    if any(values[key].ndim < 2 or len(values[key]) < 2 for key in LABELS):
        raise ValueError("a spread over seeds needs two seeds or more of each method")
    return values[LOWER], values[HIGHER]


def _index() -> pd.Index:
    return pd.Index(COLUMN_NAMES, name="train>test")
