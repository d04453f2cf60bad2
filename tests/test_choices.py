"""The list of what papers leave open names options, modules and notebooks that exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
CHOICES = pd.read_csv(ROOT / "docs" / "choices.csv", keep_default_na=False)
NAMED = sorted(set(re.findall(r"lib(?:\.\w+)+", " ".join(CHOICES["option"]))))


def test_no_choice_is_listed_twice_or_without_a_default() -> None:
    assert not CHOICES.duplicated(["setting", "choice"]).any()
    assert (CHOICES[["choice", "text or released code", "here", "option"]] != "").all(axis=None)


@pytest.mark.parametrize("name", NAMED)
def test_what_a_choice_names_exists(name: str) -> None:
    resolve_name(name)


def test_an_option_in_brackets_is_written_in_the_code_that_it_is_an_option_of() -> None:
    for option in CHOICES["option"]:
        for name, words in re.findall(r"(lib(?:\.\w+)+) \(([\w, ]+)\)", option):
            code = inspect.getsource(inspect.getmodule(resolve_name(name)) or resolve_name(name))
            for word in words.split(", "):
                assert re.search(rf"\b{word}\b", code), f"{name} has no {word}"


def test_a_choice_is_measured_in_notebooks_that_exist() -> None:
    for notebook in {name for names in CHOICES["measured in"] for name in names.split()}:
        assert (ROOT / "notebooks" / f"{notebook}.ipynb").is_file(), notebook
