"""Grades of the papers' comparisons, from runs whose replicate is the place.

    rows = graded(read("adasample", "Table 1"), runs)
    answers(rows)

A method is trained once on each place, so that a train place is a replicate: its effect is the mean over
the places tested on. FPR95 is compared by logarithms, other measures in points. A comparison's grade is
one of `GRADES`:

agrees
    the 95% interval lies on the sentence's side and the printed effect is inside
agrees, other size
    it lies on the sentence's side, the printed effect is outside
contradicted
    it lies wholly on the other side
printed effect excluded
    it contains no effect and excludes the printed one
too uncertain
    it contains both, or no effect where none is printed
no effect
    the two methods are the same but for a ratio of 1.2 or a point: what a sentence with "same" says (by
    two one-sided tests), or where a sentence with a side stands whose interval lies within these bounds,
    contains no effect and excludes the printed one

"Not lower" and "not higher" agree if the interval excludes a loss of more than those bounds, and are
contradicted if it lies wholly beyond them. "Each" and "most" need the mean on the sentence's side, and
five sixths of the cells (train place, test place, measure), or more than half of them. "Any" takes at
each train place the cell that is most on the sentence's side.

Two rules need several seeds at a place. "Spread" compares standard deviations over seeds, by logarithms.
"Significant" is the papers' own test, Mann-Whitney's at 5%, in each cell: the sentence agrees if five
sixths of the cells reject, and is contradicted if the opposite is significant in one of them (Holm).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from lib.statistics import effect_by_place, holm, jackknife, places_needed, student_interval
from lib.study.claims import (
    ALIKE,
    REPLICATE,
    cells_of,
    effects,
    in_print,
    lacking,
    named_for_claims,
    on_side,
    over_measures,
    pairs,
    seeds_of,
    shown,
    spreads_of,
)
from lib.study.runs import Study

# From the worst to the best answer to a sentence with a side.
GRADES = (
    "contradicted",
    "printed effect excluded",
    "no effect",
    "too uncertain",
    "agrees, other size",
    "agrees",
)
CONTRADICTED, EXCLUDED, NO_EFFECT, UNCERTAIN, OTHER_SIZE, AGREES = GRADES
LEVEL = 0.05
# Standard deviation of the logarithm of a printed FPR95, which is of a single run.
PRINTED_SPREAD = 0.15
# With fewer seeds a side, the exact test cannot reject at 5% with certainty to spare.
_FEWEST_SEEDS = 4
# Shares of the cells that a sentence needs on its side.
CELLS = {"each": 5 / 6, "most": 1 / 2}
# What a comparison is over if it has a rule here. "Optimum" and a single test set have none.
RULED = ("mean", "best", "worst", "any", "spread", "significant", *CELLS)
COLUMNS = ["grade", "effect", "low", "high", "places", "share", "other_low", "other_high"]
COLUMNS += ["printed", "needed", "p_against", "missing"]
# What a notebook shows of its sentences. The answer comes first, so that a narrow page shows it.
SHOWN = ["grade", "effect", "low", "high", "printed", "method", "rival", "measure", "sentence"]
SHOWN += ["share", "places", "needed", "not run", "whose", "id"]


def grade(
    by_place: pd.Series,
    direction: str,
    alike: float,
    printed: float = np.nan,
    printed_error: float = 0.0,
) -> str:
    """Grade a comparison.

    Args:
        by_place: its effect at each place, two or more: a difference of logarithms, or of points.
        direction: as in the claims.
        alike: the largest difference between methods that count as the same; 0 for a value and a bound.
        printed: the effect by the paper's values, on the same scale; NaN if it prints none.
        printed_error: standard error of the printed effect.
    """
    low, high = student_interval(by_place)
    if direction == "same":
        # Two one-sided tests at 5% are an interval of 90%.
        inner_low, inner_high = student_interval(by_place, 1 - 2 * LEVEL)
        if -alike < inner_low and inner_high < alike:
            return NO_EFFECT
        return CONTRADICTED if low > alike or high < -alike else UNCERTAIN
    if direction in ("not lower", "not higher"):
        worst, best = (low, high) if direction == "not lower" else (-high, -low)
        if worst >= -alike:
            return AGREES
        return CONTRADICTED if best < -alike else UNCERTAIN

    includes = _includes(by_place, printed, printed_error)
    worst, best = (low, high) if direction == "higher" else (-high, -low)
    if worst > 0:
        return AGREES if includes else OTHER_SIZE
    if best < 0:
        return CONTRADICTED
    if includes:
        return UNCERTAIN
    return NO_EFFECT if -alike < low and high < alike else EXCLUDED


def _includes(by_place: pd.Series, printed: float, printed_error: float) -> bool:
    """Return whether a printed effect is inside the interval; one that does not exist is."""
    if np.isnan(printed):
        return True
    reach = stats.t.ppf(1 - LEVEL / 2, len(by_place) - 1)
    error = np.hypot(by_place.sem(), printed_error)
    return bool(abs(printed - by_place.mean()) <= reach * error)


def p_against(by_place: pd.Series, direction: str, alike: float) -> float:
    """Return the one-sided p of the hypothesis that a sentence is right; small where it is wrong."""
    if direction in ("lower", "higher"):
        beyond = {"lower": [(0, "greater")], "higher": [(0, "less")]}
    else:
        above, below = (alike, "greater"), (-alike, "less")
        beyond = {"same": [above, below], "not lower": [below], "not higher": [above]}
    p_values = []
    for bound, side in beyond[direction]:
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (by_place.mean() - bound) / by_place.sem()
        tail = stats.t.sf if side == "greater" else stats.t.cdf
        # Effects that are all exactly at the bound say nothing.
        p_values.append(0.5 if np.isnan(t) else float(tail(t, len(by_place) - 1)))
    return min(p_values)


def graded(claims: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Grade each comparison of the claims.

    Args:
        claims: from `lib.study.claims.read`; rows of other kinds are left out.
        runs: tidy, a row a number (`lib.study.runs`), of the test places that count for each measure.

    Returns:
        A row for each method and each rival: what is compared, then "grade", empty for a comparison
        without a rule here or with fewer than two places; the effect and its 95% interval over places to
        train on, as a ratio or in points; their number; the share of the cells on the sentence's side;
        the interval "other_low" to "other_high" at other places, by leaving out each place as train and
        test place at once; the "printed" effect; how many places are "needed" to find it; "p_against";
        and what is "missing" in the runs.
    """
    compared = pairs(claims[claims["kind"] == "comparison"])
    own = ["id", "sentence_id", "sentence", "method", "rival", "measure", "direction", "over", "unit"]
    rows = [{**pair[own], **_graded(pair, runs)} for _, pair in compared.iterrows()]
    return pd.DataFrame(rows, columns=[*own, *COLUMNS])


def _graded(pair: pd.Series, runs: pd.DataFrame) -> dict[str, object]:
    """Return the columns `COLUMNS` of one row of `pairs`."""
    row = dict.fromkeys(COLUMNS, np.nan) | {"grade": "", "printed": pair["printed_effect"]}
    row["missing"] = lacking(pair, runs)
    if row["missing"] or pair["over"] not in RULED:
        return row
    if pair["over"] == "significant":
        return row | _tested(pair, runs)
    if pair["over"] == "spread":
        single = cells = spreads_of(pair, runs)
    else:
        single = cells_of(pair, runs)
        cells = over_measures(single)
    by_place = effect_by_place(cells)
    if pair["over"] == "any":
        by_place = (cells.min if pair["direction"] == "lower" else cells.max)(axis=1).dropna()
    bound = float(pair["bound"] or 0)
    row |= {"effect": by_place.mean(), "places": len(by_place)}
    row["share"] = on_side(pd.Series(single.to_numpy().ravel()).dropna() - bound, pair).mean()
    if len(by_place) > 1:
        row["low"], row["high"] = student_interval(by_place)
        row["other_low"], row["other_high"] = jackknife(cells)
        # Two methods may count as the same, but a value is on one side of its bound.
        alike = ALIKE.get(pair["unit"], 1.0) if pair["rival"] else 0.0
        printed, error = _printed(pair)
        beyond = by_place - bound
        row["grade"] = grade(beyond, pair["direction"], alike, printed - bound, error)
        row["p_against"] = p_against(beyond, pair["direction"], alike)
        if row["grade"].startswith(AGREES) and row["share"] < CELLS.get(pair["over"], 0):
            row["grade"] = UNCERTAIN
        if row["grade"] == UNCERTAIN and np.isfinite(printed) and printed != bound:
            needed = places_needed(printed - bound, by_place.std())
            # With fewer it is the spread of the printed value that leaves the comparison uncertain.
            if needed is not None and needed > len(by_place):
                row["needed"] = needed
    if pair["rival"]:
        for name in ("effect", "low", "high", "other_low", "other_high"):
            row[name] = shown(row[name], pair["unit"])
    return row


def _tested(pair: pd.Series, runs: pd.DataFrame) -> dict[str, object]:
    """Return the grade of a sentence about the papers' own test, and the share of cells that reject."""
    side, other = ("less", "greater") if pair["direction"] == "lower" else ("greater", "less")
    method, rival = (seeds_of(pair, name, runs) for name in (pair["method"], pair["rival"]))
    compared = [
        cell
        for cell in method.keys() & rival.keys()
        if min(len(method[cell]), len(rival[cell])) >= _FEWEST_SEEDS
    ]
    if not compared:
        return {}
    p_values, against = (
        [
            stats.mannwhitneyu(method[cell], rival[cell], alternative=tail, method="exact").pvalue
            for cell in compared
        ]
        for tail in (side, other)
    )
    share = float((np.array(p_values) <= LEVEL).mean())
    grade = AGREES if share >= CELLS["each"] else UNCERTAIN
    p = float(holm(against).min())
    # As `answers` holds every contradiction to it.
    if p <= LEVEL / 2:
        grade = CONTRADICTED
    places = len({train for train, *_ in compared})
    return {"grade": grade, "share": share, "places": places, "p_against": p}


def _printed(pair: pd.Series) -> tuple[float, float]:
    """Return the printed effect on the scale of ours, and its standard error."""
    printed = pair["printed_effect"]
    if np.isnan(printed) or not pair["rival"]:
        return np.nan, 0.0
    if pair["unit"] != "ratio":
        return printed, 0.0
    counted = in_print(pair)[1]
    # The spread is known of FPR95 alone.
    if pair["measure"] != "fpr95" or not counted:
        return np.log(printed), 0.0
    columns = int(counted.split(" of ")[1])
    return np.log(printed), PRINTED_SPREAD / np.sqrt(columns)


def judged(
    claims: pd.DataFrame, runs: pd.DataFrame, study: Study, replicate: Sequence[str] = REPLICATE
) -> pd.DataFrame:
    """Return what a notebook shows of its sentences.

    Where the replicate is the place, these are the comparisons of `graded` that were run, with their
    grades `corrected` and the sentence's other rivals as "not run". A row that no sentence of the paper
    makes is "ours". Elsewhere they are the `effects`, which have no grade.

    Args:
        claims: from `lib.study.claims.read`.
        runs: tidy, a row a number.
        study: the notebook's.
        replicate: as `lib.study.claims.effects` takes it.
    """
    if not study.profile.by_place:
        return effects(claims, runs, replicate)
    rows = graded(claims, named_for_claims(study.counted(runs)))
    lacks = rows["missing"] != ""
    not_run = rows[lacks].groupby(["id", "method"])["rival"].agg("; ".join).rename("not run")
    rows = rows[~lacks].join(not_run, on=["id", "method"]).fillna({"not run": ""})
    rows["grade"] = corrected(rows)
    rows["whose"] = np.where(rows["sentence_id"] == "", "ours", "paper")
    return rows[SHOWN].astype({"places": "Int64", "needed": "Int64"})


def corrected(rows: pd.DataFrame) -> pd.Series:
    """Return the grades of comparisons, with contradictions corrected for the number of comparisons of
    their sentence (Holm). A comparison that is contradicted only without this is too uncertain.

    Args:
        rows: from `graded`; a row of no sentence of the paper stands alone.
    """
    sentence = rows["sentence_id"].mask(rows["sentence_id"] == "", rows["id"])
    is_graded = rows["grade"] != ""
    p = rows["p_against"].fillna(1.0).groupby([sentence, is_graded], sort=False).transform(holm)
    return rows["grade"].mask((rows["grade"] == CONTRADICTED) & (p > LEVEL / 2), UNCERTAIN)


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Answer each sentence by the worst grade of its comparisons, `corrected` for their number.

    A sentence about most of several rivals takes the grade that more than half of its comparisons reach.
    One that was not run counts as too uncertain there.

    A further comparison can only make the worst grade worse. So a sentence agrees only if all of its
    comparisons were run; until then it is left out.

    Args:
        rows: from `graded`.

    Returns:
        By sentence, "grade", the number of "comparisons" with a grade, and "of" how many; a sentence
        without a grade is left out.
    """
    of_papers = rows[rows["sentence_id"] != ""]
    counts = of_papers["sentence_id"].value_counts()
    judged = of_papers[of_papers["grade"] != ""]
    judged = judged.assign(grade=corrected(judged))
    found = {}
    for sentence, own in judged.groupby("sentence_id", sort=False):
        grades = own["grade"]
        # "No effect" is what a sentence with "same" says.
        right = (own["direction"] == "same") & (grades == NO_EFFECT)
        rank = grades.map(GRADES.index).mask(right, GRADES.index(AGREES))
        of = counts[sentence]
        if (own["over"] == "most").all():
            # One that was not run may go either way.
            not_run = of - len(own)
            grades = pd.concat([grades, pd.Series([UNCERTAIN] * not_run)], ignore_index=True)
            rank = pd.concat([rank, pd.Series([GRADES.index(UNCERTAIN)] * not_run)], ignore_index=True)
            decides = rank.sort_values(ascending=False, kind="stable").index[of // 2]
        else:
            decides = rank.idxmin()
        agrees = rank[decides] >= GRADES.index(OTHER_SIZE)
        if agrees and len(own) < of:
            continue
        found[sentence] = grades[decides], len(own), of
    return pd.DataFrame.from_dict(found, orient="index", columns=["grade", "comparisons", "of"])
