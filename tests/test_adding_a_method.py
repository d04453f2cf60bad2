"""The example of docs/use.md for adding a method, word by word: module and row make an objective."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from lib import objective, parts, recipes
from lib.losses.descriptions import Descriptions

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "use.md").read_text(encoding="utf-8")


def blocks() -> tuple[str, str]:
    """Return the module and the row that the page shows."""
    section = PAGE.split("## Adding a method")[1].split("\n## ")[0]
    module, row = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert '`"softmax_ratio": SoftmaxRatio`' in section
    return module, row


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> recipes.Recipe:
    module, row = blocks()
    names: dict = {}
    exec(module, names)
    monkeypatch.setitem(parts.PARTS["loss"], "softmax_ratio", names["SoftmaxRatio"])
    (added,) = eval("{" + row + "}", vars(recipes)).values()
    return added


def test_the_row_and_the_module_of_the_page_make_an_objective(recipe: recipes.Recipe) -> None:
    rng = torch.Generator().manual_seed(0)
    raw = torch.randn(2, 6, 8, generator=rng)
    built = objective.build(recipe)
    triplets = built.triplets(Descriptions(raw, torch.nn.functional.normalize(raw, dim=-1)))
    losses = built.loss(triplets)
    assert recipe.label == "HardNet, ratio"
    assert losses.shape == (6,)
    positive, negative = triplets.positive.exp(), triplets.negative.exp()
    torch.testing.assert_close(losses, (positive / (positive + negative)) ** 2)
