"""W1BS: its layout, the set of its kind that is made here, and mAUC against its literal definition."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from skimage import data

from lib.analysis import w1bs_curves
from lib.benchmarks import w1bs
from lib.benchmarks.subject import Subject, describe
from lib.data import whole_images as layout
from lib.data.synthetic import ImagesSize
from lib.data.synthetic import whole_images as generator
from lib.data.synthetic.photographs import Photograph
from lib.models import handcrafted


def literal_area(confidence: np.ndarray, right: np.ndarray, thresholds: np.ndarray) -> float:
    """Compute the area threshold by threshold, in plain Python."""
    recall, error = [], []
    for threshold in thresholds:
        accepted = [index for index in range(len(right)) if confidence[index] < threshold]
        hits = sum(bool(right[index]) for index in accepted)
        recall.append(hits / len(right))
        error.append(1 - (hits / len(accepted) if accepted else 1.0))
    trapezoids = [
        (error[i] - error[i - 1]) * (recall[i] + recall[i - 1]) / 2 for i in range(1, len(recall))
    ]
    return sum(trapezoids)


def subject_of(values: np.ndarray):
    """Return a subject with row i of the values for a patch whose first pixel is i."""

    def describe_(patches: np.ndarray) -> np.ndarray:
        return values[patches[:, 0, 0]]

    return Subject(describe_)


def numbered(start: int, n: int) -> np.ndarray:
    return np.repeat(np.arange(start, start + n), 64 * 64).reshape(n, 64, 64).astype(np.uint8)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), st.sampled_from([0.1, 1.0, 5.0]))
def test_areas_follow_their_definition(seed: int, n: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((n, 6)).astype(np.float32)
    second = (first + noise * rng.standard_normal((n, 6))).astype(np.float32)
    curve = w1bs.curve(subject_of(np.concatenate([first, second])), numbered(0, n), numbered(n, n))
    distances = cdist(first, second)
    right = distances.argmin(axis=1) == np.arange(n)
    near, far = np.sort(distances, axis=1)[:, :2].T
    ratio = near / (far + 1e-12)
    thresholds = np.linspace(0, ratio.max(), 100)
    # A value on a threshold may round to either side of it.
    assume(np.abs(ratio[:, None] - thresholds[1:-1]).min() > 1e-5)
    assert w1bs.area(*curve) == pytest.approx(literal_area(ratio, right, thresholds), abs=1e-9)


def test_wrong_matches_have_no_area_and_recall_counts_every_patch() -> None:
    values = np.eye(8, dtype=np.float32)
    turned = np.roll(values, 1, axis=0)
    recall, precision = w1bs.curve(
        subject_of(np.concatenate([values, turned])), numbered(0, 8), numbered(8, 8)
    )
    assert recall.max() == 0
    assert (precision[0], precision[-1]) == (1.0, 1.0)
    assert w1bs.area(recall, precision) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pairs of a quarter of one photograph."""
    root = tmp_path_factory.mktemp("w1bs")
    grey = data.camera()
    cv2.imwrite(str(root / "camera.png"), grey)
    photograph = Photograph("camera", root / "camera.png", "CC0")
    generator.write_w1bs(root / "set", [photograph], ImagesSize(longest_side=260))
    return root / "set"


def test_made_pairs_lie_in_the_released_layout(folder: Path) -> None:
    pairs = layout.read_w1bs(folder)
    assert [subset for subset, _ in pairs] == ["G", "L"]
    assert {subset for subset, _ in pairs} < set(layout.SUBSETS)
    for (subset, name), (first, second) in pairs.items():
        assert first.shape == second.shape == (len(first), 41, 41)
        assert len(first) > 30
        column = cv2.imread(str(folder / subset / "1" / f"{name}.bmp"), cv2.IMREAD_UNCHANGED)
        np.testing.assert_array_equal(column, first.reshape(-1, 41))


def write_columns(root: Path, *names: str) -> Path:
    """Write columns of two patches of noise as the named files, e.g. "1/one.png", of the subset A."""
    rng = np.random.default_rng(0)
    for name in names:
        path = root / "A" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # OpenCV knows endings in lower case only.
        encoded = cv2.imencode(path.suffix.lower(), rng.integers(0, 256, (82, 41), np.uint8))[1]
        path.write_bytes(encoded.tobytes())
    return root


@pytest.mark.parametrize("ending", ["bmp", "BMP", "png"])
def test_pairs_of_all_photographs_endings_are_read(tmp_path: Path, ending: str) -> None:
    write_columns(tmp_path, "1/one.bmp", "2/one.bmp", f"1/two.{ending}", f"2/two.{ending}")
    write_columns(tmp_path, "1/._one.bmp")
    assert list(layout.read_w1bs(tmp_path)) == [("A", "one"), ("A", "two")]


@pytest.mark.parametrize(("there", "missing"), [("1", "2"), ("2", "1")])
def test_a_pair_without_its_other_image_is_refused_by_name(
    tmp_path: Path, there: str, missing: str
) -> None:
    write_columns(tmp_path, "1/one.bmp", "2/one.bmp", f"{there}/two.bmp")
    with pytest.raises(FileNotFoundError, match=rf"A/{missing}/two\.bmp is missing"):
        layout.read_w1bs(tmp_path)


def test_two_pairs_of_one_name_are_refused(tmp_path: Path) -> None:
    write_columns(tmp_path, "1/one.bmp", "2/one.bmp", "1/one.png", "2/one.png")
    with pytest.raises(ValueError, match=r"1/one\.png has the name of another pair"):
        layout.read_w1bs(tmp_path)


def test_rows_of_both_columns_show_the_same_spot(folder: Path) -> None:
    for patches in layout.read_w1bs(folder).values():
        first, second = (w1bs.at_64(side).reshape(-1, 64 * 64).astype(float) for side in patches)
        correlations = np.corrcoef(first, second)[: len(first), len(first) :]
        typical = np.median(correlations)
        # Tough jitter turns with a standard deviation of 36 degrees, to which pixels are sensitive.
        assert np.median(np.diag(correlations)) > typical + 0.2


def test_measures_are_means_over_pairs_and_subsets(folder: Path) -> None:
    pairs = layout.read_w1bs(folder)
    subject = Subject(partial(describe, handcrafted.Sift()))
    measured = w1bs.measure(subject, pairs)
    assert measured["mauc"] == pytest.approx((measured["mauc.G"] + measured["mauc.L"]) / 2)
    for (subset, name), patches in pairs.items():
        curve = w1bs.curve(subject, *patches)
        assert measured[f"mauc.{subset}.{name}"] == pytest.approx(100 * w1bs.area(*curve))
    assert 0 < measured["mauc"] < 100
    curves = w1bs_curves.probe(subject, pairs)
    assert curves["subset"].tolist() == ["G", "L"]
    assert curves["recall"].shape == curves["precision"].shape == (2, 100)
    areas = [
        100 * w1bs.area(*subset_curve)
        for subset_curve in zip(curves["recall"], curves["precision"], strict=True)
    ]
    np.testing.assert_allclose(areas, [measured["mauc.G"], measured["mauc.L"]], rtol=1e-3)
