"""How hard sets of patches are for descriptors that nobody trained, and where RootSIFT loses."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.study.open import Found
from lib.study.report import frames
from lib.study.report.phototour import roles_of
from lib.study.report.style import DOUBLE_WIDTH, PALETTE, panels

_COUNTS = ["patches", "points", "matching_pairs", "non_matching_pairs"]


def counts_table(record: Found) -> pd.DataFrame:
    """What each set holds, a row a set: counts, and shares of points by number of patches in percent.

    Args:
        record: with the measure `set_statistics`.
    """
    numbers = frames.tidy([record], "set_statistics")
    numbers = numbers.pivot(index="test_set", columns="metric", values="value").rename_axis("Set")
    counts = numbers[_COUNTS].astype(int)
    counts.columns = counts.columns.str.removesuffix("_pairs").str.replace("_", "-")
    shares = {f"share_of_{n}": f"{n} (%)" for n in (2, 3, 4, 5, "more")}
    shares = (100 * numbers[list(shares)]).rename(columns=shares)
    return counts.assign(**{"patches a point": counts["patches"] / counts["points"]}).join(shares)


def difficulty_table(found: Sequence[Found], sets: Sequence[str], printed: pd.DataFrame) -> pd.DataFrame:
    """FPR95 in percent, a row a set and one of the mean: the papers' SIFT and ours.

    Args:
        found: records of descriptors, a column each.
        sets: the data source's three sets, in the order of their roles.
        printed: the papers' values of SIFT, as `lib.study.printed` reads them.
    """
    ours = frames.fpr95(found).pivot(index="test_set", columns="label", values="value")
    roles, papers = roles_of(sets), printed.set_index("test")["value"]
    table = ours.loc[list(sets), [record.job.label for record in found]].rename_axis("Set")
    table.columns.name = None
    table.insert(0, "SIFT, papers", [papers[role] for role in roles.values()])
    table.loc["mean"] = table.mean()
    table.insert(0, "beside", [*roles.values(), ""])
    return table


def filled_bins_table(found: Sequence[Found]) -> pd.DataFrame:
    """What one threshold for all pairs costs, a row a descriptor.

    Args:
        found: records with the probe `filled_bins` on the sets that they have FPR95 on.

    Returns:
        FPR95 in percent on each set and its mean; the same mean if pairs have a threshold by their
        filled bins, "own thresholds"; the correlation of distance and filled bins over non-matching
        pairs, "r", the mean over sets.
    """
    rows = {}
    for record in found:
        by_set = record.fpr95s()
        probes = [record.probe("filled_bins", name) for name in by_set]
        rows[record.job.label] = {
            **by_set,
            "mean": np.mean(list(by_set.values())),
            "own thresholds": np.mean([probe["own_thresholds"] for probe in probes]),
            "r": np.mean([probe["correlation"] for probe in probes]),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("FPR95 (%)")


def filled_bins_figure(probes: Mapping[str, Mapping[str, np.ndarray]], note: str) -> Figure:
    """Distances of pairs against how full their histograms are, one panel a descriptor.

    Args:
        probes: by title a probe of `lib.probes.filled_bins`. Bands hold nine tenths of the pairs,
            the line in them is the median; FPR95 counts the non-matching pairs below the dashed line.
        note: profile and data; stands above.
    """
    kinds = {"matching": PALETTE[0], "non_matching": PALETTE[1]}
    looks = {"ylabel": "descriptor distance", "legend": 3, "sharex": True, "sharey": True}
    with panels(DOUBLE_WIDTH, 2.3, len(probes), note=note, **looks) as (figure, [row]):
        for axes, (title, probe) in zip(row, probes.items(), strict=True):
            for name, colour in kinds.items():
                low, _, median, _, high = probe[name].T
                label = name.replace("_", "-")
                axes.fill_between(probe["filled"], low, high, color=colour, alpha=0.2, lw=0)
                axes.plot(probe["filled"], median, color=colour, marker=".", label=label)
            axes.axhline(probe["threshold"], color="black", lw=1, ls="--", label="95% recall")
            axes.set_title(title, loc="left")
            axes.set_xlabel("filled bins of 128")
    return figure
