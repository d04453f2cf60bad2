"""Which test gave the p-values that a paper prints: AdaSample's Table 3 (Sec. 5.4), five runs a method.

The paper names the Mann-Whitney test and a significance level. Of five runs against five, ties allowed,
each form of it (exact or asymptotic, with continuity correction or without, one- or two-sided) can give
only few values, which are all enumerated. A comparison is one column of the paper's six; `paper` is a
frame as `comparisons` gives it, and the lower method the one that has a p-value.
"""

import numpy as np
import pandas as pd

from lib.statistics import significance
from lib.statistics.significance import mann_whitney_outcomes
from lib.study.printed import printed
from lib.study.report.frames import with_columns

COLUMNS = ["lower_mean", "lower_std", "higher_mean", "higher_std", "gain", "p"]
# Of each method; half a unit of the last digit that is printed of p, and what rounding errors add.
RUNS, HALF = 5, 0.5e-3 + 1e-9
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


def forms_table(paper: pd.DataFrame) -> pd.DataFrame:
    """What each form of the test would need to give the printed p-values, best form first.

    Args:
        paper: the printed comparisons.

    Returns:
        Indexed by "form" and "sides": "fits", how many of the p-values it can give, "untied", how many
        of them without tied runs; then for each comparison the U with the fewest tied runs, with the
        sizes of the tied groups in brackets, or NaN.
    """
    outcomes, p_values = mann_whitney_outcomes(RUNS, RUNS)
    ties = outcomes["ties"].where(outcomes["ties"] == "", " (" + outcomes["ties"] + ")")
    outcomes["shown"], rows = outcomes["u"].map("{:g}".format) + ties, {}
    for form, p in p_values.items():
        first = {name: outcomes[(p - value).abs() <= HALF].head(1) for name, value in paper["p"].items()}
        tied = pd.concat(first.values())["tied"]
        shown = {name: next(iter(row["shown"]), np.nan) for name, row in first.items()}
        rows[form] = {"fits": len(tied), "untied": int((tied == 0).sum()), **shown}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["form", "sides"])
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
    (outcomes, p_values), implied = mann_whitney_outcomes(RUNS, RUNS), []
    for value in paper["p"]:
        best = outcomes[(p_values[LIKELIEST, 1] - value).abs() <= HALF].iloc[0]
        alike = (outcomes[["u", "ties"]] == best[["u", "ties"]]).all(axis=1)
        implied.append([best["u"], *outcomes.loc[alike, "at_most"].agg(["min", "max"])])
    u, least, most = np.transpose(implied)
    columns = {("HardNet+*", "FPR95"): paper["higher_mean"], ("as printed", "p"): paper["p"]}
    columns |= {("as printed", "Holm"): significance.holm(paper["p"]), ("implied", "U"): u}
    for head, exact in (("exact, at least", least), ("exact, at most", most)):
        columns |= {(head, "p"): exact, (head, "Holm"): significance.holm(exact)}
    return pd.DataFrame(columns, index=paper.index)
