"""What notebooks need: their `runs` cells, executed while nothing is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from small_study import open_small

from lib.recipes import RECIPES
from lib.study import Study, open_study, planning
from lib.study.planning import Planned

PARAMETERS = 'profile = "quick"\ndata = "free"\nresults = "reference"\nseeds = None\n'
RUNS = """
from lib.study import open_study

study = open_study("a/b", profile, data, results, seeds)
runs = study.runs(["hardnet", "hardnet_gen"], places=study.places, seeds=study.grid_seeds)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that writes the notebook a/b with a parameters cell and a runs cell."""
    monkeypatch.setattr(planning, "NOTEBOOKS", tmp_path / "notebooks")

    def write_notebook(runs: str, parameters: str = PARAMETERS) -> str:
        cells = [nbformat.v4.new_code_cell(parameters), nbformat.v4.new_code_cell(runs)]
        for cell, tag in zip(cells, ("parameters", "runs"), strict=True):
            cell.metadata["tags"] = [tag]
        path = tmp_path / "notebooks" / "a" / "b.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return "a/b"

    return write_notebook


def titles(planned: Planned) -> list[str]:
    return [request.title for _, requests in planned.asked for request in requests]


def test_a_plan_collects_what_a_notebook_asks_for_and_makes_nothing(write, tmp_path: Path) -> None:
    study = open_small(tmp_path / "results")
    planned = planning.plan(write(RUNS), study)
    assert len(titles(planned)) == 6
    assert titles(planned)[0] == "HardNet on small-a, seed 0"
    assert not study.store.folder.exists()


def test_a_notebook_takes_the_studys_profile_and_seeds(write) -> None:
    own = PARAMETERS.replace('"quick"', '"evening"').replace("None", "[7]")
    planned = planning.plan(write(RUNS, own), open_study(seeds=[3]))
    [(opened, requests)] = planned.asked
    assert opened.profile.name == "quick"
    assert {request.seed for request in requests} == {3}


def test_a_notebooks_own_seeds_hold_at_its_own_profile(write) -> None:
    own = PARAMETERS.replace("None", "[7]")
    planned = planning.plan(write(RUNS, own), open_study())
    [(_, requests)] = planned.asked
    assert {request.seed for request in requests} == {7}


def test_runs_that_two_notebooks_share_are_planned_once(write) -> None:
    planned = planning.plan(write(RUNS), open_study())
    [(_, requests)] = planning.together([planned, planned])
    assert len(requests) == len(titles(planned))


def test_a_notebook_whose_data_are_absent_is_left_out_with_the_reason(write) -> None:
    runs = RUNS + 'study.require("evening")\n'
    planned = planning.plan(write(runs), open_study())
    assert "made at evening, not at quick" in planned.lacking


def test_a_failing_runs_cell_is_named(write) -> None:
    planned = planning.plan(write(RUNS.replace("hardnet_gen", "hardnett")), open_study())
    assert "unknown recipe 'hardnett'" in planned.failure


def test_one_name_stands_for_one_configuration(write) -> None:
    planned = planning.plan(write(RUNS), open_study())
    [(study, requests)] = planning.together([planned])
    planning.one_name_each([(study, requests)])
    name, request = next(iter(requests.items()))
    other = replace(request, recipe=replace(RECIPES["hardnet"], reduction="sum"))
    with pytest.raises(ValueError, match="'hardnet' names two configurations"):
        planning.one_name_each([(study, {**requests, "other": other, name: request})])


def test_parameters_chosen_for_the_committed_data_stay_there(write) -> None:
    own = PARAMETERS + 'planes = "photos"\nalso = ["hardnet"]\nk = 3\n'
    write(RUNS, own)
    at_home: Mapping = planning.parameters("a/b", open_study())
    assert (at_home["planes"], at_home["also"], at_home["k"]) == ("photos", ["hardnet"], 3)
    elsewhere = planning.parameters("a/b", open_study("", "evening", "places"))
    assert (elsewhere["planes"], elsewhere["also"], elsewhere["k"]) == (None, [], 3)


def test_the_searches_that_notebooks_need_are_found_without_rates(write) -> None:
    study: Study = open_study()
    write(RUNS.replace('"hardnet_gen"', '"dsm_aug"'))
    assert set(planning.searched(study)) == {"hardnet", "dsm_aug"}
