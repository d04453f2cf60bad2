"""A table of UBC PhotoTour beside the printed one: the rows of both, and how far their orders agree."""

from collections.abc import Mapping

import pandas as pd

from lib.statistics.intervals import Measured
from lib.study.report import phototour
from lib.study.report.changes import levels


def common_rows(rows: pd.DataFrame, values: Mapping[str, Measured]) -> pd.DataFrame:
    """The rows that a printed table and ours share, in the order of the paper's means.

    Args:
        rows: of `lib.study.printed.printed`.
        values: FPR95 by key, of `lib.study.claims.measured.fpr95_by_column`.

    Returns:
        Index (`key`, `label`); columns `paper` and `ours`, the mean FPR95 in percent over the columns
        that ours has, `from`, `to` and `seeds` of `lib.study.report.changes.levels`, and whether the row
        was `trained`.
    """
    columns = next(iter(values.values())).cells
    paper = phototour.printed_by_column(rows, columns)["Mean"]
    ours = levels(values).rename(columns={"mean": "ours"})
    ours["trained"] = [of.values.ndim == 2 for of in values.values()]
    table = paper.rename("paper").reset_index("label").join(ours, how="inner")
    return table.set_index("label", append=True).sort_values("paper", ascending=False, kind="stable")


def orders(common: pd.DataFrame) -> pd.DataFrame:
    """How far the order of our rows is the paper's: Spearman's rank correlation of the means.

    Args:
        common: of `common_rows`.

    Returns:
        Index `rows`: all, and the trained ones; columns `n`, `Spearman` in −1 … 1, and `p`, two-sided,
        of an order by chance.
    """
    # Half a second to import, for the few notebooks that ask.
    from scipy import stats

    rows = {}
    for name, of in (("all", common), ("trained", common[common["trained"]])):
        found = stats.spearmanr(of["paper"], of["ours"])
        rows[name] = (len(of), found.statistic, found.pvalue)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["n", "Spearman", "p"])
    return table.rename_axis("rows")
