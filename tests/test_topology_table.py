"""The table of TCDesc's positives in training (`lib.study.tables.topology`)."""

from types import SimpleNamespace

import pandas as pd
import pytest

from lib.study.tables import topology


def _runs(values: dict[str, dict[str, list[float]]], positives: dict[str, dict]) -> SimpleNamespace:
    """Return runs by name, "method seed", with their curves; all have batches of 9 pairs."""
    curves = [
        {"run": run, "method": run[0], "label": f"label {run[0]}", "curve": curve, "value": value}
        for run, own in values.items()
        for curve, steps in own.items()
        for value in steps
    ]
    rows = [
        {"run": run, "method": run[0], "batch": 9, "config": {"recipe": {"positive": positives[run[0]]}}}
        for run in values
    ]
    return SimpleNamespace(curves=pd.DataFrame(curves), table=pd.DataFrame(rows))


def _steps(lam: list[float]) -> dict[str, list[float]]:
    others = {name: [0.25, 0.75] for name in ("matched_share", "capped_share", "d_topology")}
    return {"mean_lambda": lam, **others}


def test_topology_averages_over_steps_and_runs_and_leaves_out_other_methods():
    first = _runs(
        {
            "b 0": {"loss": [1.0, 2.0]},
            "a 0": _steps([0.1, 0.2]),
            "a 1": {**_steps([0.3, 0.4]), "beyond_share": [0.0, 0.02]},
        },
        {"a": {"options": {"neighbours": 2}}, "b": {"name": "pair"}},
    )
    second = _runs({"c 0": _steps([0.5, 0.5])}, {"c": {"options": {"neighbours": 4}}})
    table = topology(first, second)
    assert list(table.index) == ["label a", "label c"]
    assert table.index.name == "Method"
    assert list(table["k / n (%)"]) == pytest.approx([25, 50])
    assert list(table["matched (%)"]) == list(table["capped (%)"]) == pytest.approx([50, 50])
    assert list(table["mean λ"]) == pytest.approx([0.25, 0.5])
    assert list(table["d_T"]) == pytest.approx([0.5, 0.5])
    assert table["beyond (%)"].iloc[0] == pytest.approx(1)
    assert pd.isna(table["beyond (%)"].iloc[1])


def test_topology_has_no_histogram_if_no_loss_has_one():
    runs = _runs({"a 0": _steps([0.1, 0.2])}, {"a": {"options": {"neighbours": 2}}})
    assert "beyond (%)" not in topology(runs)
