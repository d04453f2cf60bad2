"""Learning rate searches: which rates they try, and the rates that runs take from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from small_study import SMALL, open_small

from lib.commands import search
from lib.data.sources import Source, open_source
from lib.profiles import HALF, QUICK, Search
from lib.recipes import COMPARED, RECIPES, part, shared, variants
from lib.study import Study, open_study, searches
from lib.study.searches import GRID, NoSearch, inherited_from

RATES = {"sgd": (0.5, 1.0, 2.0), "adam": (0.001, 0.002)}


def a_search(fpr95: dict[float, float], method: str = "hardnet", data: str = "mini") -> pd.DataFrame:
    rows = [{"method": method, "data": data, "rate": rate, "fpr95": v} for rate, v in fpr95.items()]
    return pd.DataFrame(rows)


def with_searches(*tables: pd.DataFrame) -> Study:
    study = open_study()
    study.reference.__dict__["searches"] = pd.concat(tables, ignore_index=True)
    return study


def test_the_rate_with_the_lowest_mean_is_taken() -> None:
    twice = pd.concat([a_search({1.0: 9.0, 2.0: 4.0}), a_search({1.0: 1.0, 2.0: 4.0})])
    study = with_searches(twice)
    assert study.rate("hardnet") == 2.0
    assert study.searched_fpr95("hardnet") == 4.0


def family_search(method: str, easy: dict[float, float], hard: dict[float, float]) -> pd.DataFrame:
    """A search that was tested on two reserve places."""
    tables = [a_search(easy, method).assign(test="easy"), a_search(hard, method).assign(test="hard")]
    return pd.concat(tables)


def with_family(*tables: pd.DataFrame) -> Study:
    study = with_searches(*tables)
    names = tuple(dict.fromkeys(table["method"].iloc[0] for table in tables))
    search = replace(study.profile.search, families=(names,))
    return replace(study, profile=replace(study.profile, search=search))


EVEN = {0.5: 3.0, 1.0: 2.0, 2.0: 3.0}


def test_a_family_takes_the_median_of_its_best_rates() -> None:
    study = with_family(
        family_search("hardnet", {0.5: 1.9, 1.0: 2.0, 2.0: 3.0}, EVEN),
        family_search("dsm_aug", EVEN, EVEN),
        family_search("sosnet_aug", {0.5: 3.0, 1.0: 2.0, 2.0: 1.9}, EVEN),
        family_search("hynet_aug", EVEN, EVEN),
    )
    assert {study.rate(name) for name in ("hardnet", "dsm_aug", "sosnet_aug", "hynet_aug")} == {1.0}


@pytest.mark.parametrize(
    ("easy", "hard", "expected"),
    [
        # Better by 16% on both places.
        ({0.5: 1.68, 1.0: 2.0, 2.0: 3.0}, {0.5: 3.36, 1.0: 4.0, 2.0: 5.0}, 0.5),
        # Better by 14%.
        ({0.5: 1.72, 1.0: 2.0, 2.0: 3.0}, {0.5: 3.44, 1.0: 4.0, 2.0: 5.0}, 1.0),
        # Better by far in the mean, and worse on one place.
        ({0.5: 2.1, 1.0: 2.0, 2.0: 3.0}, {0.5: 1.0, 1.0: 4.0, 2.0: 5.0}, 1.0),
    ],
)
def test_a_method_leaves_its_familys_rate_only_where_it_is_clearly_better_everywhere(
    easy: dict[float, float], hard: dict[float, float], expected: float
) -> None:
    study = with_family(
        family_search("hardnet", easy, hard),
        family_search("dsm_aug", EVEN, EVEN),
        family_search("sosnet_aug", EVEN, EVEN),
    )
    assert study.rate("hardnet") == expected
    assert study.rate("dsm_aug") == 1.0


def test_a_family_without_all_its_searches_or_a_rate_not_tried_is_refused() -> None:
    study = with_family(
        family_search("hardnet", {0.1: 1.0, 0.2: 2.0}, {0.1: 1.0, 0.2: 2.0}),
        family_search("dsm_aug", EVEN, EVEN),
        family_search("sosnet_aug", EVEN, EVEN),
    )
    with pytest.raises(NoSearch, match=r'did not try 1, .* --methods "hardnet" --rates 1'):
        study.rate("hardnet")
    [family] = study.profile.search.families
    search = replace(study.profile.search, families=((*family, "hynet_aug"),))
    with pytest.raises(NoSearch, match=r'--methods "hynet_aug"'):
        replace(study, profile=replace(study.profile, search=search)).rate("dsm_aug")


def test_a_missing_search_names_the_command_that_makes_it() -> None:
    study = with_searches(a_search({1.0: 5.0}))
    with pytest.raises(NoSearch, match=r'lib\.commands search --profile quick --methods "dsm_aug"'):
        study.rate("dsm_aug")


def test_rates_of_the_studys_own_data_come_before_those_of_photographs() -> None:
    rows = pd.concat([a_search({1.0: 5.0}, data="mini"), a_search({2.0: 5.0}, data="photos")])
    assert set(searches.on_record(rows, "photos")["rate"]) == {2.0}
    assert set(searches.on_record(rows, "places")["rate"]) == {2.0}
    assert set(searches.on_record(rows, "mini")["rate"]) == {1.0}
    assert searches.borrowed(searches.on_record(rows, "places"), "places").endswith("photos")
    assert searches.borrowed(searches.on_record(rows, "mini"), "mini") == ""


def test_undampened_sgd_starts_ten_times_lower() -> None:
    # Along a constant gradient a step is lr (1 − dampening) / (1 − momentum) times the gradient.
    grid = Search(RATES, (0,))
    assert searches.first_rates(grid, RECIPES["hardnet"]) == (0.5, 1.0, 2.0)
    assert searches.first_rates(grid, RECIPES["dsm_aug"]) == (0.05, 0.1, 0.2)
    assert searches.first_rates(grid, RECIPES["hynet_aug"]) == (0.001, 0.002)


@pytest.mark.parametrize(
    ("best", "tried", "further"),
    [(1.0, (0.5, 1.0, 2.0), None), (2.0, (0.5, 1.0, 2.0), 5.0), (0.5, (0.5, 1.0, 2.0), 0.2)],
)
def test_a_search_goes_on_where_the_best_rate_is_at_an_end(
    best: float, tried: tuple[float, ...], further: float | None
) -> None:
    assert searches.further_rate(best, tried) == further


def test_the_grid_has_1_2_and_5_times_powers_of_ten() -> None:
    assert [rate for rate in GRID if 0.1 <= rate < 10] == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]


def test_a_search_trains_on_each_reserve_and_tests_on_the_other(tmp_path: Path) -> None:
    study = open_small(tmp_path)
    asked = searches.requests(SMALL, study.source, "hardnet", RECIPES["hardnet"], 1.0)
    tested = {(request.train, request.sets[1]) for request in asked}
    assert tested == {("reserve-a", "reserve-b"), ("reserve-b", "reserve-a")}
    assert all(request.rate == 1.0 for request in asked)
    assert not {name for request in asked for name in request.sets} & {*study.tests}


def test_a_search_on_the_repositorys_places_tests_on_their_only_reserve() -> None:
    assert searches.pairs_of_sets(open_study().source) == [("banana", "caliterra")]


def folder_of_places(folder: Path, *names: str) -> Source:
    """Open a folder of places whose last is a reserve; their files are empty."""
    for name in names:
        (folder / name / "images").mkdir(parents=True)
        for number in range(3):
            (folder / name / "images" / f"{number}.jpg").touch()
    *trained, last = names
    roles = {"places": {name: [name] for name in names}, "train_and_test": trained, "reserve": [last]}
    (folder / "scenes.json").write_text(json.dumps(roles))
    return open_source(f"places:{folder}", folder / "made")


def test_a_search_for_a_folder_of_places_trains_on_the_repositorys_and_tests_on_its_reserve(
    tmp_path: Path,
) -> None:
    source = folder_of_places(tmp_path, "square", "church", "bridge")
    assert searches.pairs_of_sets(source) == [("boruszyn", "bridge"), ("caliterra", "bridge")]
    assert source.digest("boruszyn") == open_study().source.digest("boruszyn")


def test_a_folder_that_holds_the_repositorys_places_itself_searches_among_its_own(
    tmp_path: Path,
) -> None:
    source = folder_of_places(tmp_path, "square", "boruszyn", "bridge")
    assert searches.pairs_of_sets(source) == [("square", "bridge")]


def test_a_search_is_made_and_put_on_record_in_place_of_an_earlier_one(tmp_path: Path) -> None:
    profile = replace(SMALL, search=Search({"sgd": (1.0, 2.0), "adam": ()}, (0,)))
    study = open_small(tmp_path, profile)
    rows = search.search(study, "hardnet", RECIPES["hardnet"])
    assert set(rows.columns) >= {*searches.COLUMNS}
    assert rows["fpr95"].between(0, 100).all()
    search.record(study, rows)
    search.record(study, rows.assign(fpr95=7.0))
    on_record = pd.read_csv(study.reference.folder / "searches.csv")
    assert len(on_record) == len(rows)
    assert set(on_record["fpr95"]) == {7.0}


def test_a_search_goes_on_until_its_best_rate_is_within(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = {1.0: 8.0, 2.0: 6.0, 5.0: 3.0, 10.0: 7.0}
    profile = replace(SMALL, search=Search({"sgd": (1.0, 2.0), "adam": ()}, (0,)))
    monkeypatch.setattr(Study, "make", lambda study, requests: [])
    monkeypatch.setattr(
        search,
        "_row",
        lambda *asked: {"rate": asked[-1].rate, "fpr95": reached.get(asked[-1].rate, 9.0)},
    )
    rows = search.search(open_small(tmp_path, profile), "hardnet", RECIPES["hardnet"])
    assert [*rows["rate"].unique()] == [1.0, 2.0, 5.0, 10.0]


@pytest.mark.parametrize(
    ("base", "words", "changes", "giver"),
    [
        ("hynet_aug", "IN", {"model": {"norm": "in"}}, "hynet_aug"),
        ("hynet_aug", "without R_L2", {"regularizers": ()}, "hynet_aug"),
        ("hynet_aug, shared, Adam", "without R_L2", {"regularizers": ()}, "hynet_aug, shared, Adam"),
        # The gradient is as long as the loss and the distance make it.
        ("hynet_aug", "summed", {"reduction": "sum"}, None),
        ("hardnet_aug", "margin 2", {"loss": {"margin": 2.0}}, None),
        ("hardnet_aug", "squared distance", {"distance": {"power": 2}}, None),
        # Adam's rates are no rates of SGD.
        ("hardnet_aug", "Adam", {"optimizer": part("adam", lr=0.01)}, None),
        # A member of a family has the family's.
        ("hardnet_aug", "shared, SGD", {}, None),
    ],
)
def test_a_variant_takes_its_methods_rate_unless_its_scale_is_another(
    base: str, words: str, changes: dict, giver: str | None
) -> None:
    known = shared(COMPARED, "Adam") | RECIPES
    [(name, recipe)] = variants((base, known[base]), {words: changes}).items()
    assert inherited_from(name, recipe, HALF.search) == giver
    assert inherited_from(name, recipe, QUICK.search) is None
