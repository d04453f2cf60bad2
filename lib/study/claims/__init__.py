"""The papers' sentences as data, one CSV a paper beside this file, and the effects of our runs on them.

A row is one thing that a sentence says. `sentence_id` groups a sentence's rows, in the paper's order.
Rows without a quote are our own comparisons and readings: they are shown, and count for no sentence.

section, artefact
    where the sentence stands, and the table or figure that it is about
kind
    "comparison", decided by runs; "count", by counting or arithmetic on the paper's own printed values
    or on facts; "proof", by algebra or a computation, at any size; or "no claim": motive, opinion,
    priority, a setting, or what others found
quote, sentence
    the paper's words ("…" stands for what is left out), and what they say in ours
method, rival
    names of methods, several joined by ";". "a over b" is the gain of a over b; "a by sign" is a's
    descriptor by its signs. Without a rival the sentence is about a value
measure
    as in the frame of runs, several joined by ";"; or a module, a colon, and what to make of its arrays
direction
    on which side the method is: "lower", "higher", "not lower", "not higher" or "same"
over
    "mean" over train and test sets; "each", "most" or "any" of them; "best" or "worst" of all rivals;
    "optimum" of a grid; "spread" over seeds; "significant"; or a test set's role
bound
    the value that the sentence names, or that we set, where `why` says so
unit
    "ratio" of geometric means, "points" of difference, or the value's own
provenance
    the printed values, table:statistic, and the printed rows where they have other names
printed_effect
    the effect by these values, for each method and each rival, joined by ";"
counted
    how many of the printed cells are on the sentence's side, or what else was counted
answer
    of a count or a proof: "true", "not so" or "partly"
weight
    of what is wrong in print: "conclusion", "number" or "digit"
why
    the reason of the answer; why it is no claim; what a comparison rests on
seen
    the results that had been seen when the row was written; empty if none
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lib.data.scenes.sets import WIDE
from lib.recipes import COMPARED, SHARED, shared
from lib.study.printed import printed
from lib.study.requests import BY_SIGN

PAPERS = ("adasample", "dsm", "hynet", "tcdesc")
# What stands for a rate of 0, which has no logarithm; less than a test set's listed pairs can tell.
FLOOR = 1e-3
# Bounds of "the same" (DESIGN's equivalence): a ratio up to 1.2, or a point.
ALIKE = {"ratio": np.log(1.2)}
# The side of a sentence's effects, given the bound of "the same".
SIDES = {
    "lower": lambda effect, alike: effect < 0,
    "higher": lambda effect, alike: effect > 0,
    "not lower": lambda effect, alike: effect >= 0,
    "not higher": lambda effect, alike: effect <= 0,
    "same": lambda effect, alike: np.abs(effect) <= alike,
}
# Between the methods of a gain.
GAIN = " over "
REPLICATE = ("train", "seed")
# A column that runs may have: only runs that have the same there are compared, e.g. one optimiser.
SETTING = "setting"
# Other names that claims have for a method of the shared setting. A paper's row in its own setting and
# the row in another paper's are one there. DSM with a margin of 1 is HardNet+ but for the small constant
# under the root of the distance (2e-6 in place of 1e-6). HyNet's s_H, d and s "at the best margin" have
# its margin, 1.2.
ALSO = {
    "hardnet_aug": ("hardnet_aug, TCDesc's setting", "dsm_aug, margin 1"),
    "dsm_aug": ("dsm_aug, shared, SGD",),
    "hynet_aug": ("hynet_h",),
    "hynet_aug, α = 0, margin 1.2": ("hynet_d",),
    "hynet_aug, α = ∞, margin 1.2": ("hynet_s",),
}
EFFECT = ["effect", "low", "high", "n", "share", "cell_effect", "cell", "printed", "missing"]


def read(paper: str | None = None, artefact: str | None = None) -> pd.DataFrame:
    """Read the rows of a paper, or of all, as text with "" for what a row does not have.

    Raises:
        ValueError: the paper has no row on the artefact.
    """
    names = PAPERS if paper is None else (paper,)
    files = [
        pd.read_csv(Path(__file__).with_name(f"{name}.csv"), dtype=str, keep_default_na=False)
        for name in names
    ]
    rows = pd.concat([file.assign(paper=name) for name, file in zip(names, files, strict=True)])
    if artefact is not None:
        rows = rows[rows["artefact"] == artefact]
    if rows.empty:
        raise ValueError(f"{paper} has no row on {artefact}")
    return rows.reset_index(drop=True)


def pairs(claims: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each method and each rival of the claims that name a method.

    Returns:
        The claims' columns with one `method`, `rival`, `printed_effect` (float) and `counted`, and
        `printed_method` and `printed_rival`, the names of the printed rows.
    """
    rows = []
    for claim in claims[claims["method"] != ""].to_dict("records"):
        methods = claim["method"].split(";")
        rivals = claim["rival"].split(";")
        named = claim["provenance"].split(":")[2:]
        keys = named[0].split(";") if named else [*methods, *rivals]
        both = list(product(range(len(methods)), range(len(rivals))))
        effects = claim["printed_effect"].split(";") if claim["printed_effect"] else [""] * len(both)
        counted = claim["counted"].split(";") if claim["counted"] else [""] * len(both)
        for (i, j), effect, count in zip(both, effects, counted, strict=True):
            rows.append(
                {
                    **claim,
                    "method": methods[i],
                    "rival": rivals[j],
                    "printed_method": keys[i],
                    "printed_rival": keys[len(methods) + j],
                    "printed_effect": float(effect or "nan"),
                    "counted": count,
                }
            )
    return pd.DataFrame(rows)


def in_print(pair: pd.Series) -> tuple[float, str]:
    """Compute the effect of one row of `pairs` from the printed values that its provenance names.

    Returns:
        The ratio of geometric means or the difference in points, over the cells that both rows have; and
        how many of the cells are on the sentence's side, e.g. "5 of 6".
    """
    method = _printed_term(pair, pair["printed_method"])
    rival = _printed_term(pair, pair["printed_rival"])
    if pair["over"] == "spread":
        return float(np.sqrt((method**2).mean() / (rival**2).mean())), ""
    # A printed gain is itself a difference.
    alone = pair["provenance"].endswith("gain") and GAIN not in pair["rival"]
    apart = method if alone else (method - rival).dropna()
    right = on_side(apart, pair)
    effect = _best(apart, pair["direction"]) if pair["over"] == "any" else apart.mean()
    return shown(float(effect), pair["unit"]), f"{int(right.sum())} of {len(right)}"


def _printed_term(pair: pd.Series, term: str) -> pd.Series:
    """Return a printed row's values by train set, test set and what else tells its cells apart."""
    table, statistic = pair["provenance"].split(":")[:2]
    cells = printed(pair["paper"], table)
    cells = cells[cells["statistic"] == statistic]
    tasks = [measure.removeprefix("hpatches.") for measure in pair["measure"].split(";")]
    if "task" in cells and cells["task"].isin(tasks).any():
        cells = cells[cells["task"].isin(tasks)]
    if (cells["test"] == pair["over"]).any():
        cells = cells[cells["test"] == pair["over"]]
    own = cells[cells["key"] == term.split(GAIN)[0]]
    if (own["train"] == "").all():
        # A row that is trained on none of the sets stands in the columns of all of them.
        columns = cells.loc[cells["train"] != "", ["train", "test"]].drop_duplicates()
        columns = columns[columns["test"].isin(own["test"])]
        own = own.drop(columns="train").merge(columns, on="test") if len(columns) else own
    index = [name for name in ("train", "test", "task", "protocol") if name in own]
    values = own.set_index(index)["value"]
    return np.log(values) if pair["unit"] == "ratio" and pair["over"] != "spread" else values


def effects(
    claims: pd.DataFrame, runs: pd.DataFrame, replicate: Sequence[str] = REPLICATE
) -> pd.DataFrame:
    """Compute the effect of our runs on each comparison, without a verdict.

        study.show(effects(read("adasample", "Table 1"), runs), "claims")

    FPR95 is compared by logarithms, at least `FLOOR` percent; other measures in points. A replicate is a
    train set and a seed: the mean of its test sets. Methods that share replicates are compared by pairs,
    others by Welch's interval; a single pair has no interval. An untrained method is a constant.

    The interval takes replicates for independent. Runs on several train sets are not: they share test
    sets, and those of one seed share their first weights. ``replicate=["seed"]`` averages over the train
    sets of each seed first.

    Args:
        claims: from `read`; rows of other kinds are left out.
        runs: tidy, a row a number (`lib.study.runs`).
        replicate: what tells replicates apart, among `REPLICATE`.

    Returns:
        A row for each method and each rival: what is compared, then "effect" (ratio or points; of a
        sentence without a rival, the value), its 95% interval "low" to "high", "n", the replicates,
        "share", that of the cells (train set, test set, measure) on the sentence's side; for "each" the
        effect in the worst cell, for "any" that in the best, and its name; the "printed" effect; and
        what is "missing" in the runs.
    """
    own = ["id", "sentence", "method", "rival", "measure", "direction", "over", "bound", "unit"]
    compared = pairs(claims[claims["kind"] == "comparison"])
    rows = [{**pair[own], **_effect(pair, runs, replicate)} for _, pair in compared.iterrows()]
    return pd.DataFrame(rows, columns=[*own, *EFFECT])


def lacking(pair: pd.Series, runs: pd.DataFrame) -> str:
    """Say what of a row of `pairs` the runs do not have; empty if they have all.

    In the shared setting some methods are one (`ALSO`): a comparison of such a method with itself, or a
    gain over itself, would be decided by construction.
    """
    terms = [term for term in (pair["method"], pair["rival"]) if term]
    if SETTING in runs:
        one = {name: method for method, names in ALSO.items() for name in names}
        compared = [[one.get(name, name) for name in term.split(GAIN)] for term in terms]
        with_itself = any(len(set(names)) < len(names) for names in compared)
        if with_itself or (len(terms) == 2 and compared[0] == compared[1]):
            return f"{' against '.join(terms)}: one method in the shared setting"
    names = dict.fromkeys(name for term in terms for name in term.split(GAIN))
    return "; ".join(_lacking(runs, name, pair) for name in names if _values(runs, name, pair).empty)


def cells_of(pair: pd.Series, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of one row of `pairs`: a row a train place, a column a test place and measure.

    An effect is a difference of logarithms (unit "ratio") or of values, the mean over seeds and
    settings; of a sentence without a rival it is the value.
    """
    apart = _term(runs, pair["method"], pair)
    if pair["rival"]:
        apart = _apart(apart, _term(runs, pair["rival"], pair))
    return apart.groupby("train").mean()


def over_measures(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the means over measures of what `cells_of` returns: a column a test place."""
    return cells.T.groupby("test").mean().T


def named_for_claims(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of the shared setting with SGD and with Adam, under the names that claims have for
    their methods, those of `ALSO` included, and with the optimiser as `SETTING`; and untrained
    descriptors, whose setting is "". A variant keeps its words: "hynet_aug, shared, Adam, SOSR" becomes
    "hynet_aug, SOSR". FPR95 is that of random pairs, the papers' own: numbers on a place's wide pairs
    are left out.

    Args:
        runs: tidy, a row a number.
    """
    runs = runs[~runs["test"].str.endswith(WIDE)]
    kept = [runs[runs["seed"].isna()].assign(**{SETTING: ""})]
    for optimizer in ("SGD", "Adam"):
        for name in COMPARED:
            [in_setting] = shared([name], optimizer)
            own = runs[runs["method"] == in_setting]
            kept.append(own.assign(method=name, **{SETTING: optimizer}))
            varied = runs[_is_variant(runs["method"], in_setting)]
            names = name + varied["method"].str.removeprefix(in_setting)
            kept.append(varied.assign(method=names, **{SETTING: optimizer}))
    named = pd.concat(kept, ignore_index=True)
    others = [
        named[named["method"] == method].assign(method=other)
        for method, names in ALSO.items()
        for other in names
    ]
    return pd.concat([named, *others], ignore_index=True)


def _is_variant(methods: pd.Series, of: str) -> pd.Series:
    """Say which methods are variants of one, by name. TCDesc-DSM+ with SGD has no setting in its name,
    which that with Adam only seems to vary."""
    return methods.str.startswith(f"{of}, ") & ~methods.str.startswith(f"{of}{SHARED}")


def seeds_of(pair: pd.Series, name: str, runs: pd.DataFrame) -> dict[tuple[str, ...], np.ndarray]:
    """Return a method's values of one row of `pairs` over seeds, by (train place, test place), and by
    setting where runs have one: (train place, setting, test place)."""
    values = _values(runs, name, pair).T.groupby("test").mean().T
    found = {}
    for cell, own in values.groupby([level for level in values.index.names if level != "seed"]):
        for test, column in own.items():
            if column.notna().any():
                found[*cell, test] = column.dropna().to_numpy()
    return found


def spreads_of(pair: pd.Series, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the logarithm of the ratio of the two methods' standard deviations over seeds, by train
    place, a row, and test place, a column; NaN where one of them has a single seed."""
    names = pair["method"], pair["rival"]
    deviations = []
    for name in names:
        by_cell = {
            cell: values.std(ddof=1)
            for cell, values in seeds_of(pair, name, runs).items()
            if len(values) > 1
        }
        deviations.append(pd.Series(by_cell, dtype=float))
    apart = np.log(deviations[0] / deviations[1])
    if apart.empty:
        return pd.DataFrame(dtype=float)
    return apart.groupby(level=[0, -1]).mean().unstack()


def _effect(pair: pd.Series, runs: pd.DataFrame, replicate: Sequence[str]) -> dict[str, object]:
    """Return the columns `EFFECT` of one row of `pairs`."""
    row = dict.fromkeys(EFFECT, np.nan) | {"n": 0, "printed": pair["printed_effect"]}
    if missing := lacking(pair, runs):
        return row | {"missing": missing}
    method = _term(runs, pair["method"], pair)
    rival = _term(runs, pair["rival"], pair) if pair["rival"] else None
    if pair["over"] == "spread":
        return row | {"effect": _deviation(method) / _deviation(rival), "n": len(method)}

    apart = method if rival is None else _apart(method, rival)
    if len(apart):
        means = _by_replicate(apart, replicate)
        cells = apart.groupby("train").mean()
        if len(means) > 1:
            row |= _interval(stats.ttest_1samp(means, 0.0))
    else:
        # No replicate is shared: the seeds differ.
        own, other = _by_replicate(method, replicate), _by_replicate(rival, replicate)
        means = own - other.mean()
        cells = method.groupby("train").mean() - rival.groupby("train").mean()
        row |= _interval(stats.ttest_ind(own, other, equal_var=False))
    row |= {"effect": means.mean(), "n": len(means)}
    cells = cells.stack(["test", "measure"]).dropna()
    against = cells - float(pair["bound"] or 0)
    row["share"] = on_side(against, pair).mean()
    if pair["over"] in ("each", "any"):
        find = {"each": _worst, "any": _best}[pair["over"]]
        row["cell_effect"] = find(cells, pair["direction"])
        train, test, _ = cells.index[cells == row["cell_effect"]][0]
        row["cell"] = f"{train} > {test}"
    if rival is not None:
        for name in ("effect", "low", "high", "cell_effect"):
            row[name] = shown(row[name], pair["unit"])
    return row


def _values(runs: pd.DataFrame, name: str, pair: pd.Series) -> pd.DataFrame:
    """Return a method's values, or their logarithms: a row a replicate, a column a test set and measure.
    An untrained method has one row, whose train set is ""."""
    suffix = BY_SIGN if name.endswith(BY_SIGN) else ""
    measures = {}
    for measure in pair["measure"].split(";"):
        module, dot, key = measure.partition(".")
        measures[f"{module}{suffix}{dot}{key}"] = measure
    own = runs[(runs["method"] == name.removesuffix(BY_SIGN)) & runs["measure"].isin(measures)]
    if (own["test"] == pair["over"]).any():
        own = own[own["test"] == pair["over"]]
    own = own.assign(
        measure=own["measure"].map(measures),
        train=own["train"].fillna(""),
        seed=own["seed"].astype(float).fillna(-1),
    )
    replicate = list(REPLICATE)
    if SETTING in runs:
        replicate.append(SETTING)
    table = own.pivot_table("value", replicate, ["test", "measure"])
    logarithms = pair["unit"] == "ratio" and pair["over"] != "spread"
    return np.log(table.where(table != 0, FLOOR)) if logarithms else table


def _lacking(runs: pd.DataFrame, name: str, pair: pd.Series) -> str:
    """Say what of a method the runs do not have: itself, or the measure."""
    known = (runs["method"] == name.removesuffix(BY_SIGN)).any()
    return f"{pair['measure']} of {name}" if known else name


def _term(runs: pd.DataFrame, term: str, pair: pd.Series) -> pd.DataFrame:
    """Return the values of a method, or of the gain of one over another."""
    method, gain, rival = term.partition(GAIN)
    if not gain:
        return _values(runs, method, pair)
    return _apart(_values(runs, method, pair), _values(runs, rival, pair))


def _apart(method: pd.DataFrame, rival: pd.DataFrame) -> pd.DataFrame:
    """Return the difference in the cells that both have, by replicate; empty where none is shared."""
    both = method.columns.intersection(rival.columns)
    method, rival = method[both], rival[both]
    if (rival.index.get_level_values("train") == "").all():
        return method - rival.iloc[0]
    if (method.index.get_level_values("train") == "").all():
        return method.iloc[0] - rival
    shared = method.index.intersection(rival.index)
    return method.loc[shared] - rival.loc[shared]


def _by_replicate(values: pd.DataFrame, replicate: Sequence[str]) -> pd.Series:
    """Return the mean of each replicate: of its columns, then of its rows."""
    return values.mean(axis=1).groupby(level=list(replicate)).mean()


def on_side(effects: pd.Series, pair: pd.Series) -> pd.Series:
    """Return for each effect whether it lies on the sentence's side."""
    return SIDES[pair["direction"]](effects, ALIKE.get(pair["unit"], 1.0))


def _best(cells: pd.Series, direction: str) -> float:
    """Return the cell that is farthest on a sentence's side."""
    return cells.max() if direction in ("higher", "not lower") else cells.min()


def _worst(cells: pd.Series, direction: str) -> float:
    """Return the cell that is farthest from a sentence's side."""
    return cells.min() if direction in ("higher", "not lower") else cells.max()


def _deviation(values: pd.DataFrame) -> float:
    """Return the standard deviation over seeds: the root of its mean square over the cells."""
    return float(np.sqrt(values.groupby("train").var().stack(["test", "measure"]).mean()))


def _interval(result: object) -> dict[str, float]:
    interval = result.confidence_interval()
    return {"low": float(interval.low), "high": float(interval.high)}


def shown(effect: float, unit: str) -> float:
    """Return an effect as readers see it: the exp of a difference of logarithms."""
    return float(np.exp(effect)) if unit == "ratio" else effect
