"""TCDesc's Figure 5 and Table VI (Pan et al.): W1BS, and matching images of the Oxford Affine set."""

import pandas as pd

from lib.study.printed import printed
from lib.study.report import frames, whole_images

# What Table VI's matching score is: the right matches of 500, whatever was detected.
MATCHING_SCORE = whole_images.SCORES["right500"]


def figure5_table(runs: pd.DataFrame) -> pd.DataFrame:
    """mAUC by subset, as `lib.study.report.whole_images.by_part`, with the paper's mean before ours, and
    the total by the distance and by its difference to the second-nearest's, in place of their ratio."""
    table, mean = whole_images.by_part(runs, whole_images.AREA), frames.means(runs)
    paper = printed("tcdesc", "figure5").set_index("key")["value"].reindex(mean.index.unique("key"))
    table.insert(table.columns.get_loc("mean"), "paper", paper.to_numpy())
    others = mean[["distance", "difference"]].add_prefix("by ").set_axis(table.index)
    return table.drop(columns="n").join(others).join(table["n"])


def table6(runs: pd.DataFrame) -> pd.DataFrame:
    """Table VI's means and ours, by TCDesc's score and, ours alone, by Mikolajczyk's.

    As `lib.study.report.frames.beside`; of Mikolajczyk's there is (the score, `ours`) alone.
    """
    table, runs = printed("tcdesc", "table6"), runs.rename(columns=whole_images.SCORES)
    table = table[table["statistic"] == "column_mean"].rename(columns={"value": MATCHING_SCORE})
    others = [score for score in whole_images.SCORES.values() if score != MATCHING_SCORE]
    more = frames.cell_by_cell({"ours": frames.means(runs)}, others)
    return frames.beside(table.set_index(frames.METHOD), runs, [MATCHING_SCORE], more)
