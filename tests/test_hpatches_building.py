"""HPatches' patches made from images: detections, jitter, cutting, and a build's report."""

from __future__ import annotations

import json
from dataclasses import replace

import cv2
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches.building import build_hpatches, cut_patches, plan_patches, sample
from lib.data.hpatches.detection import (
    ANISOTROPY,
    DETECTORS,
    FACTORS,
    MAGNIFICATION,
    MEDIAN_OVERLAP,
    OCTAVES,
    ROTATION,
    SMALLEST_SCALE,
    detect,
    disc_overlap,
    draw_jitter,
    inside,
    overlaps,
    thin,
)
from lib.data.hpatches.homographies import (
    HomographySequence,
    read_homography_sequence,
    write_homography_sequence,
)
from lib.data.hpatches.release import FILES, LEVELS, read_sequences
from lib.data.hpatches.tasks import open_split
from lib.data.synthetic import SequencesSize
from lib.features.detectors import oriented
from lib.features.keypoints import Keypoints, local_affine, transfer
from lib.study.runs import REFERENCE

SHAPE = (120, 160)
IDENTITIES = np.stack([np.eye(3)] * 5)
seeds = st.integers(0, 2**32 - 1)
radii = st.floats(0.1, 10)


def frames_at(position, scale, orientation=0.0) -> Keypoints:
    position = np.atleast_2d(np.asarray(position, float))
    n = len(position)
    values = (np.broadcast_to(np.asarray(v, float), n).copy() for v in (scale, orientation))
    return Keypoints(position, *values, detector=np.zeros(n, int))


def blobs(shape: tuple[int, int] = SHAPE, count: int = 30, seed: int = 0) -> np.ndarray:
    """Bright and dark Gaussian blobs of several widths and a few rectangles on grey."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    image = np.full(shape, 128.0)
    for _ in range(count):
        cx, cy = rng.uniform(0, shape[1]), rng.uniform(0, shape[0])
        width, height = rng.uniform(1.5, 5), rng.choice([-90, 90])
        image += height * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2))
    for _ in range(count // 5):
        left, top = rng.integers(0, shape[1] - 20), rng.integers(0, shape[0] - 15)
        image[top : top + 15, left : left + 20] += rng.choice([-60, 60])
    return np.clip(image, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def still(tmp_path_factory) -> HomographySequence:
    """One image six times over."""
    folder = tmp_path_factory.mktemp("still") / "i_still"
    write_homography_sequence(folder, [blobs(seed=1)] * 6, IDENTITIES)
    return read_homography_sequence(folder)


@pytest.fixture(scope="module")
def moving(tmp_path_factory) -> HomographySequence:
    """A plane seen from six sides, each image warped from the first."""
    folder = tmp_path_factory.mktemp("moving") / "v_moving"
    homographies = np.stack(
        [
            [[1 + 0.04 * k, 0.02 * k, -4 * k], [-0.03 * k, 1, 3 * k], [2e-4 * k, -1e-4 * k, 1]]
            for k in range(1, 6)
        ]
    )
    warped = [cv2.warpPerspective(blobs(), h, SHAPE[::-1], flags=cv2.INTER_CUBIC) for h in homographies]
    write_homography_sequence(folder, [blobs(), *warped], homographies)
    return read_homography_sequence(folder)


def counted_overlap(affine: np.ndarray) -> float:
    """Intersection over union of the unit disc and its image, counted on a fine grid."""
    reach = max(1, np.abs(affine[:, 2]).max() + np.linalg.norm(affine[:, :2], 2))
    side = np.linspace(-reach, reach, 701)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    disc = (points**2).sum(axis=1) <= 1
    back = (points - affine[:, 2]) @ np.linalg.inv(affine[:, :2]).T
    ellipse = (back**2).sum(axis=1) <= 1
    return (disc & ellipse).sum() / (disc | ellipse).sum()


# Overlap of discs and of ellipses


@given(first=radii, ratio=st.floats(0.2, 5), reach=st.floats(0, 1.3))
def test_the_overlap_of_discs_matches_a_count_of_pixels(first, ratio, reach):
    second, distance = first * ratio, reach * first * (1 + ratio)
    affine = np.array([[ratio, 0, distance / first], [0, ratio, 0]])
    overlap = disc_overlap(np.array([first]), np.array([second]), np.array([distance]))
    assert overlap[0] == pytest.approx(counted_overlap(affine), abs=0.01)


def centred(jitter: np.ndarray) -> np.ndarray:
    return np.pad(jitter, ((0, 0), (0, 0), (0, 1)))


@given(seed=seeds, level=st.sampled_from(LEVELS), right=st.floats(-0.3, 0.3))
def test_the_overlap_of_a_jitter_matches_a_count_of_pixels(seed, level, right):
    affine = centred(draw_jitter(1, level, np.random.default_rng(seed)))
    affine[:, 0, 2] = right
    assert overlaps(affine)[0] == pytest.approx(counted_overlap(affine[0]), abs=0.005)


# Jitter


@settings(max_examples=10)
@given(seed=seeds)
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_reaches_its_median_overlap(level, seed):
    drawn = overlaps(centred(draw_jitter(3000, level, np.random.default_rng(seed))))
    assert np.median(drawn) == pytest.approx(MEDIAN_OVERLAP[level], abs=0.02)


def test_a_jitter_stretches_before_it_turns():
    turn, octaves, stretch, *_ = np.random.default_rng(7).standard_normal((5, 50)) * FACTORS["tough"]
    for n, linear in enumerate(draw_jitter(50, "tough", np.random.default_rng(7))):
        angle, s, a = ROTATION * turn[n], 2 ** (OCTAVES * octaves[n]), 2 ** (ANISOTROPY * stretch[n])
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(linear, rotation @ np.diag([s * np.sqrt(a), s / np.sqrt(a)]))


def test_the_proportions_are_the_fitted_ones():
    fitted = pd.read_csv(REFERENCE / "hpatches_jitter" / "parameters.csv", index_col=0)["used"]
    assert np.rad2deg(ROTATION) == pytest.approx(fitted["rotation"], rel=0.01)
    assert fitted["translation"] == 0
    # Octaves of scale and of anisotropy that a share of 1 stood for.
    share = 0.15 * (1 - fitted["anisotropy"]) / (0.2 * fitted["anisotropy"])
    assert pytest.approx(share, rel=0.01) == OCTAVES / ANISOTROPY
    assert MEDIAN_OVERLAP["tough"] == pytest.approx(fitted["tough"], abs=0.005)


# Detections


@pytest.mark.parametrize(("detector", "contrast"), [("hessian", 0.175), ("dog", 0.086)])
def test_a_blob_is_detected_from_the_contrast_of_the_threshold(detector, contrast):
    y, x = np.mgrid[:120, :160]
    blob = np.exp(-((x - 80) ** 2 + (y - 60) ** 2) / (2 * 3.0**2))
    for share, expected in ((0.85, False), (1.15, True)):
        keypoints = detect((60 + 255 * share * contrast * blob).round().astype(np.uint8))
        assert (DETECTORS.index(detector) in keypoints.detector) == expected


def test_corners_are_found_by_harris():
    image = np.full((160, 200), 60, np.uint8)
    image[60:100, 80:120] = 200
    keypoints = detect(image)
    harris = keypoints[keypoints.detector == DETECTORS.index("harris")]
    for corner in ((79.5, 59.5), (119.5, 59.5), (79.5, 99.5), (119.5, 99.5)):
        assert np.linalg.norm(harris.position - corner, axis=1).min() < 4
    middles = np.array([(79.5, 79.5), (99.5, 59.5)])
    for middle in middles:
        fine = harris[harris.scale < 4]
        assert np.linalg.norm(fine.position - middle, axis=1).min(initial=99) > 8


def test_detections_are_in_total_order_wholly_inside_and_no_finer_than_asked():
    keypoints = detect(blobs())
    assert set(np.unique(keypoints.detector)) == {0, 1, 2}
    keys = np.column_stack([keypoints.detector, keypoints.scale, keypoints.position])
    assert [tuple(row) for row in keys] == sorted(tuple(row) for row in keys)
    assert keypoints.scale.min() >= SMALLEST_SCALE
    radius = MAGNIFICATION * keypoints.scale[:, None]
    assert (keypoints.position - radius).min() >= 0
    assert (keypoints.position + radius - [SHAPE[1] - 1, SHAPE[0] - 1]).max() <= 0


def test_hessian_and_harris_have_the_scales_of_the_two_inner_levels_of_each_octave():
    keypoints = detect(blobs((300, 400), 90))
    levels = 3 * np.log2(keypoints.scale[keypoints.detector < DETECTORS.index("dog")] / 1.6)
    assert np.abs(levels - levels.round()).max() < 1e-6
    assert set(levels.round().astype(int)) >= {1, 2, 4, 5}
    assert set(levels.round().astype(int) % 3) == {1, 2}


def test_an_extremum_of_both_levels_of_an_octave_has_the_scale_of_the_stronger():
    """The Hessian of a Gaussian blob is strongest at the blob's own scale."""
    y, x = np.mgrid[:120, :160]
    for size, expected in ((1.8, 1), (2.9, 2), (3.6, 4), (5.6, 5)):
        blob = 60 + 150 * np.exp(-((x - 80) ** 2 + (y - 60) ** 2) / (2 * size**2))
        keypoints = detect(blob.round().astype(np.uint8))
        centred = np.linalg.norm(keypoints.position - [80, 60], axis=1) < 0.5
        scales = keypoints.scale[centred & (keypoints.detector == DETECTORS.index("hessian"))]
        assert np.abs(scales - 1.6 * 2 ** (expected / 3)).min() < 1e-6
        # Levels of one octave are not both there.
        octaves = (np.log2(scales / 1.6) + 1e-6).astype(int)
        assert len(set(octaves)) == len(octaves)


def test_minima_are_detected_too():
    """Where four squares of a chessboard meet, the Hessian's determinant has its minimum."""
    image = np.full((120, 160), 60, np.uint8)
    image[:60, :80] = image[60:, 80:] = 200
    keypoints = detect(image)
    hessian = keypoints[keypoints.detector == DETECTORS.index("hessian")]
    assert np.linalg.norm(hessian.position - [79.5, 59.5], axis=1).min() < 0.1


def test_of_a_cluster_the_hessians_finest_and_leftmost_is_kept():
    keypoints = detect(blobs())
    radius = MAGNIFICATION * keypoints.scale
    kept = keypoints[thin(keypoints)]
    keys = [tuple(row) for row in np.column_stack([kept.detector, kept.scale, kept.position])]
    assert keys == sorted(keys)
    for index in np.flatnonzero(keypoints.detector == 0):
        distance = np.linalg.norm(keypoints.position - keypoints.position[index], axis=1)
        overlapping = disc_overlap(radius, radius[index], distance) > 0.5
        # No Harris or DoG region is kept where it overlaps a Hessian one.
        later = {tuple(row) for row in keypoints.position[overlapping & (keypoints.detector > 0)]}
        assert not later & {tuple(row) for row in kept.position[kept.detector > 0]}


def test_detections_do_not_depend_on_the_number_of_threads():
    import torch

    image, runs, before = blobs(), [], (cv2.getNumThreads(), torch.get_num_threads())
    try:
        for threads in (1, 3):
            cv2.setNumThreads(threads)
            torch.set_num_threads(threads)
            runs.append(oriented(image, detect(image)))
    finally:
        cv2.setNumThreads(before[0])
        torch.set_num_threads(before[1])
    for one, other in zip(*(vars(keypoints).values() for keypoints in runs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(1, 1), (20, 300)])
def test_an_image_with_no_room_or_nothing_in_it_has_no_detections(shape):
    assert len(detect(np.full(shape, 77, np.uint8))) == 0


# Thinning


@given(seed=seeds, count=st.integers(1, 80), spread=st.floats(1, 150))
def test_the_first_of_each_cluster_of_overlapping_regions_is_kept(seed, count, spread):
    rng = np.random.default_rng(seed)
    frames = frames_at(spread * rng.normal(size=(count, 2)), np.exp(rng.uniform(0.5, 3, count)))
    distance = np.linalg.norm(frames.position[:, None] - frames.position[None], axis=2)
    radius = MAGNIFICATION * frames.scale
    overlap = disc_overlap(radius[:, None], radius[None], distance)
    # Each takes over the first index of those it overlaps, until nothing changes.
    first = np.arange(count)
    for _ in range(count):
        first = np.where(overlap > 0.5, first, count).min(axis=1)
    np.testing.assert_array_equal(thin(frames), np.unique(first))


def test_a_chain_of_overlapping_regions_is_one_cluster():
    """The ends do not overlap, but each does its neighbour."""
    chain = frames_at([[10, 10], [14, 10], [18, 10], [90, 10]], 4)
    assert thin(chain).tolist() == [0, 3]


# Inside the images


@settings(max_examples=60)
@given(seed=seeds, sign=st.sampled_from([-1.0, 1.0]))
def test_a_region_is_inside_if_its_whole_circle_is(seed, sign):
    rng = np.random.default_rng(seed)
    homography = sign * (
        np.eye(3) + rng.normal(size=(3, 3)) * [[0.2, 0.2, 20], [0.2, 0.2, 20], [3e-3, 3e-3, 0]]
    )
    assume(np.linalg.det(homography) * sign > 0)
    frames = frames_at(rng.uniform(0, 160, (20, 2)), rng.uniform(1, 8, 20))
    flags = inside(frames, homography, SHAPE)
    angle = np.linspace(0, 2 * np.pi, 2001)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    for index, is_inside in enumerate(flags):
        rim = frames.position[index] + MAGNIFICATION * frames.scale[index] * circle
        depth = sign * (rim @ homography[2, :2] + homography[2, 2])
        warped = transfer(homography, rim)
        slack = np.concatenate([warped, [SHAPE[1] - 1, SHAPE[0] - 1] - warped], axis=1).min()
        if depth.min() <= 0:
            assert not is_inside
        elif abs(slack) > 1e-3:
            assert is_inside == (slack > 0)


# Cutting


def test_a_region_of_the_patch_size_gives_the_image_itself():
    image = np.random.default_rng(0).integers(0, 256, (100, 120), np.uint8)
    region = np.array([[[32.0, 0, 60], [0, 32, 50]]])
    np.testing.assert_array_equal(sample(image, np.eye(3), region)[0], image[18:83, 28:93])


def test_a_patch_follows_the_homography_point_by_point():
    image = np.tile(np.arange(256, dtype=np.uint8), (200, 1))
    homography = np.array([[1.6, 0.1, 10], [0.05, 1.6, -5], [4e-3, 2e-3, 1.0]])
    region = np.array([[[60.0, -12, 110], [12, 60, 90]]])
    side = np.linspace(-1, 1, 65)
    grid = np.stack([*np.meshgrid(side, side), np.ones((65, 65))], axis=-1).reshape(-1, 3)
    expected = transfer(homography, grid @ region[0].T)[:, 0].reshape(65, 65)
    assert expected.min() > 2
    assert expected.max() < 253
    patch = sample(image, homography, region)[0].astype(float)
    assert np.abs(patch - expected).max() < 1
    affine = local_affine(homography, region[:, :, 2])[0] @ region[0, :, :2]
    straight = expected[32, 32] + (grid[:, :2] @ affine[0]).reshape(65, 65)
    assert np.abs(straight - expected).max() > 5


@pytest.mark.parametrize("step", [2.05, 5.7])
def test_a_coarse_patch_of_a_fine_checkerboard_is_grey(step):
    board = (np.indices((500, 500)).sum(axis=0) % 2 * 255).astype(np.uint8)
    region = frames_at([250, 250], 32 * step / MAGNIFICATION, 0.3).discs(MAGNIFICATION)
    assert np.abs(sample(board, np.eye(3), region)[0].astype(float) - 127.5).max() < 30


# Whole builds


def test_patches_of_a_moved_plane_are_alike_and_jitter_makes_them_differ_increasingly(moving):
    plan = plan_patches(moving)
    unmoved = {file: np.broadcast_to(np.eye(2), (len(plan.frames), 2, 2)) for file in plan.jitter}

    def correlation(patches: dict, letter: str) -> float:
        ref = patches["ref"].reshape(len(plan.frames), -1)
        correlations = [
            np.corrcoef(a, b)[0, 1]
            for k in range(1, 6)
            for a, b in zip(ref, patches[f"{letter}{k}"].reshape(ref.shape), strict=True)
        ]
        return float(np.median(correlations))

    patches = cut_patches(moving, plan)
    perfect = correlation(cut_patches(moving, replace(plan, jitter=unmoved)), "e")
    easy, hard, tough = (correlation(patches, letter) for letter in "eht")
    assert perfect > 0.99
    assert perfect > easy > hard > tough > 0.2


def test_each_file_but_the_reference_has_a_jitter_of_its_own(still):
    plan = plan_patches(still, limit=10)
    patches = cut_patches(still, plan)
    unjittered = sample(still.grey(0), np.eye(3), plan.regions("ref"))
    np.testing.assert_array_equal(patches["ref"], unjittered)
    assert not np.array_equal(patches["e1"], unjittered)
    assert set(plan.jitter) == set(FILES[1:])
    flat = {file: jitter.tobytes() for file, jitter in plan.jitter.items()}
    assert len(set(flat.values())) == 15
    corner = np.array([0.3, -0.8])
    jittered = plan.regions("ref")[4] @ [*plan.jitter["h2"][4] @ corner, 1]
    np.testing.assert_allclose(plan.regions("h2")[4] @ [*corner, 1], jittered)


def test_kept_regions_lie_inside_all_six_images_and_the_report_accounts_for_every_detection(moving):
    for limit in (None, 7):
        plan = plan_patches(moving, limit)
        for homography in (np.eye(3), *moving.homographies):
            assert inside(plan.frames, homography, SHAPE).all()
        report = plan.report
        assert report["outside"] > 0
        left_out = sum(report[reason] for reason in ("thinned", "outside", "faint", "beyond_limit"))
        assert sum(report["detected"].values()) - left_out == sum(report["patches"].values())
        assert (report["beyond_limit"] > 0) == (limit is not None)


def test_patches_that_are_faint_in_one_of_the_images_are_left_out_and_counted(tmp_path):
    y, x = np.mgrid[:120, :160]
    blob = [90 * np.exp(-((x - left) ** 2 + (y - 60) ** 2) / (2 * 4.0**2)) for left in (40, 120)]
    clear, fading = (128 + blob[0] + share * blob[1] for share in (1, 0.2))
    images = [image.round().astype(np.uint8) for image in (*[clear] * 5, fading)]
    write_homography_sequence(tmp_path / "i_faint", images, IDENTITIES)
    sequence = read_homography_sequence(tmp_path / "i_faint")
    plan = plan_patches(sequence)
    assert plan.report["faint"] > 0
    assert plan.frames.position[:, 0].max() < 80
    assert min(patches.std(axis=(1, 2)).min() for patches in cut_patches(sequence, plan).values()) >= 5


def test_a_build_is_a_release_with_its_report_and_tasks_beside_it(tmp_path, still, moving):
    size = SequencesSize(patches_per_sequence=12, pairs=9, queries=2, distractors=5, seed=3)
    build_hpatches(tmp_path, [still.folder, moving.folder], size)
    assert {p.name for p in tmp_path.iterdir()} == {RELEASE, TASKS, "build.json"}
    sequences = read_sequences(tmp_path / RELEASE)
    assert {name: s.count for name, s in sequences.items()} == {"i_still": 12, "v_moving": 12}
    written = json.loads((tmp_path / "build.json").read_text())
    assert [report["patches"] for report in written["sequences"]] == [
        plan_patches(sequence, 12, 3).report["patches"] for sequence in (still, moving)
    ]
    assert (written["limit"], written["seed"]) == (12, 3)
    assert written["intended_overlap"] == {"easy": 0.85, "hard": 0.72, "tough": 0.6}
    # Whatever else is built, the same seed gives the same patches.
    expected = cut_patches(moving, plan_patches(moving, 12, 3))
    for file in FILES:
        np.testing.assert_array_equal(sequences["v_moving"].patches(file), expected[file])
    split = open_split(tmp_path / RELEASE, tmp_path / TASKS, "full")
    assert [sequence.name for sequence in split.sequences] == ["i_still", "v_moving"]


@pytest.mark.parametrize("difference", [0, 1])
def test_one_scene_under_two_names_is_refused_by_both(tmp_path, still, moving, difference):
    # Grey values of colours may be rounded otherwise.
    images = [cv2.add(blobs(seed=1), difference)] * 6
    write_homography_sequence(tmp_path / "v_same", images, IDENTITIES)
    folders = [still.folder, moving.folder, tmp_path / "v_same"]
    (tmp_path / "built").mkdir()
    with pytest.raises(ValueError, match=r"i_still and .*v_same have one reference image"):
        build_hpatches(tmp_path / "built", folders, SequencesSize())
    assert not list((tmp_path / "built").iterdir())


@pytest.mark.parametrize("amount", ["patches_per_sequence", "pairs", "queries", "distractors"])
def test_amounts_too_small_to_be_tested_on_are_refused_before_any_work(tmp_path, still, moving, amount):
    size = replace(SequencesSize(), **{amount: 0})
    with pytest.raises(ValueError, match="or more"):
        build_hpatches(tmp_path, [still.folder, moving.folder], size)
    with pytest.raises(ValueError, match="only sequence"):
        build_hpatches(tmp_path, [still.folder], size)
    assert not list(tmp_path.iterdir())
