"""Classes of keypoints that show one point, on tables made by hand and at random; pairs of patches."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_scenes import both_ways, table

from lib.data.scenes.correspondences import GUARD, Scene, Tolerance, classes, matches, reduced
from lib.data.scenes.prepared import non_matching, within_points

TWO = Tolerance(2.0)
LIMITS = {"position": 2.0, "octaves": 0.25, "angle": np.pi / 8}


def test_keypoints_match_only_where_each_maps_to_the_other() -> None:
    scene = table([0, 0, 1, 1], [(0, 2, 0.1), *both_ways(1, 3, 0.5), (3, 0, 0.1)])
    assert matches(scene, TWO)[["first", "second"]].to_numpy().tolist() == [[1, 3]]
    assert classes(scene, TWO).tolist() == [-1, 0, -1, 0]


@pytest.mark.parametrize("part", range(3), ids=[*LIMITS])
def test_each_part_of_the_tolerance_holds_by_itself_and_in_both_directions(part: int) -> None:
    deviations = [0.0, 0.0, 0.0]
    deviations[part] = [*LIMITS.values()][part]
    beyond = [value * (1 + 1e-9) for value in deviations]
    assert len(matches(table([0, 1], both_ways(0, 1, *deviations)), TWO)) == 1
    assert len(matches(table([0, 1], [(0, 1, *deviations), (1, 0, *beyond)]), TWO)) == 0
    assert len(matches(table([0, 1], both_ways(0, 1, *beyond)), TWO)) == 0


@pytest.mark.parametrize("nearer", [1, 2])
def test_the_nearer_of_two_keypoints_of_one_view_stays(nearer: int) -> None:
    scene = table([0, 1, 1], [*both_ways(0, nearer, 0.5), *both_ways(0, 3 - nearer, 1.0)])
    expected = [0, -1, -1]
    expected[nearer] = 0
    assert classes(scene, TWO).tolist() == expected


# Two classes, {0, 1} and {2, 3}: keypoints 0 and 2 in the first view, 1 and 3 in the second.
PAIRED = [*both_ways(0, 1, 1.0), *both_ways(2, 3, 0.1)]


@pytest.mark.parametrize("ends", [(0, 2), (3, 1), (2, 1)])
def test_one_of_two_classes_within_twice_the_tolerance_stays(ends: tuple[int, int]) -> None:
    within = [(*ends, *(GUARD * limit for limit in LIMITS.values()))]
    assert classes(table([0, 1, 0, 1], PAIRED + within), TWO).tolist() == [0, 0, -1, -1]
    for part in range(3):
        limits = [GUARD * limit for limit in LIMITS.values()]
        limits[part] *= 1 + 1e-9
        scene = table([0, 1, 0, 1], [*PAIRED, (*ends, *limits)])
        assert classes(scene, TWO).tolist() == [0, 0, 1, 1]


def test_unmatched_keypoints_exclude_no_class_and_form_none() -> None:
    scene = table([0, 1, 0], [*both_ways(0, 1, 1.0), *both_ways(0, 2, 0.5)])
    assert classes(scene, TWO).tolist() == [0, 0, -1]
    assert classes(table([0, 1], []), TWO).tolist() == [-1, -1]


Ways = dict[tuple[int, int], tuple[float, float, float]]


def literal_classes(view: list[int], ways: Ways, times: float) -> list[int]:
    """Classes from sets merged while all their pairs are mutual, less those in a guard zone."""

    def close(source: int, target: int, times: float = 1.0) -> bool:
        deviations = ways.get((source, target), (np.inf,) * 3)
        return all(a <= times * limit for a, limit in zip(deviations, LIMITS.values(), strict=True))

    def mutual(one: int, other: int) -> bool:
        return view[one] != view[other] and close(one, other) and close(other, one)

    indices = range(len(view))
    candidates = [pair for pair in combinations(indices, 2) if mutual(*pair)]
    candidates.sort(key=lambda pair: (max(ways[pair][0], ways[pair[::-1]][0]), pair))
    groups = [{index} for index in indices]
    for one, other in candidates:
        first, second = (next(group for group in groups if end in group) for end in (one, other))
        if first is not second and all(mutual(a, b) for a in first for b in second):
            groups.remove(second)
            first |= second
    accepted: list[set[int]] = []
    for group in sorted((g for g in groups if len(g) > 1), key=lambda g: (-len(g), min(g))):
        rivals = ((a, b) for rival in accepted for a in group for b in rival)
        if not any(close(a, b, times) or close(b, a, times) for a, b in rivals):
            accepted.append(group)
    accepted.sort(key=min)
    return [next((n for n, group in enumerate(accepted) if index in group), -1) for index in indices]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Scene, Ways]:
    view = sorted(draw(st.lists(st.integers(0, 3), min_size=2, max_size=10)))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    density, spread = draw(st.sampled_from([0.4, 0.8, 1.0])), draw(st.sampled_from([1.0, 1.6, 3.0]))
    ways: Ways = {}
    for one, other in combinations(range(len(view)), 2):
        deviations = rng.choice([0.1, 0.5, 0.5, 1.0]) * spread * np.array([*LIMITS.values()])
        for ends in ((one, other), (other, one)):
            if rng.random() < density:
                noise = rng.uniform(0.8, 1.25, 3) if rng.random() < 0.7 else 1
                ways[ends] = tuple((deviations * noise).tolist())
    return table(view, [(*ends, *deviations) for ends, deviations in ways.items()]), ways


@settings(max_examples=80)
@given(tables(), st.none() | st.integers(1, 4), st.none() | st.integers(1, 3))
def test_a_reduced_scene_has_the_matches_among_what_is_kept(
    drawn: tuple[Scene, Ways], most_views: int | None, most_keypoints: int | None
) -> None:
    scene, _ = drawn
    kept: list[int] = []
    for view in range(4 if most_views is None else most_views):
        kept += np.flatnonzero(scene.view_ids == view)[:most_keypoints].tolist()
    some = reduced(scene, most_views, most_keypoints)
    assert some.view_ids.tolist() == scene.view_ids[kept].tolist()
    assert len(some.keypoints) == len(some.points) == len(kept)
    every = matches(scene, TWO).itertuples(index=False, name=None)
    expected = [(a, b, px) for a, b, px in every if {a, b} <= {*kept}]
    numbered = [(kept[a], kept[b], px) for a, b, px in matches(some, TWO).itertuples(index=False)]
    assert numbered == expected


@settings(max_examples=80)
@given(tables())
def test_classes_of_any_table_are_complete_apart_and_numbered(drawn: tuple[Scene, Ways]) -> None:
    scene, ways = drawn
    label = classes(scene, TWO)
    assert sorted(set(label.tolist()) - {-1}) == [*range(label.max() + 1)]
    first_members = [label[label >= 0].tolist().index(number) for number in range(label.max() + 1)]
    assert first_members == sorted(first_members)

    def close(source: int, target: int, times: float) -> bool:
        deviations = ways.get((source, target), (np.inf,) * 3)
        return all(a <= times * limit for a, limit in zip(deviations, LIMITS.values(), strict=True))

    for one, other in combinations(np.flatnonzero(label >= 0).tolist(), 2):
        if label[one] == label[other]:
            assert scene.view_ids[one] != scene.view_ids[other]
            assert close(one, other, 1.0)
            assert close(other, one, 1.0)
        else:
            assert not close(one, other, 2.0)
            assert not close(other, one, 2.0)
    assert all(count > 1 for count in np.bincount(label[label >= 0]))
    assert label.tolist() == literal_classes(scene.view_ids.tolist(), ways, GUARD)


@given(sizes=st.lists(st.integers(2, 5), min_size=2, max_size=30), count=st.integers(1, 80))
def test_matching_pairs_are_all_of_a_point_and_others_are_of_different_ones(
    sizes: list[int], count: int
) -> None:
    points = np.repeat(np.arange(len(sizes)), sizes)
    first, second = within_points(points)
    assert (points[first] == points[second]).all()
    assert (first < second).all()
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(pairs) == len(first) == sum(n * (n - 1) // 2 for n in sizes)
    others = non_matching(points, count, np.random.default_rng(0))
    assert others.shape == (2, count)
    assert (points[others[0]] != points[others[1]]).all()


def test_no_patch_is_twice_on_a_side_of_other_pairs_before_all_were_drawn() -> None:
    points = np.repeat(np.arange(100), 2)
    for side in non_matching(points, 150, np.random.default_rng(0)):
        assert len(np.unique(side)) == 150
