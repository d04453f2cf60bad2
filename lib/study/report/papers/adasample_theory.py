"""AdaSample's theory (Sec. 3.2 and 4): tables and figures of the records of `lib.theory`.

`numbers` and `arrays` are what the computation named returns (`Found.numbers`, `Found.arrays`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from lib.study.report.style import COLUMN_WIDTH, DOUBLE_WIDTH, GREY, LINES, PALETTE, panels
from lib.theory import EXPONENTS

Numbers = Mapping[str, object]
Arrays = Mapping[str, np.ndarray]
MARKERS = "o*s^Dv"
# λ of the runs that exponents are taken from.
LAMBDA = 10.0
# Label, colour, line and marker of the forms that weights take in `lib.theory.unbiasedness`.
SCHEMES = {
    "one Z, 1/d": ("one Z (Eq. 9), 1/d", PALETTE[6], "-", "o"),
    "per class, none": ("Z per class, no weight", PALETTE[4], LINES[3], "v"),
    "raw": ("Z per class, 1/d (raw)", PALETTE[1], "--", "s"),
    "batch_mean": ("Z per class, 1/d (batch_mean)", PALETTE[3], LINES[2], "D"),
    "class, raw": ("Z per class, Z/d", PALETTE[5], "-", "o"),
    "class": ("Z per class, Z/d (class)", PALETTE[2], LINES[4], "^"),
    "class, raw, times k": ("Z per class, k Z/d", PALETTE[5], "-", "o"),
}
DIRECTION = "cosine with ∇ (1/K) Σ L$^α$"


def agrees(error: float, tolerance: float) -> str:
    """Say whether a relative error is rounding alone, without printing the rounding."""
    return f"agree to {tolerance:.0e}: {'yes' if error <= tolerance else 'NO'}"


def three_digits(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose floats are text with three significant digits, for showing."""

    def text(value: object) -> object:
        if not isinstance(value, float | np.floating) or np.isnan(value):
            return value
        # Rounded first: a cosine of one and one a rounding error below it have to read the same.
        rounded = float(f"{value:.2e}")
        if rounded and not 1e-3 <= abs(rounded) < 1e4:
            return f"{rounded:.2e}"
        return f"{rounded:.0f}" if abs(rounded) >= 100 else f"{rounded:#.3g}"

    return table.map(text)


# The exponent 2α − 1 = λ / L_avg


def exponents_passed(steps: pd.DataFrame) -> pd.DataFrame:
    """The exponent in the runs of AdaSample: one row a run.

    Args:
        steps: of `lib.study.report.frames.steps`.
    """
    of = steps.dropna(subset="exponent").groupby("label", sort=False)["exponent"]
    return of.agg(first="first", least="min", largest="max", last="last").rename_axis("run")


def exponents_shown(
    passed: pd.DataFrame, converged: Sequence[float] = (0.5, 0.2, 0.1)
) -> tuple[int, ...]:
    """Of the exponents that the theory is computed at, those to show: 1; those that training passed,
    with the next outside at either end; and those of losses that training did not come down to.

    Args:
        passed: of `exponents_passed`, of runs with this `LAMBDA`.
        converged: losses L_avg.
    """
    least = max((each for each in EXPONENTS if each <= passed["least"].min()), default=EXPONENTS[0])
    most = min((each for each in EXPONENTS if each >= passed["largest"].max()), default=EXPONENTS[-1])
    wanted = {1, *(LAMBDA / loss for loss in converged)}
    return tuple(each for each in EXPONENTS if each in wanted or least <= each <= most)


# Theorem 1: `lib.theory.progress`


def progress_table(numbers: Numbers) -> pd.DataFrame:
    """The terms of Eq. 16 for each named p."""
    columns = {"first": "drift", "second": "mean_square", "third": "noise", "R (enumerated)": "gain"}
    frame = pd.DataFrame({head: numbers[name] for head, name in columns.items()}, index=numbers["name"])
    return frame.rename_axis("p")


def progress_figure(numbers: Numbers, arrays: Arrays) -> Figure:
    """Expected gain R_t of a step against tr Var[G], one point a p, on the line of Theorem 1."""
    gain, variance, named = arrays["gain"], arrays["trace_variance"], len(numbers["name"])
    # A few random p lie far out; the line says where.
    ends = np.array([variance.min() * 0.8, variance[:named].max() * 1.1])
    line = numbers["drift"][0] + numbers["mean_square"][0] - numbers["rate"] ** 2 * ends
    random = {"color": GREY, "ms": 4, "alpha": 0.6, "mew": 0, "label": "random p"}
    with panels(COLUMN_WIDTH, 2.7, grid="both") as (figure, [[axes]]):
        axes.plot(ends, line, color="black", lw=0.8, label="Theorem 1")
        axes.plot(variance[named:], gain[named:], ".", **random)
        for place, name in enumerate(numbers["name"]):
            size = 11 if MARKERS[place] == "*" else 6
            point = {"color": PALETTE[place], "ms": size, "mec": "white", "mew": 0.6, "ls": ""}
            axes.plot(variance[place], gain[place], MARKERS[place], label=name, **point)
        axes.set_xlim(ends)
        axes.set_ylim(np.sort(line) + np.ptp(line) * np.array([-0.04, 0.04]))
        axes.set(xlabel="tr Var[G]", ylabel="expected gain R$_t$, by enumeration")
        axes.legend(loc="upper right", handletextpad=0.3, fontsize=7.5)
    return figure


# Theorem 2: `lib.theory.variance`


def variance_table(numbers: Numbers, exponents: Sequence[float]) -> pd.DataFrame:
    """What the stated p gains over the uniform one, a row an exponent, columns by number of samples."""
    rows = pd.DataFrame(numbers).query("exponent in @exponents")
    wide = rows.pivot(index="exponent", columns="samples", values=["gain", "effective", "distance"])
    heads = {"gain": "uniform / stated", "effective": "samples used"}
    table = wide[[*heads]].rename(columns=heads | _named("K = ", rows["samples"]))
    table.insert(0, ("", "alpha"), (table.index + 1) / 2)
    table["", "search"] = np.where((wide["distance"] < 1e-4).all(axis=1), "same p", "OTHER p")
    return table.rename_axis("2a-1").rename_axis(columns=(None, None))


def _named(head: str, values: Sequence[float]) -> dict[float, str]:
    return {value: f"{head}{value:g}" for value in values}


def variance_figure(numbers: Numbers, arrays: Arrays) -> Figure:
    """tr Var[G] over the simplex of three sampling probabilities, a panel an exponent."""
    drawn = [each for each in dict.fromkeys(numbers["exponent"]) if f"relative_{each:g}" in arrays]
    levels = (1, 1.02, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20)
    colours = colormaps["cividis_r"]
    filled = {"cmap": colours, "norm": BoundaryNorm(levels, colours.N, extend="max"), "extend": "max"}
    with panels(DOUBLE_WIDTH, 2.75, len(drawn), legend=3) as (figure, [row]):
        places = _in_plane(arrays["points"])
        for axes, exponent in zip(row, drawn, strict=True):
            contours = axes.tricontourf(*places, arrays[f"relative_{exponent:g}"], levels, **filled)
            axes.plot(*_in_plane(np.eye(3)[[0, 1, 2, 0]]), color="black", lw=0.8)
            for label, p, point in (
                ("uniform", np.full(3, 1 / 3), {"marker": "o", "color": "white"}),
                ("stated (Eq. 17)", arrays[f"stated_{exponent:g}"], {"marker": "*", "ms": 12}),
                ("found by search", arrays[f"searched_{exponent:g}"], {"marker": "x", "mew": 1.2}),
            ):
                drawn_as = {"color": PALETTE[4], "ms": 6, "ls": "", "mec": "black", "mew": 0.7}
                axes.plot(*_in_plane(p[None]), label=label, **drawn_as | point)
            for number, at in enumerate(((-0.05, -0.03), (1.05, -0.03), (0.5, 0.9)), 1):
                low = "bottom" if at[1] > 0 else "top"
                axes.text(*at, f"$p_{number}=1$", ha="center", va=low)
            axes.set_title(f"2α − 1 = {exponent:g}", loc="left")
            axes.set(aspect="equal", ylim=(-0.12, 1.0))
            axes.set_axis_off()
        bar = figure.colorbar(contours, ax=row, shrink=0.8, pad=0.02, ticks=levels, format="{x:g}")
        bar.set_label("tr Var[G] over its least")
    return figure


def _in_plane(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of an equilateral triangle for the three certainties, first at the left, third on top."""
    return points[:, 1] + 0.5 * points[:, 2], np.sqrt(0.75) * points[:, 2]


# Eq. 10: `lib.theory.unbiasedness`


def cosine_table(arrays: Arrays, exponents: Sequence[float]) -> pd.DataFrame:
    """Cosine with Eq. 10's gradient by form of weight and exponent; the rest at the last exponent."""
    at, head = arrays["exponents"].tolist().index, f"at {exponents[-1]:g}"
    first, last = at(exponents[0]), at(exponents[-1])
    rows = {
        scheme: {
            **{("cosine at 2a-1 =", f"{e:g}"): arrays[f"cosine_{scheme}"][at(e)] for e in exponents},
            (head, "hinge"): arrays[f"hinge_{scheme}"][last],
            ("length", "first"): arrays[f"length_{scheme}"][first],
            ("length", "last"): arrays[f"length_{scheme}"][last],
            (head, "of batch"): arrays[f"effective_{scheme}"][last],
        }
        for scheme in SCHEMES
        if f"cosine_{scheme}" in arrays
    }
    return _by_scheme(pd.DataFrame.from_dict(rows, orient="index"))


def problems_table(numbers: Numbers) -> pd.DataFrame:
    """Spread of the cosine over random problems."""
    rows = pd.DataFrame(numbers["problems"])
    table = rows.pivot(index="scheme", columns="exponent", values=["lowest", "median", "highest"])
    table = table.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)
    return _by_scheme(table.rename(columns=_named("2a-1 = ", rows["exponent"]), level=0))


def unequal_table(numbers: Numbers, exponents: Sequence[float]) -> pd.DataFrame:
    """Cosines where classes differ in size, a column an exponent."""
    rows = pd.DataFrame(numbers["unequal"]).query("exponent in @exponents")
    table = rows.pivot(index="scheme", columns="exponent", values="cosine")
    return _by_scheme(table.rename(columns=_named("2a-1 = ", table.columns)).rename_axis(columns=None))


def monte_carlo_table(numbers: Numbers) -> pd.DataFrame:
    """Drawn with the library's sampler and weights beside the exact expectation; last the component
    farthest from it, in standard errors."""
    heads = {"cosine": "exact cosine", "cosine_drawn": "drawn cosine", "largest_z": "farthest, s.e."}
    rows = pd.DataFrame(numbers["monte_carlo"]).set_index("scheme").rename_axis("w_i")
    return rows[list(heads)].rename(columns=heads)


def classes_table(arrays: Arrays, exponent: float) -> pd.DataFrame:
    """Each class's weight over what Eq. 9 gives it, easiest class first; a column a form of weight."""
    heads = {"per class, none": "w = 1", "raw": "raw", "batch_mean": "batch_mean", "class": "class"}
    distance, factors = _by_class(arrays, exponent)
    columns = {head: factors[scheme] for scheme, head in (heads | {"class, raw": "Z/d"}).items()}
    index = pd.RangeIndex(1, len(distance) + 1, name="from easiest")
    return pd.DataFrame({"mean d": distance} | columns, index=index)


def unbiasedness_figure(arrays: Arrays, exponent: float, passed: tuple[float, float]) -> Figure:
    """How far each form of weight turns the expected gradient away, and which classes it favours.

    Args:
        arrays: of the computation.
        exponent: 2α − 1 of the panel by class, one of the record's.
        passed: the least and the largest exponent that training passed; shaded.

    Raises:
        ValueError: the record has no such exponent.
    """
    distance, factors = _by_class(arrays, exponent)
    with panels(DOUBLE_WIDTH, 3.1, 2, grid="both", legend=2) as (figure, [[left, right]]):
        for scheme in factors:
            # The one coincides with the other.
            if scheme != "class, raw":
                also = "; and Z per class, Z/d" if scheme == "one Z, 1/d" else ""
                _draw(left, scheme, arrays["exponents"], arrays[f"cosine_{scheme}"], also)
                _draw(right, scheme, distance, factors[scheme], also)
        left.axvspan(*passed, color=GREY, alpha=0.2, lw=0)
        shaded = {"xycoords": ("data", "axes fraction"), "ha": "left", "va": "bottom", "fontsize": 7}
        left.annotate(" training", (passed[1], 0.02), **shaded)
        left.set(xlabel="exponent 2α − 1 = λ / L$_{avg}$", ylabel=DIRECTION, xscale="log")
        left.xaxis.set_major_formatter("{x:g}")
        left.set_title("Direction of the expected gradient", loc="left")
        right.set(xlabel="mean matching distance of the class", yscale="log")
        right.set_ylabel("weight got / weight by Eq. 9")
        right.set_title(f"Class by class, exponent {exponent:g}", loc="left")
    return figure


def batch_scaling_figure(numbers: Numbers, arrays: Arrays, note: str = "") -> Figure:
    """What scaling weights to a batch mean of 1 does to the direction, by batch size.

    Args:
        numbers, arrays: of the computation.
        note: stands above the axes.
    """
    (raw,) = (row["cosine"] for row in numbers["monte_carlo"] if row["scheme"] == "raw")
    with panels(COLUMN_WIDTH, 2.5, note=note, grid="y") as (figure, [[axes]]):
        for scheme in ("class", "batch_mean"):
            _draw(axes, scheme, arrays["batch_sizes"], arrays[f"by_batch_{scheme}"])
        axes.axhline(1, color=PALETTE[5], lw=1, label="Z/d, not scaled")
        axes.axhline(raw, color=PALETTE[1], lw=1, ls="--", label="1/d, not scaled")
        axes.set(xlabel="pairs a batch", ylabel=DIRECTION)
        axes.set_ylim(bottom=raw - 0.01)
        figure.legend(loc="outside lower center", ncols=2, columnspacing=1.0, fontsize=7)
    return figure


def _by_scheme(table: pd.DataFrame) -> pd.DataFrame:
    """The rows in the order and under the names of `SCHEMES`."""
    table = table.loc[[scheme for scheme in SCHEMES if scheme in table.index]]
    return table.rename(index=lambda scheme: SCHEMES[scheme][0]).rename_axis("probabilities, w")


def _by_class(arrays: Arrays, exponent: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The classes' mean matching distance, ascending, and each form's factors in that order."""
    order, at = np.argsort(arrays["class_distance"]), arrays["exponents"].tolist().index(exponent)
    there = [scheme for scheme in SCHEMES if f"factor_{scheme}" in arrays]
    factors = {scheme: arrays[f"factor_{scheme}"][at][order] for scheme in there}
    return arrays["class_distance"][order], factors


def _draw(axes: Axes, scheme: str, x: np.ndarray, y: np.ndarray, also: str = "", **how: object) -> None:
    label, colour, line, marker = SCHEMES[scheme]
    axes.plot(x, y, color=colour, ls=line, marker=marker, label=label + also, **how)


# Eq. 24: `lib.theory.output_gradient`


def gradient_table(numbers: Numbers) -> pd.DataFrame:
    """The closed forms of the gradient's norm."""
    rows = pd.DataFrame(numbers["cases"])
    at = np.array(rows["at"].tolist())
    return pd.DataFrame(
        {
            "loss": rows["loss"],
            "negative at": rows["side"],
            "normalised": np.where(rows["normalised"], "yes", "no"),
            "norm": rows["formula"],
            "d=0.5": at[:, 0],
            "d=1": at[:, 1],
            "d=1.4": at[:, 2],
            "max/min of norm/d": rows["variation"],
            "r": rows["correlation"].astype(float),
            "autograd": np.where(rows["error"] < 1e-9, "same", "DIFFERS"),
        }
    )


GRADIENT_PANELS = {
    "Negative close to the anchor": {
        "ht": ("black", "HT, ‖x − x⁺‖²: 2d (Eq. 24)"),
        "ht_inner": (PALETTE[4], "HT, 2 − 2 x·x⁺: 2"),
        "ht_normalised": (PALETTE[0], "HT, normalised: 2 sin θ"),
        "root_normalised": (PALETTE[5], "HardNet, normalised: cos(θ/2)"),
        "aht_normalised": (PALETTE[1], "AHT, normalised: 2θ"),
    },
    "Negative close to the positive": {
        "ht": ("black", "Eq. 24, 2d"),
        "ht_positive": (PALETTE[3], "HT, ‖x − x⁺‖²: 2 ‖x − x⁻‖"),
        "ht_normalised_positive": (PALETTE[0], "HT, normalised"),
        "aht_normalised_positive": (PALETTE[1], "AHT, normalised"),
    },
}


def output_gradient_figure(arrays: Arrays) -> Figure:
    """Norms of the gradient at the positive's descriptor against the matching distance.

    Lines are closed forms, markers automatic differentiation at random triplets.
    """
    dots = {"ls": "", "ms": 3, "mew": 0, "alpha": 0.8}
    looks = {"grid": "both", "ylabel": "norm of the gradient", "sharey": True}
    with panels(DOUBLE_WIDTH, 3.7, 2, **looks) as (figure, [row]):
        for axes, (title, cases) in zip(row, GRADIENT_PANELS.items(), strict=True):
            for place, (key, (colour, label)) in enumerate(cases.items()):
                line = {"color": colour, "ls": LINES[place], "lw": 1.4, "label": label}
                axes.plot(arrays["distance"], arrays[f"curve_{key}"], **line)
                # On the right the printed law is there to compare with.
                if place or axes is row[0]:
                    found = arrays["dot_distance"][::2], arrays[f"dot_{key}"][::2]
                    axes.plot(*found, MARKERS[place], color=colour, **dots)
            axes.set_title(title, loc="left")
            axes.set(xlabel="matching distance d = 2 sin(θ/2)", xlim=(0, 2), ylim=(0, 6.4))
            below = {"bbox_to_anchor": (0.5, -0.2), "borderaxespad": 0}
            axes.legend(loc="upper center", handlelength=2.6, **below)
    return figure
