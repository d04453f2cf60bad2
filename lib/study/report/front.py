"""The tables of README that are made of the reference."""

from pathlib import Path

import pandas as pd

from lib.files import write_bytes
from lib.study.claims import read_claims, wrong_by_chance
from lib.study.claims.judging import HELD, NOT_HELD, NOT_JUDGED, OPEN
from lib.study.report.together import FPR95, OPTIMISERS, PHOTOGRAPHS

# Below the reference: the four papers' methods with either optimiser, on real places.
EQUAL_FOOTING = "evening/scenes/tables/together/equal_footing_optimisers.csv"
# Below the reference: whose verdicts count. The first that has a claim decides; quick judges only
# computations.
JUDGED = ("evening/scenes", "evening/photos", "quick/mini")
# By paper, its method and what it adds to HardNet's training.
PAPERS = {
    "adasample": ("AdaSample", "samples hard positives"),
    "dsm": ("DSM", "weights triplets by their difficulty"),
    "hynet": ("HyNet", "mixes inner product and distance"),
    "tcdesc": ("TCDesc", "compares neighbourhoods"),
}
# What the columns of the methods are called.
MEASURED = {FPR95: "FPR95", PHOTOGRAPHS: "matching AP"}
OUTCOMES = (HELD, NOT_HELD, OPEN, NOT_JUDGED)


def filled_in(text: str, reference: Path) -> str:
    """A document with its two tables between their comments: the scoreboard and equal footing. A table
    stays as it is where the reference lacks the methods' numbers.

    Raises:
        ValueError: the document lacks such comments.
    """
    tables = {"scoreboard": scoreboard(reference)}
    if (reference / EQUAL_FOOTING).exists():
        tables["equal footing"] = equal_footing(pd.read_csv(reference / EQUAL_FOOTING))
    for name, table in tables.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        if not end:
            raise ValueError(f"the document has no comments around its {name}")
        text = before + start + table + end + after
    return text


def scoreboard(reference: Path) -> str:
    """A table in Markdown of the papers and how many of their quoted sentences came out how, and a
    sentence on how many of the verdicts behind it may be wrong by chance.

    A sentence did not hold where one of its comparisons did not, held where all did, is not judged where
    none is, and is open otherwise. Without verdicts of longer runs there are no rows.
    """
    files = [sorted((reference / size).glob("tables/*/*_verdicts*.csv")) for size in JUDGED]
    counts, chance = pd.DataFrame(), ""
    if any(files[:-1]):
        verdicts = pd.concat(pd.read_csv(file) for size in files for file in size)
        claims = [claim for claim in read_claims() if claim.kind == "claim"]
        verdicts = verdicts.drop_duplicates("claim").set_index("claim")
        chance = f"\n{wrong_by_chance(verdicts.reindex([claim.id for claim in claims]))}\n"
        verdicts = verdicts["verdict"]
        sentences = pd.DataFrame(
            [(c.paper, c.quote, verdicts.get(c.id, NOT_JUDGED)) for c in claims],
            columns=["paper", "quote", "verdict"],
        )
        outcomes = sentences.groupby(["paper", "quote"])["verdict"].agg(outcome).reset_index()
        counts = pd.crosstab(outcomes["paper"], outcomes["verdict"])
        counts = counts.reindex(index=list(PAPERS), columns=list(OUTCOMES), fill_value=0)
    rows = []
    for paper, *row in counts.itertuples():
        name, adds = PAPERS[paper]
        rows.append((f"[{name}](lib/study/claims/{paper}.csv): {adds}", *map(str, row)))
    return _markdown([("paper", *OUTCOMES), *rows]) + chance


def outcome(verdicts: pd.Series) -> str:
    """What became of a sentence by the verdicts on its comparisons."""
    if NOT_HELD in set(verdicts):
        return NOT_HELD
    return verdicts.iloc[0] if verdicts.nunique() == 1 else OPEN


def equal_footing(measured: pd.DataFrame) -> str:
    """A table in Markdown of methods: FPR95 and AP of matching photographs in percent with either
    optimiser, the lowest FPR95 of either first.

    Args:
        measured: columns `method` and, e.g., "FPR95 Adam" and "matching of photographs Adam".
    """
    methods, names = measured.set_index("method"), tuple(OPTIMISERS.values())
    columns = {
        f"{MEASURED[metric]}, {name}": methods[f"{metric} {name}"].map(f"{{:.{digits}f}}".format)
        for metric, digits in ((FPR95, 2), (PHOTOGRAPHS, 1))
        for name in names
    }
    best = methods[[f"{FPR95} {name}" for name in names]].min(axis=1)
    table = pd.DataFrame(columns).loc[best.sort_values().index]
    return _markdown([("method", *table), *table.itertuples()])


def _markdown(rows: list[tuple[str, ...]]) -> str:
    """Rows as a table, the first of them its head."""
    head, *body = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *body))


def fill_in(path: Path, reference: Path) -> None:
    """Fills in a document in place; see `filled_in`."""
    write_bytes(path, filled_in(path.read_text(encoding="utf-8"), reference).encode())
