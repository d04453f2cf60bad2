"""HyNet's gradient analysis (Tian et al., Sec. 2): Figures 1, 2 and 5(b), and every loss's magnitudes.

Angles are in radians in records, in degrees in tables and in units of π along axes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured
from lib.study.open import Found
from lib.study.report import frames
from lib.study.report.dsm import RESAMPLES, triplets
from lib.study.report.style import COLUMN_WIDTH, DOUBLE_WIDTH, GREY, PALETTE, look, marker_legend, panels

# In the order of `lib.theory.descent_directions`.
MEASURES = ("s̄ = xᵀy", "d̄ = ‖x − y‖", "s, normalised", "d, normalised")
ARROWS = {
    "direction": {"color": PALETTE[1], "ls": "-", "lw": 2.2},
    "parallel": {"color": PALETTE[2], "ls": "--", "lw": 1.4},
    "orthogonal": {"color": PALETTE[0], "ls": ":", "lw": 1.4},
}
DESCRIPTOR = {"color": "black", "ls": "-", "lw": 1.2}
KINDS = ("positive", "negative")
# Where the paper looks.
RANGE = np.pi / 2


def figure1(record: Found) -> Figure:
    """Descent directions of a positive and of a negative pair, a column a measure, with their parts.

    Args:
        record: of `lib.theory.descent_directions`.
    """
    with panels(DOUBLE_WIDTH, 4.3, 4, 2, sharex=True, sharey=True) as (figure, grid):
        for (row, column), axes in np.ndenumerate(grid):
            for place, tip in enumerate(record.arrays["descriptors"]):
                _arrow(axes, np.zeros(2), tip, DESCRIPTOR)
                # Beside the middle of the descriptor, on the side where no arrow lies.
                aside = 0.13 * np.array([tip[1], -tip[0]]) / np.linalg.norm(tip) * (1 - 2 * place)
                axes.text(*(0.5 * tip + aside), "xy"[place], ha="center", va="center")
                for part, looks in ARROWS.items():
                    # Shorter than they are, all alike, so that they fit beside the descriptors.
                    _arrow(axes, tip, 0.55 * record.arrays[part][column, row, place], looks)
            axes.set(xlim=(-0.4, 1.5), ylim=(-0.5, 2.0), aspect="equal")
            axes.set_axis_off()
            axes.set_title(f"{MEASURES[column]}\n{KINDS[row]} pair ({'+−'[row]})", fontsize=8)
        names = ("descriptor", "Δ", "Δ∥", "Δ⊥")
        marker_legend(figure, dict(zip(names, (DESCRIPTOR, *ARROWS.values()), strict=True)), ncols=4)
    return figure


def _arrow(axes: Axes, start: np.ndarray, step: np.ndarray, looks: Mapping[str, object]) -> None:
    if np.linalg.norm(step) > 1e-6:
        arrow = {"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0, **looks}
        axes.annotate("", start + step, start, arrowprops=arrow)


def figure1_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on Figure 1, (1,) each, to nine digits after the point, since what is
    rounding error differs from one processor to the next: by "cosine_{measure}" the largest |cos|
    between descriptor and gradient over the pairs drawn; by "deviation_{measure}" that from Eq. 3; by
    "parallel_{measure}" and "orthogonal_{measure}" the least length of that part, over Δ's, in the
    figure."""
    lengths = {part: np.linalg.norm(record.arrays[part], axis=-1) for part in ARROWS}
    values = {}
    for place, of in enumerate(record.numbers["measures"]):
        values |= {f"{name}_{of['key']}": of[name] for name in ("cosine", "deviation")}
        for part in ("parallel", "orthogonal"):
            values[f"{part}_{of['key']}"] = (lengths[part] / lengths["direction"])[place].min()
    return {name: np.round([value], 9) for name, value in values.items()}


def figure1_table(record: Found) -> pd.DataFrame:
    """By measure, over the pairs drawn, the largest deviation of autograd's gradient "from Eq. 3", over
    the gradient's length, and the largest |cos| between gradient and descriptor."""
    rows = [(of["deviation"], of["cosine"]) for of in record.numbers["measures"]]
    return pd.DataFrame(rows, pd.Index(MEASURES, name="measure"), ["from Eq. 3", "|cos|"])


def angles(record: Found, of_all: bool = False) -> np.ndarray:
    """(2, T) θ = 2 arcsin(d/2) of the positives and of the hardest negatives at the end of training.

    Args:
        record: with the probe `lib.probes.triplets_in_batch`.
        of_all: negatives out of all pairs shown, in place of batches as in training.
    """
    by_size = triplets(record)
    return 2 * np.arcsin(np.clip(by_size[(max if of_all else min)(by_size)] / 2, 0, 1))


def figure2(found: Sequence[Found], note: str = "") -> Figure:
    """θ of positives and hardest negatives, a line a method and kind, and g_s and g_d once around.

    Args:
        found: the record of `lib.theory.similarity_gradients`, and runs as for `angles`, which go
            together by method.
        note: stands above.
    """
    record, *runs = found
    with panels(DOUBLE_WIDTH, 2.9, 2, note=note) as (figure, [[left, right]]):
        for place, (label, of) in enumerate(frames.by_label(runs).items()):
            both = np.concatenate([angles(run) for run in of], axis=1)
            for kind, theta, line in zip(KINDS, both, ("-", "--"), strict=True):
                step = {"bins": 60, "range": (0, 1), "density": True, "histtype": "step", "ls": line}
                left.hist(theta / np.pi, color=PALETTE[place], label=f"{label}, {kind}s", **step)
        left.set(title="(a) triplets in training batches", ylabel="density")
        for place, (key, name) in enumerate((("s", "g$_s$ = |sin θ|"), ("d", "g$_d$ = |cos(θ/2)|"))):
            period = {1.0: "π", 2.0: "2π"}[record.numbers["periods"][key]]
            line = look(place) | {"label": f"{name}, period {period}"}
            right.plot(record.arrays["theta"] / np.pi, record.arrays[key], **line)
        right.set(title="(b) gradient magnitude", ylim=(0, 1.05))
        for axes, end in ((left, 1), (right, 2)):
            _in_pi(axes, end)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=7, handlelength=2.4)
    return figure


def _in_pi(axes: Axes, end: int) -> None:
    """θ from 0 to `end` π, what the paper looks at shaded."""
    names = ("0", "π/2", "π", "3π/2", "2π")[: 2 * end + 1]
    axes.set_xticks(np.arange(len(names)) / 2, names)
    axes.set(xlim=(0, end), xlabel="θ")
    axes.axvspan(0, 0.5, color=GREY, alpha=0.15, lw=0)


def figure2_table(runs: Sequence[Found]) -> pd.DataFrame:
    """Where triplets lie at the end of training, a row a run: under each kind the `mean` θ and, in
    percent, those `beyond 90°`; of negatives also those of all pairs shown, and how many `pairs`."""
    rows = {}
    for run in runs:
        shown = dict(zip((*KINDS, "negative of all"), (*angles(run), angles(run, True)[1]), strict=True))
        rows[run.job.label, run.job.seed] = {
            **{(kind, "mean"): np.rad2deg(theta).mean() for kind, theta in shown.items()},
            **{(kind, "beyond 90°"): 100 * (theta > RANGE).mean() for kind, theta in shown.items()},
            ("negative of all", "pairs"): len(shown["negative of all"]),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["run", "seed"])
    return table[list(shown)]


def figure2_values(found: Sequence[Found]) -> dict[str, Measured | np.ndarray]:
    """The values of the claims on Figure 2.

    Args:
        found: as for `figure2`.

    Returns:
        By "outside_{key}" (seeds, 2) the percentage of a method's positives and of its negatives that
        lie beyond π/2, with resamples of the triplets; (1,) "period_s" and "period_d", in units of π,
        and the least step of g_s upwards, "rise_s", and of g_d downwards, "fall_d", from one angle to
        the next between 0 and π/2, per radian.
    """
    record, *runs = found
    values: dict[str, Measured | np.ndarray] = {}
    for label, of in frames.by_label(runs).items():
        outside = 100.0 * np.stack([angles(run) > RANGE for run in of])
        count = outside.shape[-1]
        again = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
        drawn = outside[..., again].mean(axis=-1)[None]
        about = (count - 1, ("positives", "negatives"), label, "triplets")
        values[f"outside_{of[0].job.name}"] = Measured(outside.mean(axis=-1), drawn, *about)
    theta, s, d = (record.arrays[of] for of in ("theta", "s", "d"))
    some = theta <= RANGE
    for key, name, of in (("s", "rise_s", s), ("d", "fall_d", -d)):
        values[name] = (np.diff(of[some]) / np.diff(theta[some])).min(keepdims=True)
        values[f"period_{key}"] = np.array([record.numbers["periods"][key]])
    return values


def hybrid_figure(record: Found) -> Figure:
    """Figure 5(b): g_H of several α, divided by Z, from 0 to π.

    Args:
        record: of `lib.theory.similarity_gradients`.
    """
    with panels(COLUMN_WIDTH * 1.3, 2.7, ylabel="g$_H$(θ)") as (figure, [[axes]]):
        for place, of in enumerate(record.numbers["hybrid"]):
            alpha = "∞" if of["alpha"] is None else f"{of['alpha']:g}"
            line = look(place) | {"label": f"α = {alpha}, Z = {of['z']:.3f}"}
            axes.plot(record.arrays["theta"] / np.pi, record.arrays[f"hybrid_{of['key']}"], **line)
        axes.set_ylim(0, 1.05)
        _in_pi(axes, 1)
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def hybrid_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on Figure 5(b), (1,): over the angles from 0 to π/2 the most by which g_H
    of α = 2 lies "above" both g_s and g_d, and the most by which it lies "below" both."""
    some = record.arrays["theta"] <= RANGE
    curve, *ends = (record.arrays[of][some] for of in ("hybrid_2", "s", "d"))
    gaps = {"above": curve - np.maximum(*ends), "below": np.minimum(*ends) - curve}
    return {name: of.max(keepdims=True) for name, of in gaps.items()}
