"""A reader's own published weights as rows of AdaSample's artefacts."""

from __future__ import annotations

from lib.study.artefacts import adasample
from lib.study.artefacts.rows import HPATCHES_SPLIT
from lib.study.open import open_study


def test_a_checkpoint_adds_a_row_to_table_1_and_to_figure_2(tmp_path):
    file = tmp_path / "mine.params"
    file.write_bytes(b"rows are known by content; nothing is loaded yet")
    study = open_study()
    for jobs, plain in (
        (adasample.table1(study, (), [file]), adasample.table1(study)),
        (adasample.figure2(study, [file]), adasample.figure2(study)),
    ):
        (added,) = [job for job in jobs if job not in plain]
        assert len(jobs) == len(plain) + 1
        assert added.label == "mine (published)"
        assert added.sets_of("fpr95") == study.source.sets
    # `added` is now Figure 2's.
    assert added.sets_of("hpatches") == (study.source.homographies.test_set(HPATCHES_SPLIT),)
