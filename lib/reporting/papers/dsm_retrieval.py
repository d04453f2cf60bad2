"""DSM's Table 2 (Zhang and Rusinkiewicz): image retrieval on Oxford5k and Paris6k."""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.data.landmarks import CITIES
from lib.intervals import Measured
from lib.reporting import frames
from lib.reporting.claims import Claim
from lib.reporting.claims.measured import OfClaim, by_method, over_things
from lib.reporting.printed import printed

# Engines of `lib.evaluation.retrieval`, by key: as the printed table names them.
PROTOCOLS = {
    "visual_index": "Visual Index",
    "hqe_single": "HQE (SA)",
    "hqe_multiple": "HQE (MA)",
}
CELLS = {f"{engine}.{city}": f"{city}, {told}" for city in CITIES for engine, told in PROTOCOLS.items()}


def table2(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 2 and ours, mAP in percent.

    Returns:
        Index `Method`. Columns (a city and engine, `paper`, `ours` and, where there are several runs,
        `sd` over seeds), (``, `n`), the runs.
    """
    table = printed("dsm", "table2")
    table = table.assign(cell=table["test"] + ", " + table["protocol"])
    paper = table.pivot(index=frames.METHOD, columns="cell", values="value")
    paper = paper.reindex(pd.MultiIndex.from_frame(table[frames.METHOD].drop_duplicates()))
    ours, count = frames.means(runs).rename(columns=CELLS), runs.groupby(level="key", sort=False).size()
    of = {"paper": paper, "ours": ours}
    if count.max() > 1:
        of["sd"] = frames.deviations(runs).rename(columns=CELLS)
    cells = frames.cell_by_cell(of, [*CELLS.values()]) | {("", "n"): count}
    return frames.named(pd.DataFrame(cells), paper, ours).astype({("", "n"): "Int64"})


def by_city(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The columns of `table2` that are of each city, under their engines, and `n`."""
    return {
        city: table[[of for of in table if of[0].startswith(f"{city}, ") or of[1] == "n"]].rename(
            columns=lambda told, city=city: told.removeprefix(f"{city}, "), level=0
        )
        for city in CITIES
    }


def claim_values(runs: pd.DataFrame) -> OfClaim:
    """The values of a claim on Table 2, its columns as cells, with resamples of the landmarks.

    A drawn landmark brings all of its queries, and each city's are drawn from its own.
    """

    def values(claim: Claim) -> Mapping[str, Measured]:
        drawn, things = zip(*(_over_landmarks(runs, cell) for cell in CELLS), strict=True)
        rates = np.stack(drawn, axis=1)[None] if min(things) > 1 else None
        table = runs[[*CELLS]].set_axis([*CELLS.values()], axis=1)
        return by_method(table, [*CELLS.values()], rates, max(1, min(things) - 1))

    return values


def _over_landmarks(runs: pd.DataFrame, cell: str) -> tuple[np.ndarray, int]:
    parts = runs[[name for name in runs if name.startswith(f"{cell}.")]].T
    landmarks = [re.sub(r"_\d+$", "", name) for name in parts.index]
    return over_things(parts, pd.Index(landmarks), runs[cell].to_numpy(dtype=np.float64))
