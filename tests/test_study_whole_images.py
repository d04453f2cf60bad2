"""Tables of benchmarks of whole images, against numbers made by hand."""

import numpy as np
import pandas as pd
import pytest

from lib.data.whole_images import NUISANCES
from lib.study import whole_images
from lib.study.tables import METHOD

SHOWN = ("page_left", "page_right", "rocket")


def scores(value: float) -> dict[str, float]:
    """Return scores of synthetic sequences that fall by 2 an image, the rocket's 3 higher; of the light
    half as high."""
    numbers, by_nuisance = {}, {}
    for nuisance in NUISANCES:
        share = 0.5 if nuisance == "light" else 1.0
        sequences = {}
        for thing in SHOWN:
            images = {n: share * (value + 3 * (thing == "rocket") - 2 * n) for n in range(2, 7)}
            name = f"score.{nuisance}_{thing}"
            numbers |= {f"{name}.{n}": number for n, number in images.items()}
            numbers[name] = sequences[name] = float(np.mean([*images.values()]))
        by_nuisance[f"score.{nuisance}"] = float(np.mean([*sequences.values()]))
    return {**numbers, **by_nuisance, "score": float(np.mean([*by_nuisance.values()]))}


def table(rows: dict) -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(rows, names=[*METHOD, "seed"])
    return pd.DataFrame([*rows.values()], index)


@pytest.fixture
def numbers() -> pd.DataFrame:
    return table(
        {
            ("sift", "SIFT", None): scores(20.0),
            ("dsm_aug", "DSM+", 0): scores(40.0),
            ("dsm_aug", "DSM+", 1): scores(44.0),
        }
    )


def test_a_score_is_tabulated_by_nuisance(numbers):
    by_part = whole_images.by_part(numbers, "score")
    # The images' mean is 8 lower, the rocket adds 1, and a fifth of the sequences has half.
    assert by_part.loc["DSM+", "blur"] == pytest.approx(42 - 8 + 1)
    assert by_part.loc["DSM+", "light"] == pytest.approx(35 / 2)
    assert by_part.loc["DSM+", "mean"] == pytest.approx(35 * 0.9)
    assert by_part.loc["DSM+", "sd"] == pytest.approx(4 * 0.9 / np.sqrt(2))
    assert by_part["n"].tolist() == [1, 2]
    assert list(by_part) == [
        *("blur", "light", "compression", "zoom and rotation", "viewpoint"),
        *("mean", "sd", "n"),
    ]


def test_without_a_second_seed_there_is_no_deviation(numbers):
    assert "sd" not in whole_images.by_part(numbers.loc[["sift"]], "score")


def test_single_sequences_know_their_nuisance_and_what_they_show(numbers):
    single = whole_images.single(numbers, "score")
    assert len(single) == len(NUISANCES) * len(SHOWN)
    assert single.loc["score.blur_page_left"].tolist() == ["blur", "page"]


def test_released_sequences_are_named_only_by_what_they_show():
    numbers = table(
        {("sift", "SIFT", None): {"score.bark": 1.0, "score.bark.2": 1.0, "score.zoom": 1.0}}
    )
    assert whole_images.single(numbers, "score").loc["score.bark"].tolist() == ["zoom", "bark"]


def test_w1bs_has_subsets():
    numbers = table({("sift", "SIFT", None): {"mauc": 3.0, "mauc.L": 3.0, "mauc.L.page": 3.0}})
    assert whole_images.parts_of(numbers, whole_images.AREA) == {"L": "illumination"}
    assert whole_images.single(numbers, whole_images.AREA).loc["mauc.L.page"].tolist() == ["L", "page"]


def test_images_are_averaged_over_sequences_and_seeds(numbers):
    by_image = whole_images.by_image(numbers)
    cells = by_image.set_index(["method", "nuisance", "image"])["value"]
    assert cells["dsm_aug", "blur", 3] == pytest.approx(42 + 1 - 2 * 3)
    assert cells["sift", "light", 6] == pytest.approx((20 + 1 - 2 * 6) / 2)
    assert cells["sift", "mean", 6] == pytest.approx((20 + 1 - 2 * 6) * 0.9)
    assert by_image["nuisance"].cat.categories[-1] == "mean"
    assert len(cells) == 2 * (len(NUISANCES) + 1) * 5
