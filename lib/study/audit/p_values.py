"""Which test gave the p-values that a paper prints: AdaSample's Table 3 (Sec. 5.4), five runs a method.

The paper names the Mann-Whitney test and a significance level; t-tests follow from the printed means and
standard deviations. A comparison is one column of the paper's six; `paper` is a frame as `comparisons`
gives it, and the lower method the one that has a p-value.
"""

import itertools
import math

import numpy as np
import pandas as pd
from scipy import stats

from lib.statistics import significance
from lib.study.audit.cells import as_frame, finding
from lib.study.audit.mann_whitney import FORMS, every_outcome, p_value
from lib.study.printed import printed
from lib.study.report.phototour import column_name

COLUMNS = ["lower_mean", "lower_std", "higher_mean", "higher_std", "gain", "p"]
SIDES = {1: "less", 2: "two-sided"}
# Of each method, and digits printed after the point of means, deviations and p: half a unit of the last
# may be rounded either way.
RUNS, HALF = 5, 0.5e-3
# What the printed p-values fit best, see `forms_table`.
LIKELIEST = "normal, continuity + ties"
SIGNED_RANK = "signed-rank, exact"


def comparisons() -> pd.DataFrame:
    """Table 3 with one row a column of the paper, indexed by the columns' short names.

    Returns:
        "lower_mean", "lower_std", "higher_mean", "higher_std" in percent, "gain" in percent, "p"; the
        lower method is the one that has a p-value.
    """
    table = printed("adasample", "table3")
    tested = set(table.loc[table["statistic"] == "p_value", "key"])
    names = {"seed_mean": "{}_mean", "seed_std": "{}_std", "relative_gain": "gain", "p_value": "p"}
    rows: dict[str, dict[str, float]] = {}
    for row in table.itertuples():
        name = names[row.statistic].format("lower" if row.key in tested else "higher")
        rows.setdefault(column_name(row.train, row.test), {})[name] = row.value
    return pd.DataFrame.from_dict(rows, orient="index")[COLUMNS].rename_axis("train>test")


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
    found, rows = every_outcome(RUNS, RUNS), []
    for form, sides in itertools.product(FORMS, SIDES):
        p = p_value(form, sides, found)
        best = {name: _simplest(p, of, found) for name, of in paper["p"].items()}
        hits = [of for of in best.values() if of is not None]
        cells = {name: np.nan if of is None else _told(of) for name, of in best.items()}
        untied = sum(not of["tied"] for of in hits)
        rows.append({"form": form, "sides": sides, "fits": len(hits), "untied": untied, **cells})
    table = pd.DataFrame(rows).sort_values(["fits", "untied"], ascending=False, kind="stable")
    in_pairs = pd.DataFrame([_signed_rank_row(paper["p"], sides) for sides in SIDES])
    return pd.concat([table, in_pairs]).set_index(["form", "sides"])


def implied(paper: pd.DataFrame, form: str = LIKELIEST) -> pd.DataFrame:
    """What the printed p-values say of the runs, if they came from this form of the one-sided test.

    Args:
        paper: the printed comparisons.
        form: of `lib.study.audit.mann_whitney.FORMS`.

    Returns:
        For each comparison "u" with the fewest tied runs, "exact_low" and "exact_high" (the exact p; it
        depends on where the ties are); NaN where the form cannot give the p.
    """
    found, rows = every_outcome(RUNS, RUNS), {}
    p = p_value(form, 1, found)
    for name, value in paper["p"].items():
        rows[name] = (np.nan,) * 3
        best = _simplest(p, value, found)
        if best is not None:
            alike = (found[["u", "ties"]] == best[["u", "ties"]]).all(axis=1)
            rows[name] = (best["u"], *found.loc[alike, "at_most"].agg(["min", "max"]))
    return pd.DataFrame.from_dict(rows, orient="index", columns=["u", "exact_low", "exact_high"])


def holm_table(paper: pd.DataFrame) -> pd.DataFrame:
    """Holm's correction over the paper's own six p-values, as printed and made exact.

    Args:
        paper: the printed comparisons.

    Returns:
        The baseline's "FPR95"; p "as printed" and its "Holm"; the "U" that the likeliest form says it
        came from; the exact p of this U, "at least" and "at most" since it depends on where ties are,
        each with its "Holm".
    """
    outcome = implied(paper)
    columns = {
        ("HardNet+*", "FPR95"): paper["higher_mean"],
        ("as printed", "p"): paper["p"],
        ("as printed", "Holm"): significance.holm(paper["p"]),
        ("its", "U"): outcome["u"],
    }
    for end, name in (("least", "exact_low"), ("most", "exact_high")):
        exact = outcome[name].to_numpy(dtype=float)
        columns[(f"exact, at {end}", "p")] = exact
        columns[(f"exact, at {end}", "Holm")] = significance.holm(exact)
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
            lower, higher = (corners[:, of].T for of in ([0, 1], [2, 3]))
            how = {"equal_var": form.startswith("Student"), "alternative": SIDES[sides]}
            p = stats.ttest_ind_from_stats(*lower, RUNS, *higher, RUNS, **how).pvalue
            row[name] = f"{p.min():.4f}–{p.max():.4f}"
            row["fits"] += bool(p.min() <= line["p"] + HALF and p.max() >= line["p"] - HALF)
        rows.append(row)
    table = pd.DataFrame(rows).sort_values("fits", ascending=False, kind="stable")
    return table.set_index(["form", "sides"])


def unreachable(cells: pd.DataFrame) -> pd.DataFrame:
    """Printed p-values that the form which gives most of a table's without ties gives only with, or not.

    Args:
        cells: of `lib.study.audit.cells.all_cells`.
    """
    rows = []
    printed = cells[cells["statistic"] == "p_value"]
    for _, of in printed.groupby(["paper", "table"], sort=False):
        forms = forms_table(of.rename(columns={"value": "p"})).drop(SIGNED_RANK, level="form")
        best = forms.sort_values(["untied", "fits"], ascending=False, kind="stable").iloc[0]
        for cell in of.itertuples():
            u = best[cell.Index]
            if pd.isna(u):
                rows.append(finding(cell, "no five runs against five give it", "", "number"))
            elif "(" in u:
                rows.append(finding(cell, "only with equal runs", f"U = {u}", "digit"))
    return as_frame("p-values", rows)


def _simplest(p: np.ndarray, printed: float, found: pd.DataFrame) -> pd.Series | None:
    """The outcome with the fewest tied runs of those whose p is printed so."""
    fitting = found[_rounds_to(p, printed)].sort_values(["tied", "tie_sum"], kind="stable")
    return None if fitting.empty else fitting.iloc[0]


def _told(outcome: pd.Series) -> str:
    return f"{outcome['u']:g}" + (f" ({outcome['ties']})" if outcome["tied"] else "")


def _rounds_to(p: np.ndarray, printed: float) -> np.ndarray:
    return np.abs(p - printed) <= HALF + 1e-9


def _signed_rank_row(printed: pd.Series, sides: int) -> dict[str, object]:
    """What Wilcoxon's exact test of pairs, one run of each method, can give; its W in U's place."""
    signs = itertools.product((0, 1), repeat=RUNS)
    sums = np.sort([np.dot(chosen, np.arange(1, RUNS + 1)) for chosen in signs])
    p = np.minimum(1, sides * np.searchsorted(sums, sums, side="right") / len(sums))
    hits = {name: sums[_rounds_to(p, value)] for name, value in printed.items()}
    cells = {name: f"W = {of[0]}" if of.size else np.nan for name, of in hits.items()}
    fits = sum(of.size > 0 for of in hits.values())
    return {"form": SIGNED_RANK, "sides": sides, "fits": fits, "untied": fits, **cells}
