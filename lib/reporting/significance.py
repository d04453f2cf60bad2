"""What runs of two methods can show: tests in several forms, how sure their intervals are, and power.

A comparison is a column in which the `lower` method is said to be lower than the `higher` one. p and
power are in [0, 1]; the statistics themselves are in `lib.significance`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import significance
from lib.reporting import plots
from lib.reporting.style import DOUBLE_WIDTH, GREY, panels

LEVEL = 0.05
EFFECTS = tuple(step / 5 for step in range(24))


def p_table(lower: pd.DataFrame, higher: pd.DataFrame, family: str = "six") -> pd.DataFrame:
    """Runs tested: one-sided p in three forms, Holm's correction of the exact one, effect sizes.

    Args:
        lower, higher: a row a run, a column a comparison.
        family: how many comparisons these are, in a word.

    Returns:
        Columns "U"; p "exact", "asympt." and with continuity correction "contin.", and "Holm"; "A", the
        probability that a run of `lower` is the better one, with its interval (Newcombe).
    """
    tested = significance.mann_whitney(lower, higher)
    effect = significance.vargha_delaney(higher, lower)
    columns = {
        ("", "U"): tested.u,
        ("one-sided p", "exact"): tested.exact,
        ("one-sided p", "asympt."): tested.asymptotic,
        ("one-sided p", "contin."): tested.continuity,
        (f"over {family}", "Holm"): significance.holm(tested.exact),
        ("effect", "A"): effect.value,
        ("A, 95%", "from"): effect.low,
        ("A, 95%", "to"): effect.high,
    }
    return pd.DataFrame(columns, index=lower.columns)


def effect_sizes(compared: pd.DataFrame, runs: int = 5) -> pd.Series:
    """Difference of the means in pooled standard deviations, corrected for few runs (Hedges, 1981).

    Args:
        compared: a row a comparison, with "lower_mean", "lower_std", "higher_mean" and "higher_std".
        runs: of each method.
    """
    pooled = np.sqrt((compared["lower_std"] ** 2 + compared["higher_std"] ** 2) / 2)
    few = 1 - 3 / (4 * (2 * runs - 2) - 1)
    return (few * (compared["higher_mean"] - compared["lower_mean"]) / pooled).rename("effect")


def power_curves(
    levels: Mapping[str, float],
    effects: Sequence[float] = EFFECTS,
    runs: Sequence[int] = (5, 10, 20),
    *,
    simulations: int = 2000,
) -> pd.DataFrame:
    """Power of the exact one-sided test by effect.

    Args:
        levels: of the test, by name.
        effects: in standard deviations.
        runs: of each method, a curve each.
        simulations: draws.

    Returns:
        Indexed by "effect", columns (name of the level, number of runs).
    """
    curves = {
        (name, n): significance.power(effects, runs=n, alpha=alpha, simulations=simulations)
        for name, alpha in levels.items()
        for n in runs
    }
    return pd.DataFrame(curves)


def power_table(curves: pd.DataFrame, effects: pd.Series, wanted: float = 0.8) -> pd.DataFrame:
    """Power at given effects, read from the curves, and the effect that a wanted power takes.

    Args:
        curves: of `power_curves`.
        effects: by comparison; below the curves' least or above their largest, the ends count.
        wanted: power.

    Returns:
        One row a comparison with its "effect"; then "sum", the number of rejections to expect of as
        many tests with these effects, and the effect "for 80%" power, NaN if no effect drawn has it.
    """
    at = curves.index.to_numpy()
    powers = {(name, f"n={n}"): np.interp(effects, at, curves[name, n]) for name, n in curves.columns}
    table = pd.DataFrame(powers, index=effects.index)
    table.loc["sum"] = table.sum()
    table.loc[f"for {100 * wanted:.0f}%"] = [
        np.interp(wanted, curve, at) if curve.max() >= wanted else np.nan for _, curve in curves.items()
    ]
    table.insert(0, ("", "effect"), effects)
    return table.rename_axis(effects.index.name)


def power_figure(curves: pd.DataFrame, marked: Mapping[str, pd.Series], wanted: float = 0.8) -> Figure:
    """Power against effect, a line a number of runs, a panel a level; effects found stand below.

    Args:
        curves: of `power_curves`.
        marked: effects by whose they are, as of `effect_sizes`; one beyond the curves is drawn at the
            edge as an arrowhead.
        wanted: a power, drawn as a line.

    Raises:
        ValueError: there are no effects to mark.
    """
    if not marked:
        raise ValueError("no effects to mark; give at least the paper's")
    x, y = "difference of the means in standard deviations", "power of the exact test"
    long = curves.rename_axis(index=x, columns=["level", "runs"]).stack(
        ["level", "runs"], future_stack=True
    )
    long = long.rename(y).reset_index()
    long["runs"] = long["runs"].map("{} runs a method".format)
    levels, end = list(long["level"].unique()), float(curves.index.max())
    least = min(0, *(effects.min() for effects in marked.values()))
    steps = (0, 0.2, 0.4, 0.6, 0.8, 1)
    heights = [-0.1 - 0.11 * place for place in range(len(marked))]
    looks = {"grid": "both", "legend": long["runs"].nunique(), "sharey": True}
    with panels(DOUBLE_WIDTH, 3.0, len(levels), **looks) as (figure, [row]):
        for axes, level in zip(row, levels, strict=True):
            plots.curves(axes, long[long["level"] == level], x, y, "runs")
            axes.axhline(wanted, color=GREY, lw=0.8, ls=":")
            for height, effects in zip(heights, marked.values(), strict=True):
                _marks(axes, height, effects, end)
            axes.axhline(0, color="black", lw=0.6)
            axes.set_yticks([*steps, *heights], [*(f"{step:g}" for step in steps), *marked])
            axes.set(title=level, xlim=(least - 0.05, end + 0.1), ylim=(heights[-1] - 0.08, 1.03))
            axes.label_outer()
    return figure


def _marks(axes: Axes, height: float, effects: pd.Series, end: float) -> None:
    """A stroke an effect, and at the edge how many lie beyond it."""
    inside = effects[effects <= end]
    axes.plot(inside, np.full(len(inside), height), "|", color="black", ms=8, mew=1.2)
    if beyond := len(effects) - len(inside):
        axes.plot([end], [height], ">", color="black", ms=5)
        axes.annotate(
            f"{beyond}", (end, height), (-6, 0), textcoords="offset points", ha="right", va="center"
        )
