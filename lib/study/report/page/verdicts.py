"""What became of the claims, as the report's first screen and its table say it.

Everything is derived from the verdicts that the notebooks saved.
"""

from collections.abc import Mapping

import pandas as pd

from lib.profiles import PROFILES

# By verdict, the sign that tells it apart without colour; in the order of the tally.
SIGNS = {
    **{"reproduced": "✓", "not reproduced": "✗", "held": "✓", "did not hold": "✗"},
    **{"open": "≈", "not judged": "–"},
}
DECIDED = ("reproduced", "not reproduced", "held", "did not hold")
DATA = {
    "mini": "scenes rendered of the few photographs that the pinned packages install",
    "photos": "scenes rendered in the same way of a folder of photographs",
    "ubc": "UBC PhotoTour, the papers' own",
}
FINDINGS = 5
# What is read of a verdict, whether or not its notebook saved it.
TEXTS = [
    *("notebook", "claim", "sentence", "kind", "needed", "printed", "rival", "unit"),
    *("profile", "data", "why", "part", "seen"),
]
NUMBERS = ["observed", "low", "high", "seeds"]
# Of a table of claims.
COLUMNS = [
    *("claim", "verdict", "why", "observed", "to hold", "printed", "rival", "seeds", "where"),
    "counted",
]


def read_verdicts(saved: pd.DataFrame) -> pd.DataFrame:
    """The notebooks' verdicts as the page takes them.

    Args:
        saved: as the notebooks save them, and `notebook`, the artefact's name.

    Returns:
        Its rows, those that count first: a claim with a verdict of an evening is counted by that, and
        its others have a false `counted`; but one of an evening that covers `part` of the printed cells
        stands back behind one that covers all. `observed`, `low`, `high` and `seeds` are numbers; what
        is not known of any is missing.
    """
    rows = saved.reindex(columns=list(dict.fromkeys([*saved, *TEXTS, *NUMBERS])))
    rows[NUMBERS] = rows[NUMBERS].apply(pd.to_numeric, errors="coerce")
    rows[TEXTS] = rows[TEXTS].astype(object).fillna("").astype(str)
    rows["needed"] = rows["needed"].str.replace(r"-(?=\d)", "−", regex=True)
    rows["printed"] = [number(float(text)) if text else "" for text in rows["printed"]]
    rows["kind"] = rows["kind"].replace("", "claim")
    evening = rows["profile"] == "evening"
    whole = (rows["part"] == "") & (rows["verdict"] != "not judged")
    behind = evening & (rows["part"] != "") & rows["claim"].isin(rows["claim"][whole])
    rows["counted"] = ~behind & (evening | ~rows["claim"].isin(rows["claim"][evening & ~behind]))
    order = pd.DataFrame({"claim": pd.factorize(rows["claim"])[0], "after": ~rows["counted"]})
    return rows.loc[order.sort_values(["claim", "after"], kind="stable").index].reset_index(drop=True)


def tallies(rows: pd.DataFrame) -> list[dict[str, object]]:
    """How many claims of a paper, and how many readings of all, came to which verdict at one profile
    and data: an evening before the rest, readings last.

    Returns:
        Of each its `paper`, "" of readings, `where`, e.g. "evening, photos", and `counts` by verdict,
        only those that occur anywhere, zeros included.
    """
    of = rows[rows["counted"]].assign(quick=rows["profile"] != "evening")
    papers = of["paper"].where(of["kind"] == "claim", "")
    of["of"] = pd.Categorical(papers, [*papers[papers != ""].unique(), ""])
    words = [word for word in SIGNS if (of["verdict"] == word).any()]
    return [
        {
            "paper": paper,
            "where": f"{profile}, {data}",
            "counts": {word: int((group["verdict"] == word).sum()) for word in words},
        }
        for (paper, _, profile, data), group in of.groupby(
            ["of", "quick", "profile", "data"], observed=True
        )
    ]


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """How many claims and readings of each notebook came to which verdict.

    Returns:
        Index notebook; columns of two levels, profile and data ("evening, photos"), an evening first,
        and the verdict; what no notebook has is no column.
    """
    of = rows[rows["counted"]]
    where = (of["profile"] + ", " + of["data"]).rename("where")
    counts = pd.crosstab(of["notebook"], [where, of["verdict"]])
    words = list(SIGNS)
    columns = sorted(counts, key=lambda of: (not of[0].startswith("evening"), words.index(of[1])))
    return counts[columns]


def findings(rows: pd.DataFrame, most: int = FINDINGS) -> pd.DataFrame:
    """The claims that the first screen names, and an evening's readings, all written down beforehand.

    Those that are decided, either way, come before those that are open: to that extent
    what came out chooses, but not for or against a paper; and what an interval decides before what runs
    decide without one. Among them each artefact's first comes before any's second, and an evening's
    before others; of these papers take turns.

    Args:
        rows: of `read_verdicts`.
        most: how many.
    """
    told = (rows["kind"] == "claim") | (rows["profile"] == "evening")
    of = rows[rows["counted"] & told & (rows["verdict"] != "not judged") & (rows["seen"] == "")]
    of = of.assign(open=~of["verdict"].isin(DECIDED), quick=of["profile"] != "evening")
    of["bare"] = of["low"].isna() | of["high"].isna()
    of["turn"] = of.groupby(["paper", "artefact", "open", "bare"]).cumcount()
    ordered = of.sort_values(["open", "bare", "turn", "quick"], kind="stable")
    turns = ordered.groupby("paper").cumcount()
    return ordered.assign(turn=turns).sort_values("turn", kind="stable").head(most)


def facts(row: Mapping[str, object]) -> list[str]:
    """What stands behind a verdict: the value with its interval, the printed one, the rival, where."""
    said = ["a reading"] if row["kind"] == "reading" else []
    said += [f"written down when {row['seen']} had been seen"] if row["seen"] else []
    if not pd.isna(row["observed"]):
        unit = f" {row['unit']}" if row["unit"] else ""
        said.append(f"{number(row['observed'])}{unit}{interval(row)}")
    named = {"to hold": row["needed"], "printed": row["printed"], "rival": row["rival"]}
    said += [f"{name}: {value}" for name, value in named.items() if value]
    said += [row["part"]] if row["part"] else []
    seeds = (
        []
        if pd.isna(row["seeds"])
        else [f"{row['seeds']:.0f} seeds" if row["seeds"] else "computed, no seeds"]
    )
    where = [] if row["seeds"] == 0 else [row["profile"], row["data"]]
    return [*said, ", ".join([*where, *seeds])]


def interval(row: Mapping[str, object]) -> str:
    """E.g. " (−3.1 to −1.8)", or nothing where there is none."""
    known = not (pd.isna(row["low"]) or pd.isna(row["high"]))
    return f" ({number(row['low'])} to {number(row['high'])})" if known else ""


def number(value: float) -> str:
    """Three digits, with a minus sign that a line is not broken at."""
    return f"{value:.3g}".replace("-", "−")


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every verdict, a row each, as `COLUMNS`; what no row has is no column, but for `why`."""
    records = rows.to_dict("records")
    reading = rows["kind"].map({"reading": " (a reading)"}).fillna("")
    seen = rows["seen"].map(lambda seen: f" (written down when {seen} had been seen)" if seen else "")
    shown = rows.assign(
        claim=rows["sentence"] + reading + seen,
        observed=[
            "" if pd.isna(r["observed"]) else number(r["observed"]) + interval(r) for r in records
        ],
        seeds=rows["seeds"].map(lambda seeds: "" if pd.isna(seeds) else f"{seeds:.0f}"),
        where=rows["profile"] + ", " + rows["data"],
    )
    frame = shown.rename(columns={"needed": "to hold"})[COLUMNS]
    return frame.loc[:, [name == "why" or (frame[name] != "").any() for name in frame]]


def settings(rows: pd.DataFrame) -> list[str]:
    """What each profile and each data source of the verdicts is, in a line each."""
    lines = []
    for name in rows["profile"].unique():
        profile = PROFILES.get(name)
        if profile is not None and profile.budget is not None:
            budget = profile.budget
            steps = budget.epoch_pairs // budget.batch_pairs * budget.epochs
            sizes = f"{budget.batch_pairs} pairs × {steps:,} steps"
            lines.append(f"{name}: {profile.width:g} of the papers' width, {sizes}")
    named = {name.split("+")[0]: name for name in rows["data"].unique()}
    return lines + [f"{name}: {DATA[first]}" for first, name in named.items() if first in DATA]
