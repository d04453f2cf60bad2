"""Tables and figures of benchmarks of whole images, in percent."""

import pandas as pd

from lib.data.whole_images import NUISANCES, RELEASED, SUBSETS
from lib.study.artefacts.whole_images import image_sets
from lib.study.claims import Claim, Methods, Values
from lib.study.claims.measured import by_method, by_things
from lib.study.open import Runs, Study
from lib.study.report import frames

# Key of a number of `lib.benchmarks.oxford_affine` -> its name for readers.
SCORES = {
    "score": "Mikolajczyk's score, error below 50%",
    "common": "Mikolajczyk's score, common part, error below 40%",
    "right500": "right matches / 500",
}
# Key of the number of `lib.benchmarks.w1bs`.
AREA = "mauc"
BY_NUISANCE = "_by_nuisance"
# Key of a number of `lib.benchmarks.imc` -> its column of HyNet's Table 4.
TASKS = {"stereo": "stereo", "multiview": "multi-view", "average": "average"}


def by_set(runs: Runs, study: Study, kind: str, measure: str) -> dict[str, pd.DataFrame]:
    """Return all numbers of runs on each set of a kind of whole images, by set.

    Each frame has one row per run, as laid out by `lib.study.report.frames.wide`.

    Args:
        runs: records.
        study: the study of these records.
        kind: kind of whole images.
        measure: the module of `lib.benchmarks`.
    """
    sets = image_sets(study, kind)
    return {name: frames.wide(frames.tidy(runs, measure, name)) for name in sets}


def by_part(runs: pd.DataFrame, score: str) -> pd.DataFrame:
    """Tabulate a number and the parts that it is the mean of, one row per method.

    Args:
        runs: of one set, from `by_set`.
        score: the number's key, e.g. "score"; its parts are nuisances or subsets.

    Returns:
        Means over seeds. Index `Method (in %)`; one column per part; `mean`; `sd` of the mean over
        seeds, if there are several runs; and `n`, the number of runs.
    """
    mean = frames.means(runs)
    columns = {
        **{name: mean[f"{score}.{part}"] for part, name in parts_of(runs, score).items()},
        **{name: table[score] for name, table in frames.summary(runs).items()},
        "n": runs.groupby(level=frames.METHOD, sort=False).size(),
    }
    return pd.DataFrame(columns).droplevel("key").rename_axis("Method (in %)")


def parts_of(runs: pd.DataFrame, score: str) -> dict[str, str]:
    """Return the nuisances or subsets that a number has parts for, with their names for readers."""
    known = {name: name for name in NUISANCES} | {"zoom": "zoom and rotation"} | SUBSETS
    return {part: name for part, name in known.items() if f"{score}.{part}" in runs}


def single(runs: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the columns of a number's single sequences or image pairs, one per row, indexed by name.

    Each has its `part`, a nuisance or subset, and the `thing` that it shows.
    """
    before = r"(?P<part>[^.]+)\." if score == AREA else r"(?:(?P<part>[^._]+)_)?"
    pattern = rf"^{score}\.{before}(?P<thing>[^.]+?)(?:_left|_right)?$"
    shown = runs.columns.to_series().str.extract(pattern)
    # Released sequences are named only by what they show.
    return shown.assign(part=shown["part"].fillna(shown["thing"].map(RELEASED))).dropna()


def claim_values(claim: Claim, runs: pd.DataFrame) -> Methods:
    """Return a claim's values by its metric, with resamples of what the images show, as `by_things`.

    Args:
        claim: its metric is a number's key or, with "_by_nuisance" added, that number with a cell for
            each nuisance.
        runs: of one set, from `by_set`.
    """
    score = claim.metric.removesuffix(BY_NUISANCE)
    if score not in runs:
        return {}
    shown = single(runs, score)
    cells = {score: "mean"}
    own = {score: shown}
    if score != claim.metric:
        cells = {f"{score}.{part}": name for part, name in parts_of(runs, score).items()}
        own = dict(list(shown.groupby(f"{score}." + shown["part"])))
    table = runs[[*cells]].rename(columns=cells)
    return by_things(table, [(runs[own[cell].index], own[cell]["thing"]) for cell in cells])


def photograph_values(claim: Claim, runs: pd.DataFrame) -> Values:
    """Return the values of a claim on HyNet's Table 2 or 4, over seeds alone.

    The scenes and their photographs stay fixed. If a run of a method lacks the number, the method has a
    text that says so in place of values, because its other runs would flatter it.

    Args:
        claim: its metric is a number's key, or "maa", whose cells are the two tasks.
        runs: of one set, from `by_set`.
    """
    names = ["stereo", "multiview"] if claim.metric == "maa" else [claim.metric]
    values = runs.reindex(columns=names)
    there = values.notna().all(axis=1)
    complete = values[there.groupby(level="key").transform("all")]
    lacking = {key: f"{label} lacks this number in a scene" for key, label, _ in there.index[~there]}
    return lacking | by_method(complete.rename(columns=TASKS))
