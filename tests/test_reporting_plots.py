"""Figures: the numbers that are drawn, and bytes that repeat."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.image import imread

from lib.study.report.figures import intervals, png


def test_intervals_stand_at_their_rows_with_their_ends_and_one_without_an_end_is_a_dot():
    ends = {"from": [0.5, -np.inf], "to": [1.2, np.inf]}
    axes = plt.figure().subplots()
    intervals(axes, pd.DataFrame({"x": [1.0, 2.0], **ends}), "x")
    [drawn] = axes.containers
    assert drawn.lines[0].get_xydata().tolist() == [[1.0, 0], [2.0, 1]]
    first, second = drawn.lines[2][0].get_segments()
    assert first.tolist() == [[0.5, 0], [1.2, 0]]
    assert not len(second)
    plt.close()


def test_the_same_figure_gives_the_same_bytes_at_200_dots_an_inch():
    figure, axes = plt.subplots(figsize=(3.5, 2))
    axes.plot([1, 2], [4.0, 2.0], label="A")
    content = png(figure)
    assert imread(io.BytesIO(content)).shape[1] == 700
    for name in (b"Software", b"tEXt", b"tIME", b"matplotlib"):
        assert name not in content
    assert png(figure) == content
    plt.close()
