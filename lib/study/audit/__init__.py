"""Audit of the papers' printed numbers, and of sentences that name, count, rank or compare numbers.

`findings.csv` lists what is wrong with printed cells, the heaviest first. `reprinted.csv` lists the rows
of FPR95 on UBC PhotoTour that several papers print, by the first of the four that printed them. A test
recomputes both.

The sentences are the quotes of `lib/study/claims/*.csv`, with one row for each thing that a sentence
says; "…" stands for omitted words or formulas. Rows of kind "print" are judged only here. Rows without a
quote are our own readings, which a table suggests and no sentence states. All rows have

    place     where the sentence is, if not at "artefact"
    in_print  the rule, see `verdict`; empty where the printed numbers cannot tell
    weight    of a sentence that does not hold: "conclusion", "number" or "digit"
    left      what the paper concludes from it, and what remains of that

"State of the art" is read as the mean of a table's columns. "Significant" is read as a statistical test
only where the sentence says "statistical" or mentions a test.
"""

import re
from pathlib import Path

import pandas as pd

from lib.study.claims import read_rows
from lib.study.printed import cell_columns

HOLDS, FAILS, PART = "holds", "fails", "holds only for part"
# Another sentence, caption or equation of the paper says otherwise; print does not show which is right.
CONTRADICTS = "contradicts the paper elsewhere"
UNKNOWN = "cannot be checked from print"


def judged(cells: pd.DataFrame) -> pd.DataFrame:
    """Judge all sentences, and our own readings, by the printed numbers.

    Args:
        cells: from `lib.study.printed.all_cells`.

    Returns:
        The rows of `lib.study.claims.read_rows`, one for each thing that is said, with the "verdict" on
        the whole sentence. A sentence holds for part if some of it holds and some does not. Things
        that cannot be checked are ignored, unless nothing can be.
    """
    rows = read_rows().query("kind != 'finding'")
    rows["verdict"] = [verdict(row.in_print, row.paper, cells) for row in rows.itertuples()]
    whole = rows["quote"].mask(rows["quote"] == "", rows["id"])
    return rows.assign(verdict=rows["verdict"].groupby([rows["paper"], whole]).transform(_together))


def _together(verdicts: pd.Series) -> str:
    known = set(verdicts) - {UNKNOWN}
    return PART if len(known) > 1 else known.pop() if known else UNKNOWN


def verdict(rule: str, paper: str, cells: pd.DataFrame) -> str:
    """Return the verdict of the printed cells on a sentence.

    Args:
        rule: empty, if print cannot tell; a verdict, if it was found by reading or by hand;
            arithmetic, e.g. "59 + 57 == 116"; or cells, a condition on them, and where it must hold:

                table1:fpr95 | dsm_aug < doap_aug                       in every column
                table2:map by loss | aht > ht | most                    in more than half
                table3:p_value | adasample_aug_gen < 0.05 | 5 of 6      in exactly so many
                table3:relative_gain | adasample_aug_gen > 8 | any      in at least one
                table4:map | dsm_aug - real_pdf_gaussian < 0.33 | mean  in the mean over columns

            Names are the rows' keys, or the values of the column after "by". Several tables and
            statistics are separated by commas, and "hynet/table1" is a table of another paper. With
            several statistics a name is the key, two underscores and the statistic.
        paper: the paper whose tables are meant.
        cells: the printed cells.

    Raises:
        ValueError: no column has all that the rule names.
    """
    if rule in ("", HOLDS, FAILS, PART, CONTRADICTS):
        return rule or UNKNOWN
    if " | " not in rule:
        return HOLDS if pd.eval(rule) else FAILS
    _, expression, *how = rule.split(" | ")
    table = behind(rule, paper, cells)
    true = (table.mean().to_frame().T if how == ["mean"] else table).eval(expression)
    if how in ([], ["mean"]):
        return HOLDS if true.all() else PART if true.any() else FAILS
    counted = {"most": true.mean() > 0.5, "any": true.any(), f"{true.sum()} of {len(true)}": True}
    return HOLDS if counted.get(how[0]) else FAILS


def behind(rule: str, paper: str, cells: pd.DataFrame, wanted: str = "value") -> pd.DataFrame:
    """Return the cells that a rule is about: a row per column of the paper's tables, a column per name.

    Args:
        rule, paper, cells: as for `verdict`.
        wanted: what to return of each cell, e.g. "text".

    Raises:
        ValueError: as `verdict`.
    """
    selected, expression, *_ = rule.split(" | ")
    selected, _, by = selected.partition(" by ")
    tables, _, statistics = selected.partition(":")
    tables = [table if "/" in table else f"{paper}/{table}" for table in tables.split(",")]
    kinds = statistics.split(",")
    chosen = (cells["paper"] + "/" + cells["table"]).isin(tables) & cells["statistic"].isin(kinds)
    cells = cells[chosen]
    names = cells[by or "key"]
    # A property with a single value throughout each row belongs to the row, not to the column.
    varies = cells[cell_columns(cells)].drop(columns="statistic").groupby(names).nunique().max() > 1
    index = [*varies.index[varies]]
    if len(kinds) > 1:
        names = names + "__" + cells["statistic"]
    table = cells.assign(name=names).pivot_table(wanted, index, "name", aggfunc="first", sort=False)
    table = table[[name for name in table if re.search(rf"\b{re.escape(name)}\b", expression)]].dropna()
    if table.empty:
        raise ValueError(f"no printed column has all of: {rule}")
    return table


def listed(name: str) -> pd.DataFrame:
    """Read a list of the audit, "findings" or "reprinted", as text.

    Returns:
        For "findings": the "rule" that is broken; "paper", "table", "row" and "column" of the cell;
        "what" is wrong; the "printed" text; what was "expected"; and the "weight", "number" or "digit".
        For "reprinted" rows: the "method" under its first name; the "paper" and its own name of the
        "row"; what is "other" than in the first paper (the "name") or the paper before ("numbers"); and
        the "change".
    """
    return pd.read_csv(Path(__file__).with_name(f"{name}.csv"), dtype=str, keep_default_na=False)
