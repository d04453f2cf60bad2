"""Figures of HPatches (Balntas et al., CVPR 2017): its sequences, its jitter and its patches.

Everything is drawn from files: homography sequences, the release's patch format, and the ``build.json``
of a build. Where `lib.data.hpatches.building` cut the patches, the jitter drawn is that of the patches.
matplotlib, OpenCV and torch are imported when they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.data.hpatches import release
from lib.data.hpatches.homographies import HomographySequence
from lib.data.hpatches.release import FILES, IMAGES, LEVELS, file_index
from lib.reporting.figures import DOUBLE_WIDTH, GREY, new_figure, style
from lib.reporting.scene_figures import ON_GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lib.data.hpatches.building import Plan

# Pixels an inch of photographs, as a notebook shows them: with more, files would be large for nothing.
DENSITY = 100
# Inches: of a line of text, between pictures, and before the grid's first column for patches' numbers.
_LINE, _GAP, _NUMBERS = 0.17, 0.05, 0.35
# Radii of a region shown to each side of its centre. One outline in 5000 of tough jitter goes farther.
REACH = 2.0
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
        ValueError: there is no sequence, or an image cannot be read.
    """
    if not sequences:
        raise ValueError("no sequence to show; give one at least")
    width = (DOUBLE_WIDTH - (IMAGES - 1) * _GAP) / IMAGES
    lefts = [column * (width + _GAP) for column in range(IMAGES)]
    rows = [[_fitted(one.grey(index), width) for index in range(IMAGES)] for one in sequences]
    heights = [max(shown * grey.shape[0] / grey.shape[1] for grey, shown in row) for row in rows]
    tops = np.cumsum([2 * _LINE, *(height + _LINE + _GAP for height in heights)])
    with style():
        figure, axes = _sheet(tops[-1] - _LINE - _GAP)
        for sequence, row, top in zip(sequences, rows, tops, strict=False):
            for (grey, shown), left in zip(row, lefts, strict=True):
                _picture(axes, grey, left, top, shown)
            _above(axes, 0, top, sequence.name, ha="left", weight="bold")
        for number, left in enumerate(lefts, 1):
            label = f"{number} (reference)" if number == 1 else str(number)
            _above(axes, left, tops[0] - _LINE, label, ha="left")
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
    width = (DOUBLE_WIDTH - (len(LEVELS) - 1) * 2 * _GAP) / len(LEVELS)
    step = width + _strip_width(width) + 2 * _LINE + 3 * _GAP
    with style():
        figure, axes = _sheet(2 * _LINE + len(chosen) * step - _LINE - _GAP)
        for place, level in enumerate(LEVELS):
            left = place * (width + 2 * _GAP)
            title = f"{level}: median overlap {plan.report.median_overlap[level]:.2f}"
            _above(axes, left + width / 2, _LINE, title, weight="bold")
            for row, index in enumerate(chosen):
                _draw_jitter(axes, grey, plan, index, level, (left, 2 * _LINE + row * step, width))
        for row, index in enumerate(chosen):
            detector = list(_DETECTORS.values())[plan.frames.detector[index]]
            label = f"{sequence.name}, patch {index}: {detector}, radius {_radii(plan)[index]:.0f} px"
            _above(axes, 0, 2 * _LINE + row * step, label, ha="left", size=7, color=GREY)
    return figure


def patches_figure(
    sequences: Sequence[release.Sequence], rows: int = 4, images: Sequence[int] = (1, 3, 5)
) -> Figure:
    """Patches of the same spots in the reference and in other images, at the three levels.

    Rows are evenly spaced through each sequence, so none is picked for its looks; a patch's number
    stands before its row.

    Args:
        sequences: one or more.
        rows: patches of a sequence, at most.
        images: of 1 to 5, a column each at every level.

    Raises:
        ValueError: no sequence, no row or no image asked for, no such image, or a damaged file.
    """
    if not sequences or rows < 1 or not images:
        raise ValueError("no patch to show; give a sequence, a row and an image at least")
    if min(images) < 1:
        raise ValueError(f"images are 1 to {IMAGES - 1}, got {min(images)}; ref is shown in any case")
    files = [FILES[0], *(FILES[file_index(image, level)] for level in LEVELS for image in images)]
    # Levels stand three gaps apart, images one.
    width = DOUBLE_WIDTH - _NUMBERS - (len(files) - 1 + 2 * len(LEVELS)) * _GAP
    width /= len(files)
    lefts = [_NUMBERS] + [
        _NUMBERS + place * (width + _GAP) + 2 * _GAP * (1 + (place - 1) // len(images))
        for place in range(1, len(files))
    ]
    picked = [np.linspace(0, s.count - 1, min(rows, s.count)).round().astype(int) for s in sequences]
    tops = np.cumsum([2 * _LINE, *(len(of) * (width + _GAP) + _LINE + _GAP for of in picked)])
    with style():
        figure, axes = _sheet(tops[-1] - _LINE - 2 * _GAP)
        for sequence, of, top in zip(sequences, picked, tops, strict=False):
            down = top + np.arange(len(of)) * (width + _GAP)
            for file, left in zip(files, lefts, strict=True):
                for patch, here in zip(sequence.patches(file)[of], down, strict=True):
                    _picture(axes, patch, left, here, width)
            for index, here in zip(of, down, strict=True):
                axes.text(
                    _NUMBERS - _GAP, here + width / 2, str(index), ha="right", va="center", size=7,
                    color=GREY,
                )  # fmt: skip
            heading = top - _LINE if top == tops[0] else top
            _above(axes, 0, heading, sequence.name, ha="left", weight="bold")
        for file, left in zip(files, lefts, strict=True):
            _above(axes, left + width / 2, tops[0], file, size=7, color=GREY)
        for place, level in enumerate(LEVELS):
            first, last = lefts[1 + place * len(images)], lefts[(1 + place) * len(images)] + width
            _above(axes, (first + last) / 2, tops[0] - _LINE, level, weight="bold")
    return figure


def overlaps_table(path: Path) -> pd.DataFrame:
    """How many patches a build kept of each sequence, whose they are, and how they overlap.

    Args:
        path: ``build.json``, or the folder that has it.

    Returns:
        A row a sequence, and last one of what was intended: patches, of those by Hessian, Harris and
        DoG (Int64); the median overlap of jittered and detected regions at each level (float64).

    Raises:
        FileNotFoundError: there is no such file, as beside a release that was downloaded.
        ValueError: it is no report of a build.
    """
    report = _read_report(path)
    try:
        rows = {
            one["name"]: {
                "patches": sum(one["patches"].values()),
                **{shown: one["patches"][name] for name, shown in _DETECTORS.items()},
                **{level: one["median_overlap"][level] for level in LEVELS},
            }
            for one in report["sequences"]
        }
        rows["intended"] = {level: report["intended_overlap"][level] for level in LEVELS}
    except (KeyError, TypeError, AttributeError) as error:
        raise _no_report(path, error) from error
    counts = ["patches", *_DETECTORS.values()]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=[*counts, *LEVELS])
    return table.astype(dict.fromkeys(counts, "Int64")).rename_axis("Sequence")


def detections_table(path: Path) -> pd.DataFrame:
    """What became of each sequence's detections in a build.

    Args:
        path: ``build.json``, or the folder that has it.

    Returns:
        A row a sequence, all int64: detections by Hessian, Harris and DoG; of all these, left out
        since they overlap another one, leave one of the other images, have no contrast, or were beyond
        the limit asked for; and the patches that remain.

    Raises:
        FileNotFoundError: there is no such file, as beside a release that was downloaded.
        ValueError: it is no report of a build.
    """
    report = _read_report(path)
    try:
        rows = {
            one["name"]: {
                **{shown: one["detected"][name] for name, shown in _DETECTORS.items()},
                **{shown: one[key] for key, shown in _LEFT_OUT.items()},
                "patches": sum(one["patches"].values()),
            }
            for one in report["sequences"]
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise _no_report(path, error) from error
    columns = [*_DETECTORS.values(), *_LEFT_OUT.values(), "patches"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.astype("int64").rename_axis("Sequence")


def _read_report(path: Path) -> dict:
    from lib.data.hpatches.building import REPORT

    path = Path(path)
    path = path / REPORT if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: only patches that were cut here have a report of how"
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _no_report(path, error) from error


def _no_report(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is no report of a build ({error!r}): build the patches again")


def _sheet(height: float) -> tuple[Figure, Axes]:
    """A figure of double width whose one pair of axes fills it, in inches from its upper left corner."""
    figure, (axes,) = new_figure(DOUBLE_WIDTH, height)
    figure.set_layout_engine("none")
    axes.set_position([0, 0, 1, 1])
    axes.set_axis_off()
    axes.set(xlim=(0, DOUBLE_WIDTH), ylim=(height, 0))
    return figure, axes


def _picture(axes: Axes, grey: np.ndarray, left: float, top: float, width: float) -> None:
    bottom = top + width * grey.shape[0] / grey.shape[1]
    axes.imshow(
        grey, cmap="gray", vmin=0, vmax=255, interpolation="nearest", aspect="auto",
        extent=(left, left + width, bottom, top),
    )  # fmt: skip


def _above(axes: Axes, x: float, y: float, label: str, ha: str = "center", **text: object) -> None:
    axes.text(x, y - 0.03, label, ha=ha, va="bottom", **text)


def _reduced(grey: np.ndarray, width: float) -> np.ndarray:
    """A picture with no more pixels than `DENSITY` has for it when it is so many inches wide."""
    import cv2

    scale = DENSITY * width / grey.shape[1]
    if scale >= 1:
        return grey
    size = [max(1, round(scale * side)) for side in grey.shape[::-1]]
    return cv2.resize(grey, size, interpolation=cv2.INTER_AREA)


def _fitted(grey: np.ndarray, width: float) -> tuple[np.ndarray, float]:
    """An image as it is shown in a cell of 5:4 that is so many inches wide, and its own width."""
    shown = width * min(1, 0.8 * grey.shape[1] / grey.shape[0])
    return _reduced(grey, shown), shown


def _radii(plan: Plan) -> np.ndarray:
    """(N,) radii of a plan's regions as detected, px."""
    return np.linalg.norm(plan.frames.regions[:, :, 0], axis=1)


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


def _strip_width(width: float) -> float:
    """Inches of one of six patches below a picture of a width."""
    return (width - (IMAGES - 1) * _GAP) / IMAGES


def _draw_jitter(
    axes: Axes,
    grey: np.ndarray,
    plan: Plan,
    index: int,
    level: str,
    place: tuple[float, float, float],
) -> None:
    """A region as detected and as jittered for five images, and their patches below."""
    from lib.data.hpatches.building import sample

    left, top, width = place
    files = [FILES[file_index(image, level)] for image in range(IMAGES)]
    colours = [_DETECTED, *ON_GREY[: IMAGES - 1]]
    regions = np.stack([plan.regions(file)[index] for file in files])
    # The whole pixels around the region.
    reach = REACH * _radii(plan)[index]
    first = np.round(plan.frames.position[index] - reach).astype(int).clip(0)
    x, y, side = *first, round(2 * reach)
    crop = grey[y : y + side, x : x + side]
    _picture(axes, _reduced(crop, width), left, top, width)
    # Pixels' centres are whole numbers, their outer edges lie half a pixel farther.
    inches = width / crop.shape[1]
    outlines = inches * regions
    outlines[:, :, 2] += [left, top] - inches * (first - 0.5)
    height = inches * crop.shape[0]
    # As detected comes last, on top.
    for outline, colour in list(zip(outlines, colours, strict=True))[::-1]:
        _draw_outline(axes, outline, colour, (left, top, width, height))
    side = _strip_width(width)
    below = top + height + _GAP
    for number, patch in enumerate(sample(grey, np.eye(3), regions)):
        start = left + number * (side + _GAP)
        _picture(axes, _reduced(patch, side), start, below, side)
        line = [below + side + _GAP / 2] * 2
        if number:
            axes.plot([start, start + side], line, color=colours[number], lw=2, solid_capstyle="butt")
        _above(axes, start + side / 2, line[0] + _LINE, files[number], size=7, color=GREY)


def _draw_outline(
    axes: Axes, region: np.ndarray, colour: str, box: tuple[float, float, float, float]
) -> None:
    """What an affine map makes of the unit circle and of its hand along x, as far as it is in a box."""
    from matplotlib.patches import Rectangle

    angle = np.linspace(0, 2 * np.pi, 97)
    circle = region @ np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)])
    # The circle starts where the hand ends.
    line = np.column_stack([region[:, 2], circle])
    left, top, width, height = box
    # A dark rim keeps light lines visible on light ground. Smooth edges would double the file's size.
    for shade, thickness in (("black", 2.2), (colour, 1.2)):
        (drawn,) = axes.plot(*line, color=shade, lw=thickness, antialiased=False)
        drawn.set_clip_path(Rectangle((left, top), width, height, transform=axes.transData))
