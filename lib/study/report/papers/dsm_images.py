"""DSM on whole images (Zhang and Rusinkiewicz): Figure 5, matching images of the Oxford Affine set, and
Table 2, image retrieval on Oxford5k and Paris6k."""

from collections.abc import Sequence

import pandas as pd

from lib.data.landmarks import CITIES
from lib.statistics.intervals import Measured
from lib.study.artefacts.whole_images import OXFORD, UNITED
from lib.study.claims.measured import by_things
from lib.study.open import Found
from lib.study.printed import printed
from lib.study.report import frames, whole_images
from lib.study.report.papers.dsm_figures import by_kind

# Engines of `lib.benchmarks.retrieval`, by key: as the printed table names them.
PROTOCOLS = {
    "visual_index": "Visual Index",
    "hqe_single": "HQE (SA)",
    "hqe_multiple": "HQE (MA)",
}
CELLS = {f"{engine}.{city}": f"{city}, {told}" for city in CITIES for engine, told in PROTOCOLS.items()}


def figure5_runs(found: Sequence[Found], test_set: str) -> dict[str, pd.DataFrame]:
    """The numbers of Figure 5's rows `by_kind`, as `lib.study.report.whole_images.numbers`."""
    signs = [of for of in frames.by_sign(found) if OXFORD in of.content["metrics"].get(test_set, {})]
    return by_kind(whole_images.numbers([*found, *signs], OXFORD, test_set), UNITED)


def table2(runs: pd.DataFrame, city: str) -> pd.DataFrame:
    """Table 2 and ours of a city, mAP in percent by engine, as `lib.study.report.frames.beside`."""
    table = printed("dsm", "table2")
    paper = table[table["test"] == city].pivot_table("value", frames.METHOD, "protocol", sort=False)
    engines = {f"{engine}.{city}": told for engine, told in PROTOCOLS.items()}
    return frames.beside(paper, runs.rename(columns=engines), engines.values())


def table2_values(runs: pd.DataFrame) -> dict[str, Measured]:
    """The values of the claims on Table 2, its columns as cells, with resamples of the landmarks.

    A drawn landmark brings all of its queries, and each city's are drawn from its own.
    """
    parts = [runs[[name for name in runs if name.startswith(f"{cell}.")]] for cell in CELLS]
    landmarks = [(of, of.columns.str.replace(r"_\d+$", "", regex=True)) for of in parts]
    return by_things(runs[[*CELLS]].rename(columns=CELLS), landmarks)
