"""A notebook whose parameters cannot be met ends in one line, not in a traceback."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import papermill
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("use/sparse_model", {"images": "/nowhere"}, "/nowhere is no folder"),
        ("use/sparse_model", {"descriptor": "surf"}, "surf is no file"),
        ("use/sparse_model", {"longest_side": "large"}, "longest_side is a number"),
        ("use/sparse_model", {"one_camera": "false"}, "one_camera is True or False"),
        ("dsm/table1", {"results": "/dev/null"}, "results = '/dev/null' is no folder"),
        ("adasample/table1", {"checkpoints": ["nowhere.pth"]}, "nowhere.pth"),
    ],
)
def test_a_parameter_that_cannot_be_met_is_named_in_one_line(
    name: str, parameters: Mapping, said: str, tmp_path: Path
) -> None:
    notebook, out = NOTEBOOKS / f"{name}.ipynb", tmp_path / "out.ipynb"
    with pytest.raises(papermill.PapermillExecutionError) as refused:
        papermill.execute_notebook(
            notebook, out, parameters=parameters, cwd=notebook.parent, progress_bar=False
        )
    [line] = refused.value.traceback
    assert said in line
    assert "\n" not in line
