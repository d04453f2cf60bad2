"""README's training loop of ten lines, with every recipe, and the lines that read its numbers."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
import torch
from torch import Tensor, nn

from lib import parts
from lib.recipes import RECIPES, find

README = Path(__file__).resolve().parents[1] / "README.md"
[LOOP] = re.findall(r"```python\n(import torch\n.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
CALL = "    loss = hynet(network(anchors), network(positives))\n"
UNDER_AUTOCAST = """
    a, p = network(anchors), network(positives)
    with torch.autocast("cpu", torch.bfloat16):
        loss = hynet(a, p)
"""
pytestmark = pytest.mark.filterwarnings("ignore:this is AdaSample")


class OfRecipe(nn.Module):
    """A recipe's network, whose outputs are what its objective takes."""

    def __init__(self, name: str):
        super().__init__()
        self.network = parts.build("model", find(name).model, width=1 / 16)

    def forward(self, patches: Tensor) -> Tensor | tuple[Tensor, ...]:
        size = self.network.input_size
        return self.network.raw(nn.functional.interpolate(255 * patches, (size, size)))


def losses_of(name: str, code: str = LOOP) -> list[float]:
    """Run the loop with a recipe and its network, and return the loss of each step."""
    code = code.replace('"hynet_aug"', repr(name))
    code = re.sub(r"^network = .*$", f"network = OfRecipe({name!r})", code, flags=re.MULTILINE)
    losses: list[float] = []
    torch.manual_seed(0)
    exec(code + "    losses.append(loss.item())\n", {"OfRecipe": OfRecipe, "losses": losses})
    return losses


def test_the_loop_runs_as_it_stands() -> None:
    surroundings: dict[str, object] = {}
    exec(LOOP, surroundings)
    assert torch.isfinite(surroundings["loss"])


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_loop_runs_with_every_recipe_under_autocast_and_in_evaluation(name: str) -> None:
    plain = losses_of(name)
    assert len(plain) == 10
    assert all(map(torch.isfinite, torch.tensor(plain)))
    assert len(set(plain)) > 1

    # TCDesc's gradients are added up in any order.
    assert losses_of(name, LOOP.replace(CALL, UNDER_AUTOCAST)) == pytest.approx(plain, abs=1e-5)

    in_evaluation = LOOP.replace("optimizer = ", "hynet.eval()\noptimizer = ")
    assert losses_of(name, in_evaluation)[0] == plain[0]


def test_the_lines_that_read_the_numbers_give_the_ratio_that_readme_states(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (README.parent / "docs" / "claims.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(import numpy as np\n.*?)```", page, re.DOTALL)
    monkeypatch.chdir(README.parent)
    exec(lines, {})
    ratio, low, high = map(float, capsys.readouterr().out.split())
    stated = f"| HyNet+ over HardNet+ | {ratio:.2f} ({low:.2f} to {high:.2f}) |"
    assert stated in README.read_text(encoding="utf-8")


def test_the_first_table_has_the_numbers_of_the_notebook_on_grades() -> None:
    notebook = nbformat.read(README.parent / "notebooks" / "study" / "grades.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    [table] = [
        html
        for output in outputs
        if ">elsewhere from<" in (html := output.get("data", {}).get("text/html", ""))
    ]
    recorded = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1], re.DOTALL):
        cells = [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td>(.*?)</td>", row, re.DOTALL)]
        measure, change, effect, low, high, *_, printed = cells
        recorded[measure, change] = f"{effect} ({low} to {high})", printed
    text = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+ over .+?) \| (.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    assert len(rows) == 6
    for change, rate, printed, points in rows:
        change = change.replace("\\*", "*")
        assert recorded["FPR95", change] == (rate, printed)
        assert recorded["matching AP", change][0] == points
