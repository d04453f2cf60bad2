"""Uses of the reference: how far results reproduce it, README's tables, and measured effects."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lib.files import write_bytes
from lib.study import records
from lib.study.catalogue import ARTEFACTS
from lib.study.claims import HELD, NOT_HELD, NOT_JUDGED, OPEN, read_rows, wrong_by_chance
from lib.study.report.together import FPR95, OPTIMISERS, PHOTOGRAPHS

# Path below the reference: the four papers' methods with either optimiser.
EQUAL_FOOTING = "evening/scenes/tables/together/equal_footing_optimisers.csv"
# Folders below the reference whose verdicts count. The first that has a claim decides; quick judges only
# computations.
JUDGED = ("evening/scenes", "evening/photos", "quick/mini")
# Paper -> its method, and what the method adds to HardNet's training.
PAPERS = {
    "adasample": ("AdaSample", "samples hard positives"),
    "dsm": ("DSM", "weights triplets by their difficulty"),
    "hynet": ("HyNet", "mixes inner product and distance"),
    "tcdesc": ("TCDesc", "compares neighbourhoods"),
}
# Suffix of the labels of this study's networks in its tables.
EXPORTED = " (exported)"
OUTCOMES = (HELD, NOT_HELD, OPEN, NOT_JUDGED)


def reproduction(
    results: Path, reference: Path, paths: Iterable[Path], selected: Collection[str]
) -> tuple[str, list[str]]:
    """Compare results with a reference.

    Args:
        results, reference: folders with `records`, `tables` and `figures`.
        paths: paths of the requested records, below `results`.
        selected: names of artefacts.

    Returns:
        A sentence on how many of our means over seeds lie in the interval that the reference's seeds
        predict for another mean, and on the claims whose verdict changed. Then the tables and figures
        that the results lack, as paths in the folder.
    """
    both = [
        (records.read(path), records.read(other))
        for path in paths
        if path.exists() and (other := reference / path.relative_to(results)).exists()
    ]
    if not both:
        return "The reference has none of these records.", []
    # If only some artefacts are selected, the reference's records have more measures than ours.
    ours, theirs = (_means(side) for side in zip(*both, strict=True))
    ours, theirs = ours.align(theirs, join="inner", axis=0)
    # Another mean of n seeds differs from this one by t · sd · √(2/n) at most, in 95% of cases.
    n = theirs["count"]
    tolerance = stats.t.ppf(0.975, n - 1) * theirs["std"] * np.sqrt(2 / n)
    # Records hold six digits.
    within = (ours["mean"] - theirs["mean"]).abs() <= tolerance + 1e-6 * theirs["mean"].abs()
    now, before = (
        saved_verdicts(folder, selected).set_index("claim")["verdict"] for folder in (results, reference)
    )
    now, before = now.align(before, join="inner")
    changed = ", ".join(now.index[now != before])
    sentence = (
        f"{within.sum():,} of {len(within):,} means over seeds lie within the 95% intervals of the "
        f"reference's seeds; verdicts changed: {changed or 'none'}."
    )
    return sentence, sorted({*saved_files(reference, selected)} - {*saved_files(results, selected)})


def _means(runs: Sequence[Mapping]) -> pd.DataFrame:
    """Return mean, standard deviation and count of the metrics of runs that differ only in seed.

    Metrics of a single run are left out.
    """
    runs = [run for run in runs if run.get("seed") is not None]
    numbers = pd.json_normalize([run["metrics"] for run in runs]).select_dtypes("number")
    alike = [run["name"] + repr({**run["config"], "seed": None}) for run in runs]
    table = numbers.groupby(alike).agg(["mean", "std", "count"]).stack(0, future_stack=True)
    return table[table["count"] > 1]


def saved_files(folder: Path, selected: Collection[str]) -> list[str]:
    """List the tables and figures that artefacts saved in a folder of results, as paths in it.

    An example is `tables/adasample/table1_verdicts.csv` of `adasample/table1`.
    """
    return [
        path.relative_to(folder).as_posix()
        for kind, suffix in (("tables", "csv"), ("figures", "png"))
        for name in selected
        for path in (folder / kind).glob(f"{name}[._]*{suffix}")
    ]


def saved_verdicts(folder: Path, selected: Iterable[str]) -> pd.DataFrame:
    """Read the verdicts that artefacts saved in a folder of results; `notebook` names the artefact."""
    columns = ["claim", "paper", "sentence", "verdict", "low", "notebook"]
    tables = [
        pd.read_csv(file).assign(notebook=name)
        for name in selected
        if (file := folder / "tables" / f"{name}_verdicts.csv").exists()
    ]
    return pd.concat([pd.DataFrame(columns=columns), *tables], ignore_index=True)


def fill_in(path: Path, filled_in: Callable[..., str], *source: object) -> None:
    """Fill in a document in place, by `with_tables` or `with_effects`."""
    write_bytes(path, filled_in(path.read_text(encoding="utf-8"), *source).encode())


def with_tables(text: str, reference: Path) -> str:
    """Fill in README's tables between their comments: the scoreboard and equal footing.

    Equal footing stays unchanged if the reference has none.
    """
    tables = {"scoreboard": scoreboard(reference)}
    measured = reference / EQUAL_FOOTING
    if measured.exists():
        levels = measured.with_name("equal_footing.csv")
        tables["equal footing"] = equal_footing(*map(pd.read_csv, (measured, levels)))
    for name, table in tables.items():
        between = rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)"
        text = re.sub(between, table, text, flags=re.DOTALL)
    return text


def with_effects(text: str, table: pd.DataFrame, where: str) -> str:
    """Fill in the marked cells of a document's tables.

    Args:
        text: Markdown whose cells hold ``<!-- effect: RECIPE, OPTION -->`` and the last effect filled
            in, or nothing.
        table: from `lib.study.report.changes.effects`.
        where: profile and data. Effects filled in from another profile stay unchanged.

    Raises:
        KeyError: an effect filled in from this profile is of an option that the table lacks.
    """
    known = table.set_index(["recipe", "option"])
    profile = where.partition(",")[0]

    def cell(match: re.Match) -> str:
        mark, *key, filled = match.groups()
        if f"; {profile}, " not in filled and (filled.strip() or tuple(key) not in known.index):
            return match[0]
        row = known.loc[tuple(key)]
        interval = f"{row['from']:+.2f} to {row['to']:+.2f}"
        return f"{mark} {row['change']:+.2f} ({interval}; {where}, {row['seeds']:.0f} seeds) "

    return re.sub(r"(<!-- effect: ([\w+*-]+), ([^>]+?) -->)([^|\n]*)", cell, text)


def scoreboard(reference: Path) -> str:
    """Return a Markdown table that counts each paper's quoted sentences by outcome.

    Below the table, text says how many sentences are decided, by what, and how many of the verdicts
    behind them may be wrong by chance. A sentence did not hold if one of its comparisons did not, held
    if all did, is not judged if none is, and is open otherwise.
    """
    verdicts = pd.concat(
        saved_verdicts(reference / size, ARTEFACTS).assign(size=size) for size in JUDGED
    )
    claims = read_rows().query("kind == 'claim'").set_index("id")
    judged = verdicts.drop_duplicates("claim").set_index("claim").reindex(claims.index)
    claims["verdict"] = judged["verdict"].fillna(NOT_JUDGED)
    # Quick runs decide nothing, so a verdict there was computed.
    claims["computed"] = (judged["size"] == JUDGED[-1]) | (claims["verdict"] == NOT_JUDGED)
    claims["places"] = judged["size"] == JUDGED[0]
    by_sentence = claims.groupby(["paper", "quote"], as_index=False)
    outcomes = by_sentence.agg({"verdict": outcome, "computed": "all", "places": "any"})
    decided = outcomes[outcomes["verdict"].isin([HELD, NOT_HELD])]
    computed = decided["computed"]
    places = decided["places"].sum()
    papers = ", ".join(PAPERS[key][0] for key in decided.loc[computed, "paper"].unique())
    head = f"Of {len(outcomes)} sentences, {len(decided)} are decided: {computed.sum()} by calculation"
    total = f"{head} ({papers}), {(~computed).sum() - places} on planes, {places} on real places."
    counts = pd.crosstab(outcomes["paper"], outcomes["verdict"])
    counts = counts.reindex(index=list(PAPERS), columns=list(OUTCOMES), fill_value=0)
    links = {
        key: f"[{name}](lib/study/claims/{key}.csv): {adds}" for key, (name, adds) in PAPERS.items()
    }
    return f"{_markdown(counts.rename(links))}\n{total} {wrong_by_chance(judged)}\n"


def outcome(verdicts: pd.Series) -> str:
    """Return a sentence's outcome from the verdicts on its comparisons."""
    if NOT_HELD in set(verdicts):
        return NOT_HELD
    return verdicts.iloc[0] if verdicts.nunique() == 1 else OPEN


def equal_footing(measured: pd.DataFrame, levels: pd.DataFrame) -> str:
    """Return a Markdown table of methods: FPR95 and AP of matching in percent with each optimiser.

    The lowest FPR95 with either optimiser comes first. Numbers with the optimiser that the method's
    search chose are bold. Below are the numbers of descriptors that were not trained for the comparison.

    Args:
        measured: columns `method` and, e.g., "FPR95 Adam" and "matching of photographs Adam".
        levels: columns `method`, `optimiser` (missing if nothing was trained) and, e.g., "FPR95 mean".
    """
    methods = measured.set_index("method")
    columns = {
        f"{head}, {name}": methods[f"{metric} {name}"].map(form.format)
        for metric, head, form in ((FPR95, "FPR95", "{:.2f}"), (PHOTOGRAPHS, "matching AP", "{:.1f}"))
        for name in OPTIMISERS.values()
    }
    lowest = methods.filter(regex=f"^{FPR95} (SGD|Adam)$").min(axis=1).sort_values()
    table = pd.DataFrame(columns).loc[lowest.index]
    for method, optimiser in levels.dropna(subset="optimiser").set_index("method")["optimiser"].items():
        chosen = table.columns.str.endswith(optimiser)
        table.loc[method, chosen] = "**" + table.loc[method, chosen] + "**"
    others = levels[levels["optimiser"].isna()].set_index("method")
    reached = others[[f"{FPR95} mean", f"{PHOTOGRAPHS} mean"]].itertuples()
    texts = pd.Series({name: f"{name} {rate:.2f}, {ap:.1f}" for name, rate, ap in reached})
    exported = texts.index.str.endswith(EXPORTED)
    ours = "; ".join(texts[exported]).replace(EXPORTED, "")
    below = f"Other descriptors (FPR95, AP): {'; '.join(texts[~exported])}. Exported: {ours}."
    return f"{_markdown(table)}\n{below}\n"


def _markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown, the index first."""
    head = (table.index.name, *table)
    lines = (head, ["---"] * len(head), *table.itertuples())
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
