"""What notebooks on data show, and what figures draw: numbers, pictures and bytes that repeat."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from lib.study.jobs import Job
from lib.study.open import Record
from lib.study.printed import printed
from lib.study.report import figures, phototour

SETS = ("mini-a", "mini-b", "mini-c")
STATISTICS = {"patches": 30, "points": 10, "matching_pairs": 7, "non_matching_pairs": 8}
STATISTICS |= {f"share_of_{n}": 0.2 for n in (2, 3, 4, 5, "more")}


@pytest.fixture
def descriptors(tmp_path: Path) -> list[Record]:
    """SIFT with FPR95 10, 20 and 30, RootSIFT with 15, 25 and 35."""
    runs = []
    for label, shift in (("SIFT", 0), ("RootSIFT", 5)):
        path = tmp_path / label / "untrained.json"
        metrics = {
            name: {"fpr95": {"expected": 10.0 * place + shift}, "set_statistics": STATISTICS}
            for place, name in enumerate(SETS, 1)
        }
        job = Job(label.lower(), label, measures=tuple(("fpr95", name) for name in SETS))
        content = {
            "metrics": metrics,
            "profile": "quick",
            "data": "mini",
            "label": label,
        }
        content |= {"name": label.lower(), "train_set": None, "seed": None}
        runs.append(Record(job, path, content, older=False))
    return runs


def test_counts_are_whole_numbers_and_shares_percent(descriptors: list[Record]):
    table = phototour.counts_table(descriptors[0])
    assert list(table.index) == list(SETS)
    assert table.loc["mini-b", "non-matching"] == 8
    assert table["points"].dtype == int
    assert table.loc["mini-a", "patches a point"] == pytest.approx(3)
    assert table.loc["mini-a", "more (%)"] == pytest.approx(20)


def test_each_set_stands_beside_the_one_whose_part_it_plays(descriptors: list[Record]):
    papers = printed("adasample", "table1").query("key == 'sift' and statistic == 'fpr95'")
    table = phototour.difficulty_table(descriptors, SETS, papers)
    assert list(table.columns) == ["real set", "SIFT, papers", "SIFT", "RootSIFT"]
    assert list(table["real set"]) == ["liberty", "notredame", "yosemite", ""]
    assert list(table["RootSIFT"]) == [15, 25, 35, 25]
    assert table.loc["mini-b", "SIFT, papers"] == 22.53


def test_an_outline_is_the_image_of_the_unit_circle_and_of_its_hand() -> None:
    region = np.array([[3.0, 1, 20], [-1, 2, 30]])
    axes = Figure().subplots()
    figures.outline(axes, region, "red")
    hand, tip, *circle = axes.lines[1].get_xydata()
    np.testing.assert_allclose(hand, region[:, 2])
    np.testing.assert_allclose(tip, region[:, 0] + region[:, 2])
    unit = np.linalg.solve(region[:, :2], (np.array(circle) - region[:, 2]).T)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=0), 1)


def test_the_same_figure_gives_the_same_bytes_at_200_dots_an_inch():
    figure, axes = plt.subplots(figsize=(3.5, 2))
    axes.plot([1, 2], [4.0, 2.0], label="A")
    content = figures.png(figure)
    assert imread(io.BytesIO(content)).shape[1] == 700
    for name in (b"Software", b"tEXt", b"tIME", b"matplotlib"):
        assert name not in content
    assert figures.png(figure) == content
    plt.close()
