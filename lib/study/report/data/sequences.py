"""Figures of HPatches (Balntas et al., CVPR 2017): its sequences, its jitter and its patches.

Everything is drawn from files: homography sequences, the release's patch format, and the ``build.json``
of a build. Where `lib.data.hpatches.building` cut the patches, the jitter drawn is that of the patches.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.data.hpatches import release
from lib.data.hpatches.building import REPORT, Plan, sample
from lib.data.hpatches.homographies import HomographySequence
from lib.data.hpatches.release import FILES, IMAGES, LEVELS, file_index
from lib.study.report.data.pictures import ON_GREY, beside, evenly, mosaic, outline, show
from lib.study.report.style import DOUBLE_WIDTH, GREY, panels

# Radii of a region shown to each side of its centre. One outline in 13 of tough jitter goes farther.
REACH = 2.0
# Images beside the reference, of 1 to 5, of which patches are shown at every level.
SHOWN = (1, 3, 5)
_DETECTED = "#FFFFFF"
_DETECTORS = {"hessian": "Hessian", "harris": "Harris", "dog": "DoG"}
_LEFT_OUT = {
    "thinned": "overlapping",
    "outside": "outside",
    "faint": "faint",
    "beyond_limit": "beyond limit",
}


def sequences_figure(sequences: Sequence[HomographySequence]) -> Figure:
    """A contact sheet in grey: a row a sequence, its six images from the reference on.

    Args:
        sequences: one or more.

    Raises:
        ValueError: an image cannot be read.
    """
    width = DOUBLE_WIDTH / IMAGES
    images = [[one.grey(index) for index in range(IMAGES)] for one in sequences]
    heights = [width * min(0.8, max(g.shape[0] / g.shape[1] for g in row)) for row in images]
    height = 0.16 + sum(heights) + 0.2 * len(heights)
    layout = {"rows": len(images), "height_ratios": heights}
    with panels(DOUBLE_WIDTH, height, IMAGES, **layout) as (figure, rows):
        for sequence, row, of_row in zip(sequences, rows, images, strict=True):
            for axes, grey in zip(row, of_row, strict=True):
                show(axes, grey, width * min(1, 0.8 * grey.shape[1] / grey.shape[0]))
                axes.set_anchor("NW")
            beside(row[0], sequence.name, (0, 1), (0, 3), weight="bold")
        for number, axes in enumerate(rows[0], 1):
            beside(axes, "1 (reference)" if number == 1 else str(number), (0, 1), (0, 15))
    return figure


def jitter_figure(sequence: HomographySequence, plan: Plan, regions: int = 2) -> Figure:
    """Regions in the reference image as detected and as jittered, one panel a level.

    White is the region as detected, a circle whose hand shows the dominant orientation. Colours are the
    regions jittered for the five other images, before the homography. Below are the patches that all
    these regions would give in the reference, so that what changes from one to the next is the jitter
    alone. The level's median overlap over all regions of the plan stands in the title.

    The regions drawn are the largest that lie well within the image and apart from each other.

    Args:
        sequence: its reference is read.
        plan: of the same sequence, by `lib.data.hpatches.building.plan_patches`. With the limit and the
            seed of a build it is what was built, and patches have the numbers that they have there.
        regions: how many to draw at most.

    Raises:
        ValueError: no region lies well within the image, or the image cannot be read.
    """
    grey = sequence.grey(0)
    chosen = _well_apart(plan, grey.shape, regions)
    if not chosen:
        raise ValueError(
            f"{sequence.name}: of {len(plan.frames)} regions none lies {REACH:g} radii within the "
            "image; give a larger image or a plan of more patches"
        )
    width = DOUBLE_WIDTH / len(LEVELS)
    height = 0.3 + len(chosen) * (width * (1 + 1 / IMAGES) + 0.35)
    layout = {"rows": 2 * len(chosen), "height_ratios": [IMAGES, 1] * len(chosen)}
    with panels(DOUBLE_WIDTH, height, len(LEVELS), **layout) as (figure, axes):
        for level, column in zip(LEVELS, axes.T, strict=True):
            title = f"{level}: median overlap {plan.report['median_overlap'][level]:.2f}"
            beside(column[0], title, (0.5, 1), (0, 15), weight="bold", ha="center")
            for place, index in enumerate(chosen):
                _draw_jitter(*column[2 * place : 2 * place + 2], grey, plan, index, level)
        for first, index in zip(axes[::2, 0], chosen, strict=True):
            detector = list(_DETECTORS.values())[plan.frames.detector[index]]
            label = f"{sequence.name}, patch {index}: {detector}, radius {_radii(plan)[index]:.0f} px"
            beside(first, label, (0, 1), (0, 3), size=7, color=GREY)
    return figure


def patches_figure(sequences: Sequence[release.Sequence], rows: int = 4) -> Figure:
    """Patches of the same spots in the reference and in other images, at the three levels.

    Rows are evenly spaced through each sequence, so none is picked for its looks; a patch's number
    stands before its row.

    Args:
        sequences: one or more.
        rows: patches of a sequence, at most.

    Raises:
        ValueError: a damaged file.
    """
    files = [FILES[0], *(FILES[file_index(image, level)] for level in LEVELS for image in SHOWN)]
    picked = [evenly(range(one.count), rows) for one in sequences]
    first = 1 + len(SHOWN) * np.arange(len(LEVELS))
    counts = [len(of) for of in picked]
    height = 0.35 + 0.2 * len(sequences) + sum(counts) * (DOUBLE_WIDTH - 0.6) / len(files)
    layout = {"rows": len(sequences), "height_ratios": counts}
    with panels(DOUBLE_WIDTH, height, **layout) as (figure, axes):
        for (one,), sequence, of in zip(axes, sequences, picked, strict=True):
            patches = np.stack([sequence.patches(file)[of] for file in files], axis=1)
            lefts = mosaic(one, patches, of, first)
            one.set_title(sequence.name, loc="left", weight="bold", fontsize=8, pad=3)
        top, middles = axes[0, 0], lefts + patches.shape[-1] / 2
        top.set_xticks(middles, files)
        top.xaxis.tick_top()
        for level, start in zip(LEVELS, first, strict=True):
            middle = middles[start : start + len(SHOWN)].mean()
            at = middle / top.get_xlim()[1]
            beside(top, level, (at, 1), (0, 15), weight="bold", ha="center")
    return figure


def overlaps_table(folder: Path) -> pd.DataFrame:
    """How many patches a build kept of each sequence, whose they are, and how they overlap.

    Args:
        folder: has the ``build.json``.

    Returns:
        A row a sequence, and last one of what was intended: patches, of those by Hessian, Harris and
        DoG (Int64); the median overlap of jittered and detected regions at each level (float64).

    Raises:
        FileNotFoundError: there is no such file, as beside a release that was downloaded.
    """
    table, intended = _read_report(folder)
    levels = table[[f"median_overlap.{level}" for level in LEVELS]].set_axis(LEVELS, axis=1)
    levels.loc["intended"] = intended
    return _kept(table).astype("Int64").reindex(levels.index).join(levels)


def detections_table(folder: Path) -> pd.DataFrame:
    """What became of each sequence's detections in a build.

    Args:
        folder: has the ``build.json``.

    Returns:
        A row a sequence, all int64: detections by Hessian, Harris and DoG; of all these, left out
        since they overlap another one, leave one of the other images, have no contrast, or were beyond
        the limit asked for; and the patches that remain.

    Raises:
        FileNotFoundError: there is no such file, as beside a release that was downloaded.
    """
    table, _ = _read_report(folder)
    detected = table[[f"detected.{name}" for name in _DETECTORS]].set_axis(_DETECTORS.values(), axis=1)
    left_out = table[list(_LEFT_OUT)].rename(columns=_LEFT_OUT)
    return detected.join([left_out, _kept(table)["patches"]])


def _kept(table: pd.DataFrame) -> pd.DataFrame:
    kept = table[[f"patches.{name}" for name in _DETECTORS]].set_axis(_DETECTORS.values(), axis=1)
    return kept.assign(patches=kept.sum(axis=1))[["patches", *_DETECTORS.values()]]


def _read_report(folder: Path) -> tuple[pd.DataFrame, Mapping[str, float]]:
    """Of a build: a row a sequence, with columns like ``patches.dog``, and the intended overlaps."""
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    table = pd.json_normalize(report["sequences"]).set_index("name").rename_axis("Sequence")
    return table, report["intended_overlap"]


def _radii(plan: Plan) -> np.ndarray:
    """(N,) radii of a plan's regions as detected, px."""
    return np.linalg.norm(plan.regions(FILES[0])[:, :, 0], axis=1)


def _well_apart(plan: Plan, shape: tuple[int, int], most: int) -> list[int]:
    """Regions, the largest first, whose surroundings of `REACH` radii are in the image and disjoint."""
    position, reach = plan.frames.position, REACH * _radii(plan)
    border = np.minimum(position, np.array(shape[::-1]) - 1 - position).min(axis=1)
    chosen: list[int] = []
    for index in np.argsort(-reach, kind="stable"):
        away = np.abs(position[chosen] - position[index]).max(axis=1)
        if border[index] >= reach[index] and (away >= reach[chosen] + reach[index]).all():
            chosen.append(int(index))
    return chosen[:most]


def _draw_jitter(axes: Axes, below: Axes, grey: np.ndarray, plan: Plan, index: int, level: str) -> None:
    """A region as detected and as jittered for five images, and their patches below."""
    files = [FILES[file_index(image, level)] for image in range(IMAGES)]
    colours = [_DETECTED, *ON_GREY[: IMAGES - 1]]
    regions = np.stack([plan.regions(file)[index] for file in files])
    # The whole pixels around the region; centres of pixels are whole numbers.
    reach = REACH * _radii(plan)[index]
    x, y = np.round(plan.frames.position[index] - reach).astype(int).clip(0)
    crop = grey[y : y + round(2 * reach), x : x + round(2 * reach)]
    show(axes, crop, DOUBLE_WIDTH / len(LEVELS), (x, y))
    # As detected comes last, on top.
    for region, colour in list(zip(regions, colours, strict=True))[::-1]:
        outline(axes, region, colour)
    axes.set_anchor("S")
    patches = sample(grey, np.eye(3), regions)
    lefts, side = mosaic(below, patches[None], [""]), patches.shape[-1]
    below.set_xticks(lefts + side / 2, files)
    for left, colour in list(zip(lefts, colours, strict=True))[1:]:
        below.plot([left, left + side], [side + 4] * 2, color=colour, lw=2, clip_on=False)
    below.set_ylim(side + 6, 0)
    below.set_anchor("N")
