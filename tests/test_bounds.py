"""Limits on the study's size. Lines of code are counted without docstrings, comments and blank lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
# Count -> its limit in the design.
LIMITS = {
    "lines of lib": 12_500,
    "lines of lib/study and lib/commands": 4_000,
    "syntax nodes of lib": 155_000,
    "modules of lib": 190,
    "lines of tests": 18_000,
    "lines of the longest notebook": 120,
    "lines of the longest cell": 30,
    "lines of all notebooks": 3_500,
    "words of README.md": 1_200,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def size(source: str) -> tuple[int, int]:
    """Count the lines of code and the syntax nodes of Python source. Lines inside a string count,
    except docstrings."""
    lines = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    documentation, nodes = set(), list(ast.walk(ast.parse(source)))
    for node in nodes:
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno > node.lineno:
            lines.update(range(node.lineno, node.end_lineno + 1))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            documentation.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines - documentation), len(nodes)


def python_files(*folders: str) -> list[tuple[int, int]]:
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return [size(file.read_text(encoding="utf-8")) for file in files]


def lines_of_cells(notebook: Path) -> list[int]:
    cells = nbformat.read(notebook, as_version=4).cells
    return [size(cell.source)[0] for cell in cells if cell.cell_type == "code"]


def total(files: list[tuple[int, int]]) -> int:
    return sum(lines for lines, _ in files)


@cache
def sizes() -> dict[str, int]:
    """Return the actual counts, by the names of `LIMITS`."""
    lib = python_files("lib")
    notebooks = [lines_of_cells(file) for file in committed_notebooks()]
    return {
        "lines of lib": total(lib),
        "lines of lib/study and lib/commands": total(python_files("lib/study", "lib/commands")),
        "syntax nodes of lib": sum(nodes for _, nodes in lib),
        "modules of lib": len(lib),
        "lines of tests": total(python_files("tests")),
        "lines of the longest notebook": max(map(sum, notebooks)),
        "lines of the longest cell": max(map(max, notebooks)),
        "lines of all notebooks": sum(map(sum, notebooks)),
        "words of README.md": len((ROOT / "README.md").read_text(encoding="utf-8").split()),
    }


def committed_notebooks() -> Iterator[Path]:
    return (
        file
        for file in sorted((ROOT / "notebooks").rglob("*.ipynb"))
        if not any(part.startswith(".") for part in file.parts)
    )


@pytest.mark.parametrize("count", LIMITS)
def test_each_count_is_within_its_limit(count: str) -> None:
    assert sizes()[count] <= LIMITS[count]


def test_only_lines_of_code_count() -> None:
    source = (
        '"""Of a module."""\n\n# why\nx = """a\nb"""\n\ndef f():\n    """Says."""\n    return x  # y\n'
    )
    assert size(source)[0] == 4
