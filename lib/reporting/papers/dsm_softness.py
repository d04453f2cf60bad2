"""What makes DSM's margin work (Zhang and Rusinkiewicz), which no table of the paper asks.

That it is soft, that it adapts, or that its weights shorten a step by their mean. FPR95 is in percent,
the mean over the two sets that are not trained on.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from lib.intervals import Measured
from lib.reporting import changes, frames, plots
from lib.reporting.style import DOUBLE_WIDTH, GREY, look, panels
from lib.study.open import Found

WEIGHT = "mean weight of a batch"
# By name of a run of `lib.experiments.dsm.softness`: whether it is soft, and whether it adapts.
CONTROLS: Mapping[str, tuple[str, str]] = {
    "dsm_aug": ("yes", "yes"),
    "real_margin_2": ("-", "-"),
    "control_even_weights": ("-", "-"),
    "control_hardest_half": ("no", "yes"),
    "control_fixed_soft": ("yes", "no"),
    "control_fixed_softplus": ("yes", "no"),
    "real_margin_0.25": ("no", "no"),
}


def weights(found: Sequence[Found]) -> pd.DataFrame:
    """The mean weight of a batch's triplets through training: `lib.reporting.frames.steps` with
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
        found: runs of `lib.experiments.dsm.softness`.

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
