"""`Study.runs`: what identifies a run, what is looked up, and the frame that comes back."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from small_study import SMALL, make_one, name_of, open_small, requests_of

from lib import training
from lib.data.sources import Source
from lib.recipes import COMPARED, RECIPES, part, shared, variants
from lib.study import Runs, Study, making, open_study, reference, requests
from lib.study.requests import Refused, Request, configuration, identity, merged
from lib.study.store import METRICS, Reference


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A small study; its first runs are made here, as a notebook makes them."""
    return open_small(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def runs(study: Study) -> Runs:
    """Two methods with a seed each, and SIFT."""
    methods = ["hardnet", "hardnet_gen"]
    return study.runs(methods, seeds=[0], untrained=["sift"], probes=["triplets_in_batch"])


def one(study: Study, **options: object) -> Request:
    [request] = requests_of(study, ["hardnet"], **{"seeds": [0], **options})
    return request


def test_the_frame_has_a_row_a_number(runs: Runs) -> None:
    assert list(runs.columns) == METRICS
    fpr95 = runs.query("measure == 'fpr95'")
    assert fpr95["label"].unique().tolist() == ["SIFT", "HardNet", "HardNet*"]
    trained = fpr95.dropna(subset=["train"])
    assert set(trained["test"]) == {"small-b", "small-c"}
    assert fpr95["value"].between(0, 100).all()
    table = fpr95.pivot_table("value", "label", ["train", "test"], dropna=False)
    assert type(table) is pd.DataFrame


def test_the_table_of_runs_joins_the_frame(runs: Runs) -> None:
    joined = runs.merge(runs.table[["run", "rate", "steps", "batch"]], on="run")
    assert len(joined) == len(runs)
    trained = joined.dropna(subset=["train"])
    assert set(trained["steps"]) == {8}
    assert set(trained["batch"]) == {16}


def test_curves_have_a_row_a_value(runs: Runs) -> None:
    curves = runs.curves
    losses = curves.query("curve == 'loss'").pivot(index="step", columns="method", values="value")
    assert losses.index.tolist() == list(range(1, 9))
    assert np.isfinite(losses.to_numpy()).all()


def test_arrays_come_by_run(runs: Runs) -> None:
    arrays = runs.arrays("triplets_in_batch")
    trained = runs.table.query("train == 'small-a'")
    assert set(arrays) == set(trained["run"])
    assert all(np.isfinite(own["positive"]).all() for own in arrays.values())


def test_followed_fpr95_has_a_row_an_epoch(runs: Runs) -> None:
    followed = runs.query("measure == 'followed_fpr95' and method == 'hardnet'")
    assert sorted(set(followed["stage"])) == [0.5, 1.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"label": "another name"},
        {"method": "another"},
        {"measures": (("fpr95", "small-c"),)},
        {"probes": (("gradient_norms", "small-a"),)},
    ],
)
def test_names_and_measures_are_not_part_of_a_runs_identity(study: Study, changes: Mapping) -> None:
    request = one(study)
    assert name_of(study, replace(request, **changes)) == name_of(study, request)


@pytest.mark.parametrize("field", ["stages", "followed_pairs", "followed_sets", "threads"])
def test_kept_stages_and_followed_pairs_are_not_part_of_it(study: Study, field: str) -> None:
    request = one(study)
    other = {"stages": (0.0, 1.0), "followed_pairs": 7, "followed_sets": 1, "threads": 2}[field]
    changed = replace(request, profile=replace(request.profile, **{field: other}))
    assert name_of(study, changed) == name_of(study, request)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"train": "small-b"},
        {"recipe": replace(RECIPES["hardnet"], reduction="sum")},
        {"profile": replace(SMALL, width=0.5)},
        {"profile": replace(SMALL, precision="bfloat16")},
        {"profile": replace(SMALL, budget=replace(SMALL.budget, epochs=3))},
    ],
)
def test_all_that_decides_numbers_is_part_of_it(study: Study, changes: Mapping) -> None:
    request = one(study)
    assert name_of(study, replace(request, **changes)) != name_of(study, request)


def test_a_raised_version_of_training_makes_other_runs(study: Study) -> None:
    config = configuration(one(study), study.source)
    assert config["numerics"] == training.NUMERICS
    assert identity({**config, "numerics": training.NUMERICS + 1}) != identity(config)


def exchanged(source: Source, name: str, folder: Path) -> Source:
    """Return a copy of a source in which a set has the content of the first reserve."""
    patches = replace(source.patches, root=folder / "sets")
    shutil.copytree(source.patches.root, patches.root)
    shutil.rmtree(patches.root / name)
    shutil.copytree(patches.root / source.reserve[0], patches.root / name)
    return replace(source, patches=patches)


def test_other_content_of_the_train_set_makes_another_run(study: Study, tmp_path: Path) -> None:
    request = one(study)
    elsewhere = replace(study, source=exchanged(study.source, "small-a", tmp_path))
    assert name_of(elsewhere, request) != name_of(study, request)


def test_what_exists_is_not_made_again(
    study: Study, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "train", None)
    again = study.runs(["hardnet"], seeds=[0])
    same = runs[runs["method"] == "hardnet"].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(same))


def test_a_measure_added_later_is_taken_from_the_weights(
    study: Study, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "train", None)
    more = study.runs(["hardnet"], seeds=[0], measures=["descriptor_spread"])
    assert more["measure"].str.startswith("descriptor_spread.").any()


def test_a_measure_by_another_version_is_taken_again_and_nothing_is_trained(
    study: Study, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = one(study)
    name = name_of(study, request)
    monkeypatch.setattr(making, "train", None)
    monkeypatch.setitem(requests.MEASURES, "fpr95", 2)
    assert {module for module, _ in study.store.find(name).lacks(request, study.source)} == {"fpr95"}
    make_one(study, request)
    assert study.store.find(name).lacks(request, study.source) == []
    assert study.store.read(name)["metrics"]["small-b"]["fpr95"]["version"] == 2
    monkeypatch.undo()
    make_one(study, request)


def test_numbers_on_a_set_with_other_content_are_taken_again(
    study: Study, runs: Runs, tmp_path: Path
) -> None:
    request = one(study)
    run = study.store.find(name_of(study, request))
    elsewhere = exchanged(study.source, "small-b", tmp_path)
    assert set(run.lacks(request, elsewhere)) == {("fpr95", "small-b")}


def test_the_reference_holds_the_same_numbers_as_the_runs(
    study: Study, runs: Runs, tmp_path: Path
) -> None:
    asked = requests_of(
        study,
        ["hardnet", "hardnet_gen"],
        seeds=[0],
        untrained=["sift"],
        probes=["triplets_in_batch"],
    )
    folder = tmp_path / "reference"
    recording = replace(study, reference=Reference(folder))
    reference.write_reference([(recording, merged(asked, study.source))])
    reading = replace(recording, results=tmp_path / "empty", reading=True)
    reading.reference.__dict__["searches"] = study.reference.searches
    read = reading.runs(
        ["hardnet", "hardnet_gen"],
        seeds=[0],
        untrained=["sift"],
        probes=["triplets_in_batch"],
    )
    pd.testing.assert_frame_equal(pd.DataFrame(read), pd.DataFrame(runs))
    pd.testing.assert_frame_equal(read.curves, runs.curves)
    for name, arrays in runs.arrays("triplets_in_batch").items():
        for key, array in read.arrays("triplets_in_batch")[name].items():
            np.testing.assert_array_equal(array, arrays[key])
    # pandas alone opens it.
    assert set(pd.read_csv(folder / "metrics.csv")["run"]) == set(runs["run"])
    assert set(pd.read_csv(folder / "sets.csv")["role"]) >= {"train_and_test", "reserve"}


def test_no_false_positive_counts_as_half_of_one(study: Study, runs: Runs) -> None:
    rates = runs["measure"] == "fpr95"
    none = runs.assign(value=runs["value"].mask(rates, 0.0))
    counted = study.counted(none)
    # PhotoTour's sets list 50,000 non-matching pairs.
    np.testing.assert_allclose(counted.loc[rates, "value"], 100 * 0.5 / 50_001)
    pd.testing.assert_frame_equal(counted[~rates], none[~rates])
    some = runs[runs["value"] > 0]
    pd.testing.assert_frame_equal(pd.DataFrame(study.counted(some)), pd.DataFrame(some))


def test_on_places_no_false_positive_is_half_of_one_among_all_pairs_of_points() -> None:
    runs = pd.DataFrame({"test": ["banana", "banana-wide"], "measure": "fpr95", "value": 0.0})
    opened = open_study()
    sets = opened.reference.sets.set_index(["data", "name"])
    points = int(sets.loc[("free", "banana"), "classes"])
    expected = 100 * 0.5 / (points * (points - 1) / 2 + 1)
    np.testing.assert_allclose(opened.counted(runs)["value"], expected)


def test_a_reference_grows_by_what_was_made_and_keeps_the_rest(
    study: Study, runs: Runs, tmp_path: Path
) -> None:
    folder = tmp_path / "reference"
    at_once = replace(study, reference=Reference(tmp_path / "at_once"))
    grown = replace(study, reference=Reference(folder), reading=True)
    options = {"seeds": [0], "probes": ["triplets_in_batch"]}
    first = merged(requests_of(study, ["hardnet"], **options), study.source)
    both = merged(requests_of(study, ["hardnet", "hardnet_gen"], **options), study.source)
    reference.write_reference([(at_once, both)])

    assert reference.extend_reference([(grown, first)]) == 1
    # Each call reads what the one before wrote, as another process does.
    grown = replace(grown, reference=Reference(folder))
    assert reference.extend_reference([(grown, both)]) == 1
    for table in ("metrics", "runs", "sets"):
        held, expected = (pd.read_csv(path / f"{table}.csv") for path in (folder, tmp_path / "at_once"))
        by = [column for column in held if column != "value"]
        pd.testing.assert_frame_equal(*(t.sort_values(by, ignore_index=True) for t in (held, expected)))
    assert len([*(folder / "arrays").iterdir()]) == 2

    # What was not made is left out, and nothing is written twice.
    grown = replace(grown, reference=Reference(folder))
    more = merged(requests_of(study, ["hardnet", "sosnet_aug"], seeds=[0]), study.source)
    assert reference.extend_reference([(grown, more)]) == 0


def test_a_run_with_more_measures_replaces_its_rows(study: Study, runs: Runs, tmp_path: Path) -> None:
    few = merged(requests_of(study, ["hardnet"], seeds=[0]), study.source)
    more = merged(requests_of(study, ["hardnet"], seeds=[0], probes=["triplets_in_batch"]), study.source)
    assert few.keys() == more.keys()
    for asked in (few, more):
        grown = replace(study, reference=Reference(tmp_path), reading=True)
        assert reference.extend_reference([(grown, asked)]) == 1
    assert sorted(pd.read_csv(tmp_path / "runs.csv")["run"]) == sorted(few)
    [*arrays] = (tmp_path / "arrays").iterdir()
    assert len(arrays) == 1


def test_an_untrained_descriptor_with_more_measures_replaces_its_rows(
    study: Study, tmp_path: Path
) -> None:
    for asked in ({}, {"measures": ["set_statistics"]}):
        study.runs(untrained=["sift"], **asked)
        request = merged(requests_of(study, [], untrained=["sift"], **asked), study.source)
        grown = replace(study, reference=Reference(tmp_path), reading=True)
        assert reference.extend_reference([(grown, request)]) == 1
    rows = pd.read_csv(tmp_path / "metrics.csv")
    assert rows["measure"].str.startswith("set_statistics").any()
    assert not rows.duplicated(["test", "measure"]).any()


def test_other_data_keep_their_rows_when_the_reference_is_written(
    study: Study, runs: Runs, tmp_path: Path
) -> None:
    asked = merged(requests_of(study, untrained=["sift"]), study.source)
    recording = replace(study, reference=Reference(tmp_path))
    reference.write_reference([(recording, asked)])
    elsewhere = replace(study.source, name="photos")
    other = replace(study, reference=Reference(tmp_path), source=elsewhere)
    reference.write_reference([(other, asked)])
    both = Reference(tmp_path)
    assert set(both.metrics["data"]) == set(both.sets["data"]) == {"small", "photos"}
    [name] = asked
    for data in ("small", "photos"):
        assert both.find(name, data).about["data"] == data


def test_one_recipe_has_one_name(study: Study) -> None:
    first, second = (
        requests_of(study, ["hardnet"], seeds=[0]),
        requests_of(study, ["hardnet"], seeds=[0]),
    )
    renamed = [replace(request, method="mine") for request in second]
    with pytest.raises(ValueError, match="one recipe: give it one name"):
        merged([*first, *renamed], study.source)


def test_a_variant_trains_at_the_rate_that_its_row_names(study: Study) -> None:
    rows = variants("hardnet", {"margin 2": {"loss": part("hinge", margin=2.0)}}, rate_of="hardnet")
    [variant] = requests_of(study, rows, seeds=[0])
    assert variant.method == "hardnet, margin 2"
    assert variant.rate == one(study).rate
    alone = variants("hardnet", {"margin 2": {"loss": part("hinge", margin=2.0)}})
    with pytest.raises(Refused, match=r"no learning rate of 'hardnet, margin 2' .* search it with"):
        study.runs(alone, seeds=[0])


def test_a_list_of_seeds_replaces_the_profiles() -> None:
    opened = open_study(seeds=[7])
    assert opened.table_seeds == opened.grid_seeds == opened.test_seeds == (7,)


def test_a_places_wide_pairs_follow_its_random_ones_since_both_are_of_the_same_patches() -> None:
    study = open_study("", "half")
    [request] = requests_of(study, untrained=["sift"])
    tested = [name for module, name in request.measures if module == "fpr95"]
    assert tested == [f"{place}{kind}" for place in study.tests for kind in ("", "-wide")]


def test_where_the_replicate_is_the_place_each_has_seeds_of_its_own(study: Study) -> None:
    by_place = replace(study, profile=replace(study.profile, by_place=True))
    assert by_place.first == by_place.grid_places == by_place.places
    seeds: dict[str, list[tuple[str, int]]] = {}
    for request in requests_of(by_place, ["hardnet", "hardnet_gen"], seeds=[0, 1]):
        seeds.setdefault(request.method, []).append((request.train, request.seed))
    a, b, c = by_place.places
    assert sorted(seeds["hardnet"]) == [(a, 0), (a, 3), (b, 1), (b, 4), (c, 2), (c, 5)]
    assert seeds["hardnet_gen"] == seeds["hardnet"]
    union = requests_of(by_place, ["hardnet"], seeds=[1], places=[f"{a}+{b}"])
    assert [request.seed for request in union] == [1]


def test_where_the_replicate_is_the_place_a_table_compares_methods_in_one_setting(study: Study) -> None:
    names = ["hardnet_aug", "doap_aug", "tcdesc_dsm_aug"]
    assert study.compared(names, "Adam") == {name: RECIPES[name] for name in names}
    by_place = replace(study, profile=replace(study.profile, by_place=True))
    assert by_place.compared(names, "Adam") == shared(["hardnet_aug", "tcdesc_dsm_aug"], "Adam")


def test_a_reference_that_grows_by_place_shows_the_places_that_have_every_method() -> None:
    study = open_study("study/grades", "half", "places")
    methods = shared(COMPARED, "Adam")
    shown = study.runs(methods, tested=False).table
    recorded = study.reference.runs.groupby("train")["method"].agg(set)
    complete = [place for place in study.places if methods.keys() <= recorded.get(place, set())]
    assert complete
    assert set(shown["train"]) == set(complete)
    assert set(shown["method"]) == set(methods)


def test_fpr95_counts_on_places_where_hardtfeat_makes_mistakes() -> None:
    tests = ["poitiers", "poitiers-wide", "gustav", "poitiers-images", "banana"]
    measures = ["fpr95", "fpr95", "fpr95", "image_pairs.ap.3", "fpr95"]
    runs = pd.DataFrame({"test": tests, "measure": measures, "value": 1.0})
    kept = open_study().counted(runs)
    assert kept["test"].tolist() == ["poitiers-wide", "gustav", "poitiers-images", "banana"]
    places = open_study("", "half", "places")
    assert set(places.places) - set(places.counted_places) == {"poitiers", "mirebeau", "sakharov"}


def test_runs_on_photographs_that_are_not_here_say_what_to_do() -> None:
    opened = open_study("adasample/table3", "evening", "photos", seeds=[9876])
    with pytest.raises(
        Refused, match=r'name a folder of places in the notebook.s first cell, data = "places:'
    ):
        opened.runs(["hardnet_aug_gen"])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"profile": "slow"}, "unknown profile 'slow'"),
        ({"profile": 3}, "profile is a text"),
        ({"data": ""}, "data is a text"),
        ({"data": "nowhere"}, "is no folder"),
        ({"data": "places"}, "there is no reference of quick with places"),
        ({"results": ""}, "results is a text"),
        ({"results": "results/reference"}, "names the committed reference"),
        ({"results": "README.md"}, "is no folder"),
        ({"results": "/dev/null"}, "is no folder"),
        ({"results": "README.md/a/b"}, "is no folder"),
        ({"seeds": []}, "seeds is a list"),
        ({"seeds": [1, 1]}, "seeds is a list"),
        ({"seeds": [True]}, "seeds is a list"),
        ({"seeds": [-1]}, "seeds is a list"),
        ({"seeds": 3}, "seeds is a list"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"real": "nowhere"}, "nowhere"),
        ({"real": 2024}, "real is the path of a folder"),
    ],
)
def test_a_parameter_is_refused_in_one_line(parameters: Mapping, said: str) -> None:
    with pytest.raises(Refused) as refused:
        open_study("a/b", **parameters)
    assert said in str(refused.value)
    [line] = refused.value._render_traceback_()
    assert "\n" not in line


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"methods": ["hardnett"]}, "unknown recipe 'hardnett'"),
        ({"methods": "hardnet"}, "methods is a list of names: give ['hardnet']"),
        ({"untrained": ["surf"]}, "unknown descriptor 'surf'"),
        ({"methods": ["hardnet"], "measures": ["hpatchs"]}, "unknown measure 'hpatchs'"),
        ({"measures": "fpr95", "untrained": ["sift"]}, "give ['fpr95']"),
        ({"seed": 3}, "study.runs takes no 'seed'"),
        ({"seeds": 0}, "seeds is how many, or a list"),
        ({"seeds": True}, "seeds is how many, or a list"),
        ({"checkpoints": "a.pth"}, "checkpoints is a list of files"),
        ({"checkpoints": ["nowhere.pth"]}, "nowhere.pth"),
    ],
)
def test_a_request_is_refused_in_one_line(study: Study, call: Mapping, said: str) -> None:
    with pytest.raises(Refused) as refused:
        study.runs(**call)
    assert said in str(refused.value)


class Executing:
    """An object whose unpickling writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.write_text, (self.path, "")


def test_a_checkpoint_that_would_run_code_is_refused_before_sets_are_made(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({"state_dict": Executing(tmp_path / "run")}, tmp_path / "evil.pth")
    monkeypatch.delattr(Study, "make")
    with pytest.raises(Refused, match=r"evil\.pth was refused for safety"):
        study.runs(checkpoints=[tmp_path / "evil.pth"], measures=["fpr95"])
    assert not (tmp_path / "run").exists()


def a_mean(values: list[float], measure: str = "fpr95", method: str = "a") -> pd.DataFrame:
    about = {"method": method, "optimizer": "sgd", "data": "d", "train": "t", "test": "u"}
    rows = [
        {**about, "seed": seed, "stage": np.nan, "measure": measure, "value": value}
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_a_mean_within_the_prediction_interval_is_reproduced() -> None:
    theirs = a_mean([1.0, 1.1, 0.9, 1.05, 0.95])
    assert reference.reproduction(a_mean([1.02, 0.98, 1.0, 1.1, 0.93]), theirs) == (1, 1)
    assert reference.reproduction(a_mean([2.0, 2.1, 1.9, 2.05, 1.95]), theirs) == (0, 1)


def test_a_single_run_is_compared_by_the_pooled_spread() -> None:
    several = a_mean([1.0, 1.1, 0.9, 1.05, 0.95])
    theirs = pd.concat([several, a_mean([1.0], method="b")])
    ours = pd.concat([several, a_mean([1.1], method="b")])
    assert reference.reproduction(ours, theirs) == (2, 2)
    far = pd.concat([several, a_mean([3.0], method="b")])
    assert reference.reproduction(far, theirs) == (1, 2)


def test_average_precision_is_compared_in_points() -> None:
    theirs = a_mean([80.0, 81.0, 79.0], "image_pairs.ap.3")
    assert reference.reproduction(a_mean([80.5, 79.5, 81.5], "image_pairs.ap.3"), theirs) == (1, 1)
    assert reference.reproduction(a_mean([90.0, 91.0, 89.0], "image_pairs.ap.3"), theirs) == (0, 1)
