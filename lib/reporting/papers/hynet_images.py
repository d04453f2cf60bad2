"""HyNet's Tables 2 and 4 (Tian et al.): structure from motion, and the image matching challenge."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.experiments.scenes import ETH, IMC, MEASURES
from lib.intervals import Measured
from lib.reporting import frames, whole_images
from lib.reporting.claims import Claim
from lib.reporting.claims.measured import OfClaim, by_method
from lib.reporting.printed import printed
from lib.study.open import Found

# Of `lib.evaluation.sfm`: what readers are told. Dense points need CUDA, and nothing measures them.
STATISTICS = {
    "keypoints": "keypoints",
    "images": "images",
    "sparse_points": "sparse points",
    "dense_points": "dense points",
    "observations": "observations",
    "track_length": "track length",
    "reprojection_error": "reprojection error (px)",
    "rotation_error": "rotation error (°)",
    "position_error": "position error (%)",
}
# Of `lib.evaluation.imc`, by key: the columns of Table 4.
TASKS = {"stereo": "stereo", "multiview": "multi-view", "average": "average"}
BESIDE = {
    "matches": "matches",
    "inliers": "inliers",
    "registered": "registered (%)",
    "degensac": "DEGENSAC",
}
# Rows of Table 4, by ours.
ROWS = {f"keynet_{name}": f"{name}_aug" for name in ("hardnet", "sosnet", "hynet")}


def table2_printed() -> pd.DataFrame:
    """Table 2 as printed, with units: index `scene`, `Method`, columns as of `STATISTICS`."""
    table = printed("hynet", "table2")
    units = table["unit"].replace({"1": "", "images": ""})
    digits = zip(table["value"], table["decimals"], strict=True)
    shown = table.assign(shown=[f"{value:.{of}f}" for value, of in digits] + units)
    wide = shown.pivot(index=["test", "label"], columns="statistic", values="shown")
    order = table[["test", "label"]].drop_duplicates()
    columns = [name for name in STATISTICS if name in wide]
    wide = wide.reindex(pd.MultiIndex.from_frame(order))[columns].fillna("")
    return wide.rename(columns=STATISTICS).rename_axis(index=["scene", "Method"], columns=None)


def table2_runs(found: Sequence[Found], test_set: str) -> pd.DataFrame:
    """The numbers of structure from motion, as `lib.reporting.whole_images.numbers`."""
    return whole_images.numbers(found, MEASURES[ETH], test_set)


def table2(runs: pd.DataFrame) -> pd.DataFrame:
    """Ours: index `scene`, `Method`, columns of `STATISTICS` and `n`, the runs; means over seeds.

    Missing is what no model of a scene had, and what is not measured.
    """
    mean, count = frames.means(runs), runs.groupby(level=frames.METHOD, sort=False).size()
    scenes = [name.removeprefix("keypoints.") for name in runs if name.startswith("keypoints.")]
    parts = {}
    for scene in scenes:
        names = [f"{statistic}.{scene}" for statistic in STATISTICS]
        part = mean.reindex(columns=names).set_axis([*STATISTICS.values()], axis=1)
        parts[scene] = part.assign(n=count).droplevel("key")
    return pd.concat(parts, names=["scene", "Method"])


def table4_runs(found: Sequence[Found], test_set: str) -> pd.DataFrame:
    """The numbers of the challenge, as `lib.reporting.whole_images.numbers`."""
    return whole_images.numbers(found, MEASURES[IMC], test_set)


def table4(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 4 and ours, mAA at 10° in percent.

    Returns:
        Index `Method`. Columns (a task, `paper`, `ours` and, where there are several runs, `sd` over
        seeds), (``, what else is known of ours, and `n`, the runs).
    """
    table = printed("hynet", "table4").assign(task=lambda of: of["task"].replace("", "average"))
    paper = table.pivot(index=["key", "row"], columns="task", values="value")
    paper.index = paper.index.set_names(frames.METHOD)
    paper = paper.rename(index=ROWS, level="key").loc[[*ROWS.values()]]
    ours, count = frames.means(runs).rename(columns=TASKS), runs.groupby(level="key", sort=False).size()
    of = {"paper": paper, "ours": ours}
    if count.max() > 1:
        of["sd"] = frames.deviations(runs).rename(columns=TASKS)
    cells = frames.cell_by_cell(of, [*TASKS.values()])
    cells |= {("", told): ours[name].droplevel("label") for name, told in BESIDE.items()}
    cells[("", "n")] = count
    return frames.named(pd.DataFrame(cells), ours).astype({("", "n"): "Int64"})


def claim_values(runs: pd.DataFrame) -> OfClaim:
    """The values of a claim on Table 2 or 4, over seeds; the scenes stay fixed.

    Its metric is a number's key, or "maa", whose cells are the two tasks.
    """

    def values(claim: Claim) -> Mapping[str, Measured]:
        names = ["stereo", "multiview"] if claim.metric == "maa" else [claim.metric]
        if not set(names) <= set(runs) or not np.isfinite(runs[names].to_numpy(float)).all():
            return {}
        shown = [TASKS.get(name, name) for name in names]
        return by_method(runs[names].set_axis(shown, axis=1), shown, None)

    return values
