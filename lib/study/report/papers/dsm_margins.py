"""DSM's Figure 2 (Zhang and Rusinkiewicz): static margins beside DSM; and what makes its own work.

That it is soft, that it adapts, or that its weights shorten a step by their mean: no table of the paper
asks. FPR95 is in percent, the mean over the two sets that are not trained on.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured
from lib.study.artefacts.dsm import BITS, DSM, KINDS, MARGINS
from lib.study.claims.measured import OfClaim, fpr95_by_column
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import changes, frames, plots
from lib.study.report.papers.dsm import claim_values
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, look, panels

TITLES = {"real": "real-valued", "binary": "binary"}
UNITS = {"real": "margin (distance, 0 to 2)", "binary": "margin (bits)"}
FPR95 = "FPR95 (%)"
# The last steps of training, whose zero losses are told.
LAST = 0.2
WEIGHT = "mean weight of a batch"
# By name of a run of `lib.study.artefacts.dsm.softness`: whether it is soft, and whether it adapts.
CONTROLS: Mapping[str, tuple[str, str]] = {
    "dsm_aug": ("yes", "yes"),
    "real_margin_2": ("-", "-"),
    "control_even_weights": ("-", "-"),
    "control_hardest_half": ("no", "yes"),
    "control_fixed_soft": ("yes", "no"),
    "control_fixed_softplus": ("yes", "no"),
    "real_margin_0.25": ("no", "no"),
}


def figure2_table(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Figure 2 as a table.

    Args:
        found: of `lib.study.artefacts.dsm.figure2`.
        study: that they are of.

    Returns:
        A row a loss: `descriptor`, `margin` as text, or DSM, the learning `rate`, `FPR95 (%)` with its
        interval `from` and `to` over `seeds` and test points, without ends with one seed, and the
        triplets without loss in the last fifth of training, `without loss (%)`, which DSM's weights do
        not have.
    """
    by_key = {run.job.name: [run] for run in found}
    of = changes.with_rates(changes.levels(fpr95_by_column(found, study.place.source.sets)), by_key)
    of["without loss (%)"] = _zero_shares(found, _at_last).mean()
    shown = {
        key: (kind, margin)
        for kind in KINDS
        for key, margin in ({k: f"{m:g}" for m, k in MARGINS[kind].items()} | {DSM[kind]: "DSM"}).items()
    }
    table = pd.DataFrame.from_dict(shown, orient="index", columns=["descriptor", "margin"])
    table = table.join(of, how="inner").rename(columns={"mean": FPR95}).reset_index(drop=True)
    return table.replace([-np.inf, np.inf], np.nan)


def figure2(table: pd.DataFrame, note: str = "") -> Figure:
    """FPR95 against the static margin, and DSM's as a line across; a panel a kind of descriptor.

    The best margin is ringed; a dotted line marks the one that the paper found best. Margins stand
    evenly spaced; bars and the band are 95% intervals.

    Args:
        table: of `figure2_table`.
        note: stands above.
    """
    best = printed("dsm", "margins").query("statistic == 'best_margin'")
    kinds, stated = table["descriptor"].unique(), set(best["value"])
    shown = {"note": note, "ylabel": FPR95, "grid": "y", "legend": 4}
    with panels(DOUBLE_WIDTH, 2.7, len(kinds), **shown) as (figure, [row]):
        for axes, kind in zip(row, kinds, strict=True):
            of = table[table["descriptor"] == kind]
            _sweep(axes, of[of["margin"] != "DSM"], of[of["margin"] == "DSM"].iloc[0], stated)
            axes.set(title=TITLES[kind], xlabel=UNITS[kind])
    return figure


def _sweep(axes: Axes, swept: pd.DataFrame, ours: pd.Series, stated: set[float]) -> None:
    places, values = np.arange(len(swept)), swept[FPR95].to_numpy()
    line = {"color": PALETTE[0], "marker": "s", "capsize": 2, "label": "static margin"}
    axes.errorbar(places, values, plots.bars(swept, FPR95), **line)
    axes.axhline(ours[FPR95], color=PALETTE[1], ls="--", label="DSM")
    if np.isfinite([ours["from"], ours["to"]]).all():
        axes.axhspan(ours["from"], ours["to"], color=PALETTE[1], alpha=0.15, lw=0)
    ring = {"ls": "none", "marker": "o", "ms": 11, "mfc": "none", "mec": "black", "mew": 1}
    best = values.argmin()
    axes.plot(places[best], values[best], label="the best of these", **ring)
    for place in places[swept["margin"].astype(float).isin(stated)]:
        axes.axvline(place, color=GREY, ls=":", lw=1.2, label="the paper's best")
    axes.set_xticks(places, swept["margin"])
    axes.margins(y=0.12)


def figure2_values(found: Sequence[Found], study: Study) -> OfClaim:
    """The values of a claim on Figure 2, by its metric.

    Args:
        found, study: as for `figure2_table`.

    Returns:
        For "fpr95" as `lib.study.report.papers.dsm.claim_values`; for "best_margin" by
        "best_margin_{kind}" each seed's margin with the lowest mean FPR95, as a distance from 0 to 2;
        for "zero_share" by key, and for "largest_zero_share" by "zero_share_{kind}", the triplets
        without loss in percent: the mean of the last fifth of training, and the most of any margin and
        step. (seeds, cells).
    """
    last, most = (_zero_shares(found, of) for of in (_at_last, "max"))
    most = most.T.groupby(lambda key: "zero_share_" + key.partition("_")[0]).max().T
    of = {
        "best_margin": _best_margins(fpr95_by_column(found, study.place.source.sets)),
        "zero_share": {key: last[[key]].to_numpy() for key in last},
        "largest_zero_share": {kind: most[[kind]].to_numpy() for kind in most},
    }
    return lambda claim: of[claim.metric] if claim.metric in of else claim_values(found, study)(claim)


def _best_margins(of: Mapping[str, Measured]) -> dict[str, np.ndarray]:
    best = {}
    for kind, scale in (("real", 1.0), ("binary", 2 / BITS)):
        means = {m: of[key].values.mean(axis=1) for m, key in MARGINS[kind].items() if key in of}
        if means:
            best[f"best_margin_{kind}"] = scale * pd.DataFrame(means).idxmin(axis=1).to_numpy()[:, None]
    return best


def _zero_shares(found: Sequence[Found], of_curve: str | Callable[[pd.Series], float]) -> pd.DataFrame:
    """What of the curve of triplets without loss, in percent: a row a seed, a column a static margin."""
    curves = frames.steps([run for run in found if run.job.recipe.loss.name == "hinge"])
    return 100 * curves.groupby(["seed", "key"])["zero_share"].agg(of_curve).unstack("key")


def _at_last(curve: pd.Series) -> float:
    return curve[-max(1, round(LAST * len(curve))) :].mean()


def weights(found: Sequence[Found]) -> pd.DataFrame:
    """The mean weight of a batch's triplets through training: `lib.study.report.frames.steps` with
    `mean weight of a batch`.

    Of a hinge it is the share of triplets that it does not leave out; the hardest half, weighed so that
    the mean is 1, has none to show.
    """
    steps = frames.steps(found)
    steps[WEIGHT] = steps["mean_weight"].fillna(1 - steps["zero_share"])
    return steps.dropna(subset=WEIGHT)


def softness_table(found: Sequence[Found]) -> pd.DataFrame:
    """DSM and its controls, a row each.

    Args:
        found: runs of `lib.study.artefacts.dsm.softness`.

    Returns:
        Whether the margin is soft and whether it adapts; under "mean weight" that of a batch over the
        first and the last tenth of training; under "FPR95" the rate and the mean over seeds (%) with its
        interval; and under "change from DSM+" points with theirs, paired by seed.
    """
    mean = weights(found).groupby(["label", "step"])[WEIGHT].mean().groupby("label").agg(frames.tenths)
    labels = {run.job.label: CONTROLS[run.job.name] for run in found}
    parts = {
        "margin": pd.DataFrame.from_dict(labels, orient="index", columns=["soft", "adapts"]),
        "mean weight": pd.DataFrame(mean.tolist(), mean.index, ["first tenth", "last tenth"]),
        "FPR95": changes.levels_at_rates(found),
        "change from DSM+": _from_dsm(changes.methods(found)),
    }
    return pd.concat(parts, axis=1).reindex(list(labels)).rename_axis("control")


def _from_dsm(of: Mapping[str, Measured]) -> pd.DataFrame:
    return changes.changes(of, {name: (name, "DSM+") for name in of if name != "DSM+"})


def softness_figure(found: Sequence[Found], note: str) -> Figure:
    """Each seed of DSM and its controls, and what each control changes from DSM."""
    of = changes.methods(found)
    return changes.changes_figure(of, _from_dsm(of), note, "DSM+")


def weights_figure(found: Sequence[Found], note: str) -> Figure:
    """The mean weight of a batch through training: DSM's and that of its controls."""
    with panels(0.8 * DOUBLE_WIDTH, 3.0, note=note, legend=2) as (figure, [[axes]]):
        for place, (_, of) in enumerate(weights(found).groupby("label", sort=False)):
            plots.curves(axes, of, "step", WEIGHT, "label", **look(place))
        axes.axhline(0.5, color=GREY, lw=1, ls=":")
        axes.set_ylim(0, 1.05)
    return figure
