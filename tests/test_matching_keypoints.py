"""Keypoints of a whole image: their positions, scales, affine shapes and orientations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kornia.feature import KeyNet, KeyNetDetector, extract_patches_from_pyramid, scale_laf
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from lib.features.detectors import KINDS, Detector, Regions, as_tensor, detect, regions
from lib.features.keypoints import (
    Keypoints,
    dog_keypoints,
    from_opencv,
    local_affine,
    one_a_place,
    transfer,
)
from lib.features.patches import MAGNIFICATION, PATCH_WIDTH, cut, extract

# Kinds that need no checkpoint.
ALL = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "keynet"])
SHAPED = pytest.mark.parametrize("affine", [False, True])


def blob(axes: tuple[float, float], degrees: float = 0.0, size: int = 128) -> np.ndarray:
    """Draw a bright Gaussian in the middle, its first axis at `degrees` from +x towards +y."""
    x, y = np.meshgrid(np.arange(size) - 63.0, np.arange(size) - 60.0)
    turn = np.deg2rad(degrees)
    along, across = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    return (50 + 150 * np.exp(-((along / axes[0]) ** 2 + (across / axes[1]) ** 2) / 2)).astype(np.uint8)


def texture(seed: int = 0, size: int = 200) -> np.ndarray:
    """Draw blobs, edges and corners of several sizes."""
    rng = np.random.default_rng(seed)
    smooth = sum(s * gaussian_filter(rng.standard_normal((size, size)), s) for s in (1.5, 3, 6))
    steps = np.kron(rng.integers(0, 2, (size // 20, size // 20)), np.ones((20, 20)))
    return np.clip(90 + 40 * smooth + 50 * steps, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("kind", ["dog", "hessian"])
def test_a_blob_is_detected_at_its_position_and_scale(kind: str) -> None:
    keypoints = detect(blob((6, 6)), Detector(kind, upright=True))
    assert keypoints.position[0] == pytest.approx([63, 60], abs=0.6)
    assert keypoints.scale[0] == pytest.approx(6, rel=0.2)


def test_colmaps_keypoints_have_opencvs_scale_and_orientation_where_both_find_one() -> None:
    opencvs, colmaps = (
        detect(texture(size=400), Detector(kind, most=4000)) for kind in ("dog", "colmap")
    )
    differences = opencvs.maps[:, None] - colmaps.maps
    near = np.linalg.norm(differences[..., 2], axis=2) < 0.2
    first, second = near.nonzero()
    assert len(np.unique(first)) > 0.7 * len(opencvs)
    scales = colmaps.scale[second] / opencvs.scale[first]
    assert np.median(scales) == pytest.approx(1, abs=0.01)
    # A position may have two orientations, so that one is compared with the other.
    turned = np.linalg.norm(differences[first, second, :, 0], axis=1) / opencvs.scale[first]
    assert np.median(turned) < 0.1
    assert np.median(colmaps.position[second] - opencvs.position[first], axis=0) == pytest.approx(
        [0, 0], abs=0.02
    )


def test_an_affine_shape_is_that_of_the_blob() -> None:
    keypoints = detect(blob((9, 5), degrees=30), Detector("hessian", affine=True, upright=True))
    u, lengths, _ = np.linalg.svd(keypoints.maps[0, :, :2])
    assert lengths[0] / lengths[1] == pytest.approx(9 / 5, rel=0.25)
    assert abs(u[:, 0] @ [np.cos(np.pi / 6), np.sin(np.pi / 6)]) > 0.98


@ALL
@SHAPED
def test_the_strongest_keypoints_come_first_up_to_the_limit(kind: str, affine: bool) -> None:
    few = detect(texture(), Detector(kind, affine, most=20))
    assert 0 < len(few) <= 20
    assert (np.diff(few.scores) <= 0).all()
    assert len(detect(texture(), Detector(kind, affine, most=60))) > len(few)


@ALL
@SHAPED
def test_patches_turn_with_the_image(kind: str, affine: bool) -> None:
    image = texture(1)
    # A quarter turn to the left moves (x, y) to (y, 199 - x).
    turned = np.rot90(image).copy()
    detector = Detector(kind, affine, most=40)
    first, second = detect(image, detector), detect(turned, detector)
    expected = np.column_stack([first.position[:, 1], 199 - first.position[:, 0]])
    distances = np.linalg.norm(expected[:, None] - second.position, axis=2)
    correlations = []
    for first_index, second_index in zip(*np.nonzero(distances < 1), strict=True):
        patches = [
            extract(i, r[[k]])[0]
            for i, r, k in ((image, first, first_index), (turned, second, second_index))
        ]
        correlations.append(np.corrcoef(patches[0].ravel(), patches[1].ravel())[0, 1])
    assert np.mean(np.array(correlations) > 0.9) > 0.5
    assert len(correlations) >= 10


@ALL
@SHAPED
def test_upright_keypoints_are_not_turned(kind: str, affine: bool) -> None:
    keypoints = detect(texture(), Detector(kind, affine, most=30, upright=True))
    # An upright frame leaves the vertical in place.
    np.testing.assert_allclose(keypoints.maps[:, 0, 1], 0, atol=1e-3)
    assert (keypoints.maps[:, 1, 1] > 0).all()
    positions_and_scales = np.column_stack([keypoints.position, keypoints.scale])
    assert len(np.unique(positions_and_scales.round(3), axis=0)) == len(keypoints)


@ALL
@SHAPED
@pytest.mark.parametrize("value", [0, 255])
def test_an_image_of_one_colour_has_no_keypoints(kind: str, affine: bool, value: int) -> None:
    assert len(detect(np.full((90, 120), value, np.uint8), Detector(kind, affine))) == 0


@pytest.mark.parametrize("magnification", [6.0, 9])
def test_patches_are_those_of_kornias_pyramid(magnification: float) -> None:
    image = texture(size=320)[:301, :259]
    keypoints = detect(image, Detector("hessian", affine=True, most=150))
    keypoints.maps[0, :, :2] *= 12
    maps = scale_laf(torch.from_numpy(keypoints.maps)[None], float(magnification))
    theirs = 255 * extract_patches_from_pyramid(as_tensor(image), maps, 64)[0, :, 0]
    ours = extract(image, keypoints, magnification)
    assert ours.shape == (len(keypoints), 64, 64)
    assert np.abs(ours - theirs.numpy()).max() < 0.6


def test_a_patch_shows_the_surroundings_of_its_keypoint() -> None:
    x, y = np.meshgrid(np.arange(120), np.arange(100))
    upright = regions(Keypoints(np.array([[50.0, 40.0]]), np.array([4.0]), np.array([0.0])))
    half = 24 * (1 - 1 / 64)
    for ramp, axis, middle in ((x, 1, 50), (y, 0, 40)):
        patch = extract(ramp.astype(np.uint8), upright)[0]
        ends = patch.mean(axis=1 - axis)[[0, -1]]
        np.testing.assert_allclose(ends, [middle - half, middle + half], atol=0.6)


@pytest.fixture(params=[True, False], ids=["published", "bare"])
def keynet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A checkpoint of Key.Net with random weights, in the published layout or bare."""
    torch.manual_seed(0)
    weights = KeyNet(pretrained=False).state_dict()
    # Otherwise the last rectifier may leave nothing.
    weights["last_conv.0.weight"].abs_()
    torch.save(
        {"state_dict": weights, "epoch": 3} if request.param else weights, tmp_path / "keynet.pth"
    )
    return tmp_path / "keynet.pth"


def test_a_file_that_is_not_key_nets_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "empty.pth").touch()
    with pytest.raises(ValueError, match=r"empty\.pth does not hold .* Key.Net: EOFError"):
        detect(texture(), Detector("keynet", weights=tmp_path / "empty.pth"))


def test_keynet_detects_with_the_weights_of_a_file(keynet: Path) -> None:
    keypoints = detect(texture(), Detector("keynet", most=50, upright=True, weights=keynet))
    checkpoint = torch.load(keynet, weights_only=True)
    theirs = KeyNetDetector(pretrained=False, num_features=50).eval()
    theirs.model.load_state_dict(checkpoint.get("state_dict", checkpoint))
    with torch.inference_mode():
        maps, scores = theirs(as_tensor(texture()))
    detected = scores[0] > 0
    assert 10 < len(keypoints) == int(detected.sum())
    np.testing.assert_array_equal(keypoints.scores, scores[0, detected])
    # A patch at the usual magnification is as large as kornia's.
    np.testing.assert_allclose(
        MAGNIFICATION * keypoints.maps[:, :, :2], maps[0, detected, :, :2], rtol=1e-5
    )


def test_keynet_finds_the_same_places_in_an_image_that_is_turned_by_half(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = KeyNet(pretrained=False).state_dict()
    # Weights that turn with the image: symmetric, and blind to the odd first derivatives.
    for name, value in weights.items():
        if value.ndim == 4:
            weights[name] = (value + value.flip(2, 3)) / 2
    weights["feature_extractor.lb_block.conv0.0.weight"][:, :2] = 0
    weights["last_conv.0.weight"].abs_()
    torch.save(weights, tmp_path / "keynet.pth")
    detector = Detector("keynet", most=300, upright=True, weights=tmp_path / "keynet.pth")
    image = texture()
    first, turned = detect(image, detector), detect(np.ascontiguousarray(image[::-1, ::-1]), detector)
    back = np.array(image.shape[::-1]) - 1 - turned.position
    tree = cKDTree(np.column_stack([back, 100 * np.log(turned.scale)]))
    apart, nearest = tree.query(np.column_stack([first.position, 100 * np.log(first.scale)]))
    paired = apart < 1
    assert paired.mean() > 0.8
    assert len(np.unique(first.scale[paired].round(2))) > 3
    bias = (back[nearest] - first.position)[paired].mean(axis=0)
    np.testing.assert_allclose(bias, 0, atol=0.02)


def at(x: float, y: float, scale: float, orientation: float) -> Keypoints:
    return Keypoints(np.array([[x, y]]), np.array([scale]), np.array([orientation]))


def test_the_scale_of_opencvs_sift_keypoint_is_half_its_size() -> None:
    keypoints = from_opencv([cv2.KeyPoint(10, 20, 8, 90, 0.5)])
    assert keypoints.scale.tolist() == [4]
    assert keypoints.position.tolist() == [[10, 20]]
    assert keypoints.orientation[0] == pytest.approx(np.pi / 2)


def test_opencvs_keypoints_without_an_orientation_are_not_turned() -> None:
    keypoints = from_opencv(cv2.FastFeatureDetector_create().detect(texture(), None))
    assert len(keypoints) > 100
    assert not keypoints.orientation.any()


@pytest.mark.parametrize(
    "keypoint",
    [
        (np.nan, 50, 2, 0),
        (50, np.inf, 2, 0),
        (50, 50, np.nan, 0),
        (50, 50, np.inf, 0),
        (50, 50, 0, 0),
        (50, 50, -2, 0),
        (50, 50, 2, np.nan),
    ],
)
def test_a_keypoint_that_is_not_finite_or_has_no_scale_is_refused(
    keypoint: tuple[float, float, float, float],
) -> None:
    with pytest.raises(ValueError, match="1 of 1 keypoints"):
        extract(texture(), regions(at(*keypoint)))


def test_a_frame_without_area_is_refused() -> None:
    maps = np.array([[[2, 0, 50], [0, 2, 50]], [[2, 2, 50], [2, 2, 50]]], np.float32)
    with pytest.raises(ValueError, match="1 of 2 keypoints"):
        extract(texture(), Regions(maps, np.ones(2, np.float32)))


def test_keypoints_of_an_image_of_another_size_are_refused_with_their_number() -> None:
    # 100 by 60 px, where the keypoints' image had 200 by 200 px.
    small = texture()[:60, :100]
    places = np.array([[10, 10], [150, 10], [10, 150], [150, 150], [-3, 10]], float)
    keypoints = regions(Keypoints(places, np.full(5, 2.0), np.zeros(5)))
    with pytest.raises(ValueError, match=r"4 of 5 keypoints .* 100 by 60 px"):
        extract(small, keypoints)


def test_keypoints_on_the_border_belong_to_the_image() -> None:
    # The image's edges, in both conventions of where the first pixel's centre is.
    places = np.array([[-0.5, -0.5], [99.5, 59.5], [0, 0], [99, 59], [100, 60]])
    keypoints = regions(Keypoints(places, np.full(5, 2.0), np.zeros(5)))
    assert len(extract(texture()[:60, :100], keypoints)) == 5


@given(across=st.floats(-0.3, 0.3), along=st.floats(-1e-3, 1e-3))
def test_the_local_affine_map_is_the_derivative_of_the_homography(across: float, along: float) -> None:
    homography = np.array([[1.1, across, 5], [-across, 0.9, 7], [along, -along, 1]])
    pixel, step = np.array([[20.0, 70.0]]), 1e-4
    columns = [
        (transfer(homography, pixel + shift) - transfer(homography, pixel - shift))[0] / (2 * step)
        for shift in (np.array([step, 0]), np.array([0, step]))
    ]
    np.testing.assert_allclose(local_affine(homography, pixel)[0], np.stack(columns, axis=1), atol=1e-6)


@pytest.mark.parametrize("sigma", [3.0, 6.0])
def test_of_a_blobs_dog_keypoints_the_first_is_at_its_position_and_scale(sigma: float) -> None:
    detected = one_a_place(dog_keypoints(blob((sigma, sigma)), 0.01, 1.0))
    np.testing.assert_allclose(detected.position[0], [63, 60], atol=1)
    assert detected.scale[0] == pytest.approx(sigma, rel=0.3)


def test_a_coarse_patch_is_smoothed_before_it_is_sampled() -> None:
    board = (255 * (np.indices((512, 512)).sum(axis=0) % 2)).astype(np.uint8)
    assert cut(board, at(255.7, 255.2, 4 * 64 / PATCH_WIDTH, 0.3)).std() < 5


@given(x=st.floats(80, 170), y=st.floats(80, 170), angle=st.floats(-3, 3), zoom=st.floats(0.7, 1.5))
def test_a_keypoint_carried_by_a_similarity_shows_the_same_patch(
    x: float, y: float, angle: float, zoom: float
) -> None:
    noise = np.random.default_rng(0).random((250, 250)).astype(np.float32)
    image = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 4), None, 0, 255, cv2.NORM_MINMAX)
    c, s = zoom * np.cos(angle), zoom * np.sin(angle)
    affine = np.array([[c, -s, 300 - c * x + s * y], [s, c, 300 - s * x - c * y]])
    warped = cv2.warpAffine(image, affine, (600, 600), flags=cv2.INTER_CUBIC).astype(np.uint8)
    patch = cut(image.astype(np.uint8), at(x, y, 3.0, 0.5))[0].astype(float)
    carried = cut(warped, at(300, 300, 3.0 * zoom, 0.5 + angle))[0].astype(float)
    assert np.abs(patch - carried).mean() < 3


def test_orientations_in_degrees_are_refused() -> None:
    turned = Keypoints(np.full((3, 2), 30.0), np.full(3, 2.0), np.array([0.0, 90.0, 300.0]))
    with pytest.raises(ValueError, match="radians, got 300"):
        regions(turned)
    assert len(regions(replace(turned, orientation=np.deg2rad(turned.orientation)))) == 3
