"""Figures: outlines, and bytes that repeat."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from lib.study.report import figures


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
