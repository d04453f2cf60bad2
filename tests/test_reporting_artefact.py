"""An artefact as its notebook judges it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lib.study.open import open_study
from lib.study.report.artefact import Artefact


def test_claims_on_what_is_computed_without_training_are_judged_at_any_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: dict[str, pd.DataFrame] = {}
    monkeypatch.setattr(Artefact, "save", lambda self, frame, name="": saved.update({name: frame}))
    shown = Artefact("dsm/table4", open_study(), [])
    computed = {"spread_one_bin": np.array([50.0]), "spread_hundredth_bin": np.array([0.0])}
    shown.judge({}, artefact=("Table 4", "Sec. 4.2"), computed=computed)
    verdicts = saved["verdicts"].set_index("claim")["verdict"]
    assert verdicts.pop("dsm-s42-small-variance") == "did not hold"
    assert verdicts.pop("dsm-s42-small-variance-limit") == "held"
    assert set(verdicts) == {"not judged"}
