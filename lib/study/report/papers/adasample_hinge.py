"""AdaSample's hinge: the squared distance in its place (Eq. 12); is it ever zero (footnote 5)?

Tables and figures of `lib.theory.hinge_against_distance`, of the probe `lib.probes.gradient_norms`
and of training's curves.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.study.report import frames, plots
from lib.study.report.papers.adasample_gradients import MEAN, STAGE, Probe, Reading, correlations
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, look, panels

GAP = "batch mean of d$_{neg}$ − d$_{pos}$,\nat the power of the loss"
READINGS = {
    "all classes": Reading("none", between=("squared", "loss")),
    "within a class": Reading("within", between=("squared", "loss")),
}


def made_up_table(numbers: Mapping[str, object]) -> pd.DataFrame:
    """Loss against squared distance over mined batches of random descriptors."""
    heads = {
        **{"positive": "mean d_pos", "negative": "mean d_neg", "correlation": "r"},
        **{"formula": "r by formula", "elasticity": "power", "zero_share": "zero hinge"},
    }
    return pd.DataFrame(numbers["rows"])[["loss", "batch", *heads]].rename(columns=heads)


def trained_table(by_loss: Mapping[str, Mapping[str, Probe]]) -> pd.DataFrame:
    """Loss against squared distance over the candidates of a training batch: a row a loss and stage.

    Args:
        by_loss: probes by run, by loss.

    Returns:
        Pearson's r of the loss and d_pos² with its 95% interval over classes, of all classes together
        and as the mean within a class; `power`, the median of d_pos²/L over positive losses, by what
        power of d_pos² the loss grows there, with its 5% and 95%; and the fraction of zero hinges.
    """
    rows = {}
    for loss, probes in by_loss.items():
        r = correlations(probes, READINGS).set_index(["run", "reading", "stage"]).loc[MEAN]
        r = r.rename(columns={"low": "from", "high": "to"})
        for number, stage in enumerate(r.loc["all classes"].index):
            squared, losses = (
                np.concatenate([probe[name][number].ravel() for probe in probes.values()])
                for name in ("distance", "loss")
            )
            squared, losses = squared[np.isfinite(squared)] ** 2, losses[np.isfinite(squared)]
            above = losses > 0
            power = np.percentile(squared[above] / losses[above], [50, 5, 95])
            rows[loss, f"{stage:g}"] = {
                **{(f"r, {name}", head): r.loc[(name, stage), head] for name in READINGS for head in r},
                **{("power", head): of for head, of in zip(("median", "5%", "95%"), power, strict=True)},
                ("fraction", "zero"): float((~above).mean()),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["loss", STAGE])


def hinge_figure(by_loss: Mapping[str, Probe], note: str = "") -> Figure:
    """The hinge triplet loss against the squared matching distance that Eq. 12 takes for it.

    Args:
        by_loss: a run's probe, whose last stage is drawn, by loss.
        note: stands above.
    """
    units = {"HT": "squared distance", "AHT": "squared angle (rad²)"}
    looks = {"note": note, "grid": "both", "ylabel": "hinge triplet loss", "legend": 2}
    with panels(DOUBLE_WIDTH * 0.8, 2.6, len(by_loss), **looks) as (figure, [row]):
        for axes, (name, probe) in zip(row, by_loss.items(), strict=True):
            squared, losses = probe["distance"][-1].ravel() ** 2, probe["loss"][-1].ravel()
            end = float(np.nanmax(squared)) * 1.03
            axes.plot(squared, losses, ".", color=PALETTE[0], ms=3, mew=0, alpha=0.6, label="candidates")
            axes.plot([0, end], [0, end], color=PALETTE[1], ls="--", label="proportional (Eq. 12)")
            axes.set_title(name, loc="left")
            axes.set(xlabel=f"{units[name]} of the matching pair", xlim=(0, end))
            axes.set_ylim(bottom=0)
    return figure


def zero_table(steps: pd.DataFrame) -> pd.DataFrame:
    """How often the hinge was zero in training: one row a run.

    Points are those of the training curve, single steps in a short run. The gaps are the batch mean of
    d_neg − d_pos at the loss's power over the first and last tenth of training; a hinge is zero where a
    triplet's own reaches the margin.

    Args:
        steps: of `lib.study.report.frames.steps`, of runs of different methods.
    """
    rows = {}
    for label, of in steps.groupby("label", sort=False):
        first, last = frames.tenths(of["d_neg"] - of["d_pos"])
        rows[label] = {
            "seed": of["seed"].iloc[0],
            "steps": of["step"].iloc[-1],
            "points with a zero": (of["zero_share"] > 0).sum(),
            "largest fraction": of["zero_share"].max(),
            "gap, first tenth": first,
            "gap, last tenth": last,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("run")


def zero_hinge_figure(steps: pd.DataFrame, arrays: Mapping[str, np.ndarray], note: str = "") -> Figure:
    """How near training comes to a zero hinge: on the left over time, on the right what it takes.

    Args:
        steps: as for `zero_table`.
        arrays: of `lib.theory.hinge_against_distance`.
        note: profile and data; stands above.

    Raises:
        ValueError: there is no run.
    """
    with panels(DOUBLE_WIDTH, 2.8, 2, note=note, grid="both") as (figure, [[left, right]]):
        gaps = steps.assign(**{GAP: steps["d_neg"] - steps["d_pos"]})
        plots.curves(left, gaps, "step", GAP, "label")
        left.axhline(1, color="black", lw=0.8)
        left.annotate("margin t = 1", (0.02, 1), xycoords=("axes fraction", "data"), va="bottom")
        left.set_ylim(top=1.25)
        left.legend(loc="center right", bbox_to_anchor=(1, 0.66))
        for place, name in enumerate(("HardNet", "HT", "AHT")):
            line = look(place) | {"color": PALETTE[place + 4]}
            right.plot(arrays["negative"], arrays[f"zero_{name}"], label=name, **line)
        right.set(xlim=(0.8, 1.5), ylim=(0, 1.25), xlabel="distance of the negative")
        right.set_ylabel("matching distance up to which\nthe hinge is zero")
        right.set_title("What it takes, t = 1", loc="left", fontsize=8, color=GREY)
        right.legend(loc="upper left")
    return figure
