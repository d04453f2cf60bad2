"""Tables and figures of benchmarks of whole images: the Oxford Affine set and W1BS, in percent."""

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from lib.data.oxford_affine import NUISANCES, RELEASED
from lib.data.w1bs import SUBSETS
from lib.statistics.intervals import Measured
from lib.study.artefacts.whole_images import image_sets
from lib.study.claims import Claim
from lib.study.claims.measured import OfClaim, by_things
from lib.study.open import Record, Study
from lib.study.report import frames

# Of `lib.benchmarks.oxford_affine`, by key: what readers are told.
SCORES = {
    "score": "Mikolajczyk's score, error below 50%",
    "common": "Mikolajczyk's score, common part, error below 40%",
    "right500": "right matches / 500",
}
# Of `lib.benchmarks.w1bs`.
AREA = "mauc"
IMAGE, RIGHT = "image", "right matches (%)"
BY_NUISANCE = "_by_nuisance"


def numbers(found: Sequence[Record], measure: str, test_set: str) -> pd.DataFrame:
    """All numbers of runs on one set, one row a run as of `lib.study.report.frames.wide`.

    Args:
        found: records.
        measure: the module of `lib.benchmarks`.
        test_set: the set they were measured on.

    Raises:
        ValueError: a record has no such numbers.
    """
    return frames.wide(frames.on_set(found, measure, test_set))


def by_set(runs: Sequence[Record], study: Study, kind: str, measure: str) -> dict[str, pd.DataFrame]:
    """By each set of a kind that a study has, the `numbers` of the runs that are measured there.

    Args:
        runs: records.
        study: that they are of.
        kind: of whole images.
        measure: the module of `lib.benchmarks`.
    """
    return {
        test_set: numbers([r for r in runs if (measure, test_set) in r.job.measures], measure, test_set)
        for test_set in image_sets(study, kind)
    }


def by_part(runs: pd.DataFrame, of: str) -> pd.DataFrame:
    """A number's parts and itself, a row a method.

    Args:
        runs: of `numbers`.
        of: the number's key, e.g. "score": its parts are nuisances or subsets.

    Returns:
        Index `Method (in %)`; a column a part, `mean`, where there are several runs `sd` of the mean
        over seeds, and `n`, the runs. Means over seeds.
    """
    mean, count = frames.means(runs), runs.groupby(level=frames.METHOD, sort=False).size()
    columns = {name: mean[f"{of}.{part}"] for part, name in parts_of(runs, of).items()}
    columns |= {name: each[of] for name, each in frames.summary(runs).items()}
    table = pd.DataFrame(columns | {"n": count})
    return table.droplevel("key").rename_axis("Method (in %)")


def parts_of(runs: pd.DataFrame, of: str) -> dict[str, str]:
    """The nuisances or subsets that there are of a number, and what readers are told of them."""
    known = {nuisance: nuisance for nuisance in NUISANCES} | {"zoom": "zoom and rotation"} | SUBSETS
    return {part: name for part, name in known.items() if f"{of}.{part}" in runs}


def measured(runs: pd.DataFrame, of: str, parts: bool = False) -> dict[str, Measured]:
    """A number of each method by its key, with resamples of what the images show, as `by_things`.

    Args:
        runs: of `numbers`.
        of: the number's key.
        parts: its nuisances or subsets as cells, in place of the number itself.
    """
    cells, images = parts_of(runs, of) if parts else {"": "mean"}, _images(runs, of)
    shown = []
    for part in cells:
        own = [name for name in images if name.startswith(part)]
        things = [re.sub(r"^[^_.]+[_.]|_(left|right)$", "", name) for name in own]
        shown.append((runs[[images[name] for name in own]], things))
    table = runs[[f"{of}.{part}" if part else of for part in cells]].set_axis([*cells.values()], axis=1)
    return by_things(table, shown)


def claim_values(runs: pd.DataFrame) -> OfClaim:
    """The values of a claim by its metric: a number's key, or with "_by_nuisance" behind it that number
    with a cell for each nuisance.

    Args:
        runs: of `numbers`.
    """

    def values(claim: Claim) -> Mapping[str, Measured]:
        of = claim.metric.removesuffix(BY_NUISANCE)
        parts = claim.metric.endswith(BY_NUISANCE)
        return measured(runs, of, parts) if of in runs else {}

    return values


def _images(runs: pd.DataFrame, of: str) -> dict[str, str]:
    """The columns of single sequences or pairs, by a name that begins with the nuisance or subset."""
    if of == AREA:
        return {c.removeprefix(f"{of}."): c for c in runs if re.fullmatch(rf"{of}\..+\..+", c)}
    named = {c.removeprefix(f"{of}."): c for c in runs if re.fullmatch(rf"{of}\.[^.]+", c)}
    return {
        f"{RELEASED[name]}_{name}" if name in RELEASED else name: column
        for name, column in named.items()
        if name not in NUISANCES
    }


def by_image(runs: pd.DataFrame, of: str) -> pd.DataFrame:
    """A score of the Oxford Affine set image by image.

    Args:
        runs: of `numbers`.
        of: of `SCORES`.

    Returns:
        A row a run, nuisance and image: `label`, `seed`, `nuisance`, which is "mean" of all together,
        `image`, from 2 to 6, and `right matches (%)`.
    """
    parts, titles = parts_of(runs, of), {}
    for name, column in _images(runs, of).items():
        title = next(title for part, title in parts.items() if name.startswith(part))
        titles |= {f"{column}.{image}": (title, image) for image in range(2, 7)}
    single = runs[list(titles)].melt(ignore_index=False, var_name="number").reset_index()
    single["nuisance"], single[IMAGE] = zip(*single["number"].map(titles), strict=True)
    both = pd.concat([single, single.assign(nuisance="mean")])
    by = ["label", "seed", "nuisance", IMAGE]
    return both.groupby(by, sort=False, dropna=False)["value"].mean().reset_index(name=RIGHT)
