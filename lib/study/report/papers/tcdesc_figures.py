"""TCDesc's Figures 1 and 2 (Pan et al.): neighbourhoods of descriptors, and matches on images; and what
topology does late in training.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from lib.data.hpatches.homographies import MATCHED as IMAGES
from lib.data.hpatches.homographies import ImageSequences
from lib.statistics.intervals import Measured
from lib.study.claims import Claim
from lib.study.claims.measured import OfClaim, over_things
from lib.study.open import Found, Study
from lib.study.report import frames, plots
from lib.study.report.data.pictures import show
from lib.study.report.hpatches import things_shown
from lib.study.report.papers.tcdesc import MATCHED, with_topology
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, look, marker_legend, panels

Probe = Mapping[str, np.ndarray]
RIGHT, WRONG = PALETTE[2], PALETTE[1]
SIDES = (("anchor", "o"), ("positive", "^"))
UNSHARED = "of unshared (%)"
TOO_SHORT = "the quick training is too short to overfit, whatever the loss"
# Lines that grey prints tell apart too.
MATCHES = {"right": {"color": RIGHT, "ls": "-"}, "wrong": {"color": WRONG, "ls": (0, (4, 2))}}


def neighbourhoods(run: Found) -> Probe:
    """The probe `lib.probes.neighbourhoods` of a run, among points of its first test set."""
    return run.probe("neighbourhoods", run.job.sets_of("fpr95")[0])


def figure1(found: Sequence[Found], note: str = "") -> Figure:
    """Neighbourhoods of matching descriptors, a row a method, a column a pair.

    Args:
        found: of `lib.study.artefacts.tcdesc.figure1`; of each method the first run is drawn.
        note: stands above.
    """
    first = {label: neighbourhoods(runs[0]) for label, runs in frames.by_label(found).items()}
    drawn = len(next(iter(first.values()))["near"])
    size = (DOUBLE_WIDTH, 0.8 + 2.5 * len(first), drawn, len(first))
    with panels(*size, note=note) as (figure, grid):
        for row, (label, probe) in zip(grid, first.items(), strict=True):
            for pair, axes in enumerate(row):
                _neighbourhood(axes, probe, pair)
            row[0].set_ylabel(label)
        colours = {"matched neighbour": RIGHT, "neighbour of one alone": WRONG, "the pair": "black"}
        entries = {name: {"marker": "s", "color": colour} for name, colour in colours.items()}
        entries["neighbour of one alone"]["mfc"] = "none"
        shapes = {name: {"marker": marker, "color": GREY} for name, marker in SIDES}
        marker_legend(figure, entries | shapes, ncols=5)
    return figure


def _neighbourhood(axes: Axes, probe: Probe, pair: int) -> None:
    near, plane = probe["near"][pair], probe["plane"][pair].astype(float)
    both = np.intersect1d(*near)
    for (_, marker), own, places in zip(SIDES, near, plane, strict=True):
        dots = {"marker": marker, "ls": "none", "mew": 0.8}
        for some, colour, of in (
            (np.isin(own, both), RIGHT, {}),
            (~np.isin(own, both), WRONG, {"mfc": "none"}),
        ):
            lines = [(places[pair], places[one]) for one in own[some]]
            axes.add_collection(LineCollection(lines, colors=colour, lw=0.5, alpha=0.6))
            axes.plot(*places[own[some]].T, color=colour, ms=4.5, alpha=0.85, **dots, **of)
        axes.plot(*places[pair], color="black", ms=7, zorder=3, **dots)
    told = f"{len(both)} of {len(near[0])} match, d$_T$ = {probe['topology'][-1, pair]:.2f}"
    axes.set_title(f"{told}\nplane: {probe['explained'][pair]:.0%} of the variance", fontsize=8)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)


def stages(found: Sequence[Found]) -> pd.DataFrame:
    """Neighbourhoods through training, means over pairs: a row a run and stage, with `stage`, the share
    of `matched (%)` neighbours, that of pairs all of whose neighbours match, `all match (%)`, the
    topology distance `d_T`, what it is `of unshared (%)`, the same weights if no neighbour were shared,
    and the Euclidean `d_E`; `key`, `label` and `seed` tell runs apart."""
    rows = []
    for run in found:
        probe = neighbourhoods(run)
        numbers = {
            "stage": probe["stage"].astype(float).round(3),
            MATCHED: 100 * probe["matched"].astype(float).mean(1),
            "all match (%)": 100 * (probe["matched"] == 1).mean(1),
            "d_T": probe["topology"].astype(float).mean(1),
            UNSHARED: 100 * probe["topology"].astype(float).mean(1) / probe["unshared"],
            "d_E": probe["euclidean"].astype(float).mean(1),
        }
        about = {"key": run.job.name, "label": run.job.label, "seed": run.job.seed}
        rows.append(pd.DataFrame(numbers).assign(**about))
    return pd.concat(rows, ignore_index=True)


def stages_table(found: Sequence[Found]) -> pd.DataFrame:
    """`stages` as means over seeds, a row a stage, under each number a column a method."""
    numbers = [MATCHED, "all match (%)", "d_T", UNSHARED, "d_E"]
    means = stages(found).groupby(["stage", "label"], sort=False)[numbers].mean()
    return means.unstack("label")


def stages_figure(found: Sequence[Found], note: str = "") -> Figure:
    """The share of matched neighbours by stage, a line a method in the band of its seeds; and by step
    what TCDesc's λ makes of it.

    Args:
        found: as for `figure1`.
        note: stands above.
    """
    names = {"mean_lambda": "mean λ", "capped_share": "share with λ = 0.5"}
    curves = frames.steps(with_topology(found)).rename(columns=names)
    with panels(DOUBLE_WIDTH, 2.5, 3, note=note, legend=2) as (figure, [row]):
        plots.curves(row[0], stages(found), "stage", MATCHED, "label", marker="o")
        row[0].set_xlabel("share of training")
        for axes, name in zip(row[1:], names.values(), strict=True):
            # As the second method on the left.
            plots.curves(axes, curves, "step", name, "label", **look(1))
            axes.set_ylim(bottom=0)
    return figure


def figure1_values(found: Sequence[Found]) -> dict[str, Measured]:
    """The values of the claims on Figure 1, (seeds, 1), shares in percent: at the end of training by
    "matched_{key}", "perfect_{key}", "topology_{key}" and "unshared_{key}" what `stages` has, and "half"
    of the neighbours; of TCDesc over the first and the last tenth of the steps "matched_first" and
    "matched_last", "lambda_…" and "capped_…"."""
    end = stages(found).groupby(["key", "seed"], sort=False).last()
    named = {"matched": MATCHED, "perfect": "all match (%)", "topology": "d_T", "unshared": UNSHARED}
    label = {run.job.name: run.job.label for run in found}
    values = {
        f"{name}_{key}": Measured(of[column].to_numpy()[:, None], label=label[key])
        for key, of in end.groupby(level="key", sort=False)
        for name, column in named.items()
    }
    curves = [run.content["curve"] for run in with_topology(found)]
    values["half"] = Measured(np.array([50.0]), label="half of them")
    scales = {"matched_share": 100, "mean_lambda": 1, "capped_share": 100}
    for name, curve in zip(("matched", "lambda", "capped"), scales, strict=True):
        ends = np.array([frames.tenths(pd.Series(of[curve])) for of in curves]) * scales[curve]
        when = {"first": "the first tenth", "last": "the last tenth"}
        for (tenth, told), of in zip(when.items(), ends.T, strict=True):
            values[f"{name}_{tenth}"] = Measured(of[:, None], label=told)
    return values


def matches(found: Sequence[Found], images: str) -> dict[str, list[Probe]]:
    """The probes of matches on a set of images, by descriptor and detector, a run after the other.

    Args:
        found: of `lib.study.artefacts.tcdesc.figure2`.
        images: the set's name.
    """
    probes: dict[str, list[Probe]] = {}
    for run in found:
        for name, shown in (("matches_on_dog", "own keypoints"), ("matches_on_brisk", "BRISK")):
            if (name, images) in run.job.probes:
                probes.setdefault(f"{run.job.label}, {shown}", []).append(run.probe(name, images))
    return dict(sorted(probes.items(), key=lambda of: "own" not in of[0]))


def matches_table(probes: Mapping[str, Sequence[Probe]]) -> pd.DataFrame:
    """Of `matches` means over pairs of images and seeds, under each kind of sequences a pair's `right`
    and `wrong` matches and the percentage that is right, `share`."""
    rows: dict[str, dict[tuple[str, str], float]] = {}
    for shown, of in probes.items():
        for kind, some in _kinds(of[0]).items():
            right, every = (np.mean([each[name][some] for each in of]) for name in ("right", "matches"))
            shares = {"right": right, "wrong": every - right, "share": 100 * right / every}
            rows.setdefault(shown, {}).update({(kind, name): value for name, value in shares.items()})
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("descriptor, detector")


def _kinds(probe: Probe) -> dict[str, np.ndarray]:
    """By kind of sequences, of those that there are, which of a probe's are of it."""
    starts = {"illumination": "i_", "viewpoint": "v_"}
    some = {kind: np.char.startswith(probe["name"], of) for kind, of in starts.items()}
    return {kind: of for kind, of in some.items() if of.any()}


def figure2(probes: Mapping[str, Sequence[Probe]], images: ImageSequences) -> Figure:
    """Matches of each descriptor's first run on pairs of images, a row a pair: the second image below
    the first, or right of it where they are higher than wide.

    Args:
        probes: of `matches`.
        images: that they are of.
    """
    by_name = {sequence.name: sequence for sequence in images.sequences}
    first = {shown: of[0] for shown, of in probes.items()}
    names = next(iter(first.values()))["name"]
    drawn = np.unique(np.concatenate([probe["of"] for probe in first.values()]))
    pairs = [[by_name[names[place]].grey(index) for index in IMAGES] for place in drawn]
    joined, width = [_joined(pair) for pair in pairs], DOUBLE_WIDTH / len(first)
    heights = [width * grey.shape[0] / grey.shape[1] for grey, _ in joined]
    size = (DOUBLE_WIDTH, 0.5 + sum(heights) + 0.2 * len(pairs), len(first), len(pairs))
    with panels(*size, height_ratios=heights) as (figure, grid):
        for row, place, (grey, second) in zip(grid, drawn, joined, strict=True):
            for axes, (shown, probe) in zip(row, first.items(), strict=True):
                show(axes, grey, width)
                _matches(axes, probe, place, second)
                counts = f"{probe['right'][place]} of {probe['matches'][place]} right"
                head = f"{shown}\n" if place == drawn[0] else ""
                axes.set_title(f"{head}{names[place]}: {counts}", fontsize=7)
                axes.set_axis_off()
        marker_legend(figure, MATCHES, ncols=2)
    return figure


def _joined(pair: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[int, int]]:
    """Two images as one, and the place (x, y) of the second's corner in it."""
    height, width = pair[0].shape
    x, y = (width, 0) if height > width else (0, height)
    joined = np.zeros(np.maximum((height, width), np.add((y, x), pair[1].shape)), pair[0].dtype)
    joined[:height, :width] = pair[0]
    joined[y : y + pair[1].shape[0], x : x + pair[1].shape[1]] = pair[1]
    return joined, (x, y)


def _matches(axes: Axes, probe: Probe, place: int, second: tuple[int, int]) -> None:
    of = probe["of"] == place
    for name, line in MATCHES.items():
        some = probe["places"][of & (probe["is_right"] == (name == "right"))]
        lines = some.reshape(-1, 2, 2) + np.array([(0, 0), second])
        axes.add_collection(LineCollection(lines, lw=0.5, alpha=0.9, **line))


def figure2_values(found: Sequence[Found], study: Study) -> OfClaim:
    """The values of a claim on Figure 2 on the study's own images, by its metric "right_{kind}" or
    "wrong_{kind}": (seeds, 1) matches of a pair of images on BRISK's keypoints, the mean over sequences,
    by key; with resamples of what these show."""
    own = study.place.source.own_hpatches
    wanted, runs = ("matches_on_brisk", own.images if own else None), {}
    for run in found:
        if wanted in run.job.probes:
            runs.setdefault(run.job.name, []).append(run.probe(*wanted))

    def values(claim: Claim) -> Mapping[str, Measured]:
        name, _, kind = claim.metric.partition("_")
        counted = {"right": lambda of: of["right"], "wrong": lambda of: of["matches"] - of["right"]}
        measured = {}
        for key, of in runs.items():
            some = _kinds(of[0]).get(kind)
            if some is not None:
                counts = [counted[name](probe)[some] for probe in of]
                table = pd.DataFrame(counts, columns=of[0]["name"][some])
                means = table.mean(axis=1).to_numpy()[:, None]
                moved, things = over_things(table, things_shown(table.columns))
                drawn = (means + moved)[None, :, None] if things > 1 else None
                measured[key] = Measured(means, drawn, max(1, things - 1), (kind,))
        return measured

    return values


def by_stage(found: Sequence[Found]) -> pd.DataFrame:
    """FPR95 on all pairs by stage of training: a row a run, with `stage`, that on the set trained on,
    `train`, the mean of those tested on, `test`, and by how much the latter is higher, the `gap`.

    Args:
        found: of `lib.study.artefacts.tcdesc.overfitting`.
    """
    tidy = frames.tidy(found, "fpr95_by_stage").rename(columns={"metric": "stage"})
    tidy["of"] = np.where(tidy["test_set"] == tidy["train_set"], "train", "test")
    means = tidy.groupby([*frames.RUN, "stage", "of"], sort=False)["value"].mean().unstack("of")
    table = means[["train", "test"]].assign(gap=means["test"] - means["train"]).reset_index()
    return table.astype({"stage": float})


def overfitting_figure(found: Sequence[Found], note: str = "") -> Figure:
    """FPR95 on the test sets, and by how much it is above that on the set trained on, by stage of
    training, a line a method in the band of its seeds."""
    table = by_stage(found).rename(columns={"test": "FPR95 on test sets (%)", "gap": "gap (points)"})
    with panels(DOUBLE_WIDTH, 2.6, 2, note=note, legend=2) as (figure, [row]):
        for axes, name in zip(row, ("FPR95 on test sets (%)", "gap (points)"), strict=True):
            plots.curves(axes, table, "stage", name, "label", marker="o")
            axes.set_xlabel("share of training")
    return figure


def overfitting_values(found: Sequence[Found]) -> dict[str, Measured | str]:
    """The values of the claims on it, one cell: of each key FPR95 on the test sets after the first
    stage, "first_{key}", at the end, "last_…", and at the stage that is lowest in the mean over the
    other seeds, "best_…", since the lowest of several would be below the last by chance alone; the gap
    at the end, "gap_…"; and 100 ln FPR95 after the first stage and at the end, "log_first_…" and
    "log_last_…", since FPR95 falls several times over and what is taken off in points with it."""
    values = {}
    for (key, label), of in by_stage(found).groupby(["key", "label"], sort=False):
        test, gap = (of.pivot(index="seed", columns="stage", values=name) for name in ("test", "gap"))
        lowest = [(test.drop(seed) if len(test) > 1 else test).mean().idxmin() for seed in test.index]
        best = pd.Series([test.loc[seed, at] for seed, at in zip(test.index, lowest, strict=True)])
        columns = {"first": test.iloc[:, 0], "last": test.iloc[:, -1], "best": best}
        logs = {f"log_{name}": 100 * np.log(columns[name]) for name in ("first", "last")}
        for name, each in (columns | logs | {"gap": gap.iloc[:, -1]}).items():
            values[f"{name}_{key}"] = Measured(each.to_numpy()[:, None], label=f"{label} ({name})")
        if found[0].content.get("profile") == "quick":
            values[f"best_{key}"] = TOO_SHORT
    return values
