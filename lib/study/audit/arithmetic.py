"""What follows from a table by arithmetic: means, relative gains, and the grid that counts lie on."""

from collections.abc import Mapping
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import pandas as pd

from lib.study.audit.cells import as_frame, exactly, finding, half_unit

# The step, in percent, of what is a share of a count: of 50,000 negatives, of five runs of these, of
# 500 keypoints in each of five pairs of images.
STEPS: Mapping[str, Decimal] = {
    "fpr95": Decimal(100) / 50_000,
    "seed_mean": Decimal(100) / 50_000 / 5,
    "matching_score": Decimal(100) / 500 / 5,
}
MEANS = ("column_mean", "fpr95_mean")


def means(cells: pd.DataFrame) -> pd.DataFrame:
    """Printed means that the printed columns do not give, rounding ties up or to even.

    One that was cut off, or taken before the columns were rounded, is a matter of digits; any other
    says that the mean or a column is misprinted.
    """
    rows = []
    for mean in cells[cells["statistic"].isin(MEANS)].itertuples():
        parts = _parts(cells, mean)
        if not parts:
            continue
        exact, unit = sum(map(exactly, parts)) / len(parts), Decimal(1).scaleb(-mean.decimals)
        if exactly(mean) in (exact.quantize(unit, how) for how in (ROUND_HALF_UP, ROUND_HALF_EVEN)):
            continue
        # What a grid with whole digits holds was not rounded.
        rounded = [of for of in parts if STEPS.get(of.statistic, unit / 2) % unit]
        slack = sum(map(half_unit, rounded), Decimal()) / len(parts)
        possible = {
            "cut off": exact.quantize(unit, ROUND_DOWN) == exactly(mean),
            "of columns before rounding": abs(exact - exactly(mean)) < slack + unit / 2,
        }
        what = " or ".join(how for how, can_be in possible.items() if can_be)
        weight = "digit" if what else "number"
        rows.append(finding(mean, what or "not the mean, however rounded", f"{exact:.4f}", weight))
    return as_frame("means", rows)


def _parts(cells: pd.DataFrame, mean: object) -> list[object]:
    """The cells that a mean is of; where its own table has no columns, those of the paper's first."""
    same = (cells["paper"] == mean.paper) & (cells["key"] == mean.key)
    if mean.statistic == "column_mean":
        same &= (cells["table"] == mean.table) & (cells["statistic"] == mean.measure)
    else:
        same &= (cells["statistic"] == "fpr95") & (cells["train"] == mean.train)
        same &= cells["table"] == cells["table"][same].min()
    return list(cells[same].itertuples())


def gains(cells: pd.DataFrame) -> pd.DataFrame:
    """Printed relative gains, in percent, that the printed means over seeds do not give.

    A gain is on the only other row's mean in the same columns.
    """
    rows = []
    for _, of in cells.groupby(["paper", "table", "train", "test"], sort=False):
        seeds = of[of["statistic"] == "seed_mean"]
        for gain in of[of["statistic"] == "relative_gain"].itertuples():
            [ours] = seeds[seeds["key"] == gain.key].itertuples()
            [base] = seeds[seeds["key"] != gain.key].itertuples()
            # From the least that rounding leaves possible to the most.
            pairs = [
                (exactly(ours) - by * half_unit(ours), exactly(base) + by * half_unit(base))
                for by in (-1, 0, 1)
            ]
            least, exact, most = (100 * (1 - lower / higher) for lower, higher in pairs)
            if abs(exact - exactly(gain)) > half_unit(gain):
                possible = least - half_unit(gain) <= exactly(gain) <= most + half_unit(gain)
                what = "not of the printed means" + ", but of unrounded ones" * possible
                weight = "digit" if possible else "number"
                rows.append(finding(gain, what, f"{exact:.2f}", weight))
    return as_frame("relative gains", rows)


def grid(cells: pd.DataFrame) -> pd.DataFrame:
    """Printed shares that no count gives, by the benchmark's number of cases."""
    rows = []
    for cell in cells[cells["statistic"].isin(STEPS)].itertuples():
        step = STEPS[cell.statistic]
        below = exactly(cell) // step * step
        if min(exactly(cell) - below, below + step - exactly(cell)) > half_unit(cell):
            near = f"{below.normalize()} or {(below + step).normalize()}"
            rows.append(finding(cell, f"no multiple of {step.normalize()}", near, "digit"))
    return as_frame("off the grid", rows)
