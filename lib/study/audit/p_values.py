"""Which test gave the p-values that a paper prints: AdaSample's Table 3 (Sec. 5.4), five runs a method.

The paper names the Mann-Whitney test and a significance level. Of five runs against five, ties allowed,
each form of it (exact or asymptotic, corrected or not, one- or two-sided) can give only few values,
which are all enumerated; t-tests follow from the printed means and standard deviations. A comparison is
one column of the paper's six; `paper` is a frame as `comparisons` gives it, and the lower method the one
that has a p-value.
"""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from lib.statistics import significance
from lib.study.printed import printed
from lib.study.report.frames import with_columns

COLUMNS = ["lower_mean", "lower_std", "higher_mean", "higher_std", "gain", "p"]
SIDES = {1: "less", 2: "two-sided"}
# Of each method, and half a unit of the last digit that is printed of means, deviations and p.
RUNS, HALF = 5, 0.5e-3
# What the printed p-values fit best, see `forms_table`.
LIKELIEST = "normal, continuity + ties"


def comparisons() -> pd.DataFrame:
    """Table 3 with one row a column of the paper, indexed by the columns' short names.

    Returns:
        "lower_mean", "lower_std", "higher_mean", "higher_std" in percent, "gain" in percent, "p"; the
        lower method is the one that has a p-value.
    """
    table = printed("adasample", "table3")
    tested = table["key"].isin(table.loc[table["statistic"] == "p_value", "key"])
    names = table["statistic"].replace({"relative_gain": "gain", "p_value": "p"})
    whose = tested.map({True: "lower_", False: "higher_"}).where(names.str.startswith("seed"), "")
    table["name"] = whose + names.str.removeprefix("seed_")
    table = with_columns(table).rename(columns={"column": "train>test"})
    wide = table.pivot(index="train>test", columns="name", values="value").rename_axis(columns=None)
    return wide.loc[table["train>test"].unique(), COLUMNS]


def every_outcome(lower: int, higher: int) -> pd.DataFrame:
    """Every result that a comparison of so many runs can have, a row each, those with few ties first.

    Patterns of ties are as many as 2 to the power of all runs: ten take a second.

    Returns:
        "u", the Mann-Whitney statistic of the lower method, ties counting half; "at_most" and
        "at_least", the share of all splits of the pooled values that give this u or less, or more;
        "tied", how many values are, "tie_sum", the sum over their groups of t³ − t, t its size, and
        "ties", the sizes, the largest first, e.g. "3+2"; and the numbers of runs, "lower" and "higher".
    """
    runs = lower + higher
    # Whether a pooled value is larger than the one before.
    steps = np.array(list(itertools.product((0, 1), repeat=runs - 1)))
    patterns = np.insert(steps, 0, 0, axis=1).cumsum(axis=1)
    splits = np.array(list(itertools.combinations(range(runs), lower)))
    u = stats.rankdata(patterns, axis=1)[:, splits].sum(axis=2) - lower * (lower + 1) / 2
    at_most = stats.rankdata(u, "max", axis=1) / len(splits)
    at_least = 1 - (stats.rankdata(u, "min", axis=1) - 1) / len(splits)
    sizes = [np.bincount(pattern) for pattern in patterns]
    groups = [sorted(size[size > 1].tolist(), reverse=True) for size in sizes]
    ties = [(sum(g), sum(t**3 - t for t in g), "+".join(map(str, g))) for g in groups]
    table = pd.DataFrame(ties, columns=["tied", "tie_sum", "ties"])
    table = table.loc[table.index.repeat(len(splits))]
    table = table.assign(u=u.ravel(), at_most=at_most.ravel(), at_least=at_least.ravel())
    table = table.drop_duplicates().sort_values(["tied", "tie_sum", "u", "at_most", "at_least", "ties"])
    return table.reset_index(drop=True).assign(lower=lower, higher=higher)


def p_values(outcomes: pd.DataFrame) -> pd.DataFrame:
    """p of each outcome of `every_outcome`, columns (form of the test, number of sides).

    "normal, continuity + ties", one-sided, is what scipy gave by default before 1.7; R, and scipy since,
    take the exact p without ties and else the same. Two-sided is twice the smaller tail.
    """
    u = outcomes["lower"] * outcomes["higher"] - outcomes["u"]
    exchanged = outcomes.assign(u=u, at_most=outcomes["at_least"], at_least=outcomes["at_most"])
    less, greater = _one_sided(outcomes), _one_sided(exchanged)
    both = np.minimum(1, 2 * np.minimum(less, greater))
    return pd.concat({1: less, 2: both}, axis=1).swaplevel(axis=1)[list(less)]


def _one_sided(outcomes: pd.DataFrame) -> pd.DataFrame:
    at_most, untied = outcomes["at_most"], outcomes["tied"] == 0
    pairs, runs = outcomes["lower"] * outcomes["higher"], outcomes["lower"] + outcomes["higher"]
    above = pairs / 2 - outcomes["u"]
    plain = np.sqrt(pairs / 12 * (runs + 1))
    of_ties = np.sqrt(pairs / 12 * (runs + 1 - outcomes["tie_sum"] / (runs * (runs - 1))))

    def normal(deviation: pd.Series, continuity: float) -> np.ndarray:
        return np.where(deviation > 0, stats.norm.sf((above - continuity) / deviation), 1.0)

    # As scipy's method="exact" does with ties: the distribution without them, u rounded up.
    without_ties = outcomes[untied].set_index("u")["at_most"].reindex(np.ceil(outcomes["u"]))
    forms = {
        "exact": at_most,
        "exact, mid-p": (at_most + 1 - outcomes["at_least"]) / 2,
        "exact, ties ignored": without_ties.to_numpy(),
        "normal, continuity + ties": normal(of_ties, 0.5),
        "normal, continuity": normal(plain, 0.5),
        "normal, ties": normal(of_ties, 0.0),
        "normal, plain": normal(plain, 0.0),
        "R, scipy 1.7 and later": np.where(untied, at_most, normal(of_ties, 0.5)),
    }
    return pd.DataFrame(forms, index=outcomes.index)


def forms_table(paper: pd.DataFrame) -> pd.DataFrame:
    """What each form of the test would need to give the printed p-values, best form first.

    Args:
        paper: the printed comparisons.

    Returns:
        Indexed by "form" and "sides": "fits", how many of the p-values it can give, "untied", how many
        of them without tied runs; then for each comparison the U with the fewest tied runs, with the
        sizes of the tied groups in brackets, or NaN. The last rows are those of Wilcoxon's signed-rank
        test (1945), of runs in pairs.
    """
    outcomes = every_outcome(RUNS, RUNS)
    ties = outcomes["ties"].where(outcomes["ties"] == "", " (" + outcomes["ties"] + ")")
    outcomes["shown"] = outcomes["u"].map("{:g}".format) + ties
    table = _fits(p_values(outcomes), outcomes, paper["p"])
    table = table.sort_values(["fits", "untied"], ascending=False, kind="stable")
    # Of five pairs, one run of each method: the sum of the ranks where the lower method is higher.
    sums = np.sort(np.array(list(itertools.product((0, 1), repeat=RUNS))) @ np.arange(1, RUNS + 1))
    in_pairs = pd.DataFrame({"tied": 0, "shown": [f"W = {w}" for w in sums]})
    up_to = stats.rankdata(sums, "max") / len(sums)
    exact = {("signed-rank, exact", sides): np.minimum(1, sides * up_to) for sides in SIDES}
    return pd.concat([table, _fits(exact, in_pairs, paper["p"])])


def _fits(
    forms: Mapping[tuple[str, int], np.ndarray], outcomes: pd.DataFrame, printed_p: pd.Series
) -> pd.DataFrame:
    """Rows of `forms_table`: for each printed p the first outcome whose p rounds to it."""
    rows = {}
    for form, p in forms.items():
        fitting = {name: outcomes[_rounds_to(p, value)].head(1) for name, value in printed_p.items()}
        tied = pd.concat(fitting.values())["tied"]
        shown = {name: next(iter(first["shown"]), np.nan) for name, first in fitting.items()}
        rows[form] = {"fits": len(tied), "untied": int((tied == 0).sum()), **shown}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["form", "sides"])


def _rounds_to(p: np.ndarray | pd.Series, value: float) -> np.ndarray:
    return np.abs(np.asarray(p) - value) <= HALF + 1e-9


def holm_table(paper: pd.DataFrame) -> pd.DataFrame:
    """Holm's correction over the paper's own six p-values, as printed and made exact.

    Args:
        paper: the printed comparisons.

    Returns:
        The baseline's "FPR95"; p "as printed" and its "Holm"; the "U" with the fewest tied runs that it
        came from by the likeliest form, NaN where that cannot give it; the exact p of this U, "at least"
        and "at most" since it depends on where ties are, each with its "Holm".
    """
    outcomes, implied = every_outcome(RUNS, RUNS), []
    likeliest = p_values(outcomes)[LIKELIEST, 1]
    for value in paper["p"]:
        best = outcomes[_rounds_to(likeliest, value)].iloc[0]
        alike = (outcomes[["u", "ties"]] == best[["u", "ties"]]).all(axis=1)
        implied.append([best["u"], *outcomes.loc[alike, "at_most"].agg(["min", "max"])])
    u, least, most = np.transpose(implied)
    columns = {("HardNet+*", "FPR95"): paper["higher_mean"], ("as printed", "p"): paper["p"]}
    columns |= {("as printed", "Holm"): significance.holm(paper["p"]), ("implied", "U"): u}
    for head, exact in (("exact, at least", least), ("exact, at most", most)):
        columns |= {(head, "p"): exact, (head, "Holm"): significance.holm(exact)}
    return pd.DataFrame(columns, index=paper.index)


def t_table(paper: pd.DataFrame) -> pd.DataFrame:
    """The p-values that t-tests on the printed means and standard deviations give; best form first.

    Args:
        paper: the printed comparisons.

    Returns:
        Indexed by "form" (Student's or Welch's, and the divisor of the variance) and "sides": "fits",
        then for each comparison the least and the largest p over what rounds to the printed means and
        standard deviations.
    """
    signs = np.array(list(itertools.product((-1, 1), repeat=4))) * HALF
    rows = []
    for form, ddof, sides in itertools.product(("Student's t", "Welch's t"), (1, 0), SIDES):
        row = {"form": f"{form}, variance / {RUNS - ddof}", "sides": sides, "fits": 0}
        for name, line in paper.iterrows():
            corners = np.maximum(line[COLUMNS[:4]].to_numpy(dtype=float) + signs, 0)
            corners[:, [1, 3]] *= math.sqrt((RUNS - ddof) / (RUNS - 1))
            lower, higher = corners[:, :2].T, corners[:, 2:].T
            test = {"equal_var": form.startswith("Student"), "alternative": SIDES[sides]}
            p = stats.ttest_ind_from_stats(*lower, RUNS, *higher, RUNS, **test).pvalue
            row[name] = f"{p.min():.4f}–{p.max():.4f}"
            row["fits"] += bool(p.min() <= line["p"] + HALF and p.max() >= line["p"] - HALF)
        rows.append(row)
    table = pd.DataFrame(rows).sort_values("fits", ascending=False, kind="stable")
    return table.set_index(["form", "sides"])
