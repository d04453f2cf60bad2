"""TCDesc's Figure 5 and Table VI (Pan et al.): W1BS, and matching images of the Oxford Affine set."""

import pandas as pd

from lib.reporting import frames, whole_images
from lib.reporting.printed import printed

# What Table VI's matching score is: the right matches of 500, whatever was detected.
MATCHING_SCORE = "right500"
PAPER, OURS = "paper", "ours"


def figure5_table(runs: pd.DataFrame) -> pd.DataFrame:
    """mAUC by subset, as `lib.reporting.whole_images.by_part`, with the total by the distance and by its
    difference to the second-nearest's, in place of their ratio."""
    table, mean = whole_images.by_part(runs, whole_images.AREA), frames.means(runs)
    others = mean[["distance", "difference"]].add_prefix("by ").set_axis(table.index)
    return table.drop(columns="n").join(others).join(table["n"])


def table6(runs: pd.DataFrame) -> pd.DataFrame:
    """Table VI's means and ours, by TCDesc's score and, ours alone, by Mikolajczyk's.

    Returns:
        Index `Method`. Columns (`right matches / 500`, `paper`, `ours` and, where there are several
        runs, `sd` over seeds), (a score of Mikolajczyk's, `ours`), (``, `n`).
    """
    table = printed("tcdesc", "table6").query("statistic == 'column_mean'")
    paper = table.set_index(["key", "label"])[["value"]].set_axis([MATCHING_SCORE], axis=1)
    ours, count = frames.means(runs), runs.groupby(level="key", sort=False).size()
    of = {PAPER: paper, OURS: ours}
    if count.max() > 1:
        of["sd"] = frames.deviations(runs)
    cells = frames.cell_by_cell(of, [MATCHING_SCORE])
    others = [score for score in whole_images.SCORES if score != MATCHING_SCORE]
    cells |= frames.cell_by_cell({OURS: ours}, others) | {("", "n"): count}
    shown = {(whole_images.SCORES.get(of, of), whose): each for (of, whose), each in cells.items()}
    return frames.named(pd.DataFrame(shown), paper, ours).astype({("", "n"): "Int64"})
