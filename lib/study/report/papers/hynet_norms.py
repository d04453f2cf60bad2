"""HyNet's norms (Tian et al., Sec. 3): its layers (Fig. 3), orthogonal gradients, and what R_L2 does."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.special import ndtri

from lib.statistics.intervals import Measured
from lib.study.artefacts.hynet import AT_ONE_RATE
from lib.study.claims import Claim
from lib.study.claims.measured import OfClaim, by_method
from lib.study.open import Found
from lib.study.report import frames, plots
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, panels

NAMES = {"Conv2d": "conv", "BatchNorm2d": "BN", "InstanceNorm2d": "IN", "Dropout": "dropout"}
# Of |cos|: by the name of `lib.probes.orthogonality` what is taken together, and its percentiles.
TOGETHER = {"map": "each map", "channel": "a batch's maps of a channel"}
# As `lib.benchmarks.intensity_changes` has it, which imports torch.
UNCHANGED = "none"
ONE_RATE = "hynet_no_norm_one_rate"
COLUMNS = MEDIAN, NINETIETH, VALUES = "median", "90th percentile", "values"
COLOURS = {"FRN": PALETTE[0], "BN": PALETTE[4]}


def _networks(record: Found) -> dict[str, Mapping]:
    """HyNet and L2-Net; Table 3's other norms are in the record too."""
    return {of["label"]: of for of in record.numbers["networks"] if of["key"] in ("hynet", "l2net")}


def architecture_table(record: Found) -> pd.DataFrame:
    """HyNet beside L2-Net, a row a convolution with what follows it, the first row what comes before.

    Args:
        record: of `lib.theory.architecture`.

    Returns:
        By "block", the `output` (channels × height × width), and under each network its `layers` and
        their `parameters`; last the sums, and those of the convolutions' weights alone.
    """
    columns = {}
    for label, of in _networks(record).items():
        layers = pd.DataFrame(of["layers"])
        blocks = layers.replace({"name": NAMES}).groupby((layers["name"] == "Conv2d").cumsum())
        told = blocks.agg({"shape": "last", "name": " + ".join, "parameters": "sum"}).reindex(range(8))
        shapes = told["shape"].map(lambda shape: "×".join(map(str, shape)), na_action="ignore")
        columns.setdefault(("", "output"), [*shapes.fillna("1×32×32"), "", ""])
        columns[label, "layers"] = [*told["name"].fillna("–"), "", ""]
        own = told["parameters"].fillna(0).astype(int)
        columns[label, "parameters"] = [*own, of["parameters"], of["convolutional"]]
    names = ["input", *map(str, range(1, 8)), "all", "weights of convolutions"]
    return pd.DataFrame(columns, index=pd.Index(names, name="block"))


def architecture_figure(record: Found) -> Figure:
    """HyNet above L2-Net, a box a block of `architecture_table`: as high as its maps are, as wide as it
    has channels, in the colour of its norm; below it output, layers and parameters.

    Args:
        record: of `lib.theory.architecture`.
    """
    table, names = architecture_table(record), list(_networks(record))
    note = "height: side of the maps; width: channels; colour: norm; below: output, layers, parameters"
    with panels(DOUBLE_WIDTH, 3.5, rows=len(names), note=note) as (figure, rows):
        for axes, name in zip(rows[:, 0], names, strict=True):
            edge = 0.0
            for place, (block, of) in enumerate(table[:8].iterrows()):
                channels, side, _ = map(int, of["", "output"].split("×"))
                layers, count = of[name, "layers"], of[name, "parameters"]
                width, height = 0.02 + 0.5 * channels / 128, 0.03 + 0.97 * side / 32
                colour = next((each for norm, each in COLOURS.items() if norm in layers), "white")
                corner = (place - width / 2, -height / 2)
                axes.add_patch(Rectangle(corner, width, height, fc=colour, ec="black", lw=0.8))
                if place:
                    arrow = {"arrowstyle": "->", "lw": 0.8, "color": GREY}
                    axes.annotate("", (corner[0], 0), (edge, 0), arrowprops=arrow)
                edge = place + width / 2
                told = (of["", "output"], textwrap.fill(layers, 12), f"{count:,}")
                axes.text(place, -0.6, "\n".join(told), ha="center", va="top", fontsize=6.5)
                axes.text(place, 0.6, block, ha="center", va="bottom", fontsize=7)
            axes.set(xlim=(-0.45, 7.45), ylim=(-1.7, 0.75))
            axes.set_title(f"{name}: {table.loc['all', (name, 'parameters')]:,} parameters")
            axes.set_axis_off()
    return figure


def architecture_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on Figure 3, (1,): by how many weights HyNet's convolutions and L2-Net's
    differ, "weights_difference", and the number of HyNet's batch norms, "batch_norms"."""
    hynet, l2net = _networks(record).values()
    norms = [layer["name"] == "BatchNorm2d" for layer in hynet["layers"]]
    difference = abs(hynet["convolutional"] - l2net["convolutional"])
    return {"batch_norms": np.array([sum(norms)]), "weights_difference": np.array([difference])}


def cosines(found: Sequence[Found]) -> pd.DataFrame:
    """|cos| between maps and gradients at the end of training.

    Args:
        found: runs, of which those with the probe `lib.probes.orthogonality` count.

    Returns:
        By `key`, `label`, `seed`, `layer` (from 1) and what is taken `together` ("map" or "channel")
        |cos|'s `median` and `90th percentile`, and the number of `values` of each.
    """
    rows = {
        (run.job.name, run.job.label, run.job.seed, layer, together): both
        for run in found
        if "orthogonality" in dict(run.job.probes)
        for together in TOGETHER
        for layer, both in enumerate(run.probe("orthogonality")[together].astype(float), 1)
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS)
    table.index = pd.MultiIndex.from_tuples(rows, names=[*frames.RUN, "layer", "together"])
    return table


def cosines_figure(found: Sequence[Found], note: str = "") -> Figure:
    """The 90th percentile of |cos| by layer, a line a norm in the band of its seeds: of each map, and
    of a batch's maps together. Dotted, that of a gradient in a random direction: of N values its cosine
    is about normal, of deviation 1/√N.

    Args:
        found: as for `cosines`.
        note: stands above.
    """
    head = f"|cos|, {NINETIETH}"
    table = cosines(found).clip(lower=1e-8).rename(columns={NINETIETH: head}).reset_index()
    # Named by the norm alone, no two lines are of one dash.
    table["label"] = table["label"].replace("HyNet+", "FRN").str.removeprefix("HyNet+: ")
    with panels(DOUBLE_WIDTH, 2.8, 2, note=note, sharey=True, legend=3) as (figure, [row]):
        for axes, (name, title) in zip(row, TOGETHER.items(), strict=True):
            of = table[table["together"] == name]
            plots.curves(axes, of, "layer", head, "label", marker="o")
            chance = ndtri(0.95) / np.sqrt(of.groupby("layer")[VALUES].first())
            axes.plot(chance, color=GREY, ls=":", label="random direction")
            axes.set(title=title, yscale="log", xlabel="convolution")
            axes.label_outer()
    return figure


def cosines_values(found: Sequence[Found]) -> dict[str, Measured]:
    """The values of the claims on `cosines`, over maps, (seeds, layers): by "map_{key}" the 90th
    percentile of |cos|, and by "median_{key}" its median."""
    of_maps = cosines(found).xs("map", level="together").rename("layer {}".format, level="layer")
    return {
        f"{name}_{key}": of
        for name, head in (("map", NINETIETH), ("median", MEDIAN))
        for key, of in _measured(of_maps[head], "layer").items()
    }


def _measured(values: pd.Series, cell: str) -> dict[str, Measured]:
    """By key (seeds, cells), means over what else the index tells apart."""
    wide = values.groupby(level=[*frames.RUN, cell], observed=True).mean().unstack(cell)
    return by_method(wide.rename(columns=str), [*map(str, wide)], None)


def exposures(found: Sequence[Found]) -> pd.DataFrame:
    """What changes of exposure do, a row a run, test set and change.

    Args:
        found: runs, of which those measured by `lib.benchmarks.intensity_changes` count.

    Returns:
        By `key`, `label`, `seed`, `test_set` and `change`: `fpr95` in percent, its `rise` from no change
        in points and `relative_rise` in percent of what it is without, `ratio_spread` and `norm_shift`,
        both in percent (of a ratio; its logarithm's). `ONE_RATE` is the `key` of runs `AT_ONE_RATE`,
        whose records have HyNet+'s.
    """
    asked = [
        replace(run, job=replace(run.job, name=ONE_RATE)) if run.job.label == AT_ONE_RATE else run
        for run in found
        if run.job.sets_of("intensity_changes")
    ]
    tidy = frames.tidy(asked, "intensity_changes")
    tidy[["number", "change"]] = tidy["metric"].str.split(".", n=1, expand=True).to_numpy()
    tidy["change"] = pd.Categorical(tidy["change"], tidy["change"].unique(), ordered=True)
    of = [*frames.RUN, "test_set"]
    table = tidy.pivot(index=[*of, "change"], columns="number", values="value")
    table[["ratio_spread", "norm_shift"]] *= 100
    # That of no change comes first.
    unchanged = table["fpr95"].groupby(level=of).transform("first")
    rise = table["fpr95"] - unchanged
    return table.assign(rise=rise, relative_rise=100 * rise / unchanged)


def exposures_table(found: Sequence[Found]) -> pd.DataFrame:
    """`exposures` as means over seeds and test sets: a row a network and change, `FPR95 (%)`, its `rise`
    in points and in percent, and in percent the `spread` of ‖x‖ / ‖x⁺‖ and the `shift` of ‖x⁺‖."""
    heads = ("FPR95 (%)", "rise", "rise (%)", "spread of norms", "shift of norm")
    names = ("fpr95", "rise", "relative_rise", "ratio_spread", "norm_shift")
    means = exposures(found).groupby(level=["label", "change"], sort=False, observed=True).mean()
    shown = means[list(names)].set_axis(heads, axis=1)
    in_words = shown.rename(index=lambda change: change.replace("_", " "), level="change")
    return in_words.rename_axis(["network", "second patch"])


def claim_values(found: Sequence[Found]) -> OfClaim:
    """The values of a claim by its metric: of "rise" and "relative_rise" (seeds, changes), means over
    the test sets; of "ratio_spread" (seeds, test sets), nothing being changed; else `cosines_values`."""
    table, of_maps = exposures(found), cosines_values(found)
    change = table.index.get_level_values("change").astype(str)
    unchanged = change == UNCHANGED
    cells = {
        **dict.fromkeys(("rise", "relative_rise"), (~unchanged, "change")),
        "ratio_spread": (unchanged, "test_set"),
    }

    def values(claim: Claim) -> Mapping[str, Measured]:
        if claim.metric not in cells:
            return of_maps
        some, cell = cells[claim.metric]
        return _measured(table.loc[some, claim.metric], cell)

    return values
