"""Tables of benchmarks of whole images, from the tidy frame of runs, in percent.

    numbers = tables.numbers(runs, "oxford_affine", test)
    study.show(whole_images.by_part(numbers, "score"), "score")

The numbers and their keys are those of `lib.benchmarks.oxford_affine`, `w1bs` and `imc`.
"""

import pandas as pd

from lib.data.whole_images import NUISANCES, RELEASED, SUBSETS
from lib.study.tables import METHOD, means

# Key of a number of `lib.benchmarks.oxford_affine` -> its name for readers.
SCORES = {
    "score": "Mikolajczyk's score, error below 50%",
    "common": "Mikolajczyk's score, common part, error below 40%",
    "right500": "right matches / 500",
}
# Key of the number of `lib.benchmarks.w1bs`.
AREA = "mauc"
# Key of a number of `lib.benchmarks.imc` -> its column of HyNet's Table 4.
TASKS = {"stereo": "stereo", "multiview": "multi-view", "average": "average"}
# Key of a part -> its name for readers: nuisances of Oxford Affine, subsets of W1BS.
PARTS = {**{name: name for name in NUISANCES}, "zoom": "zoom and rotation", **SUBSETS}


def by_part(numbers: pd.DataFrame, score: str) -> pd.DataFrame:
    """Tabulate a number and the parts that it is the mean of, one row a method.

    Args:
        numbers: of one set, from `lib.study.tables.numbers`.
        score: the number's key, e.g. "score"; its parts are nuisances or subsets.

    Returns:
        Means over seeds. Index `Method (in %)`, the labels; one column a part; `mean`; `sd`, the
        standard deviation of the mean over seeds, if a method has several; `n`, the number of runs.
    """
    mean = means(numbers)
    parts = parts_of(numbers, score)
    seeds = numbers[score].groupby(level=METHOD, sort=False)
    table = mean[[f"{score}.{part}" for part in parts]].set_axis([*parts.values()], axis=1)
    table["mean"] = mean[score]
    if seeds.size().max() > 1:
        table["sd"] = seeds.std()
    table["n"] = seeds.size()
    return table.droplevel("method").rename_axis("Method (in %)")


def parts_of(numbers: pd.DataFrame, score: str) -> dict[str, str]:
    """Return the nuisances or subsets that a number has parts for, with their names for readers."""
    return {part: name for part, name in PARTS.items() if f"{score}.{part}" in numbers}


def single(numbers: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the columns of a number's single sequences or image pairs, one a row, indexed by name.

    Each has its `part`, a nuisance or subset, and the `thing` that it shows.
    """
    # Oxford Affine has NUISANCE_THING, or THING alone if the sequence is a released one; W1BS has
    # SUBSET.THING. Things that were halved end with the half.
    before = r"(?P<part>[^.]+)\." if score == AREA else r"(?:(?P<part>[^._]+)_)?"
    pattern = rf"^{score}\.{before}(?P<thing>[^.]+?)(?:_left|_right)?$"
    shown = numbers.columns.to_series().str.extract(pattern)
    return shown.assign(part=shown["part"].fillna(shown["thing"].map(RELEASED))).dropna()


def by_image(numbers: pd.DataFrame, score: str = "score") -> pd.DataFrame:
    """Return a number of Oxford Affine image by image, means over sequences and seeds.

    Args:
        numbers: as for `by_part`.
        score: the number's key.

    Returns:
        Tidy, a row a value: method, label, nuisance, image (2 to 6), value. The nuisance "mean" is over
        all sequences, and the last of the categories.
    """
    part = single(numbers, score)["part"]
    names = parts_of(numbers, score)
    tidy = numbers.melt(var_name="key", ignore_index=False).reset_index()
    tidy[["sequence", "image"]] = tidy["key"].str.extract(rf"^({score}\.[^.]+)\.(\d)$")
    tidy = tidy.dropna(subset="sequence").astype({"image": int})
    tidy["nuisance"] = tidy["sequence"].map(part).map(names)
    both = pd.concat([tidy, tidy.assign(nuisance="mean")])
    keys = [*METHOD, "nuisance", "image"]
    mean = both.groupby(keys, sort=False)["value"].mean().reset_index()
    return mean.assign(nuisance=pd.Categorical(mean["nuisance"], [*names.values(), "mean"]))
