"""From one method to another one choice at a time: what each rung changes, and its share of the whole.

FPR95 is in percent, the mean over the test sets; changes are those of `lib.study.report.changes`.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Estimate, Measured, contrast
from lib.study.open import Record
from lib.study.report import changes

WHOLE = "the whole ladder"


def rungs_table(found: Sequence[Record]) -> pd.DataFrame:
    """The rungs, what each changes from the one below, and its share of the whole change.

    Args:
        found: as for `lib.study.report.changes.methods`, of rungs each of which changes one choice
        of the one before it.

    Returns:
        By "rung" `lib.study.report.changes.levels_at_rates` under "FPR95", and under "change" and
        "share (%)" the changes with their intervals; last `WHOLE`, from the first rung to the last.
        Shares, by the delta method, are given only where the interval of the whole change lies below 0:
        without a gain there is none to share.
    """
    of = changes.methods(found)
    labels, steps = list(of), _steps(of)
    pairs = {**steps, WHOLE: (labels[-1], labels[0])}
    changed = changes.changes(of, pairs)
    whole = contrast([(1.0, of[labels[-1]]), (-1.0, of[labels[0]])])
    shares = {
        name: _share(of, pair, pairs[WHOLE], whole)
        for name, pair in steps.items()
        if whole.limits()[1] < 0
    }
    parts = {
        "FPR95": changes.levels_at_rates(found),
        "change": changed.rename(columns={"change": "points"}),
        "share (%)": pd.DataFrame.from_dict(shares, orient="index", columns=["share", "from", "to"]),
    }
    table = pd.concat(parts, axis=1).reindex([*labels, WHOLE]).rename_axis("rung")
    return table.astype({("FPR95", "seeds"): "Int64"})


def surely_changed(found: Sequence[Record]) -> str:
    """Which rungs, and whether the whole ladder, lower FPR95 and which raise it, by intervals that leave
    out 0; `found` as for `rungs_table`."""
    change, lines = rungs_table(found)["change"].dropna(), []
    for word, some in (("lowered", change["to"] < 0), ("raised", change["from"] > 0)):
        told = [f"{rung} ({points:+.2f})" for rung, points in change.loc[some, "points"].items()]
        lines.append(f"FPR95 is surely {word} by: {', '.join(told) or 'none'}")
    return "\n".join(lines).replace("(-", "(−")


def rungs_figure(found: Sequence[Record], note: str) -> Figure:
    """`lib.study.report.changes.changes_figure` of the rungs, each change in the row of its rung."""
    of = changes.methods(found)
    return changes.changes_figure(of, changes.changes(of, _steps(of)), note)


def _steps(labels: Iterable[str]) -> dict[str, tuple[str, str]]:
    """By label, each method but the first, and the one before it."""
    return {above: (above, below) for below, above in itertools.pairwise(labels)}


def _share(
    of: Mapping[str, Measured], part: tuple[str, str], ends: tuple[str, str], whole: Estimate
) -> dict[str, float]:
    """One change in percent of another."""
    share = contrast([(1.0, of[part[0]]), (-1.0, of[part[1]])]).value / whole.value
    terms = zip((1.0, -1.0, -share, share), (*part, *ends), strict=True)
    linear = contrast([(100 * weight / whole.value, of[label]) for weight, label in terms])
    # By construction the linear form is 0 at the estimate.
    low, high = linear.limits()
    return {"share": 100 * share, "from": 100 * share + low, "to": 100 * share + high}
