"""Measures between photographs of a place: matching, and the error of carrying."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from known_scenes import POSES, both_ways, numbers, plane_views, table

from lib.benchmarks import carrying_error, image_pairs
from lib.benchmarks.subject import Subject
from lib.data.scenes.correspondences import Scene
from lib.data.scenes.sets import SHOWN
from lib.data.scenes.views import View

UNASKED = Subject(lambda patches: patches)
# Three views of 40 keypoints each: the first 30 show the same points, the others nothing.
SHARED, EACH = 30, 40
VIEWS = np.repeat([0, 1, 2], EACH)
POINT = np.where(
    np.arange(3 * EACH) % EACH < SHARED, np.arange(3 * EACH) % EACH, 1000 + np.arange(3 * EACH)
)


def matched_rows(rng: np.random.Generator) -> list[tuple]:
    """Return matches between keypoints of one point in two views, at distances of all tolerances."""
    ends = (
        (n + one * EACH, n + other * EACH)
        for n in range(SHARED)
        for one, other in ((0, 1), (0, 2), (1, 2))
    )
    return [row for pair in ends for row in both_ways(*pair, rng.choice([0.5, 1.2, 2.8, 4.5]))]


def scenes_with(rows: list[tuple]) -> list[Scene]:
    points = np.random.default_rng(1).uniform(1, 2, (3 * EACH, 3))
    return [table(VIEWS.tolist(), rows, points, plane_views())]


def described_by(descriptors: np.ndarray) -> Subject:
    return Subject(lambda patches: descriptors[numbers(patches)].astype(np.float32))


@pytest.fixture(autouse=True)
def few_queries_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_pairs, "FEWEST_QUERIES", 3)


def perfect() -> np.ndarray:
    """Return one descriptor per point, 1 or more from every other."""
    return np.random.default_rng(5).normal(size=(2000, 16))[POINT]


RANDOM = np.random.default_rng(6).normal(size=(3 * EACH, 16))


def test_a_perfect_descriptor_has_100_and_an_uninformative_one_far_less() -> None:
    scenes = scenes_with(matched_rows(np.random.default_rng(0)))
    best = image_pairs.measure(described_by(perfect()), scenes)
    for pixels in SHOWN:
        assert best[f"ap.{pixels:g}"] == pytest.approx(100)
        assert best["pairs"] == 3
        for uninformative in (np.zeros((3 * EACH, 4)), RANDOM):
            assert image_pairs.measure(described_by(uninformative), scenes)[f"ap.{pixels:g}"] < 30
    assert best["queries.1.5"] < best["queries.3"] < best["queries.5"] == 3 * SHARED


def test_keypoints_in_the_guard_zone_neither_help_nor_hurt_and_others_hurt() -> None:
    # In the second view, the first keypoint that shows nothing is more like the query than its match.
    query, match, decoy = 0, EACH, EACH + SHARED
    descriptors = perfect()
    descriptors[decoy] = descriptors[query]
    descriptors[match] += 0.01
    rows = [row for row in matched_rows(np.random.default_rng(0)) if {*row[:2]} != {query, match}]
    rows += both_ways(query, match, 0.5)
    for pixels in SHOWN:
        for times, is_perfect in ((1.99, True), (2.01, False)):
            scenes = scenes_with([*rows, (query, decoy, times * pixels)])
            precision = image_pairs.measure(described_by(descriptors), scenes)[f"ap.{pixels:g}"]
            assert (precision == pytest.approx(100)) == is_perfect


def literal_ap(
    descriptors: np.ndarray, scene: Scene, query_view: int, target_view: int, pixels: float
) -> tuple[float, int]:
    """Return average precision and number of queries of a pair of images, by loops."""
    errors = {(s, t): (p, o, a) for s, t, p, o, a in scene.pairs.itertuples(index=False)}

    def close(source: int, target: int, times: float = 1.0) -> bool:
        position, octaves, angle = errors.get((source, target), (np.inf,) * 3)
        limits = (position <= times * pixels, octaves <= times * 0.25, angle <= times * np.pi / 8)
        return all(limits)

    queries, targets = (
        np.flatnonzero(scene.view_ids == view).tolist() for view in (query_view, target_view)
    )
    answers = []
    for query in queries:
        mutual = [t for t in targets if close(query, t) and close(t, query)]
        if not mutual:
            continue
        target = min(mutual, key=lambda t: max(errors[query, t][0], errors[t, query][0]))
        allowed = [t for t in targets if t == target or not close(query, t, 2.0)]
        distance = {t: np.linalg.norm(descriptors[query] - descriptors[t]) for t in allowed}
        nearest = min(allowed, key=distance.get)
        answers.append((distance[nearest], nearest == target))
    hits, area = 0, 0.0
    for rank, (_, correct) in enumerate(sorted(answers), 1):
        if correct:
            before = hits / (rank - 1) if rank > 1 else 1.0
            hits += 1
            area += (before + hits / rank) / 2
    return 100 * area / len(answers), len(answers)


@pytest.mark.parametrize("seed", range(3))
def test_matching_equals_a_slow_transcription(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = {(one, other): (*apart, 0.0, 0.0) for one, other, *apart in matched_rows(rng)}
    for one, other in rng.integers(0, 3 * EACH, (900, 2)).tolist():
        # Some one way alone, and some with scales or angles that are too far apart.
        errors = (rng.uniform(0, 10), rng.uniform(0, 0.5), rng.uniform(0, 0.7))
        for ends in ((one, other), (other, one))[: rng.integers(1, 3)]:
            if one != other:
                rows.setdefault(ends, errors)
    scenes = scenes_with([(*ends, *errors) for ends, errors in rows.items()])
    descriptors = perfect() + 1.2 * rng.normal(size=(3 * EACH, 16))
    measured = image_pairs.measure(described_by(descriptors), scenes)
    for pixels in SHOWN:
        pairs = [
            literal_ap(descriptors, scenes[0], *views, pixels) for views in ((0, 1), (0, 2), (1, 2))
        ]
        assert measured[f"ap.{pixels:g}"] == pytest.approx(np.mean([ap for ap, _ in pairs]), abs=1e-3)
        assert measured[f"queries.{pixels:g}"] == sum(count for _, count in pairs)
        assert 1 < measured[f"ap.{pixels:g}"] < 99


def test_an_offset_that_all_descriptors_share_changes_no_answer() -> None:
    rng = np.random.default_rng(0)
    scenes = scenes_with(matched_rows(rng))
    # In steps of 1/256, so that float32 holds them with the offset too.
    descriptors = (256 * (perfect() + 1.2 * rng.normal(size=(3 * EACH, 16)))).round() / 256
    plain = image_pairs.measure(described_by(descriptors), scenes)
    assert plain["ap.3"] < 99
    for offset in (10, 100, 4096):
        shifted = image_pairs.measure(described_by(descriptors + offset), scenes)
        assert shifted == pytest.approx(plain, abs=1e-3)


def seen_by(
    views: list[View], change: Callable[[int, View], View] = lambda _, view: view
) -> list[Scene]:
    points = np.full((8, 3), np.nan)
    points[:2] = 1.0
    changed = [change(number, view) for number, view in enumerate(views)]
    return [table([0] * 8, [], points, changed, ("0009.png",))]


def test_carrying_between_views_of_a_plane_is_exact() -> None:
    stats = carrying_error.measure(UNASKED, seen_by(plane_views()))
    assert stats["median"] < 1e-6
    assert [stats[f"beyond.{pixels:g}"] for pixels in SHOWN] == [0, 0, 0]
    assert 50 < stats["seen"] <= 100
    assert (stats["images"], stats["left_out"], stats["keypoints"], stats["on_surface"]) == (3, 1, 8, 25)
    points = np.concatenate([view.points for view in plane_views()])
    assert stats["sparse_points"] == len({tuple(point) for point in points.tolist()})


def test_a_shifted_observation_is_off_where_it_is_carried_to() -> None:
    def shifted(number: int, view: View) -> View:
        return replace(
            view, observed=view.observed + (2.0 if number == 1 else 0.0) * np.array([0.6, 0.8])
        )

    measured = carrying_error.measure(UNASKED, seen_by(plane_views(POSES[:2]), shifted))
    # To the second view exactly 2 px, and from it about as many.
    assert 1.4 < measured["median"] < 2.5
    assert measured["beyond.1.5"] > 50
    assert measured["beyond.5"] == 0
