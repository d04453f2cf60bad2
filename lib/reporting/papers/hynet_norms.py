"""HyNet's norms (Tian et al., Sec. 3): its layers (Fig. 3), orthogonal gradients, and what R_L2 does."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.evaluation.intensity_changes import UNCHANGED
from lib.intervals import Measured
from lib.reporting import frames, plots
from lib.reporting.changes import changes as changes_between
from lib.reporting.claims import Claim
from lib.reporting.style import DOUBLE_WIDTH, PALETTE, panels
from lib.study.open import Found

Layers = Sequence[Mapping[str, object]]
# Figure 3 shows these; Table 3's other norms are in the record too.
COMPARED = ("hynet", "l2net")
NAMES = {"Conv2d": "conv", "BatchNorm2d": "BN", "InstanceNorm2d": "IN", "Dropout": "dropout"}


def blocks(layers: Layers) -> list[Layers]:
    """The layers that a patch passes, in blocks: what comes before the first convolution, and each
    convolution with what follows it."""
    found: list[list] = [[]]
    for layer in layers:
        if layer["name"] == "Conv2d":
            found.append([])
        found[-1].append(layer)
    return found


def _told(block: Layers) -> str:
    names = [NAMES.get(str(layer["name"]), str(layer["name"])) for layer in block]
    return " + ".join(names) or "–"


def _shape(block: Layers) -> str:
    return "×".join(map(str, block[-1]["shape"])) if block else ""


def architecture_table(record: Found) -> pd.DataFrame:
    """HyNet beside L2-Net, a row a convolution with what follows it, the first row what comes before.

    Args:
        record: of `lib.theory.architecture`.

    Returns:
        By "block", the `output` (channels × height × width), and under each network its `layers` and
        their `parameters`; last the sums, and those of the convolutions' weights alone.
    """
    networks = {of["key"]: of for of in record.numbers["networks"]}
    columns: dict[tuple[str, str], list] = {}
    for key in COMPARED:
        of = networks[key]
        found = blocks(of["layers"])
        shapes = ["×".join(map(str, (1, 32, 32))), *map(_shape, found[1:]), "", ""]
        columns.setdefault(("", "output"), shapes)
        own = [sum(layer["parameters"] for layer in block) for block in found]
        columns[of["label"], "layers"] = [*map(_told, found), "", ""]
        columns[of["label"], "parameters"] = [*own, of["parameters"], of["convolutional"]]
    rows = ["input", *map(str, range(1, len(shapes) - 2)), "all", "weights of convolutions"]
    return pd.DataFrame(columns, index=pd.Index(rows, name="block"))


def architecture_figure(record: Found, note: str = "") -> Figure:
    """The two networks as rows of blocks, with what comes out of each.

    Args:
        record: of `lib.theory.architecture`.
        note: stands above.
    """
    networks = {of["key"]: of for of in record.numbers["networks"]}
    with panels(DOUBLE_WIDTH, 2.7, 1, len(COMPARED), note=note) as (figure, grid):
        for axes, key in zip(grid[:, 0], COMPARED, strict=True):
            of = networks[key]
            _row_of_blocks(axes, blocks(of["layers"]))
            axes.set_title(f"{of['label']}: {of['parameters']:,} parameters", fontsize=8)
    return figure


def _row_of_blocks(axes: Axes, found: Sequence[Layers]) -> None:
    for place, block in enumerate(found):
        colour = PALETTE[5] if place else PALETTE[4]
        text = "\n".join(_told([layer]) for layer in block) or "mean and\ndeviation"
        box = {"boxstyle": "round,pad=0.35", "fc": colour, "ec": "none", "alpha": 0.35}
        axes.text(place, 0.62, text, ha="center", va="center", fontsize=6.5, bbox=box)
        shape = _shape(block) or "1×32×32"
        axes.text(place, 0.0, shape, ha="center", va="center", fontsize=6.5)
        if place:
            arrow = {"arrowstyle": "->", "lw": 0.7}
            axes.annotate("", (place - 0.38, 0.62), (place - 0.62, 0.62), arrowprops=arrow)
    axes.set(xlim=(-0.6, len(found) - 0.4), ylim=(-0.15, 1.25))
    axes.set_axis_off()


def architecture_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on Figure 3, (1,): by how many weights HyNet's convolutions and L2-Net's
    differ, "weights_difference", and the number of HyNet's batch norms, "batch_norms"."""
    networks = {of["key"]: of for of in record.numbers["networks"]}
    names = [layer["name"] for layer in networks["hynet"]["layers"]]
    hynet, l2net = (networks[key]["convolutional"] for key in COMPARED)
    counts = {"batch_norms": names.count("BatchNorm2d"), "weights_difference": abs(hynet - l2net)}
    return {name: np.array([float(value)]) for name, value in counts.items()}


def _with_probe(found: Sequence[Found], probe: str) -> dict[str, list[Found]]:
    """The runs that a probe was asked of, by label."""
    return frames.by_label([run for run in found if probe in dict(run.job.probes)])


MEDIAN, NINETIETH = "median", "90th percentile"
TOGETHER = {"map": "each map", "channel": "a batch's maps of a channel"}


def cosines(found: Sequence[Found]) -> pd.DataFrame:
    """|cos| between maps and gradients at the end of training.

    Args:
        found: runs, of which those with the probe `lib.evaluation.orthogonality` count.

    Returns:
        A row a run, layer (from 1) and what is taken `together` ("map" or "channel"): `key`, `label`,
        `seed`, and |cos|'s `median` and `90th percentile`.
    """
    rows = []
    for label, runs in _with_probe(found, "orthogonality").items():
        for run in runs:
            probe = run.probe("orthogonality")
            for together in TOGETHER:
                for layer, (median, ninetieth) in enumerate(probe[together][-1], 1):
                    of = {"key": run.job.name, "label": label, "seed": run.job.seed, "layer": layer}
                    both = {MEDIAN: float(median), NINETIETH: float(ninetieth)}
                    rows.append({**of, "together": together, **both})
    return pd.DataFrame(rows)


def cosines_table(found: Sequence[Found]) -> pd.DataFrame:
    """`cosines` as means over seeds: by label and layer, under what is taken together the median and the
    90th percentile."""
    by = ["label", "layer"]
    table = cosines(found).groupby([*by, "together"], sort=False)[[MEDIAN, NINETIETH]].mean()
    wide = table.unstack("together").swaplevel(axis=1)
    heads = [(name, each) for name in TOGETHER for each in (MEDIAN, NINETIETH)]
    shown = wide[heads].rename(columns=TOGETHER)
    return shown.rename_axis(["network", "layer"])


def cosines_figure(found: Sequence[Found], note: str = "") -> Figure:
    """The 90th percentile of |cos| by layer, a line a norm in the band of its seeds: of each map, and
    of a batch's maps together.

    Args:
        found: as for `cosines`.
        note: stands above.
    """
    table = cosines(found)
    head = f"|cos|, {NINETIETH}"
    table[head] = table[NINETIETH].clip(lower=1e-8)
    with panels(DOUBLE_WIDTH, 2.8, 2, note=note, sharey=True, legend=3) as (figure, [row]):
        for axes, (name, title) in zip(row, TOGETHER.items(), strict=True):
            plots.curves(axes, table[table["together"] == name], "layer", head, "label", marker="o")
            axes.set(title=title, yscale="log", xlabel="convolution")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.label_outer()
    return figure


def descriptors_table(found: Sequence[Found]) -> pd.DataFrame:
    """|cos| between descriptors before normalisation and gradients at the end of training, means over
    seeds: by network, under `triplets alone` and `with R_L2` the median and the 90th percentile."""
    names = {"descriptor_of_triplets": "triplets alone", "descriptor": "with R_L2"}
    rows = {}
    for label, runs in _with_probe(found, "orthogonality").items():
        probes = [run.probe("orthogonality") for run in runs]
        of = {
            shown: np.mean([probe[key][-1] for probe in probes], axis=0) for key, shown in names.items()
        }
        rows[label] = {
            (shown, head): value
            for shown, both in of.items()
            for head, value in zip((MEDIAN, NINETIETH), both, strict=True)
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")


def cosines_values(found: Sequence[Found]) -> dict[str, Measured]:
    """The values of the claims on `cosines`: by "map_{key}" and "channel_{key}" (seeds, layers) the 90th
    percentile of |cos|, and by "median_{key}" its median over maps."""
    values = {}
    for (key, label, together), of in cosines(found).groupby(["key", "label", "together"], sort=False):
        kinds = [(f"{together}_{key}", NINETIETH)]
        kinds += [(f"median_{key}", MEDIAN)] if together == "map" else []
        for name, head in kinds:
            table = of.pivot(index="seed", columns="layer", values=head)
            cells = tuple(f"convolution {layer}" for layer in table.columns)
            values[name] = Measured(table.to_numpy(), cells=cells, label=label)
    return values


def exposures(found: Sequence[Found]) -> pd.DataFrame:
    """What changes of exposure do, a row a run, test set and change.

    Args:
        found: runs, of which those measured by `lib.evaluation.intensity_changes` count.

    Returns:
        `key`, `label`, `seed`, `test_set`, `change`, `fpr95` in percent, its `rise` from no change in
        points, `ratio_spread` and `norm_shift`, both in percent (of a ratio; its logarithm's).
    """
    asked = [run for run in found if run.job.sets_of("intensity_changes")]
    tidy = frames.tidy(asked, "intensity_changes")
    tidy[["number", "change"]] = tidy["metric"].str.split(".", n=1, expand=True).to_numpy()
    by = ["key", "label", "seed", "test_set"]
    order = tidy["change"].unique()
    table = tidy.pivot(index=[*by, "change"], columns="number", values="value")
    table[["ratio_spread", "norm_shift"]] *= 100
    unchanged = table["fpr95"].xs(UNCHANGED, level="change")
    table["rise"] = table["fpr95"] - unchanged.reindex(table.index.droplevel("change")).to_numpy()
    flat = table.reset_index()
    flat["change"] = pd.Categorical(flat["change"], order, ordered=True)
    flat["key"] = pd.Categorical(flat["key"], tidy["key"].unique(), ordered=True)
    return flat.sort_values(["key", "seed", "test_set", "change"]).reset_index(drop=True)


def exposures_table(found: Sequence[Found]) -> pd.DataFrame:
    """`exposures` as means over seeds and test sets: a row a change, under each network `FPR95 (%)`, its
    `rise`, and in percent the `spread` of ‖x‖ / ‖x⁺‖ and the `shift` of ‖x⁺‖."""
    shown = {
        "fpr95": "FPR95 (%)",
        "rise": "rise",
        "ratio_spread": "spread of norms",
        "norm_shift": "shift of norm",
    }
    table = exposures(found)
    means = table.groupby(["change", "label"], observed=True)[list(shown)].mean().rename(columns=shown)
    wide = means.unstack("label").swaplevel(axis=1)
    heads = [(label, of) for label in table["label"].unique() for of in shown.values()]
    return wide[heads].rename_axis("exposure of the second patch")


def exposures_changes(found: Sequence[Found], with_it: str, without: str) -> pd.DataFrame:
    """By change of exposure how much more FPR95 rises with R_L2 than without, in points, with the
    interval over seeds, paired."""
    of = _rises(found)
    pairs, by_name = {}, {}
    for cell, name in enumerate(of[with_it].cells):
        for key in (with_it, without):
            by_name[f"{key} {name}"] = of[key].one(cell)
        pairs[name] = (f"{with_it} {name}", f"{without} {name}")
    return changes_between(by_name, pairs).rename_axis("exposure")


def _by_change(table: pd.DataFrame, column: str) -> dict[str, Measured]:
    """By key (seeds, changes but for none), means over the test sets."""
    changed, values = table[table["change"] != UNCHANGED], {}
    for (key, label), of in changed.groupby(["key", "label"], sort=False, observed=True):
        means = of.groupby(["seed", "change"], observed=True)[column].mean().unstack("change")
        cells = tuple(str(name) for name in means.columns)
        values[str(key)] = Measured(means.to_numpy(), cells=cells, label=str(label))
    return values


def _rises(found: Sequence[Found]) -> dict[str, Measured]:
    return _by_change(exposures(found), "rise")


def exposures_values(found: Sequence[Found]) -> Callable[[Claim], Mapping[str, Measured]]:
    """The values of a claim on `exposures` by its metric: of "rise" (seeds, changes), means over the
    test sets; of "ratio_spread" (seeds, test sets), nothing being changed; of "norm_shift" (seeds,
    gains)."""
    table = exposures(found)
    gains = table[table["change"].astype(str).str.startswith("gain")]
    unchanged = table[table["change"] == UNCHANGED]
    spreads = {
        str(key): Measured(
            of.pivot(index="seed", columns="test_set", values="ratio_spread").to_numpy(),
            cells=tuple(of["test_set"].unique()),
            label=str(label),
        )
        for (key, label), of in unchanged.groupby(["key", "label"], sort=False, observed=True)
    }
    by_metric = {
        "rise": _by_change(table, "rise"),
        "ratio_spread": spreads,
        "norm_shift": _by_change(gains, "norm_shift"),
    }
    return lambda claim: by_metric[claim.metric]
