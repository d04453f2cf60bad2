"""Camera files of Strecha et al.: cameras read from them, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lib.data.cameras import read_strecha_camera

# Like a file of fountain-P11, including blanks at the ends of lines.
REAL = """2759.48 0 1520.69 
0 2764.16 1006.81 
0 0 1 
0 0 0
0.450927 -0.0945642 -0.887537 
-0.892535 -0.0401974 -0.449183 
0.00679989 0.994707 -0.102528 
-7.28137 -7.57667 0.204446 
3072 2048
"""


@pytest.fixture
def camera(tmp_path: Path) -> Path:
    path = tmp_path / "0000.jpg.camera"
    path.write_text(REAL)
    return path


def test_a_point_ahead_projects_half_a_pixel_before_the_principal_point(
    camera: Path,
) -> None:
    parsed = read_strecha_camera(camera, (3072, 2048))
    assert (parsed.width, parsed.height) == (3072, 2048)
    centre = np.array([-7.28137, -7.57667, 0.204446])
    # The camera looks along the third column of the rotation from camera to world.
    ahead = centre + 5 * np.array([-0.887537, -0.449183, -0.102528])
    in_camera = parsed.rotation @ ahead + parsed.translation
    np.testing.assert_allclose(in_camera, [0, 0, 5], atol=1e-4)
    x, y, depth = parsed.intrinsics @ in_camera
    np.testing.assert_allclose([x / depth, y / depth], [1520.19, 1006.31], atol=0.1)


def test_a_reduced_photograph_shows_a_point_in_the_same_part(camera: Path) -> None:
    large = read_strecha_camera(camera, (3072, 2048))
    small = read_strecha_camera(camera, (1024, 683))
    ray = np.array([0.1, -0.2, 1])
    # Shares of the image's width and height from its border, half a pixel from a pixel's centre.
    shares = [((c.intrinsics @ ray)[:2] + 0.5) / (c.width, c.height) for c in (large, small)]
    np.testing.assert_allclose(*shares, atol=1e-12)
    assert (small.width, small.height) == (1024, 683)
    with pytest.raises(ValueError, match=r"0000\.jpg\.camera is of an image of 3072 by 2048 px"):
        read_strecha_camera(camera, (1024, 768))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3072 2048", "3072"),
        ("0 0 0\n", "0.1 0 0\n"),
        ("2759.48 0 ", "2759.48 0.3 "),
        ("0 2764.16", "0 0"),
        ("0.450927 -0.0945642 -0.887537", "-0.450927 0.0945642 0.887537"),
        ("0.204446", "inf"),
    ],
    ids=["no size", "lens distortion", "skew", "singular", "mirrored", "not finite"],
)
def test_a_file_of_no_pinhole_camera_is_refused_by_name(camera: Path, old: str, new: str) -> None:
    assert old in REAL
    camera.write_text(REAL.replace(old, new))
    with pytest.raises(ValueError, match=r"0000\.jpg\.camera"):
        read_strecha_camera(camera, (3072, 2048))
