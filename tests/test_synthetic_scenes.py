"""The embedded data: its geometry, cameras and detector, and the scenes made with them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_files import photo_folder

from lib.data.cameras import Camera
from lib.data.phototour import read_phototour
from lib.data.synthetic import SyntheticSize, scenes
from lib.data.synthetic.imaging import (
    Photometry,
    Plane,
    Site,
    axis_rotation,
    orbiting_camera,
    photograph_through,
    plane_homography,
    render_view,
    seen_planes,
)
from lib.data.synthetic.photographs import (
    Photograph,
    dealt,
    folder_photographs,
    packaged_photographs,
)
from lib.data.synthetic.scenes import disturb, draw_pairs, read_sites, spread_out, write_scene
from lib.features.keypoints import Keypoints, dog_keypoints, local_affine, one_a_place, transfer
from lib.features.patches import PATCH_WIDTH, cut

SMALL = SyntheticSize(points_per_photo=60, pairs=150, longest_side=320)
angles = st.floats(-0.6, 0.6)


def camera(yaw: float, pitch: float, roll: float, distance: float = 500.0) -> Camera:
    return orbiting_camera(400.0, (201, 161), distance, yaw, pitch, roll, np.array([0.0, 0, 500]))


def plane(depth: float = 500.0, turn: float = 0.0, side: int = 101) -> Plane:
    u_axis, v_axis = axis_rotation(np.array([1.0, 2, 0]), turn).T[:2]
    origin = np.array([0, 0, depth]) - (u_axis + v_axis) * (side - 1) / 2
    return Plane(origin, u_axis, v_axis, side, side)


def project(eye: Camera, point: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a world point's pixel and depth, literally."""
    x = eye.intrinsics @ (eye.rotation @ point + eye.translation)
    return x[:2] / x[2], float(x[2])


@given(yaw=angles, pitch=angles, roll=angles, turn=angles)
def test_a_homography_carries_texels_to_where_their_points_project(
    yaw: float, pitch: float, roll: float, turn: float
) -> None:
    eye, wall = camera(yaw, pitch, roll), plane(turn=turn)
    texels = np.array([[0.0, 0], [100, 0], [37, 80]])
    homography = plane_homography(wall, eye)
    pixels = transfer(homography, texels)
    for (u, v), pixel in zip(texels, pixels, strict=True):
        expected, depth = project(eye, wall.origin + u * wall.u_axis + v * wall.v_axis)
        np.testing.assert_allclose(pixel, expected, atol=1e-8)
        assert np.linalg.inv(homography)[2] @ [*pixel, 1] == pytest.approx(1 / depth)


@given(yaw=angles, pitch=angles, roll=angles)
def test_a_camera_looks_at_its_target_from_its_distance(yaw: float, pitch: float, roll: float) -> None:
    eye = camera(yaw, pitch, roll, distance=650)
    pixel, depth = project(eye, np.array([0, 0, 500.0]))
    np.testing.assert_allclose(pixel, [100, 80], atol=1e-8)
    assert depth == pytest.approx(650)
    assert np.linalg.norm(eye.centre - [0, 0, 500]) == pytest.approx(650)
    np.testing.assert_allclose(eye.rotation @ eye.rotation.T, np.eye(3), atol=1e-12)


@given(yaw=angles, turn=angles)
def test_the_local_affine_map_is_the_derivative_of_the_homography(yaw: float, turn: float) -> None:
    homography = plane_homography(plane(turn=turn), camera(yaw, 0.1, 0.2))
    texel, step = np.array([[20.0, 70.0]]), 1e-4
    columns = [
        (transfer(homography, texel + shift) - transfer(homography, texel - shift))[0] / (2 * step)
        for shift in (np.array([step, 0]), np.array([0, step]))
    ]
    np.testing.assert_allclose(local_affine(homography, texel)[0], np.stack(columns, axis=1), atol=1e-6)


def test_the_nearer_of_two_planes_hides_the_other() -> None:
    near, far = plane(depth=400, side=21), plane(depth=500)
    eye = camera(0, 0, 0)
    middle, beside, outside = [100.0, 80], [130.0, 80], [199.0, 159]
    pixels = np.array([middle, beside, outside])
    for planes, expected in (((far, near), [1, 0, -1]), ((near, far), [0, 1, -1])):
        np.testing.assert_array_equal(seen_planes(Site(planes, (eye,), ()), 0, pixels), expected)


PLAIN = Photometry(gain=1, gamma=1, blur=0, noise=0, noise_seed=0, jpeg_quality=100)


def test_noise_has_its_standard_deviation_and_its_seed() -> None:
    light = np.full((200, 200), 0.5, np.float32)
    images = [
        photograph_through(replace(PLAIN, noise=5.0, noise_seed=seed), light) for seed in (1, 1, 2)
    ]
    assert images[0].std() == pytest.approx(5, rel=0.05)
    np.testing.assert_array_equal(images[0], images[1])
    assert (images[0] != images[2]).any()


def keypoints(*rows: tuple[float, float, float, float]) -> Keypoints:
    x, y, scale, orientation = np.array(rows, float).T
    return Keypoints(np.column_stack([x, y]), scale, orientation)


def test_a_coarse_patch_is_smoothed_before_it_is_sampled() -> None:
    board = (255 * (np.indices((512, 512)).sum(axis=0) % 2)).astype(np.uint8)
    patch = cut(board, keypoints((255.7, 255.2, 4 * 64 / PATCH_WIDTH, 0.3)))[0]
    assert patch.std() < 5


@given(x=st.floats(80, 170), y=st.floats(80, 170), angle=st.floats(-3, 3), zoom=st.floats(0.7, 1.5))
def test_a_frame_carried_by_a_similarity_shows_the_same_patch(
    x: float, y: float, angle: float, zoom: float
) -> None:
    noise = np.random.default_rng(0).random((250, 250)).astype(np.float32)
    image = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 4), None, 0, 255, cv2.NORM_MINMAX)
    c, s = zoom * np.cos(angle), zoom * np.sin(angle)
    affine = np.array([[c, -s, 300 - c * x + s * y], [s, c, 300 - s * x - c * y]])
    warped = cv2.warpAffine(image, affine, (600, 600), flags=cv2.INTER_CUBIC).astype(np.uint8)
    patch = cut(image.astype(np.uint8), keypoints((x, y, 3.0, 0.5)))[0].astype(float)
    carried = cut(warped, keypoints((300, 300, 3.0 * zoom, 0.5 + angle)))[0].astype(float)
    assert np.abs(patch - carried).mean() < 3


def test_the_detector_finds_a_blob_at_its_position_and_scale() -> None:
    y, x = np.mgrid[:120, :120]
    for sigma in (3.0, 6.0):
        blob = 200 * np.exp(-((x - 62) ** 2 + (y - 55) ** 2) / (2 * sigma**2))
        detected = one_a_place(dog_keypoints(blob.astype(np.uint8), 0.01, 1.0))
        np.testing.assert_allclose(detected.position[0], [62, 55], atol=1)
        assert detected.scale[0] == pytest.approx(sigma, rel=0.3)


def test_the_weaker_of_two_crowding_keypoints_is_dropped() -> None:
    points = keypoints((10, 10, 2, 0), (12, 10, 2, 0), (12, 10, 9, 0), (30, 10, 2, 0))
    np.testing.assert_array_equal(spread_out(points, 2.0), [0, 2, 3])


def test_simulated_detection_errors_have_their_size_and_limits() -> None:
    n = 20_000
    exact = Keypoints(np.zeros((n, 2)), np.full(n, 3.0), np.zeros(n))
    seen = disturb(exact, np.random.default_rng(0))
    np.testing.assert_allclose(seen.position.std(axis=0), 3 * 0.45, rtol=0.03)
    octaves = np.log2(seen.scale / 3)
    assert octaves.std() == pytest.approx(0.12, rel=0.1)
    assert np.abs(octaves).max() == pytest.approx(0.25)
    assert seen.orientation.std() == pytest.approx(0.14, rel=0.05)
    assert np.abs(seen.orientation).max() <= np.pi / 8


@given(
    sizes=st.lists(st.integers(2, 5), min_size=2, max_size=30),
    count=st.integers(1, 80),
    seed=st.integers(0, 5),
)
def test_pairs_are_half_matches_without_repetition(sizes: list[int], count: int, seed: int) -> None:
    points = np.repeat(np.arange(len(sizes)), sizes)
    pairs = draw_pairs(points, count, np.random.default_rng(seed))
    possible = sum(n * (n - 1) // 2 for n in sizes)
    same = points[pairs.first] == points[pairs.second]
    np.testing.assert_array_equal(same, pairs.match)
    assert pairs.match.sum() == min(count, possible) == (~pairs.match).sum()
    matches = list(zip(pairs.first[same].tolist(), pairs.second[same].tolist(), strict=True))
    assert len(set(matches)) == len(matches)
    assert (pairs.first != pairs.second).all()


def test_each_packaged_photograph_is_allotted_once_and_has_a_licence() -> None:
    allotted = packaged_photographs()
    names = [photograph.name for part in allotted.values() for photograph in part]
    assert len(names) == len(set(names)) == 19
    hashes = [photograph.sha256 for part in allotted.values() for photograph in part]
    assert len(hashes) == len(set(hashes))
    assert all(photograph.licence for part in allotted.values() for photograph in part)
    assert all(len(allotted[scene]) == 3 for scene in "abc")
    assert len(allotted["homography"]) >= 4
    assert len(allotted["reserve-a"] + allotted["reserve-b"]) >= 2


@settings(max_examples=60)
@given(count=st.integers(5, 400))
def test_photographs_are_allotted_once_with_a_tenth_for_each_reserve(count: int) -> None:
    allotted = dealt([Photograph(f"{i:03d}", None, "", f"{i}") for i in range(count)])
    uses = Counter(photograph.name for part in allotted.values() for photograph in part)
    assert len(uses) == count
    assert set(uses.values()) == {1}
    size = {part: len(photographs) for part, photographs in allotted.items()}
    assert min(size.values()) >= 1
    assert max(size[scene] for scene in "abc") - min(size[scene] for scene in "abc") <= 1
    assert 10 * (size["reserve-a"] + size.get("reserve-b", 0)) >= count
    assert ("reserve-b" in size) == (count > 5)
    second = size.get("confirmation-a", 0) + size.get("confirmation-b", 0)
    assert 10 * second >= count if count >= 20 else second == 0
    assert sum(size[scene] for scene in "abc") >= count / 2


def test_unreadable_files_are_skipped_and_named_with_the_reason(tmp_path: Path) -> None:
    folder = photo_folder(tmp_path / "photos", 6)
    (folder / "notes.txt").write_text("no image")
    whole = (folder / "00.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    cv2.imwrite(str(folder / "icon.png"), np.zeros((16, 16), np.uint8))
    deep = np.random.default_rng(0).integers(0, 1 << 16, (90, 120), np.uint16)
    cv2.imwrite(str(folder / "deep.png"), deep)
    allotted, skipped = folder_photographs(folder)
    assert set(skipped) == {"notes.txt", "cut.jpg", "icon.png"}
    used = [photograph for part in allotted.values() for photograph in part]
    assert len(used) == 7
    assert all(photograph.grey(64).dtype == np.uint8 for photograph in used)


@pytest.fixture(scope="module")
def small_scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mini") / "scene"
    write_scene(folder, "mini-a", packaged_photographs()["a"], SMALL)
    return folder


def test_a_point_has_two_to_five_views_mostly_two_or_three(small_scene: Path) -> None:
    scene = read_phototour(small_scene, small_scene / "cache")
    views = np.bincount(scene.point_ids)
    assert views.min() >= 2
    assert views.max() <= 5
    assert (views <= 3).mean() > 0.6
    assert 120 <= len(views) <= 3 * SMALL.points_per_photo
    assert scene.pairs.match.sum() == SMALL.pairs


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(
    small_scene: Path, tmp_path: Path
) -> None:
    def digests(folder: Path) -> dict[str, str]:
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.iterdir()
            if path.is_file()
        }

    photographs = packaged_photographs()["a"]
    write_scene(tmp_path / "again", "mini-a", photographs, SMALL)
    write_scene(tmp_path / "other", "mini-a", photographs, replace(SMALL, seed=1))
    assert digests(tmp_path / "again") == digests(small_scene)
    assert digests(tmp_path / "other")["patches0000.bmp"] != digests(small_scene)["patches0000.bmp"]


def test_photographs_in_several_sites_share_no_point_or_image(tmp_path: Path) -> None:
    photographs = packaged_photographs()["a"]
    write_scene(tmp_path / "s", "x", photographs, replace(SMALL, photos_per_site=2))
    scene = read_phototour(tmp_path / "s", tmp_path / "cache")
    facts, sites = read_sites(tmp_path / "s")
    assert [len(site["photographs"]) for site in facts["sites"]] == [1, 2]
    site_of = np.repeat([0, 1], [len(site.cameras) for site in sites])[scene.image_ids]
    for point in range(scene.point_ids.max() + 1):
        assert len(set(site_of[scene.point_ids == point])) == 1
    assert len(np.unique(scene.point_ids)) == scene.point_ids.max() + 1


def test_a_view_drawn_again_is_the_one_patches_were_cut_from(small_scene: Path) -> None:
    scene = read_phototour(small_scene, small_scene / "cache")
    _, (site,) = read_sites(small_scene)
    textures = [photograph.grey(SMALL.longest_side) for photograph in packaged_photographs()["a"]]
    frames = np.loadtxt(small_scene / "interest.txt")
    for image in (0, 3):
        view = render_view(site, textures, image)
        x, y, orientation, log_scale = frames[frames[:, 0] == image, 1:].T
        patches = cut(view, Keypoints(np.column_stack([x, y]), 2**log_scale, orientation))
        written = scene.patches[scene.image_ids == image]
        # The text files round frames to a thousandth of a pixel.
        assert np.abs(patches.astype(int) - written).mean() < 0.5


def test_an_occluded_point_gives_no_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    # Planes far apart in depth hide much of each other from the side.
    monkeypatch.setattr(scenes, "DEPTH", 0.6)
    monkeypatch.setattr(scenes, "YAW", 0.8)
    texture = cv2.GaussianBlur(
        np.random.default_rng(0).integers(0, 256, (200, 300), dtype=np.uint8), (0, 0), 1.5
    )
    texture = cv2.normalize(texture, None, 0, 255, cv2.NORM_MINMAX)
    site = scenes.plan_site([texture.shape], SMALL, np.random.default_rng(0))
    size = replace(SMALL, points_per_photo=400)
    _, points, images, frames = scenes.cut_site(site, [texture], size, np.random.default_rng(0))
    reference = images == 0
    assert reference.sum() > 20
    owner = seen_planes(site, 0, frames[reference, :2])
    assert (owner >= 0).all()
    for point, index, frame in zip(points[reference], owner, frames[reference], strict=True):
        plane = site.planes[index]
        for row in np.flatnonzero((points == point) & ~reference):
            back = np.linalg.inv(plane_homography(plane, site.cameras[0]))
            texel = transfer(back, frame[None, :2])
            target = transfer(plane_homography(plane, site.cameras[images[row]]), texel)
            assert seen_planes(site, images[row], target) == [index]
            assert np.abs(target - frames[row, :2]).max() < 5 * 2 ** frame[3]


def test_sift_alone_finds_a_scene_as_hard_as_the_real_sets(tmp_path: Path) -> None:
    write_scene(tmp_path / "scene", "mini-b", packaged_photographs()["b"], SyntheticSize(pairs=700))
    scene = read_phototour(tmp_path / "scene", tmp_path / "cache")
    sift = cv2.SIFT_create()
    # The window of SIFT is 12 scales wide; here it is the whole patch.
    middle = cv2.KeyPoint(47.5, 47.5, 2 * 64 / 12, 0)
    used, rows = np.unique(np.r_[scene.pairs.first, scene.pairs.second], return_inverse=True)
    descriptors = np.stack(
        [
            sift.compute(cv2.copyMakeBorder(patch, 16, 16, 16, 16, cv2.BORDER_REPLICATE), [middle])[1][0]
            for patch in scene.patches[used]
        ]
    )
    descriptors /= np.linalg.norm(descriptors, axis=1, keepdims=True)
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    distance = np.linalg.norm(descriptors[first] - descriptors[second], axis=1)
    threshold = np.quantile(distance[scene.pairs.match], 0.95)
    false_positives = (distance[~scene.pairs.match] <= threshold).mean()
    assert 0.15 < false_positives < 0.45


def plain_site(shape: tuple[int, int]) -> Site:
    site = scenes.plan_site([shape], SMALL, np.random.default_rng(0))
    return replace(site, photometry=(PLAIN,) * len(site.cameras))


def test_a_rendered_view_shows_the_nearest_plane_at_each_pixel() -> None:
    site = plain_site((160, 200))
    greys = np.linspace(10, 90, len(site.planes)).astype(np.uint8)
    photograph = np.zeros((160, 200), np.uint8)
    for part, grey in zip(site.planes, greys, strict=True):
        photograph[part.top : part.top + part.height, part.left : part.left + part.width] = grey
    for image, eye in enumerate(site.cameras):
        view = render_view(site, [photograph], image)
        y, x = np.mgrid[: eye.height, : eye.width]
        pixels = np.column_stack([x.ravel(), y.ravel()]).astype(float)
        nearest = seen_planes(site, image, pixels)
        seen = view.ravel()[nearest >= 0].astype(int)
        right = np.abs(seen - greys[nearest[nearest >= 0]]) <= 3
        # The outlines are rounded to whole pixels in a view.
        assert right.mean() > 0.95
