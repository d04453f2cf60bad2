"""What runs of two methods can show: tests in several forms, how sure their intervals are, and power.

A comparison is a column in which the `lower` method is said to be lower than the `higher` one. p and
power are in [0, 1]; the statistics themselves are in `lib.statistics.significance`.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from lib.statistics import significance

LEVEL = 0.05
# Of the power asked about: runs of each method, and the power that is wanted.
RUNS, WANTED = (5, 10, 20), 0.8
EFFECTS = tuple(step / 5 for step in range(24))


def p_table(lower: pd.DataFrame, higher: pd.DataFrame) -> pd.DataFrame:
    """Runs tested: one-sided p in three forms, Holm's correction of the exact one, effect sizes.

    Args:
        lower, higher: a row a run, a column a comparison, six of them.

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
        ("over six", "Holm"): significance.holm(tested.exact),
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


def power_table(
    effects: pd.Series, levels: Mapping[str, float], runs: Sequence[int] = RUNS, simulations: int = 2000
) -> pd.DataFrame:
    """Power of the exact one-sided test at given effects, and the effect that a wanted power takes.

    Args:
        effects: by comparison, as of `effect_sizes`.
        levels: of the test, by name.
        runs: of each method.
        simulations: draws.

    Returns:
        One row a comparison with its "effect", columns (name of the level, number of runs); then "sum",
        the number of rejections to expect of as many tests with these effects, and the effect "for 80%"
        power, NaN if none of `EFFECTS` has it.
    """
    columns = {("", "effect"): [*effects, np.nan, np.nan]}
    for (name, alpha), n in product(levels.items(), runs):
        at = [*effects, *EFFECTS]
        powers = significance.power(at, runs=n, alpha=alpha, simulations=simulations).to_numpy()
        own, curve = np.split(powers, [len(effects)])
        enough = np.interp(WANTED, curve, EFFECTS) if curve.max() >= WANTED else np.nan
        columns[name, f"n={n}"] = [*own, own.sum(), enough]
    index = pd.Index([*effects.index, "sum", f"for {100 * WANTED:.0f}%"], name=effects.index.name)
    return pd.DataFrame(columns, index=index)
