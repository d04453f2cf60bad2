"""The jitter fitted to published matching: its measurements, its search, and what is committed of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pandas as pd
import pytest

from lib.benchmarks import hpatches
from lib.benchmarks.jitter_fit import (
    BOUNDS,
    NARROWER,
    POINTS,
    START,
    Matching,
    fit,
    fitted_tables,
    interpolated,
    levels_of,
    parameters_table,
    residuals,
    spread_points,
)
from lib.benchmarks.subject import Subject, describe
from lib.data.hpatches.building import cut_patches, plan_patches
from lib.data.hpatches.homographies import read_homography_sequence, write_homography_sequence
from lib.data.hpatches.jitter import FACTORS, MEDIAN_OVERLAP, PROPORTIONS
from lib.data.hpatches.release import LEVELS, read_sequence, write_sequence
from lib.data.hpatches.tasks import HPatchesSplit
from lib.models import orb, sift
from lib.study.open import REFERENCE

COMMITTED = REFERENCE / "hpatches_jitter"
TRUTH = np.array([18.0, 0.15, 0.6, 0.58])


@pytest.fixture(scope="module")
def textured(tmp_path_factory):
    """Filtered noise and five views of it."""
    folder = tmp_path_factory.mktemp("textured") / "v_textured"
    noise = np.random.default_rng(0).normal(size=(160, 200))
    image = 128 + 60 * (noise := cv2.GaussianBlur(noise, (0, 0), 3)) / noise.std()
    image = image.clip(0, 255).astype(np.uint8)
    homographies = np.stack([[[1, 0.02 * k, -k], [0, 1, k], [1e-4 * k, 0, 1]] for k in range(1, 6)])
    views = [cv2.warpPerspective(image, h, image.shape[::-1]) for h in homographies]
    write_homography_sequence(folder, [image, *views], homographies)
    return read_homography_sequence(folder)


def plausible(parameters: np.ndarray) -> np.ndarray:
    """(4, 2, 3) percent that fall with jitter, for each descriptor by other parts of it."""
    rotation, translation, anisotropy, tough = parameters
    bears = np.array([[3, 1, 1], [1, 4, 1], [1, 1, 3], [2, 2, 0.5]])
    harm = bears @ [rotation / 30, translation * 2, anisotropy]
    grows = np.array([0.5, 1, 4 * (1 - tough)])
    sequences = np.array([1, 0.7])
    return 100 / (1 + np.exp(harm[:, None, None] * grows * sequences[:, None] - 2))


def test_matching_is_the_benchmarks_own_on_patches_with_the_same_jitter(textured, tmp_path):
    networks = {"sift": sift.build(), "orb": orb.build()}
    matching = Matching([textured], networks)
    proportions, factors = levels_of(START)
    jitter = {
        f"{level[0]}{image + 1}": proportions.affines(factors[level] * matching.draws[0][row, image])
        for row, level in enumerate(LEVELS)
        for image in range(5)
    }
    plan = replace(plan_patches(textured), jitter=jitter)
    write_sequence(tmp_path / textured.name, cut_patches(textured, plan))
    split = HPatchesSplit("full", (read_sequence(tmp_path / textured.name),), None)
    for measured, network in zip(matching(START), networks.values(), strict=True):
        subject = Subject(lambda patches, network=network: describe(network, patches))
        numbers = hpatches.matching(hpatches.describe(subject, split), split)
        expected = [numbers[f"matching.{level}.{textured.name}"] for level in LEVELS]
        np.testing.assert_allclose(measured[0], expected)
        assert expected == sorted(expected, reverse=True)


def test_levels_have_the_overlaps_that_they_are_given():
    proportions, factors = levels_of(TRUTH)
    for level, overlap in {**MEDIAN_OVERLAP, "tough": TRUTH[3]}.items():
        assert proportions.factor(overlap) == pytest.approx(factors[level], rel=5e-3)
    assert np.rad2deg(proportions.rotation) == pytest.approx(TRUTH[0])


def test_the_fit_finds_what_made_the_numbers_whatever_the_descriptors_offsets():
    points = spread_points(*BOUNDS.to_numpy(), 64)
    predict = interpolated(points, np.stack([plausible(point) for point in points]))
    published = plausible(TRUTH) + np.array([5, -8, 0, 11])[:, None, None]
    fitted = (fit(predict, published) - TRUTH) / np.diff(BOUNDS, axis=0)[0]
    assert fitted.abs().max() < 0.05


def test_residuals_are_without_each_descriptors_mean():
    published = np.random.default_rng(0).uniform(0, 100, (4, 2, 3))
    shifted = published + np.arange(4)[:, None, None]
    np.testing.assert_allclose(residuals(shifted, published), 0, atol=1e-12)
    shifted[1, 0, 2] += 6
    assert residuals(shifted, published)[1, 0, 2] == pytest.approx(5)


def test_what_the_numbers_do_not_depend_on_is_not_identified_and_stays():
    def blind(parameters: np.ndarray) -> np.ndarray:
        return plausible(np.array([*parameters[:2], 0.3, parameters[3]]))

    # Noise alone is left to tell the anisotropy.
    published = blind(TRUTH) + np.random.default_rng(1).normal(0, 0.3, (4, 2, 3))
    points = spread_points(*BOUNDS.to_numpy(), 64)
    noise = np.random.default_rng(2).normal(0, 0.05, (64, 4, 2, 3))
    table = parameters_table(
        interpolated(points, np.stack([blind(point) for point in points]) + noise), published
    )
    assert table["identified"].to_dict() == {
        **dict.fromkeys(BOUNDS, True),
        "anisotropy": False,
    }
    assert table.loc["anisotropy", "used"] == START["anisotropy"]
    assert table.loc["rotation", "used"] == pytest.approx(TRUTH[0], rel=0.1)


def test_a_whole_fit_measures_at_the_start_over_the_bounds_and_closer_and_tells_all_of_it():
    class Plausible(SimpleNamespace):
        def __call__(self, parameters):
            return plausible(np.asarray(parameters))

    names = [["sift", "rootsift", "orb", "tfeat"], ["v_one", "v_two"]]
    index = pd.MultiIndex.from_product(names, names=["descriptor", "sequence"])
    published = pd.DataFrame(plausible(TRUTH).reshape(8, 3), index, columns=LEVELS)
    tables = fitted_tables(Plausible(networks=names[0], sequences=names[1]), published)
    assert tables["parameters"]["identified"].all()
    width = np.diff(BOUNDS, axis=0)[0]
    assert ((tables["parameters"]["used"] - TRUTH).abs() < 0.05 * width).all()
    evaluations, cells = tables["evaluations"], tables["cells"]
    assert len(evaluations) == 1 + sum(POINTS)
    assert evaluations.loc[0, list(BOUNDS)].to_dict() == START.to_dict()
    closer = evaluations[list(BOUNDS)].tail(POINTS[1])
    assert (np.ptp(closer, axis=0) <= NARROWER * width).all()
    assert list(cells["before"]) == list(evaluations.iloc[0, len(BOUNDS.columns) :])
    assert cells["residual after"].abs().max() < 1 < cells["residual before"].abs().max()


def committed(name: str, **options: object) -> pd.DataFrame:
    return pd.read_csv(COMMITTED / f"{name}.csv", **options)


def test_the_committed_parameters_follow_from_the_committed_measurements():
    evaluations, cells = committed("evaluations"), committed("cells", index_col=[0, 1, 2])
    points = evaluations[BOUNDS.columns].to_numpy()
    values = evaluations.drop(columns=BOUNDS.columns).to_numpy().reshape(len(points), 4, 2, 3)
    table = parameters_table(
        interpolated(points, values), cells["published"].to_numpy().reshape(4, 2, 3)
    )
    expected = committed("parameters", index_col=0)
    pd.testing.assert_frame_equal(table, expected, rtol=0.02, atol=0.01)


def test_the_builder_draws_what_was_fitted():
    proportions, factors = levels_of(committed("parameters", index_col=0)["used"])
    for name, value in vars(proportions).items():
        assert getattr(PROPORTIONS, name) == pytest.approx(value, rel=0.01, abs=1e-6)
    assert pytest.approx(factors, rel=0.02) == FACTORS
    assert MEDIAN_OVERLAP["tough"] == pytest.approx(
        committed("parameters", index_col=0).loc["tough", "used"], abs=0.005
    )
