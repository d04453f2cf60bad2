"""Figures of HPatches: what is drawn is what the files hold and what the builder did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from lib.data.hpatches.building import REPORT, Plan, SequenceReport, build_release, plan_patches
from lib.data.hpatches.detection import MAGNIFICATION, Frames
from lib.data.hpatches.homographies import (
    HomographySequence,
    read_homography_sequence,
    read_homography_sequences,
    write_homography_sequence,
)
from lib.data.hpatches.jitter import MEDIAN_OVERLAP, draw_jitter
from lib.data.hpatches.release import FILES, LEVELS, read_sequence, write_sequence
from lib.reporting import sequence_figures
from lib.reporting.figures import DOUBLE_WIDTH, png
from lib.reporting.sequence_figures import (
    DENSITY,
    REACH,
    detections_table,
    jitter_figure,
    overlaps_table,
    patches_figure,
    sequences_figure,
)

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
    frames = Frames(
        np.asarray(position, float).reshape(count, 2),
        np.asarray(radius, float) / MAGNIFICATION,
        np.full(count, orientation),
        np.arange(count) % 3,
    )
    jitter = {f"{level[0]}{n}": draw_jitter(count, level, rng) for level in LEVELS for n in range(1, 6)}
    medians = {"easy": 0.91, "hard": 0.82, "tough": 0.73}
    return Plan(frames, jitter, SequenceReport("v_x", {}, 0, 0, 0, 0, {}, medians))


def pictures(figure) -> list[tuple[np.ndarray, tuple[float, float, float, float]]]:
    """Each picture with its left, right, lower and upper edge in inches."""
    return [(np.asarray(image.get_array()), image.get_extent()) for image in figure.axes[0].images]


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def disjoint(figure) -> bool:
    boxes = [box for _, box in pictures(figure)]
    return all(
        a[1] <= b[0] + 1e-9 or b[1] <= a[0] + 1e-9 or a[2] <= b[3] + 1e-9 or b[2] <= a[3] + 1e-9
        for n, a in enumerate(boxes)
        for b in boxes[:n]
    )


def test_a_row_of_the_contact_sheet_is_a_sequences_six_images_in_order(tmp_path: Path):
    for place, name in enumerate(("i_low", "v_high")):
        images = [np.full((30, 40), 100 * place + 10 * n, np.uint8) for n in range(6)]
        write_homography_sequence(tmp_path / name, images, STILL)
    figure = sequences_figure(read_homography_sequences(tmp_path))
    shown = pictures(figure)
    assert [picture.mean() for picture, _ in shown] == [
        100 * place + 10 * n for place in range(2) for n in range(6)
    ]
    for row in (shown[:6], shown[6:]):
        assert len({upper for _, (_, _, _, upper) in row}) == 1
        lefts = [left for _, (left, _, _, _) in row]
        assert lefts == sorted(lefts)
    assert shown[0][1][2] < shown[6][1][3]
    assert texts(figure) == ["i_low", "v_high", "1 (reference)", *"23456"]


def test_large_and_upright_images_are_reduced_to_their_cell(tmp_path: Path):
    shapes = [(900, 300), (300, 900), (600, 600), (250, 300), (30, 40), (900, 300)]
    images = [np.full(shape, 7, np.uint8) for shape in shapes]
    write_homography_sequence(tmp_path / "v_mixed", images, STILL)
    figure = sequences_figure(read_homography_sequences(tmp_path))
    for (picture, (left, right, lower, upper)), (height, width) in zip(
        pictures(figure), shapes, strict=True
    ):
        assert (lower - upper) / (right - left) == pytest.approx(height / width, rel=0.03)
        assert lower - upper <= 0.8 * DOUBLE_WIDTH / 6
        assert picture.shape[1] <= max(DENSITY * (right - left) + 1, 40)
    assert disjoint(figure)


def test_a_contact_sheet_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no sequence to show"):
        sequences_figure([])


def test_titles_of_levels_give_the_plans_median_overlaps(still: HomographySequence):
    figure = jitter_figure(still, a_plan([[160, 120]], [20]))
    assert texts(figure)[0] == "easy: median overlap 0.91"
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
    (axes,) = figure.axes
    crops = [(picture, box) for picture, box in pictures(figure) if box[1] - box[0] > 1]
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    coloured = [line for line in lines if to_hex(line.get_color()) != "#000000"]
    assert len(crops) == 3
    assert len(coloured) == 18 == len(lines) / 2
    for number, (level, (crop, (left, right, _, top))) in enumerate(zip(LEVELS, crops, strict=True)):
        row, column = np.argwhere(crop == 255)[0]
        inches = (right - left) / crop.shape[1]
        centre = np.array([left + (column + 0.5) * inches, top + (row + 0.5) * inches])
        of_panel = coloured[6 * number : 6 * number + 6]
        for image_number, line in zip((5, 4, 3, 2, 1, 0), of_panel, strict=True):
            file = f"{level[0]}{image_number}" if image_number else "ref"
            region = plan.regions(file)[0]
            hand, tip, *circle = (line.get_xydata() - centre) / inches + [141, 97]
            np.testing.assert_allclose(hand, region[:, 2], atol=1e-6)
            np.testing.assert_allclose(tip, region[:, 0] + region[:, 2], atol=1e-6)
            on_unit_circle = np.linalg.solve(region[:, :2], (circle - region[:, 2]).T)
            np.testing.assert_allclose(np.linalg.norm(on_unit_circle, axis=0), 1, atol=1e-6)
        assert to_hex(of_panel[-1].get_color()) == "#ffffff"
        distances = np.linalg.norm(np.array(circle) - [141, 97], axis=1)
        np.testing.assert_allclose(distances, radius, atol=1e-6)
        assert len({line.get_color() for line in of_panel}) == 6


def test_with_a_builds_limit_and_seed_the_patches_below_are_the_builds(
    still: HomographySequence, built: Path
):
    # The homographies are identities, so the build's patches differ from ref's by jitter alone.
    figure = jitter_figure(still, plan_patches(still, 40, 5), 1)
    (label,) = (text for text in texts(figure) if "patch" in text)
    index = int(label.split("patch ")[1].split(":")[0])
    sequence = read_sequence(built / still.name)
    strip = [(picture, box) for picture, box in pictures(figure) if box[1] - box[0] < 1]
    files = [f"{level[0]}{n}" if n else "ref" for level in LEVELS for n in range(6)]
    assert [text for text in texts(figure) if text in FILES] == files
    for (picture, (left, right, _, _)), file in zip(strip, files, strict=True):
        patch = sequence.patches(file)[index]
        np.testing.assert_array_equal(picture, sequence_figures._reduced(patch, right - left))
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
    assert sequence_figures._well_apart(plan, (240, 320), most) == expected[:most]


def test_a_plan_without_a_region_well_inside_is_refused_by_the_sequences_name(
    still: HomographySequence,
):
    with pytest.raises(ValueError, match="i_blobs: of 1 regions none"):
        jitter_figure(still, a_plan([[20, 120]], [15]))


def test_a_row_of_the_grid_is_one_spot_in_the_reference_and_at_each_level(release: Path):
    sequences = [read_sequence(release / name) for name in ("v_one", "i_two")]
    figure = patches_figure(sequences, rows=3, images=(2, 5))
    files = ["ref", "e2", "e5", "h2", "h5", "t2", "t5"]
    cells = {(round(box[3], 6), round(box[0], 6)): picture for picture, box in pictures(figure)}
    rows = sorted({top for top, _ in cells})
    columns = sorted({left for _, left in cells})
    assert len(cells) == len(rows) * len(columns) == 5 * 7
    spots = [
        (sequences[0], 0),
        (sequences[0], 4),
        (sequences[0], 8),
        (sequences[1], 0),
        (sequences[1], 1),
    ]
    for top, (sequence, index) in zip(rows, spots, strict=True):
        for left, file in zip(columns, files, strict=True):
            np.testing.assert_array_equal(cells[top, left], sequence.patches(file)[index])
    assert disjoint(figure)
    assert texts(figure) == [*"048", "v_one", *"01", "i_two", *files, *LEVELS]


def test_levels_stand_over_their_columns(release: Path):
    figure = patches_figure([read_sequence(release / "v_one")], rows=1, images=range(1, 6))
    lefts = [box[0] for _, box in pictures(figure)]
    rights = [box[1] for _, box in pictures(figure)]
    heads = {text.get_text(): text.get_position()[0] for text in figure.axes[0].texts}
    for place, level in enumerate(LEVELS):
        first, last = 1 + 5 * place, 5 + 5 * place
        assert heads[level] == pytest.approx((lefts[first] + rights[last]) / 2)
        assert lefts[first] - rights[first - 1] > 2 * (lefts[last] - rights[last - 1])
    assert rights[-1] == pytest.approx(DOUBLE_WIDTH)


def test_a_grid_of_no_patches_or_of_images_that_are_not_there_is_refused(release: Path):
    sequence = read_sequence(release / "v_one")
    for arguments in (([],), ([sequence], 0), ([sequence], 1, ())):
        with pytest.raises(ValueError, match="no patch to show"):
            patches_figure(*arguments)
    with pytest.raises(ValueError, match="images are 1 to 5, got 0"):
        patches_figure([sequence], images=(0, 1))
    with pytest.raises(ValueError, match="images are 0 to 5"):
        patches_figure([sequence], images=(1, 6))


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
    found = detections_table(built.parent / REPORT).loc["i_blobs"]
    assert found["DoG"] == report["detected"]["dog"]
    lost = found[["overlapping", "outside", "faint", "beyond limit"]].sum()
    assert found[["Hessian", "Harris", "DoG"]].sum() - lost == found["patches"] == row["patches"]


@pytest.mark.parametrize("table", [overlaps_table, detections_table])
def test_a_report_that_is_missing_or_none_is_refused_by_its_path(table, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"build\.json is missing"):
        table(tmp_path)
    for content in ("{", "[]", '{"sequences": [{"name": "v_x", "patches": 3}]}'):
        (tmp_path / REPORT).write_text(content)
        with pytest.raises(ValueError, match=f"{tmp_path}.* is no report of a build"):
            table(tmp_path)


def test_a_figure_has_the_same_bytes_each_time(still: HomographySequence, built: Path):
    plan = plan_patches(still, 40, 5)
    for draw in (
        lambda: sequences_figure([still]),
        lambda: jitter_figure(still, plan, 1),
        lambda: patches_figure([read_sequence(built / still.name)], 2),
    ):
        assert png(draw()) == png(draw())


def test_importing_needs_no_torch():
    code = "import sys, lib.reporting.sequence_figures; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
