"""Rules for committed notebooks: parameters and runs first, tagged text, outputs stored.

nbval checks that the stored outputs are those of today's code (`./run_all.sh test`).
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

# As read by json: nbformat takes seconds to import, and a commit waits for this check.
Notebook = dict

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(file for file in (ROOT / "notebooks").rglob("*.ipynb") if file.parent.name[0] != ".")
# What a Markdown cell is about. Copies with other numbers keep the first two.
TAGS = {"question", "method", "evidence"}


def faults(notebook: Notebook) -> list[str]:
    """Faults that bar a notebook from being committed, one sentence each."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    sentences = []
    if not cells or "parameters" not in cells[0]["metadata"].get("tags", []):
        sentences.append("the first code cell is not tagged 'parameters'")
    elif not only_values("".join(cells[0]["source"])):
        sentences.append("the parameters cell holds more than names with values")
    if len(cells) < 2 or "runs" not in cells[1]["metadata"].get("tags", []):
        sentences.append("the second code cell is not tagged 'runs'")
    texts = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    if any(len(TAGS & set(text["metadata"].get("tags", []))) != 1 for text in texts):
        sentences.append("a Markdown cell is not tagged question, method or evidence")
    if [cell["execution_count"] for cell in cells] != list(range(1, len(cells) + 1)):
        sentences.append("it was not executed from top to bottom")
    outputs = [output for cell in cells for output in cell["outputs"]]
    if not outputs:
        sentences.append("no output is stored")
    for output in outputs:
        if output["output_type"] == "error":
            sentences.append(f"a cell ended in {output['ename']}")
        if output.get("name") == "stderr":
            sentences.append("a cell wrote to stderr")
    if any("papermill" in part["metadata"] for part in (notebook, *notebook["cells"])):
        sentences.append("papermill's times and paths are in it")
    return sentences


def only_values(source: str) -> bool:
    """Whether code only assigns literals to single names, which papermill replaces."""
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return False
        try:
            ast.literal_eval(statement.value)
        except ValueError:
            return False
    return True


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_notebook_is_fit_to_be_committed(path: Path) -> None:
    assert faults(json.loads(path.read_text(encoding="utf-8"))) == []


def fit() -> Notebook:
    """The smallest notebook without a fault."""
    title = {"cell_type": "markdown", "metadata": {"tags": ["question"]}, "source": ["# Table 1"]}
    parameters = {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {"tags": ["parameters"]},
        "outputs": [],
        "source": ['profile = "quick"\n', "seeds = None"],
    }
    printed = {"name": "stdout", "output_type": "stream", "text": ["quick\n"]}
    shown = {
        "cell_type": "code",
        "execution_count": 2,
        "metadata": {"tags": ["runs"]},
        "outputs": [printed],
        "source": ["print(profile)"],
    }
    return {"cells": [title, parameters, shown], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def changed(cell: int, **parts: object) -> Notebook:
    notebook = fit()
    notebook["cells"][cell] |= parts
    return notebook


ERROR = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}
WARNING = {"name": "stderr", "output_type": "stream", "text": ["slow\n"]}
FAULTY = [
    (fit(), None),
    (changed(1, metadata={}), "the first code cell is not tagged 'parameters'"),
    (
        changed(1, source=["seeds = list(range(3))"]),
        "the parameters cell holds more than names with values",
    ),
    (changed(2, execution_count=3), "it was not executed from top to bottom"),
    (changed(2, outputs=[]), "no output is stored"),
    (changed(2, outputs=[ERROR]), "a cell ended in KeyError"),
    (changed(2, outputs=[WARNING]), "a cell wrote to stderr"),
    (changed(2, metadata={}), "the second code cell is not tagged 'runs'"),
    (changed(0, metadata={}), "a Markdown cell is not tagged question, method or evidence"),
    (
        changed(0, metadata={"papermill": {"duration": 0.1}, "tags": ["method"]}),
        "papermill's times and paths are in it",
    ),
]


@pytest.mark.parametrize(("notebook", "fault"), FAULTY)
def test_each_fault_is_reported(notebook: Notebook, fault: str | None) -> None:
    assert faults(notebook) == ([fault] if fault else [])
