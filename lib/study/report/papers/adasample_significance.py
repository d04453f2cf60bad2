"""AdaSample's Table 3 (Sec. 5.4): the paper beside our runs, and how far either carries.

A comparison is one column of the paper's six, by its short name (`phototour.COLUMN_NAMES`), and
`comparisons` that of `lib.study.audit.p_values`; the lower method is AdaSample+*, the higher one
HardNet+*. FPR95 is in percent, p in [0, 1].
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.statistics import significance
from lib.statistics.intervals import Measured, contrast
from lib.study.report.phototour import COLUMN_NAMES
from lib.study.report.significance import LEVEL
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, marker_legend, panels

LOWER, HIGHER = "adasample_aug_gen", "hardnet_aug_gen"
LABELS = {"higher": "HardNet+*", "lower": "AdaSample+*"}
DRAWN = {"higher": {"color": PALETTE[0], "marker": "o"}, "lower": {"color": PALETTE[1], "marker": "^"}}
# Of each method in the paper.
PAPERS_RUNS = 5
LEVELS = {"one test at 5%": LEVEL, "first of six by Holm": LEVEL / len(COLUMN_NAMES)}


def both_methods(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs of AdaSample+* and of HardNet+*, a row a seed, a column a comparison.

    Args:
        runs: of `lib.study.report.phototour.by_column`.

    Raises:
        ValueError: a method is missing or has one seed only.
    """
    keys = runs.index.get_level_values("key")
    columns = runs[list(COLUMN_NAMES)].rename_axis(columns="train>test")
    both = tuple(columns[keys == key].droplevel(["key", "label"]) for key in (LOWER, HIGHER))
    if min(map(len, both)) < 2:
        raise ValueError(f"a spread needs two seeds or more of {LOWER} and of {HIGHER}")
    return both


def our_comparisons(lower: pd.DataFrame, higher: pd.DataFrame) -> pd.DataFrame:
    """Our runs in the layout of the paper's `comparisons`; standard deviations with n − 1, p exact.

    Args:
        lower, higher: of `both_methods`.
    """
    columns = {}
    for which, runs in (("lower", lower), ("higher", higher)):
        columns |= {f"{which}_mean": runs.mean(), f"{which}_std": runs.std(ddof=1)}
    table = pd.DataFrame(columns)
    table["gain"] = 100 * (table["higher_mean"] - table["lower_mean"]) / table["higher_mean"]
    table["p"] = significance.mann_whitney(lower, higher).exact
    return table


def table3(paper: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Table 3 with the paper's values and ours side by side, one row a comparison.

    Args:
        paper, ours: of `comparisons` and `our_comparisons`.
    """
    both = {"paper": paper, "ours": ours}
    columns = {
        (f"{label}, {whose}", statistic): of[f"{which}_{statistic}"]
        for whose, of in both.items()
        for which, label in LABELS.items()
        for statistic in ("mean", "std")
    }
    columns |= {("gain (%)", whose): of["gain"] for whose, of in both.items()}
    columns |= {("p", "printed"): paper["p"], ("p", "exact"): ours["p"]}
    return pd.DataFrame(columns)


def table3_rejected(
    holm_on_paper: pd.DataFrame, tested: Mapping[str, pd.DataFrame], level: float = LEVEL
) -> pd.DataFrame:
    """In how many comparisons the null hypothesis is rejected, the paper's and ours.

    Args:
        holm_on_paper: of `lib.study.audit.p_values.holm_table`.
        tested: by profile, of `lib.study.report.significance.p_table`.
        level: of the test, or of the family of six.

    Returns:
        One row a rule: how many are "rejected", two numbers where the exact p is not certain, and the
        names of the comparisons that are "not" rejected, or not for certain.
    """
    least, most = (holm_on_paper[f"exact, at {end}"] for end in ("least", "most"))
    printed = holm_on_paper["as printed"]
    rules = {
        "paper, p as printed": (printed["p"], printed["p"]),
        "paper, Holm on them": (printed["Holm"], printed["Holm"]),
        "paper, exact p of the same U": (least["p"], most["p"]),
        "paper, Holm on the exact p": (least["Holm"], most["Holm"]),
    }
    for name, of in tested.items():
        exact, holm = of["one-sided p", "exact"], of["over six", "Holm"]
        rules[f"ours ({name}), exact p"] = (exact, exact)
        rules[f"ours ({name}), Holm on the exact p"] = (holm, holm)
    rows = {}
    for rule, ends in rules.items():
        counts = sorted({int((p <= level).sum()) for p in ends})
        others = ", ".join(ends[1].index[ends[1] > level]) or "none"
        rows[rule] = {"rejected": " or ".join(map(str, counts)), "not rejected": others}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(f"at {100 * level:g}%")


def table3_tests(
    paper: pd.DataFrame, ours: pd.DataFrame, values: Mapping[str, Measured]
) -> pd.DataFrame:
    """The seeds' standard deviation beside the standard error that the tests alone leave.

    Args:
        paper, ours: of `comparisons` and `our_comparisons`.
        values: our FPR95 with resamples of test points, of `fpr95_by_column`.

    Returns:
        For each comparison and method "seeds" and "tests" in points of FPR95: the paper's tests from the
        binomial distribution of its pairs, ours the root mean square over seeds of what test points
        leave.
    """
    columns = {}
    for which, label in LABELS.items():
        columns[f"{label}, paper", "seeds"] = paper[f"{which}_std"]
        columns[f"{label}, paper", "tests"] = significance.binomial_error(paper[f"{which}_mean"])
    for (which, label), key in zip(LABELS.items(), (HIGHER, LOWER), strict=True):
        columns[f"{label}, ours", "seeds"] = ours[f"{which}_std"]
        columns[f"{label}, ours", "tests"] = _over_tests(values[key])
    return pd.DataFrame(columns, index=paper.index)


def _over_tests(of: Measured) -> np.ndarray:
    """(cells,) what test points leave of a run's standard error, the root mean square over runs."""
    cells = range(of.values.shape[-1])
    errors = [[contrast([(1.0, run.one(cell))]).over_units for cell in cells] for run in of.runs()]
    return np.sqrt(np.square(errors).mean(axis=0))


def table3_tests_larger(errors: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """In how many cells of `table3_tests` the tests leave more uncertainty than the seeds.

    The paper does not say what its standard deviations divide by; both are counted.

    Args:
        errors: by profile, of `table3_tests`.
    """
    first = next(iter(errors.values()))
    counted = {
        "paper, its std by n - 1": ("paper", 1.0, first),
        "paper, its std by n": ("paper", math.sqrt(PAPERS_RUNS / (PAPERS_RUNS - 1)), first),
    }
    counted |= {f"ours ({name})": ("ours", 1.0, of) for name, of in errors.items()}
    rows = {}
    for name, (whose, factor, table) in counted.items():
        of = table[[f"{label}, {whose}" for label in LABELS.values()]]
        larger = of.xs("tests", axis=1, level=1) > factor * of.xs("seeds", axis=1, level=1)
        rows[name] = {"tests > seeds": int(larger.to_numpy().sum()), "of": larger.size}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("whose")


def table3_figure(
    lower: pd.DataFrame, higher: pd.DataFrame, paper: pd.DataFrame, *, ours_name: str, same_data: bool
) -> Figure:
    """Each seed of both methods as a dot, a panel a comparison; the paper's mean ± std beside it.

    Args:
        lower, higher: of `both_methods`.
        paper: of `comparisons`.
        ours_name: profile and data.
        same_data: ours are of the paper's own data, so that both have the same axes.
    """
    both, share = {"higher": higher, "lower": lower}, {"sharey": "col" if same_data else "none"}
    with panels(DOUBLE_WIDTH, 3.7, len(COLUMN_NAMES), 2, grid="y", **share) as (figure, grid):
        for name, column in zip(COLUMN_NAMES, grid.T, strict=True):
            for place, (which, of) in enumerate(both.items()):
                _seeds(column[0], place, of[name].to_numpy(), which)
                _mean(column[1], place, paper.loc[name], which)
            column[0].set_title(name)
            for axes in column:
                axes.set(xlim=(-0.6, 1.6), xticks=[])
                axes.margins(y=0.12)
                axes.tick_params(axis="y", labelsize=7, pad=2)
                axes.locator_params(axis="y", nbins=4)
        grid[0, 0].set_ylabel(f"FPR95 (%)\n{ours_name}")
        grid[1, 0].set_ylabel("FPR95 (%)\npaper (UBC)")
        figure.align_ylabels(grid[:, 0])
        entries = {LABELS[which]: dots | {"mew": 0} for which, dots in DRAWN.items()}
        entries["filled: a seed of ours; line: mean"] = {"color": GREY, "marker": "o", "mew": 0}
        entries["hollow: printed mean ± std"] = {"color": GREY, "marker": "o", "mfc": "white"}
        marker_legend(figure, entries, ncols=4, handletextpad=0.4)
    return figure


def _seeds(axes: Axes, place: float, values: np.ndarray, which: str) -> None:
    """Dots spread sideways in the order of their values, so that none covers another."""
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    spread = 0.3 * (order / max(1, len(values) - 1) - 0.5)
    axes.plot(place + spread, values, ls="", ms=4, mew=0, alpha=0.85, **DRAWN[which])
    axes.plot([place - 0.3, place + 0.3], [values.mean()] * 2, color=DRAWN[which]["color"], lw=1.2)


def _mean(axes: Axes, place: float, row: pd.Series, which: str) -> None:
    looks = {"ls": "", "mfc": "white", "ms": 4.5, "capsize": 2.5, "lw": 1, **DRAWN[which]}
    axes.errorbar(place, row[f"{which}_mean"], row[f"{which}_std"], **looks)
