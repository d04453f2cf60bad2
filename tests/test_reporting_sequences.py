"""Figures of HPatches: what is drawn is what the files hold and what the builder did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from lib.data.hpatches.building import REPORT, Plan, build_release, plan_patches
from lib.data.hpatches.detection import MAGNIFICATION
from lib.data.hpatches.homographies import (
    HomographySequence,
    read_homography_sequence,
    read_homography_sequences,
    write_homography_sequence,
)
from lib.data.hpatches.jitter import MEDIAN_OVERLAP, draw_jitter
from lib.data.hpatches.release import FILES, LEVELS, read_sequence, write_sequence
from lib.features.keypoints import Keypoints
from lib.study.report.data import sequences as module
from lib.study.report.data.pictures import DENSITY, GAP
from lib.study.report.data.sequences import (
    REACH,
    detections_table,
    jitter_figure,
    overlaps_table,
    patches_figure,
    sequences_figure,
)
from lib.study.report.style import DOUBLE_WIDTH

STILL = np.repeat(np.eye(3)[None], 5, axis=0)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> HomographySequence:
    """Six equal images of blobs of many sizes, so that all that jitter alone changes is patches."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:240, :320]
    image = np.full(y.shape, 110.0)
    for _ in range(70):
        cx, cy, size = rng.uniform(0, 320), rng.uniform(0, 240), rng.uniform(2, 7)
        image += rng.uniform(-90, 90) * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * size**2))
    folder = tmp_path_factory.mktemp("sequences") / "i_blobs"
    write_homography_sequence(folder, [image.clip(0, 255).astype(np.uint8)] * 6, STILL)
    return read_homography_sequence(folder)


@pytest.fixture(scope="module")
def built(still: HomographySequence) -> Path:
    """The folder of a release made of it."""
    release = still.folder.parent / "made" / "hpatches-release"
    build_release([still], release, 40, 5)
    return release


@pytest.fixture
def release(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, count in (("v_one", 9), ("i_two", 2)):
        columns = {file: rng.integers(0, 256, (count, 65, 65), dtype=np.uint8) for file in FILES}
        write_sequence(tmp_path / name, columns)
    return tmp_path


def a_plan(position: np.ndarray, radius: np.ndarray, orientation: float = 0.0) -> Plan:
    rng = np.random.default_rng(1)
    count = len(position)
    frames = Keypoints(
        np.asarray(position, float).reshape(count, 2),
        np.asarray(radius, float) / MAGNIFICATION,
        np.full(count, orientation),
        detector=np.arange(count) % 3,
    )
    jitter = {f"{level[0]}{n}": draw_jitter(count, level, rng) for level in LEVELS for n in range(1, 6)}
    medians = {"easy": 0.91, "hard": 0.82, "tough": 0.73}
    return Plan(frames, jitter, {"median_overlap": medians})


def pictures(figure) -> list[np.ndarray]:
    """What is drawn in each pair of axes, row by row."""
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes]


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def inches(axes) -> tuple[float, float, float, float]:
    """Left, right, lower and upper edge of a picture."""
    axes.figure.draw_without_rendering()
    box = axes.get_window_extent()
    return tuple(value / axes.figure.dpi for value in (box.x0, box.x1, box.y0, box.y1))


def disjoint(figure) -> bool:
    boxes = [inches(axes) for axes in figure.axes]
    return all(
        a[1] <= b[0] + 1e-9 or b[1] <= a[0] + 1e-9 or a[3] <= b[2] + 1e-9 or b[3] <= a[2] + 1e-9
        for n, a in enumerate(boxes)
        for b in boxes[:n]
    )


def cells(axes, side: int = 65) -> list[list[np.ndarray]]:
    """The patches of a mosaic, found by the white between them."""
    canvas = np.asarray(axes.images[0].get_array())
    white = [(canvas == 255).all(axis=axis) for axis in (1, 0)]
    starts = []
    for blank in white:
        edges = np.flatnonzero(np.diff(np.concatenate([[True], blank, [True]]).astype(int)))
        starts.append(edges[::2])
        assert set(np.diff(edges)[::2]) == {side}
        assert set(np.diff(edges)[1::2]) <= {GAP, 3 * GAP}
    return [[canvas[top : top + side, left : left + side] for left in starts[1]] for top in starts[0]]


def test_a_row_of_the_contact_sheet_is_a_sequences_six_images_in_order(tmp_path: Path):
    for place, name in enumerate(("i_low", "v_high")):
        images = [np.full((30, 40), 100 * place + 10 * n, np.uint8) for n in range(6)]
        write_homography_sequence(tmp_path / name, images, STILL)
    figure = sequences_figure(read_homography_sequences(tmp_path))
    assert [picture.mean() for picture in pictures(figure)] == [
        100 * place + 10 * n for place in range(2) for n in range(6)
    ]
    boxes = [inches(axes) for axes in figure.axes]
    for row in (boxes[:6], boxes[6:]):
        assert len({round(upper, 6) for _, _, _, upper in row}) == 1
        lefts = [left for left, *_ in row]
        assert lefts == sorted(lefts)
    assert boxes[0][2] > boxes[6][3]
    assert texts(figure) == ["i_low", "1 (reference)", *"23456", "v_high"]


def test_large_and_upright_images_are_reduced_to_their_cell(tmp_path: Path):
    shapes = [(900, 300), (300, 900), (600, 600), (250, 300), (30, 40), (900, 300)]
    images = [np.full(shape, 7, np.uint8) for shape in shapes]
    write_homography_sequence(tmp_path / "v_mixed", images, STILL)
    figure = sequences_figure(read_homography_sequences(tmp_path))
    for axes, picture, (height, width) in zip(figure.axes, pictures(figure), shapes, strict=True):
        left, right, lower, upper = inches(axes)
        assert (upper - lower) / (right - left) == pytest.approx(height / width, rel=0.03)
        assert upper - lower <= 0.8 * DOUBLE_WIDTH / 6
        assert picture.shape[1] <= max(DENSITY * DOUBLE_WIDTH / 6, 40)
        assert picture.shape[1] >= min(0.95 * DENSITY * (right - left), 40)
    assert disjoint(figure)


def test_titles_of_levels_give_the_plans_median_overlaps(still: HomographySequence):
    figure = jitter_figure(still, a_plan([[160, 120]], [20]))
    assert "easy: median overlap 0.91" in texts(figure)
    assert "hard: median overlap 0.82" in texts(figure)
    assert "tough: median overlap 0.73" in texts(figure)


def test_a_region_is_named_by_patch_detector_and_radius(still: HomographySequence):
    figure = jitter_figure(still, a_plan([[80, 120], [240, 120]], [20, 30]))
    assert [text for text in texts(figure) if "patch" in text] == [
        "i_blobs, patch 1: Harris, radius 30 px",
        "i_blobs, patch 0: Hessian, radius 20 px",
    ]


def test_outlines_are_the_plans_regions_on_the_reference_and_the_detected_one_is_a_white_circle(
    tmp_path: Path,
):
    # A lone bright pixel under the region's centre tells where the picture's pixels lie.
    image = np.full((240, 320), 60, np.uint8)
    image[97, 141] = 255
    write_homography_sequence(tmp_path / "v_x", [image] * 6, STILL)
    radius = 17.0
    plan = a_plan([[141, 97]], [radius], 0.6)
    figure = jitter_figure(read_homography_sequence(tmp_path / "v_x"), plan)
    panels = figure.axes[:3]
    for level, axes in zip(LEVELS, panels, strict=True):
        (picture,) = axes.images
        crop, (left, right, lower, upper) = np.asarray(picture.get_array()), picture.get_extent()
        # As many pixels as the crop has, each as large as one.
        assert crop.shape == (lower - upper, right - left)
        row, column = np.argwhere(crop == 255)[0]
        assert (left + 0.5 + column, upper + 0.5 + row) == (141, 97)
        assert axes.get_xlim() == (left, right)
        assert axes.get_ylim() == (lower, upper)
        rims, coloured = axes.lines[::2], axes.lines[1::2]
        assert {to_hex(line.get_color()) for line in rims} == {"#000000"}
        for image_number, line in zip((5, 4, 3, 2, 1, 0), coloured, strict=True):
            file = f"{level[0]}{image_number}" if image_number else "ref"
            region = plan.regions(file)[0]
            hand, tip, *circle = line.get_xydata()
            np.testing.assert_allclose(hand, region[:, 2])
            np.testing.assert_allclose(tip, region[:, 0] + region[:, 2])
            on_unit_circle = np.linalg.solve(region[:, :2], (circle - region[:, 2]).T)
            np.testing.assert_allclose(np.linalg.norm(on_unit_circle, axis=0), 1)
        assert to_hex(coloured[-1].get_color()) == "#ffffff"
        distances = np.linalg.norm(np.array(circle) - [141, 97], axis=1)
        np.testing.assert_allclose(distances, radius)
        assert len({line.get_color() for line in coloured}) == 6


def test_with_a_builds_limit_and_seed_the_patches_below_are_the_builds(
    still: HomographySequence, built: Path
):
    # The homographies are identities, so the build's patches differ from ref's by jitter alone.
    figure = jitter_figure(still, plan_patches(still, 40, 5), 1)
    (label,) = (text for text in texts(figure) if "patch" in text)
    index = int(label.split("patch ")[1].split(":")[0])
    sequence = read_sequence(built / still.name)
    for level, axes in zip(LEVELS, figure.axes[3:], strict=True):
        files = [f"{level[0]}{n}" if n else "ref" for n in range(6)]
        assert [label.get_text() for label in axes.get_xticklabels()] == files
        ((*shown,),) = cells(axes)
        for patch, file in zip(shown, files, strict=True):
            np.testing.assert_array_equal(patch, sequence.patches(file)[index])
        # The line under a patch has its outline's colour.
        lines = [to_hex(line.get_color()) for line in figure.axes[0].lines[1::2]][:5]
        assert [to_hex(line.get_color()) for line in axes.lines] == lines[::-1]
        lefts = [line.get_xdata()[0] for line in axes.lines]
        assert lefts == [number * (65 + GAP) for number in range(1, 6)]
    assert disjoint(figure)


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 30), most=st.integers(1, 4))
def test_regions_drawn_are_the_largest_that_are_well_inside_and_apart(seed, count, most):
    rng = np.random.default_rng(seed)
    plan = a_plan(rng.uniform(0, [320, 240], (count, 2)), rng.uniform(8, 60, count))
    place, reach = plan.frames.position, REACH * MAGNIFICATION * plan.frames.scale
    expected: list[int] = []
    for index in sorted(range(count), key=lambda i: -reach[i]):
        (x, y), r = place[index], reach[index]
        if x - r < 0 or y - r < 0 or x + r > 319 or y + r > 239:
            continue
        if all(np.abs(place[index] - place[i]).max() >= r + reach[i] for i in expected):
            expected.append(index)
    assert module._well_apart(plan, (240, 320), most) == expected[:most]


def test_a_plan_without_a_region_well_inside_is_refused_by_the_sequences_name(
    still: HomographySequence,
):
    with pytest.raises(ValueError, match="i_blobs: of 1 regions none"):
        jitter_figure(still, a_plan([[20, 120]], [15]))


def test_a_row_of_the_grid_is_one_spot_in_the_reference_and_at_each_level(release: Path):
    sequences = [read_sequence(release / name) for name in ("v_one", "i_two")]
    figure = patches_figure(sequences, rows=3)
    files = ["ref", *(f"{level}{image}" for level in "eht" for image in (1, 3, 5))]
    for axes, sequence, spots in zip(figure.axes, sequences, ([0, 4, 8], [0, 1]), strict=True):
        found = cells(axes)
        assert [len(row) for row in found] == [10] * len(spots)
        for row, spot in zip(found, spots, strict=True):
            for patch, file in zip(row, files, strict=True):
                np.testing.assert_array_equal(patch, sequence.patches(file)[spot])
        assert [label.get_text() for label in axes.get_yticklabels()] == [str(spot) for spot in spots]
        assert axes.get_title(loc="left") == sequence.name
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == files
    assert disjoint(figure)


def test_levels_stand_over_their_columns(release: Path):
    figure = patches_figure([read_sequence(release / "v_one")], rows=1)
    (axes,) = figure.axes
    middles, right = axes.get_xticks(), axes.get_xlim()[1]
    heads = {text.get_text(): text.xy[0] * right for text in axes.texts}
    for place, level in enumerate(LEVELS):
        first, last = 1 + 3 * place, 3 + 3 * place
        assert heads[level] == pytest.approx((middles[first] + middles[last]) / 2, abs=1)
        farther = middles[first] - middles[first - 1] - 65
        assert farther > 2 * (middles[last] - middles[last - 1] - 65)


def test_the_tables_hold_what_the_build_reports(still: HomographySequence, built: Path):
    report = json.loads((built.parent / REPORT).read_text())["sequences"][0]
    table = overlaps_table(built.parent)
    assert list(table.index) == ["i_blobs", "intended"]
    row = table.loc["i_blobs"]
    assert row["patches"] == read_sequence(built / still.name).count
    assert row["patches"] == row["Hessian"] + row["Harris"] + row["DoG"]
    assert row["Harris"] == report["patches"]["harris"]
    for level in LEVELS:
        assert row[level] == report["median_overlap"][level]
        assert table.loc["intended", level] == MEDIAN_OVERLAP[level]
    assert table.loc["intended", "patches"] is pd.NA
    found = detections_table(built.parent).loc["i_blobs"]
    assert found["DoG"] == report["detected"]["dog"]
    lost = found[["overlapping", "outside", "faint", "beyond limit"]].sum()
    assert found[["Hessian", "Harris", "DoG"]].sum() - lost == found["patches"] == row["patches"]


@pytest.mark.parametrize("table", [overlaps_table, detections_table])
def test_a_report_that_is_missing_is_refused_by_its_path(table, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"build\.json"):
        table(tmp_path)
