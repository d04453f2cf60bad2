"""HyNet's gradient analysis (Tian et al., Sec. 2): Figures 1, 2 and 5(b), and every loss's magnitudes.

Angles are in radians in records, in degrees in tables and in units of π along axes.
"""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lib.experiments.hynet_analysis import MEASURED
from lib.intervals import Measured
from lib.reporting import frames
from lib.reporting.papers.dsm_figures import RESAMPLES, triplets
from lib.reporting.style import COLUMN_WIDTH, DOUBLE_WIDTH, GREY, PALETTE, look, marker_legend, panels
from lib.study.open import Found

Arrays = Mapping[str, np.ndarray]
# By key of `lib.theory.descent_directions`.
MEASURES = {"s_raw": "s̄ = xᵀy", "d_raw": "d̄ = ‖x − y‖", "s": "s, normalised", "d": "d, normalised"}
ARROWS = {
    "direction": ("Δ", PALETTE[1], "-", 2.2),
    "parallel": ("Δ∥", PALETTE[2], "--", 1.4),
    "orthogonal": ("Δ⊥", PALETTE[0], ":", 1.4),
}
KINDS = ("positive", "negative")
# Where the paper looks.
RANGE = np.pi / 2


def figure1(record: Found, note: str = "") -> Figure:
    """Descent directions of a positive and of a negative pair, a column a measure, with their parts.

    Args:
        record: of `lib.theory.descent_directions`.
        note: stands above.
    """
    arrays = record.arrays
    with panels(DOUBLE_WIDTH, 4.3, 4, 2, note=note, sharex=True, sharey=True) as (figure, grid):
        for row, (kind, sign) in enumerate(zip(KINDS, "+−", strict=True)):
            for column, (axes, name) in enumerate(zip(grid[row], MEASURES.values(), strict=True)):
                for place, tip in enumerate(arrays["descriptors"]):
                    _arrow(axes, (0, 0), tip, "black", "-", 1.2)
                    # Beside the middle of the descriptor, on the side where no arrow lies.
                    aside = 0.13 * np.array([tip[1], -tip[0]]) / np.linalg.norm(tip) * (1 - 2 * place)
                    axes.text(*(0.5 * tip + aside), "xy"[place], ha="center", va="center")
                    for part, (_, colour, line, width) in ARROWS.items():
                        # Shorter than they are, all alike, so that they fit beside the descriptors.
                        step = 0.55 * arrays[part][column, row, place]
                        if np.linalg.norm(step) > 1e-6:
                            _arrow(axes, tip, tip + step, colour, line, width)
                axes.set(xlim=(-0.4, 1.5), ylim=(-0.5, 2.0), aspect="equal")
                axes.set_axis_off()
                axes.set_title(f"{name}\n{kind} pair ({sign})", fontsize=8)
        looks = {label: {"color": of, "ls": line} for label, of, line, _ in ARROWS.values()}
        marker_legend(figure, {"descriptor": {"color": "black", "ls": "-"}, **looks}, ncols=4)
    return figure


def _arrow(
    axes: Axes, start: Sequence[float], end: Sequence[float], colour: str, line: str, width: float
) -> None:
    arrow = {"arrowstyle": "->", "color": colour, "ls": line, "lw": width, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=arrow)


def figure1_table(record: Found) -> pd.DataFrame:
    """How far Eq. 3 is from autograd, and how far gradients are from orthogonal to descriptors.

    Args:
        record: of `lib.theory.descent_directions`.

    Returns:
        By "measure" the largest relative deviation and, under `|cos| with the descriptor`, `least` and
        `most`; as text, since they are rounding errors where the paper says nought.
    """
    rows = {MEASURES[of["key"]]: of for of in record.numbers["measures"]}
    columns = {
        ("deviation", "from Eq. 3"): [_rounded(of["deviation"]) for of in rows.values()],
        ("|cos| with the descriptor", "least"): [_rounded(of["parallel"][0]) for of in rows.values()],
        ("|cos| with the descriptor", "most"): [_rounded(of["parallel"][1]) for of in rows.values()],
    }
    return pd.DataFrame(columns, index=pd.Index(rows, name="measure"))


def _rounded(value: float) -> str:
    """Three digits; what is rounding error differs from one processor to the next."""
    return "below 1e-12" if value < 1e-12 else f"{value:.3f}"


def figure1_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on Figure 1, (1,) each: by "cosine_{measure}" the largest |cos| between
    descriptor and gradient over the pairs drawn; by "deviation_{measure}" that from Eq. 3; by
    "parallel_{measure}" and "orthogonal_{measure}" the least length of that part, over Δ's, in the
    figure."""
    values = {}
    for place, of in enumerate(record.numbers["measures"]):
        lengths = {part: np.linalg.norm(record.arrays[part][place], axis=-1) for part in ARROWS}
        values[f"cosine_{of['key']}"] = np.array([of["parallel"][1]])
        values[f"deviation_{of['key']}"] = np.array([of["deviation"]])
        for part in ("parallel", "orthogonal"):
            share = (lengths[part] / lengths["direction"]).min()
            values[f"{part}_{of['key']}"] = np.array([share])
    return values


def angles(d_pos_and_neg: np.ndarray) -> np.ndarray:
    """θ = 2 arcsin(d/2) of unit descriptors, radians, any shape."""
    return 2 * np.arcsin(np.clip(d_pos_and_neg / 2, 0, 1))


def of_batches(record: Found, of_all: bool = False) -> np.ndarray:
    """(2, T) θ of the positives and of the hardest negatives at the end of a run's training.

    Args:
        record: with the probe `lib.evaluation.triplets_in_batch`.
        of_all: negatives out of all pairs shown, in place of batches as in training.
    """
    by_size = triplets(record)
    return angles(by_size[(max if of_all else min)(by_size)])


def figure2(found: Sequence[Found], note: str = "") -> Figure:
    """θ of positives and hardest negatives, a line a method and kind, and g_s and g_d once around.

    Args:
        found: the record of `lib.theory.similarity_gradients`, and runs as for `of_batches`, which
            go together by method.
        note: stands above.
    """
    record, *runs = found
    with panels(DOUBLE_WIDTH, 2.9, 2, note=note) as (figure, [[left, right]]):
        edges = np.linspace(0, np.pi, 61)
        for place, (label, of) in enumerate(frames.by_label(runs).items()):
            both = np.concatenate([of_batches(run) for run in of], axis=1)
            for kind, theta, line in zip(KINDS, both, ("-", "--"), strict=True):
                density, _ = np.histogram(theta, edges, density=True)
                named = f"{label}, {kind}s"
                left.stairs(density, edges / np.pi, color=PALETTE[place], ls=line, label=named)
        left.set(title="(a) triplets in training batches", ylabel="density")
        theta = record.arrays["theta"]
        for place, (key, name) in enumerate((("s", "g$_s$ = |sin θ|"), ("d", "g$_d$ = |cos(θ/2)|"))):
            period = {1.0: "π", 2.0: "2π"}[record.numbers["periods"][key]]
            named = f"{name}, period {period}"
            right.plot(theta / np.pi, record.arrays[key], label=named, **look(place))
        right.set(title="(b) gradient magnitude", ylim=(0, 1.05))
        for axes, end in ((left, 1), (right, 2)):
            axes.axvspan(0, 0.5, color=GREY, alpha=0.15, lw=0)
            _in_pi(axes, end)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=7, handlelength=2.4)
    return figure


def _in_pi(axes: Axes, end: float) -> None:
    axes.set(xlim=(0, end), xlabel="θ")
    names = {0.0: "0", 0.5: "π/2", 1.0: "π", 1.5: "3π/2", 2.0: "2π"}
    axes.set_xticks([at for at in names if at <= end])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: names[at]))


def figure2_table(runs: Sequence[Found]) -> pd.DataFrame:
    """Where triplets lie at the end of training, a row a run: under each kind the `mean` θ, the
    `largest` and, in percent, those `beyond 90°`; of negatives also those of all pairs shown."""
    rows = {}
    for record in runs:
        shown = dict(zip(KINDS, of_batches(record), strict=True))
        shown["negative of all"] = of_batches(record, of_all=True)[1]
        rows[record.job.label, record.job.seed] = {
            (kind, name): value
            for kind, theta in shown.items()
            for name, value in (
                ("mean", np.rad2deg(theta).mean()),
                ("largest", np.rad2deg(theta).max()),
                ("beyond 90°", 100 * (theta > RANGE).mean()),
            )
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["run", "seed"])


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
        outside = np.stack([of_batches(run) > RANGE for run in of])
        count = outside.shape[-1]
        again = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
        drawn = 100 * outside[..., again].mean(axis=-1)
        about = (count - 1, ("positives", "negatives"), label, "triplets")
        own = 100 * outside.mean(axis=-1)
        values[f"outside_{of[0].job.name}"] = Measured(own, drawn[None], *about)
    theta = record.arrays["theta"]
    some = theta <= RANGE
    for key, name, sign in (("s", "rise_s", 1), ("d", "fall_d", -1)):
        steps = sign * np.diff(record.arrays[key][some]) / np.diff(theta[some])
        values[name] = np.array([steps.min()])
        values[f"period_{key}"] = np.array([record.numbers["periods"][key]])
    return values


def hybrid_figure(record: Found, note: str = "") -> Figure:
    """Figure 5(b): g_H of several α, divided by Z, from 0 to π.

    Args:
        record: of `lib.theory.similarity_gradients`.
        note: stands above.
    """
    theta = record.arrays["theta"]
    some = theta <= np.pi
    with panels(COLUMN_WIDTH * 1.3, 2.7, note=note, ylabel="g$_H$(θ)") as (figure, [[axes]]):
        for place, of in enumerate(record.numbers["hybrid"]):
            named = f"α = {_alpha(of)}, Z = {of['z']:.3f}"
            values = record.arrays[f"hybrid_{of['key']}"][some]
            axes.plot(theta[some] / np.pi, values, label=named, **look(place))
        axes.axvspan(0, 0.5, color=GREY, alpha=0.15, lw=0)
        axes.set_ylim(0, 1.05)
        _in_pi(axes, 1)
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def _alpha(row: Mapping[str, object]) -> str:
    return "∞" if row["alpha"] is None else f"{row['alpha']:g}"


def hybrid_table(record: Found) -> pd.DataFrame:
    """By α: Z, the angle in degrees where g_H is largest, g_H at some angles, and the angles between
    which it lies above both g_s and g_d (missing where it never does)."""
    theta, rows = record.arrays["theta"], {}
    some = theta <= RANGE
    for of in record.numbers["hybrid"]:
        curve = record.arrays[f"hybrid_{of['key']}"]
        shown = {f"{at}°": np.interp(np.deg2rad(at), theta, curve) for at in (15, 30, 60, 90)}
        # Those of α = 0 and ∞ are g_d and g_s themselves.
        mixed = of["alpha"] not in (0, None)
        above = np.rad2deg(theta[some & mixed & (_beyond(record, of["key"]) > 0)])
        ends = (above.min(), above.max()) if len(above) else (np.nan, np.nan)
        rows[_alpha(of)] = {
            ("", "Z"): of["z"],
            ("largest at", "°"): np.rad2deg(of["at"]),
            **{("g_H at", name): value for name, value in shown.items()},
            **dict(zip((("above both", "from"), ("above both", "to")), ends, strict=True)),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("α")


def _beyond(record: Found, key: str) -> np.ndarray:
    """By how much g_H lies above both g_s and g_d; negative below the larger."""
    curve, ends = record.arrays[f"hybrid_{key}"], (record.arrays[of] for of in ("s", "d"))
    return curve - np.maximum(*ends)


def hybrid_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on Figure 5(b), (1,): over the angles from 0 to π/2 the most by which g_H
    of α = 2 lies "above" both g_s and g_d, and the most by which it lies "below" both."""
    some = record.arrays["theta"] <= RANGE
    curve, ends = record.arrays["hybrid_2"], [record.arrays[of] for of in ("s", "d")]
    return {
        "above": np.array([_beyond(record, "2")[some].max()]),
        "below": np.array([(np.minimum(*ends) - curve)[some].max()]),
    }


def magnitudes_figure(found: Sequence[Found], note: str = "") -> Figure:
    """‖x‖ ‖∂L/∂x‖ by the angle of the positive and by that of the negative, a panel a loss.

    Where a trained network was asked, dots are the means of its triplets' bins, with bars from the 10th
    to the 90th percentile, as large as there are many; curves are then at the means of its batches, else
    at those of the state of `lib.theory.loss_shapes`.

    Args:
        found: the record of `lib.theory.gradient_magnitudes`, and runs with the probe
            `lib.evaluation.gradient_magnitudes`.
        note: stands above.
    """
    record, *runs = found
    probes = {run.job.name: run.probe("gradient_magnitudes") for run in runs}
    cases = record.numbers["cases"]
    rows = -(-len(cases) // 4)
    shown = {"note": note, "legend": 4, "sharex": True}
    with panels(DOUBLE_WIDTH, 0.8 + 1.5 * rows, 4, rows, **shown) as (figure, grid):
        for axes, case in zip(grid.flat, cases, strict=False):
            probe = probes.get(MEASURED.get(case["key"], ""))
            for place, kind in enumerate(KINDS):
                line = look(place) | {"lw": 1.2}
                theta, values = _curve(record.arrays, probe, case["key"], kind)
                axes.plot(theta / np.pi, values, label=f"curve, {kind}", **line)
                if probe is not None:
                    _dots(axes, probe, kind, place)
            axes.axvspan(0, 0.5, color=GREY, alpha=0.15, lw=0)
            _in_pi(axes, 1)
            name = textwrap.fill(case["label"], 25).replace("d_pos", "d$_{pos}$")
            axes.set_title(name, fontsize=7.5)
            axes.set_ylim(bottom=0)
            axes.label_outer()
            axes.tick_params(labelleft=True)
        for axes in grid.flat[len(cases) :]:
            axes.set_axis_off()
        figure.supylabel("‖x‖ ‖∂L/∂x‖ of a triplet", fontsize=8)
    return figure


def _curve(arrays: Arrays, probe: Arrays | None, key: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    if probe is not None:
        return probe["theta"], probe[f"curve_{kind}"]
    return arrays["theta"], arrays[f"{kind}_{key}"]


def _dots(axes: Axes, probe: Arrays, kind: str, place: int) -> None:
    count, mean = probe[f"count_{kind}"], probe[f"mean_{kind}"]
    some, middle = count > 0, (probe["edges"][1:] + probe["edges"][:-1]) / 2 / np.pi
    low, high = probe[f"spread_{kind}"][some].T
    colour = PALETTE[place]
    axes.vlines(middle[some], low, high, color=colour, lw=0.8, alpha=0.6)
    sizes = 2 + 18 * count[some] / count.max()
    dots = {"color": colour, "marker": "os"[place], "lw": 0, "zorder": 3, "label": f"measured, {kind}"}
    axes.scatter(middle[some], mean[some], s=sizes, **dots)


def magnitudes_table(found: Sequence[Found]) -> pd.DataFrame:
    """The curves of `magnitudes_figure` in numbers: by "loss", under "by the positive" and "by the
    negative", the magnitude at 30, 60 and 90 degrees; where a network was asked, also the largest
    difference of a bin's mean from the curve, `off`, over bins with a hundredth of the triplets or
    more."""
    record, *runs = found
    probes, rows = {run.job.name: run.probe("gradient_magnitudes") for run in runs}, {}
    for case in record.numbers["cases"]:
        probe, of = probes.get(MEASURED.get(case["key"], "")), {}
        for kind in KINDS:
            theta, values = _curve(record.arrays, probe, case["key"], kind)
            head = f"by the {kind}"
            for at in (30, 60, 90):
                of[head, f"{at}°"] = np.interp(np.deg2rad(at), theta, values)
            of[head, "off"] = np.nan if probe is None else _off(probe, kind)
        rows[case["label"]] = of
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("loss")


def magnitudes_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on magnitudes, (1,): by "positive_{loss}" the magnitude at a positive of
    60 degrees less that at 30, by "negative_{loss}" at a negative of 30 less that at 60; above 0 where
    what is harder gets more.

    Args:
        record: of `lib.theory.gradient_magnitudes`.
    """
    values = {}
    for case in record.numbers["cases"]:
        for kind, angles_of in (("positive", (60, 30)), ("negative", (30, 60))):
            curve = record.arrays[f"{kind}_{case['key']}"]
            hard, easy = np.interp(np.deg2rad(angles_of), record.arrays["theta"], curve)
            values[f"{kind}_{case['key']}"] = np.array([hard - easy])
    return values


def _off(probe: Arrays, kind: str) -> float:
    count, middle = probe[f"count_{kind}"], (probe["edges"][1:] + probe["edges"][:-1]) / 2
    some = count >= 0.01 * count.sum()
    expected = np.interp(middle[some], probe["theta"], probe[f"curve_{kind}"])
    return float(np.abs(probe[f"mean_{kind}"][some] - expected).max())
