"""Tables and figures of benchmarks of whole images, in percent."""

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from lib.data.whole_images import CITIES, NUISANCES, RELEASED, SUBSETS
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
# Engines of `lib.benchmarks.retrieval`, by key: as DSM's printed Table 2 names them.
PROTOCOLS = {"visual_index": "Visual Index", "hqe_single": "HQE (SA)", "hqe_multiple": "HQE (MA)"}
# Of `lib.benchmarks.w1bs`.
AREA = "mauc"
BY_NUISANCE = "_by_nuisance"


def by_set(runs: Sequence[Record], study: Study, kind: str, measure: str) -> dict[str, pd.DataFrame]:
    """By each set of a kind that a study has all numbers of the runs that are measured there, one row a
    run as of `lib.study.report.frames.wide`.

    Args:
        runs: records.
        study: that they are of.
        kind: of whole images.
        measure: the module of `lib.benchmarks`.
    """
    tables = {}
    for test_set in image_sets(study, kind):
        measured_there = [run for run in runs if (measure, test_set) in run.job.measures]
        tables[test_set] = frames.wide(frames.tidy(measured_there, measure, test_set))
    return tables


def by_part(runs: pd.DataFrame, score: str) -> pd.DataFrame:
    """A number's parts and itself, a row a method.

    Args:
        runs: of one set of `by_set`.
        score: the number's key, e.g. "score": its parts are nuisances or subsets.

    Returns:
        Index `Method (in %)`; a column a part, `mean`, where there are several runs `sd` of the mean
        over seeds, and `n`, the runs. Means over seeds.
    """
    mean, count = frames.means(runs), runs.groupby(level=frames.METHOD, sort=False).size()
    columns = {name: mean[f"{score}.{part}"] for part, name in parts_of(runs, score).items()}
    columns |= {name: table[score] for name, table in frames.summary(runs).items()}
    return pd.DataFrame(columns | {"n": count}).droplevel("key").rename_axis("Method (in %)")


def parts_of(runs: pd.DataFrame, score: str) -> dict[str, str]:
    """The nuisances or subsets that there are of a number, and what readers are told of them."""
    known = dict(zip(NUISANCES, NUISANCES, strict=True)) | {"zoom": "zoom and rotation"} | SUBSETS
    return {part: name for part, name in known.items() if f"{score}.{part}" in runs}


def measured(runs: pd.DataFrame, score: str, parts: bool = False) -> dict[str, Measured]:
    """A number of each method by its key, with resamples of what the images show, as `by_things`.

    Args:
        runs: of one set of `by_set`.
        score: the number's key.
        parts: its nuisances or subsets as cells, in place of the number itself.
    """
    cells, images = parts_of(runs, score) if parts else {"": "mean"}, _images(runs, score)
    shown = []
    for part in cells:
        names = pd.Index([name for name in images if name.startswith(part)])
        things = names.str.replace(r"^[^_.]+[_.]|_(left|right)$", "", regex=True)
        shown.append((runs[[images[name] for name in names]], things))
    table = runs[[f"{score}.{part}" if part else score for part in cells]]
    return by_things(table.set_axis([*cells.values()], axis=1), shown)


def claim_values(runs: pd.DataFrame) -> OfClaim:
    """The values of a claim by its metric: a number's key, or with "_by_nuisance" behind it that number
    with a cell for each nuisance.

    Args:
        runs: of one set of `by_set`.
    """

    def values(claim: Claim) -> Mapping[str, Measured]:
        score = claim.metric.removesuffix(BY_NUISANCE)
        parts = claim.metric.endswith(BY_NUISANCE)
        return measured(runs, score, parts) if score in runs else {}

    return values


def retrieval_values(runs: pd.DataFrame) -> dict[str, Measured]:
    """The values of the claims on DSM's Table 2, its columns as cells, with resamples of the landmarks.

    A drawn landmark brings all of its queries, and each city's are drawn from its own.

    Args:
        runs: of one set of `by_set`.
    """
    cells = {f"{key}.{city}": f"{city}, {name}" for city in CITIES for key, name in PROTOCOLS.items()}
    queries = [runs[[name for name in runs if name.startswith(f"{cell}.")]] for cell in cells]
    landmarks = [(own, own.columns.str.replace(r"_\d+$", "", regex=True)) for own in queries]
    return by_things(runs[[*cells]].rename(columns=cells), landmarks)


def _images(runs: pd.DataFrame, score: str) -> dict[str, str]:
    """The columns of single sequences or pairs, by a name that begins with the nuisance or subset."""
    pattern = rf"{score}\..+\..+" if score == AREA else rf"{score}\.[^.]+"
    named = {c.removeprefix(f"{score}."): c for c in runs if re.fullmatch(pattern, c)}
    return {
        f"{RELEASED[name]}_{name}" if name in RELEASED else name: column
        for name, column in named.items()
        if name not in NUISANCES
    }


def by_image(runs: pd.DataFrame, score: str) -> pd.DataFrame:
    """A score of the Oxford Affine set image by image.

    Args:
        runs: of one set of `by_set`.
        score: of `SCORES`.

    Returns:
        A row a run, nuisance and image: `label`, `seed`, `nuisance`, which is "mean" of all together,
        `image`, from 2 to 6, and `right matches (%)`.
    """
    parts, titles = parts_of(runs, score), {}
    for name, column in _images(runs, score).items():
        nuisance = next(title for part, title in parts.items() if name.startswith(part))
        titles |= {f"{column}.{image}": (nuisance, image) for image in range(2, 7)}
    single = runs[list(titles)].melt(ignore_index=False, var_name="number").reset_index()
    single["nuisance"], single["image"] = zip(*single["number"].map(titles), strict=True)
    images = pd.concat([single, single.assign(nuisance="mean")])
    by = ["label", "seed", "nuisance", "image"]
    means = images.groupby(by, sort=False, dropna=False)["value"].mean()
    return means.reset_index(name="right matches (%)")
