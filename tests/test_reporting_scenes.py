"""Figures of the data: what is drawn lies where the scene's files say, and is what they hold."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from lib.data.patchset import PatchSet
from lib.data.phototour import INTEREST, read_phototour
from lib.data.synthetic.allotment import packaged_photographs
from lib.data.synthetic.description import read_sites, redraw_view
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.sizes import SyntheticSize
from lib.data.synthetic.writing import write_scene
from lib.features.patches import PATCH_WIDTH
from lib.study.report.data import pictures, scenes
from lib.study.report.data.scenes import classes_figure, photographs_figure, site_figure, views_figure
from lib.study.report.style import DOUBLE_WIDTH

PHOTOGRAPHS = packaged_photographs()["a"]
SMALL = SyntheticSize(points_per_photo=60, pairs=150, longest_side=320)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene") / "small"
    write_scene(folder, "small", PHOTOGRAPHS, SMALL)
    return folder


@pytest.fixture(scope="module")
def patch_set(scene: Path) -> PatchSet:
    return read_phototour(scene, scene / "decoded", "small")


def some_patches(point_ids: list[int], name: str = "some") -> PatchSet:
    patches = np.random.default_rng(0).integers(0, 256, (len(point_ids), 64, 64), dtype=np.uint8)
    return PatchSet(name, patches, np.array(point_ids), None, None)


def picture(axes) -> np.ndarray:
    (image,) = axes.images
    return np.asarray(image.get_array())


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_thumbnail_is_the_photograph_in_grey_with_its_name_and_licence():
    figure = photographs_figure({"a": PHOTOGRAPHS})
    assert len(figure.axes) == len(PHOTOGRAPHS)
    for axes, photograph in zip(figure.axes, PHOTOGRAPHS, strict=True):
        grey = photograph.grey(400)
        shown = cv2.resize(grey, picture(axes).shape[::-1], interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(picture(axes), shown)
        assert picture(axes).shape[1] == round(100 * DOUBLE_WIDTH / len(PHOTOGRAPHS))
        assert np.ptp(axes.get_xlim()) / np.ptp(axes.get_ylim()) == grey.shape[1] / grey.shape[0]
        assert axes.get_title(loc="left") == photograph.name
        assert photograph.licence in [text.replace("\n", " ") for text in texts(axes)]
    assert "a" in texts(figure.axes[0])


def test_of_a_large_group_the_first_are_shown_and_their_number_is_told():
    figure = photographs_figure({"few": PHOTOGRAPHS[:1], "many": PHOTOGRAPHS}, most=2)
    shown = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in shown] == ["china", "china", "chelsea"]
    assert "few" in texts(shown[0])
    assert "many\n2 of 3" in texts(shown[1])


def test_groups_without_photographs_are_left_out():
    assert len(photographs_figure({"none": (), "a": PHOTOGRAPHS}).axes) == len(PHOTOGRAPHS)


def test_a_photograph_that_cannot_be_read_is_refused_by_name(tmp_path: Path):
    (tmp_path / "torn.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"torn\.png"):
        photographs_figure({"a": [Photograph("torn", tmp_path / "torn.png", "none")]})


def test_from_above_planes_and_cameras_stand_where_the_scene_says(scene: Path):
    _, (site,) = read_sites(scene)
    axes = site_figure(scene, PHOTOGRAPHS).axes[1]
    focal = site.cameras[0].intrinsics[0, 0]
    drawn = [patch.get_xy() for patch in axes.patches]
    for camera in site.cameras:
        expected = camera.centre[[0, 2]] / focal
        assert any(np.allclose(outline[0], expected) for outline in drawn)
    for piece in site.pieces:
        plane = piece.plane
        far = plane.origin + (plane.width - 1) * plane.u_axis + (plane.height - 1) * plane.v_axis
        assert any(np.allclose(outline[2], far[[0, 2]] / focal) for outline in drawn)


def test_the_lines_from_the_cameras_end_where_all_of_them_look(scene: Path):
    _, (site,) = read_sites(scene)
    focal = site.cameras[0].intrinsics[0, 0]
    for camera in site.cameras:
        x, y, depth = camera.rotation @ np.array([0, 0, focal]) + camera.translation
        np.testing.assert_allclose([x, y], 0, atol=1e-6 * focal)
        assert depth > 0
    ends = [line.get_xydata()[-1] for line in site_figure(scene, PHOTOGRAPHS).axes[1].lines]
    np.testing.assert_allclose(ends, [[0, 1]] * len(site.cameras))


def test_every_camera_is_numbered_in_both_drawings_and_every_photograph_named(scene: Path):
    figure = site_figure(scene, PHOTOGRAPHS)
    for axes in figure.axes:
        assert texts(axes) == [str(number) for number in range(SMALL.views)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["china", "chelsea", "brick"]


@given(seed=st.integers(0, 2**32 - 1), stretch=st.tuples(*[st.floats(0.1, 1)] * 3))
def test_the_drawing_in_space_holds_all_points_and_is_no_wider_than_they_need(seed, stretch):
    points = np.random.default_rng(seed).uniform(-300, 300, (30, 3)) * stretch
    viewer = scenes._viewer(points, 1000.0)
    seen = scenes._pixels(viewer, points)
    assert (seen >= 0).all()
    assert (seen <= [viewer.width, viewer.height]).all()
    assert np.ptp(seen[:, 0]) == pytest.approx(viewer.width / 1.08, rel=0.01)


def test_a_site_that_is_not_there_is_refused(scene: Path, tmp_path: Path):
    with pytest.raises(ValueError, match="not among the photographs given: brick"):
        site_figure(scene, PHOTOGRAPHS[:2])
    with pytest.raises(FileNotFoundError, match=r"scene\.json"):
        site_figure(tmp_path, PHOTOGRAPHS)


def circles_of(axes) -> dict[tuple[float, float], tuple[float, str, np.ndarray]]:
    """Radius, colour and hand by centre, of the coloured circles above the dark rims."""
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    assert [to_hex(line.get_color()) for line in lines[::2]] == ["#000000"] * (len(lines) // 2)
    found = {}
    for rim, line in zip(lines[::2], lines[1::2], strict=True):
        np.testing.assert_array_equal(rim.get_xydata(), line.get_xydata())
        centre, *circle = line.get_xydata()
        radii = np.linalg.norm(circle - centre, axis=1)
        np.testing.assert_allclose(radii, radii[0])
        found[tuple(centre)] = (radii[0], to_hex(line.get_color()), circle[0] - centre)
    return found


def test_circles_are_the_detections_of_points_with_a_patch_in_every_view_shown(
    scene: Path, patch_set: PatchSet, monkeypatch: pytest.MonkeyPatch
):
    images = (0, 2)
    monkeypatch.setattr(scenes, "MOST_CIRCLES", 1000)
    figure = views_figure(scene, PHOTOGRAPHS, patch_set, images)
    rows = np.loadtxt(scene / INTEREST)
    of_image = [set(patch_set.point_ids[patch_set.image_ids == image]) for image in images]
    common = of_image[0] & of_image[1]
    colours: dict[int, set[str]] = {point: set() for point in common}
    for axes, image in zip(figure.axes, images, strict=True):
        view = redraw_view(scene, PHOTOGRAPHS, image)
        shown = cv2.resize(view, picture(axes).shape[::-1], interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(picture(axes), shown)
        assert axes.images[0].get_extent() == [-0.5, view.shape[1] - 0.5, view.shape[0] - 0.5, -0.5]
        assert axes.get_xlim() == (-0.5, view.shape[1] - 0.5)
        drawn = circles_of(axes)
        expected = [
            (int(point), row)
            for point, row in zip(patch_set.point_ids, rows, strict=True)
            if row[0] == image and int(point) in common
        ]
        assert len(drawn) == len(expected) > 0
        for point, (_, x, y, _, octaves) in expected:
            radius, colour, _ = drawn[(x, y)]
            assert radius == pytest.approx(PATCH_WIDTH / 2 * 2**octaves)
            colours[point].add(colour)
        (dots,) = (line for line in axes.lines if line.get_linestyle() == "None")
        assert len(dots.get_xdata()) == (patch_set.image_ids == image).sum() - len(expected)
    assert all(len(of_point) == 1 for of_point in colours.values())


def test_a_circles_hand_points_along_the_orientation(
    scene: Path, patch_set: PatchSet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scenes, "MOST_CIRCLES", 5)
    (axes,) = views_figure(scene, PHOTOGRAPHS, patch_set, (1,)).axes
    drawn = circles_of(axes)
    assert len(drawn) == 5
    rows = {(x, y): turn for image, x, y, turn, _ in np.loadtxt(scene / INTEREST) if image == 1}
    for centre, (radius, _, hand) in drawn.items():
        turn = rows[centre]
        np.testing.assert_allclose(hand / radius, [np.cos(turn), np.sin(turn)], atol=1e-9)


def test_views_that_are_not_there_are_refused(scene: Path, patch_set: PatchSet):
    with pytest.raises(ValueError, match="no image 99"):
        views_figure(scene, PHOTOGRAPHS, patch_set, (0, 99))


def test_each_row_holds_the_patches_of_one_point_in_their_order():
    patch_set = some_patches([7, 9, 7, 9, 7])
    (axes,) = classes_figure({"some": patch_set}, rows=2, columns=3).axes
    mosaic = picture(axes)
    step = 64 + pictures.GAP
    cells = [
        [mosaic[r * step : r * step + 64, c * step : c * step + 64] for c in range(3)] for r in (0, 1)
    ]
    np.testing.assert_array_equal(cells[0], patch_set.patches[[0, 2, 4]])
    np.testing.assert_array_equal(cells[1][:2], patch_set.patches[[1, 3]])
    assert (cells[1][2] == 255).all()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["7", "9"]


def test_points_are_taken_at_even_steps_and_patches_left_out_are_counted():
    patch_set = some_patches([point for point in range(9) for _ in range(point + 1)])
    (axes,) = classes_figure({"some": patch_set}, rows=3, columns=4).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "4", "8"]
    assert texts(axes) == ["+1", "+5"]


def test_sets_stand_side_by_side():
    figure = classes_figure({"one": some_patches([0, 0]), "two": some_patches([3, 3, 4, 4])})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
