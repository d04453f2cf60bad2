"""Golden values: training and measures compute what they did, unless their version says otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import golden
import pytest

from lib import parts
from lib.benchmarks import MEASURES
from lib.recipes import Part

HOW = {
    "training": "raise NUMERICS in lib/training.py",
    "measures": "raise the module's number in MEASURES, in lib/benchmarks/__init__.py",
}
AFTERWARDS = "and write the values anew: python tests/golden.py"
CASES = [(kind, name) for kind in golden.FILES for name in golden.names(kind)]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}: {name}" for kind, name in CASES])
def test_a_case_has_its_golden_values(kind: str, name: str) -> None:
    held = golden.read(kind).get(name)
    assert held, f"{name!r} has no golden values: python tests/golden.py"
    assert held["digest"] == golden.digest(held["version"], held["values"]), (
        f"the golden values of {name!r} were changed by hand: {HOW[kind]} {AFTERWARDS}"
    )
    assert held["version"] == golden.version_of(kind, name), (
        f"the golden values of {name!r} are of another version: python tests/golden.py"
    )
    told = golden.differences(name, held["values"], golden.compute(kind, name))
    assert not told, "\n".join([*told, f"If this is meant, {HOW[kind]} {AFTERWARDS}."])


def named(axis: str, choice: object) -> Iterator[tuple[str, str]]:
    """Yield the axes and names of a choice's parts."""
    for part in choice if isinstance(choice, tuple) else (choice,):
        if isinstance(part, Part):
            yield axis, part.name
            for option, inner in part.options.items():
                yield from named(option, inner)


def test_every_part_is_in_a_case() -> None:
    used = {
        each for recipe in golden.recipes().values() for axis in vars(recipe)
        for each in named(axis, getattr(recipe, axis))
    }  # fmt: skip
    known = {(axis, name) for axis, ways in parts.PARTS.items() for name in ways}
    # What is not trained.
    known -= {
        ("model", name) for name in ("sift", "orb", "opencv", "colmap_sift", "published", "exported")
    }
    assert known <= used, f"give these parts a golden case: {sorted(known - used)}"


def test_every_measure_has_a_case() -> None:
    assert {name.partition(":")[0] for name in golden.CASES} == set(MEASURES)


def test_values_that_change_are_written_only_with_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, values, versions = tmp_path / "measures.json", {"fpr95": 1.0}, {"fpr95": 1}
    monkeypatch.setattr(golden, "FILES", {"measures": file})
    monkeypatch.setattr(golden, "CASES", values)
    monkeypatch.setattr(golden, "MEASURES", versions)
    monkeypatch.setattr(golden, "compute", lambda kind, name: {"number": values[name]})
    golden.main()
    written = json.loads(file.read_text())
    assert written["fpr95"]["values"] == {"number": 1.0}
    values["fpr95"] = 1.0000001
    golden.main()
    assert json.loads(file.read_text()) == written, "rounding rewrites nothing"
    values["fpr95"] = 1.1
    with pytest.raises(SystemExit, match=r"fpr95: number was 1.0 and is 1.1[^$]*MEASURES|number in lib"):
        golden.main()
    assert json.loads(file.read_text()) == written
    versions["fpr95"] = 2
    golden.main()
    assert json.loads(file.read_text())["fpr95"]["values"] == {"number": 1.1}
