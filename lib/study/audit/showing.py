"""The audit as its notebook shows it: findings by weight, what stands behind each, rows on their way."""

from collections import Counter
from textwrap import fill

import pandas as pd
from matplotlib.figure import Figure

from lib.study.audit import arithmetic, p_values, travels
from lib.study.audit.cells import WEIGHTS
from lib.study.audit.sentences import FAILS, HOLDS, PART, UNKNOWN, behind
from lib.study.report import text
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, panels

RULES = (
    *(arithmetic.means, arithmetic.gains, arithmetic.grid, p_values.unreachable),
    *(travels.same_cells, travels.names, travels.bold_cells, travels.beaten),
)
WIDTH = 100
# In the order in which they appeared.
PAPERS = {"dsm": "DSM", "adasample": "AdaSample", "hynet": "HyNet", "tcdesc": "TCDesc"}


def of_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """What all rules find on printed cells, the heaviest first."""
    return _by_weight(pd.concat([rule(cells) for rule in RULES], ignore_index=True))


def faulty(judged: pd.DataFrame) -> pd.DataFrame:
    """The sentences that do not hold, or only for part, the heaviest first."""
    return _by_weight(judged[judged["verdict"].isin([FAILS, PART])])


def _by_weight(found: pd.DataFrame) -> pd.DataFrame:
    return found.sort_values("weight", key=lambda of: of.map(WEIGHTS.index), kind="stable")


def counts(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """How many rows of a frame each paper has by what is in a column."""
    table = pd.crosstab(frame["paper"], frame[name]).rename_axis(index="paper", columns=None)
    return table[[of for of in (*WEIGHTS, HOLDS, PART, FAILS, UNKNOWN) if of in table]]


def row_of(found: pd.Series, cells: pd.DataFrame) -> str:
    """The printed row that a finding is on, its numbers in the table's order."""
    same = (cells[["paper", "table", "row"]] == found[["paper", "table", "row"]]).all(axis=1)
    return " ".join(cells["text"][same])


def tell(row: pd.Series, cells: pd.DataFrame) -> None:
    """Print a sentence with its verdict, the cells that it speaks of, and what is left of it."""
    told = [fill(f"{PAPERS[row['paper']]}, {row['place']}: “{row['quote']}”", WIDTH)]
    told.append(fill(f"{row['verdict'].capitalize()}: {row['sentence']}", WIDTH))
    if " | " in row["in_print"]:
        table, labels = (behind(row["in_print"], row["paper"], cells, of) for of in ("text", "label"))
        if " by " not in row["in_print"]:
            heads = labels.iloc[0].items()
            table.columns = [f"{head} {name.partition('__')[2]}".rstrip() for name, head in heads]
        told.append(text.as_text(table if any(table.index.names) else table.set_axis([""])))
    print(*told, fill(row["left"], WIDTH), "", sep="\n")


def travels_figure(cells: pd.DataFrame) -> Figure:
    """Rows of FPR95 that several papers print, and where numbers or names change on the way."""
    found, order = travels.rows_of(cells), list(PAPERS)
    papers_of = Counter(row["key"] for row in found)
    together: dict[str, list[dict]] = {}
    for row in found:
        # Rows of two methods that papers print under one name travel together too.
        together.setdefault(row["key"] if papers_of[row["key"]] > 1 else row["name"], []).append(row)
    shared = [rows for rows in together.values() if len(rows) > 1]
    note = "FPR95 (%). Square: other numbers than in the paper before; diamond: not the first one's name"
    beside = {"textcoords": "offset points", "ha": "center"}
    with panels(DOUBLE_WIDTH, 0.42 * len(shared) + 0.7, note=note) as (figure, [[axes]]):
        for y, of in enumerate(shared):
            rows = sorted(of, key=lambda row: order.index(row["paper"]))
            axes.plot([order.index(row["paper"]) for row in rows], [y] * len(rows), color=GREY, zorder=0)
            for row, before in zip(rows, [rows[0], *rows], strict=False):
                x = order.index(row["paper"])
                changed = [
                    f"{cell.text} → {row['numbers'][place].text}"
                    for place, cell in before["numbers"].items()
                    if not travels.agree(cell, row["numbers"].get(place, cell))
                ]
                look = 1 if changed else 2 if row["name"] != rows[0]["name"] else 0
                axes.plot(x, y, "osD"[look], color=PALETTE[look], markersize=4)
                axes.annotate(row["row"], (x, y), (0, 4), **beside)
                of_whom = [of for of in travels.twins(row, found) if of["name"] != row["name"]]
                if len(changed) > 1:
                    changed = [f"those of {of['row']}" for of in of_whom] or [f"{len(changed)} numbers"]
                told = changed[0] if changed else ""
                axes.annotate(told, (x, y), (0, -4), va="top", color=PALETTE[look], **beside)
        axes.set_xticks(range(len(order)), PAPERS.values())
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set(xlim=(-0.5, len(order) - 0.5), ylim=(len(shared) - 0.3, -0.7))
    return figure
