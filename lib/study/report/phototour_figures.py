"""A table of UBC PhotoTour beside the printed one, as an order of its rows and as a picture."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured
from lib.study.claims.measured import fpr95_by_column
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import phototour, plots
from lib.study.report.changes import levels
from lib.study.report.style import DOUBLE_WIDTH, GREY, panels


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


def verification_figure(paper: str, table: str, found: Sequence[Found], study: Study) -> Figure:
    """`common_figure` of a paper's table, e.g. "hynet", "table1", and ours."""
    values = fpr95_by_column(found, study.place.source.sets)
    return common_figure(common_rows(printed(paper, table), values), values, study.where)


def common_figure(
    common: pd.DataFrame, values: Mapping[str, Measured], where: str, by: str = "label"
) -> Figure:
    """The mean FPR95 of the rows that both tables have, the paper's and ours, side by side.

    Args:
        common: of `common_rows`.
        values: that it is of.
        where: profile and data.
        by: the column of it that colour and marker tell.
    """
    order, seeds = orders(common), common["seeds"][common["trained"]]
    (every, trained), counts = order["Spearman"], order["n"]
    note = (
        f"rank correlation of the two orders: {trained:.2f} over the {counts['trained']} trained rows, "
        f"{every:.2f} over all {counts['all']}"
    )
    # Rows are named where they stand; groups of rows are told by the marker too.
    dots = {"marker": "o"} if by == "label" else {}
    heights = dict(zip(common.index.get_level_values("key"), range(len(common))[::-1], strict=True))
    untrained = [key for key in heights if values[key].values.ndim == 1]
    shown = common.reset_index("key")
    shown.loc[~shown["trained"], ["paper", "ours", "from", "to"]] = np.nan
    shown["label"] = shown.index
    size = (DOUBLE_WIDTH * 0.85, 0.9 + 0.2 * len(common))
    with panels(*size, 2, note=note.replace("-", "−"), sharey=True) as (figure, [both]):
        plots.intervals(both[0], shown[["paper", by]], "paper", by, **dots)
        plots.intervals(both[1], shown, "ours", by, **dots)
        for axes, whose in zip(both, ("paper", "ours"), strict=True):
            for key in untrained:
                # SIFT is so far off that the others would fall together.
                at = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
                axes.annotate(f"{common[whose][key].item():.1f} →", (1, heights[key]), color=GREY, **at)
        for key in heights.keys() - set(untrained) if seeds.max() > 1 else ():
            each = values[key].values.mean(axis=1)
            both[1].plot(each, [heights[key] - 0.27] * len(each), "|", ms=4, mew=0.7, color=GREY)
        both[0].set(title="paper, UBC", xlabel="mean FPR95 (%)")
        both[1].set(title=f"ours, {where}", xlabel=f"mean FPR95 (%)\n{seeds_shown(seeds)}")
    return figure


def seeds_shown(counts: Iterable[int]) -> str:
    """What bars of rows are over: "one seed", which has none, or e.g. "1 to 3 seeds, bars: …"."""
    fewest, most = min(counts), max(counts)
    if most == 1:
        return "one seed"
    return f"{most if fewest == most else f'{fewest} to {most}'} seeds, bars: 95% intervals"
