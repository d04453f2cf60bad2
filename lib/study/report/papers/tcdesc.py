"""TCDesc (Pan et al.): its Tables I to V, Figures 3 and 4, and topology on other losses.

Figures 1 and 2 and what late training shows are in `lib.study.report.papers.tcdesc_figures`. FPR95 is in
percent, HPatches' numbers likewise.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured, side_by_side
from lib.study.artefacts.rows import tested_on
from lib.study.artefacts.tcdesc import GRID, LOSSES
from lib.study.claims import Claim
from lib.study.claims.measured import OfClaim, fpr95_by_column, hpatches_by_task, of_claims
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import frames, hpatches, phototour, plots
from lib.study.report.changes import changes
from lib.study.report.hpatches_figures import QUANTITIES
from lib.study.report.style import DOUBLE_WIDTH, panels

# Of the curves of a run of TCDesc, those in percent.
LAMBDA, MATCHED, CAPPED = "mean λ", "matched (%)", "capped (%)"


def table4(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Table IV, with the means of Table III, as `lib.study.report.hpatches.paper_beside_ours`."""
    third, fourth = printed("tcdesc", "table3"), printed("tcdesc", "table4")
    means = third[third["statistic"] == "column_mean"].assign(task="")
    rows = pd.concat([means, fourth[fourth["statistic"] == "map"]])
    fpr95 = phototour.by_column(found, study.place.source.sets)["Mean"]
    return hpatches.paper_beside_ours(rows, found, fpr95)


def topologies(found: Sequence[Found]) -> pd.DataFrame:
    """What TCDesc's positive saw in training, a row a method, over all of its steps and seeds.

    Returns:
        `k / n (%)`, k as a share of the other pairs of a batch, which share of two neighbourhoods match
        by chance; the mean share of `matched (%)` neighbours; the `mean λ`, and the share of pairs
        `capped (%)`, whose λ is the largest, 0.5; the mean topology distance `d_T`; and the share of
        differences that lie `beyond (%)` the range of DSM's histogram.
    """
    rows = {}
    for label, runs in frames.by_label(with_topology(found)).items():
        config = runs[0].content["config"]
        others = config["profile"]["budget"]["batch_pairs"] - 1
        curves = frames.steps(runs)
        rows[label] = {
            "k / n (%)": 100 * config["recipe"]["positive"]["options"]["neighbours"] / others,
            MATCHED: 100 * curves["matched_share"].mean(),
            LAMBDA: curves["mean_lambda"].mean(),
            CAPPED: 100 * curves["capped_share"].mean(),
            "d_T": curves["d_topology"].mean(),
            "beyond (%)": 100 * curves.get("beyond_share", pd.Series(dtype=float)).mean(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("Method")


def with_topology(found: Sequence[Found]) -> list[Found]:
    """The runs of TCDesc, whose curves tell λ."""
    return [run for run in found if "mean_lambda" in run.content.get("curve", {})]


def figure3_table(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Figure 3: a row a cell, its `k` and `γ` as text, its `mean λ` and the three tasks.

    Args:
        found: of `lib.study.artefacts.tcdesc.table1`.
        study: that they are of.
    """
    of_grid = [run for run in found if run.job.name in GRID]
    tasks = frames.means(hpatches.numbers(of_grid, tested_on(study))).droplevel("label")
    lam = {key: of.mean() for key, of in mean_lambda(of_grid).items()}
    rows = [
        {"k": f"{k}", "γ": f"{gamma:g}", LAMBDA: lam[key], **tasks.loc[key, list(hpatches.TASKS)]}
        for key, (k, gamma) in GRID.items()
    ]
    return pd.DataFrame(rows)


def figure3(table: pd.DataFrame, note: str = "") -> Figure:
    """The three tasks against γ, a line a k.

    Args:
        table: of `figure3_table`.
        note: stands above.
    """
    shown = table.assign(k="k = " + table["k"])
    with panels(DOUBLE_WIDTH, 2.3, 3, note=note, legend=3) as (figure, [row]):
        for axes, task in zip(row, hpatches.TASKS, strict=True):
            plots.curves(axes, shown, "γ", task, "k", marker="o")
            axes.set(title=task, ylabel=QUANTITIES[task])
    return figure


def mean_lambda(found: Sequence[Found]) -> dict[str, np.ndarray]:
    """By key (seeds, 1) the mean λ over all steps, of runs of TCDesc."""
    curves = frames.steps(with_topology(found))
    means = curves.groupby(["key", "seed"], sort=False)["mean_lambda"].mean()
    return {key: of.to_numpy()[:, None] for key, of in means.groupby(level="key", sort=False)}


def claim_values(found: Sequence[Found], study: Study) -> OfClaim:
    """The values of a claim: for the metric "mean_lambda" `mean_lambda`, for one that is a column of
    FPR95 that column alone, of the keys "gamma_0.5", … a task with a cell for each k, else as
    `lib.study.claims.measured.of_claims`."""
    sets = study.place.source.sets
    every = of_claims(found, sets, tested_on(study) if study.place.source.own_hpatches else "")

    def values(claim: Claim) -> Mapping[str, Measured | np.ndarray]:
        if claim.metric == "mean_lambda":
            return mean_lambda(found)
        if claim.metric in phototour.COLUMN_NAMES:
            named = [run for run in found if run.job.name in (*claim.a, *claim.b)]
            of = fpr95_by_column(named, sets)
            return {key: each.one(each.cells.index(claim.metric)) for key, each in of.items()}
        if any(key.startswith("gamma_") for key in claim.a):
            runs = hpatches.numbers([run for run in found if run.job.name in GRID], tested_on(study))
            of, by_gamma = hpatches_by_task(runs, [claim.metric]), {}
            for key, (_, gamma) in GRID.items():
                by_gamma.setdefault(f"gamma_{gamma:g}", []).append(of[key])
            return {name: side_by_side(each) for name, each in by_gamma.items()}
        return every(claim)

    return values


# What TCDesc's setting, its length of training included, does by itself.
SETTING: Mapping[str, tuple[str, str]] = {
    "TCDesc's setting on HardNet+": ("hardnet_long", "hardnet_aug"),
    "TCDesc's setting on DSM+": ("dsm_long", "dsm_aug"),
}


def gains(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """What topology changes in FPR95, all else alike, and what TCDesc's setting alone, as
    `lib.study.report.changes.changes`; of the pairs of `LOSSES` and `SETTING` whose runs are there."""
    pairs = {f"topology on {loss}": pair for loss, pair in LOSSES.items()} | SETTING
    names = {run.job.name for run in found}
    there = {name: pair for name, pair in pairs.items() if names.issuperset(pair)}
    named = {key for pair in there.values() for key in pair}
    runs = [run for run in found if run.job.name in named]
    return changes(fpr95_by_column(runs, study.place.source.sets), there)
