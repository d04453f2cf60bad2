"""Imports in lib point down one list, and reusable modules load without the study."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From top to bottom. Modules of one line may import each other, but not in a circle. A module that is
# named itself, like "samplers.batches", stands where it is named and not with its package.
LAYERS = (
    ("commands",),
    ("study",),
    ("features.networks", "features.folder", "features.files"),
    ("benchmarks", "analysis"),
    ("statistics",),
    ("training", "bfloat16", "objective", "samplers.batches"),
    ("parts",),
    ("recipes", "profiles"),
    ("models", "losses", "samplers", "schedules"),
    ("data",),
    ("features",),
    ("files", "arrays"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported_from_lib(file: Path) -> set[str]:
    """Modules of lib that a file imports, including in functions and for type checkers."""
    imported = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # An imported name may be a module or a member of one.
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in imported if name.startswith("lib.")}


@cache
def modules(package: Path) -> dict[str, set[str]]:
    """Imports of each module below a package called lib from that package."""
    return {
        ".".join(file.relative_to(package.parent).with_suffix("").parts): imported_from_lib(file)
        for file in sorted(package.rglob("*.py"))
        if file.parent != package or file.name != "__init__.py"
    }


def level(module: str) -> int:
    package, *within = module.split(".")[1:]
    itself = ".".join((package, *within[:1]))
    return LEVEL.get(itself, LEVEL.get(package, len(LAYERS)))


def upward(imports: dict[str, set[str]]) -> list[str]:
    """One line per import that points up the list. A module in no layer is below all."""
    return [
        f"{module} imports {name}"
        for module, names in imports.items()
        for name in sorted(names)
        if level(name) < level(module)
    ]


def test_every_import_points_down_the_list() -> None:
    assert upward(modules(ROOT / "lib")) == []


def test_every_module_is_in_the_list() -> None:
    listed = {name.split(".")[0] for name in LEVEL}
    assert {name.split(".")[1] for name in modules(ROOT / "lib")} == listed


def test_no_imports_form_a_circle() -> None:
    imports = modules(ROOT / "lib")
    TopologicalSorter({name: imports[name] & imports.keys() for name in imports}).prepare()


def test_an_import_that_points_up_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "lib" / "models" / "mine.py"
    file.parent.mkdir(parents=True)
    file.write_text("def late():\n    from lib.benchmarks import fpr95")
    expected = [f"lib.models.mine imports lib.benchmarks{name}" for name in ("", ".fpr95")]
    assert upward(modules(tmp_path / "lib")) == expected


STUDY = ("lib.study", "lib.study.report", "lib.study.artefacts", "lib.commands")


@pytest.mark.parametrize(
    ("alone", "without"),
    [
        ("lib.objective, lib.losses.hinges", STUDY),
        ("lib.statistics", (*STUDY, "torch")),
    ],
)
def test_objective_and_statistics_load_without_the_study(alone: str, without: tuple[str, ...]) -> None:
    code = f"import sys, {alone}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert alone.split(", ")[0] in loaded
    assert [name for name in loaded if name.startswith(without)] == []
