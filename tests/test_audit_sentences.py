"""The list of sentences is complete and in the papers' words; each is judged by a rule that can fail."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import papers_text
import pytest

from lib.statistics import significance
from lib.study.audit import CONTRADICTS, FAILS, HOLDS, PART, UNKNOWN, judged, verdict
from lib.study.claims import read_rows
from lib.study.printed import all_cells

CELLS = all_cells()
WEIGHTS = ("conclusion", "number", "digit")
ROWS = read_rows().query("kind != 'finding'")
TEXTS = {"adasample": "adasample.md", "dsm": "dsm.md", "hynet": "hynet.txt", "tcdesc": "tcdesc.md"}
with_texts = pytest.mark.skipif(not papers_text.FOLDER, reason="PAPERS names no folder with the texts")


def excluded(paper: str) -> list[dict[str, str]]:
    path = Path(__file__).with_name("excluded_sentences.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["paper"] == paper]


@pytest.fixture(scope="module")
def verdicts():
    return judged(CELLS)


def test_each_faulty_sentence_and_no_other_has_one_weight_and_one_remainder(verdicts):
    assert set(verdicts["verdict"]) == {HOLDS, FAILS, PART, CONTRADICTS, UNKNOWN}
    readings = verdicts["quote"] == ""
    assert (verdicts.loc[readings, "weight"] == "").all()
    for _, rows in verdicts[~readings].groupby(["paper", "quote"]):
        faulty = rows["verdict"].iloc[0] in (FAILS, PART, CONTRADICTS)
        assert rows["verdict"].nunique() == 1
        assert rows["weight"].isin(WEIGHTS).sum() == rows["left"].str.endswith(".").sum() == faulty
        assert (rows["weight"] != "").sum() == (rows["left"] != "").sum() == faulty
    assert verdicts["id"].is_unique


def test_a_sentence_that_holds_for_a_part_has_one_verdict(verdicts):
    verdicts = verdicts.set_index("id")["verdict"]
    # Ahead in sparse points on every scene, in registered images not on every large one.
    assert verdicts["hynet-p-more-points"] == verdicts["hynet-p-more-images"] == PART


def test_quotes_are_whole_or_say_where_they_are_cut():
    quotes = ROWS["quote"][ROWS["quote"] != ""]
    assert quotes.str.match(r"…|[A-Z“(]|3\) ").all()
    assert quotes.str.contains(r"[.:…”]$").all()
    assert (ROWS["kind"][ROWS["quote"] == ""] == "print").all()


# --- each kind of rule, on made-up cells

MADE_UP = pd.DataFrame(
    [
        ("p", "t", key, train, "b", kind, value)
        for key, kind, values in (
            ("a", "fpr95", (1.0, 2.0, 3.0)),
            ("b", "fpr95", (1.5, 2.0, 2.5)),
            ("a", "map", (7.0,)),
            ("b", "map", (6.0,)),
            ("c", "map", (5.0,)),
        )
        for train, value in zip("xyz", values, strict=False)
    ],
    columns=["paper", "table", "key", "train", "test", "statistic", "value"],
)


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ("", UNKNOWN),
        (FAILS, FAILS),
        ("59 + 57 == 116", HOLDS),
        ("59 + 58 == 116", FAILS),
        ("t:fpr95 | a < 4", HOLDS),
        ("t:fpr95 | a < b", PART),
        ("t:fpr95 | a > 4", FAILS),
        ("t:fpr95 | a <= b | most", HOLDS),
        ("t:fpr95 | a < b | most", FAILS),
        ("t:fpr95 | a > b | any", HOLDS),
        ("t:fpr95 | a == 5 | any", FAILS),
        ("t:fpr95 | a <= b | 2 of 3", HOLDS),
        ("t:fpr95 | -0.01 < a - b < 0.01 | mean", HOLDS),
        ("t:fpr95 | a < b | mean", FAILS),
        ("t:fpr95 | a <= b | 2 of 4", FAILS),
        ("t:map | a > b & b > c", HOLDS),
        ("t:map | 0.99 < a - b < 1.01", HOLDS),
        ("t,q/t:fpr95 | a < d", PART),
        ("t:fpr95,map | a__map > a__fpr95", HOLDS),
    ],
)
def test_a_rule_is_judged_by_the_printed_cells(rule, outcome):
    other_paper = MADE_UP.query("key == 'a' and statistic == 'fpr95'").assign(
        paper="q", key="d", value=[2, 3, 1]
    )
    assert verdict(rule, "p", pd.concat([MADE_UP, other_paper])) == outcome


def test_a_rule_may_name_a_part_of_the_rows_keys():
    """AdaSample's Table 2 has one row per λ and loss. Losses are compared at each λ."""
    for losses, count in (("aht > ht", 13), ("ht > aht", 5)):
        rule = f"table2:map by loss | {losses} | {count} of 18"
        assert verdict(rule, "adasample", CELLS) == HOLDS


def test_a_rule_without_any_cell_is_refused():
    with pytest.raises(ValueError, match="no printed column has all of: t:fpr95"):
        verdict(
            "t:fpr95,map | a__fpr95 > c__map", "p", MADE_UP.query("train != 'x' or statistic == 'map'")
        )
    with pytest.raises(pd.errors.UndefinedVariableError):
        verdict("t:fpr95 | a > unknown", "p", MADE_UP)


# --- judged by hand: formulas by numbers; one line of algebra, references and names by reading

DRAW = np.random.default_rng(0)


def norm(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=-1, keepdims=True)


def slope(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """The gradient of a function of rows, by central differences."""
    steps = 1e-6 * np.eye(x.shape[-1])
    return np.stack([(function(x + step) - function(x - step)) / 2e-6 for step in steps], axis=-1)


def gradient_at_the_positive() -> list[bool]:
    """AdaSample's Eq. 24, d Euclidean, with the negative on the anchor's side and on the positive's."""
    anchor, positive, negative = DRAW.normal(size=(3, 4))
    outcomes = []
    for near in ("anchor", "positive"):

        def loss(x: np.ndarray, near: str = near) -> np.ndarray:
            side = anchor if near == "anchor" else x
            return ((x - anchor) ** 2).sum(-1) - ((side - negative) ** 2).sum(-1)

        outcomes.append(
            bool(np.isclose(np.linalg.norm(slope(loss, positive)), 2 * norm(anchor - positive)[0]))
        )
    return outcomes


def nearest_in_eq_14() -> list[bool]:
    """Whether Eq. 14 takes the nearest of all other patches, in batches of four pairs."""
    outcomes = []
    for _ in range(50):
        anchors, positives = DRAW.normal(size=(2, 4, 2))
        within = [norm(side[0] - side[1:])[:, 0] for side in (anchors, positives)]
        between = [
            norm(one[0] - other[1:])[:, 0] for one, other in itertools.permutations((anchors, positives))
        ]
        outcomes.append(bool(np.min(within) <= np.min(between)))
    return outcomes


def least_variance(weights: np.ndarray) -> bool:
    """Whether p proportional to the weights has the least sum of squares over p, of all p of sum one."""
    p = weights / weights.sum()
    others = DRAW.dirichlet(np.ones(len(p)), size=200)
    return bool(((weights**2 / others).sum(-1) >= (weights**2 / p).sum() - 1e-12).all())


def trace_of_variance() -> list[bool]:
    """AdaSample's Eq. 16 on drawn gradients: R_t by its definition, and by the equation."""
    gradients, theta, best = DRAW.normal(size=(6, 3)), DRAW.normal(size=3), DRAW.normal(size=3)
    p, rate = DRAW.dirichlet(np.ones(6)), 0.1
    stepped = (((theta - rate * gradients - best) ** 2).sum(-1) * p).sum()
    mean = p @ gradients
    trace = (p * ((gradients - mean) ** 2).sum(-1)).sum()
    by_equation = 2 * rate * (theta - best) @ mean - rate**2 * (mean @ mean + trace)
    return [bool(np.isclose(((theta - best) ** 2).sum() - stepped, by_equation))]


# A descriptor, stand-ins for its neighbours, and its weights by TCDesc's Eq. 6.
CENTRE, N = DRAW.normal(size=8), DRAW.normal(size=(8, 3))
FITTED = np.linalg.lstsq(N, CENTRE, rcond=None)[0]
LOSSES, NORMS = DRAW.uniform(0.1, 2, size=(2, 6))
CHECKS: dict[str, Callable[[], list[bool]]] = {
    "adasample-s42-bound": lambda: [
        bool(
            np.linalg.norm(np.outer(a @ b, c), 2)
            <= np.linalg.norm(a, 2) * norm(b)[0] * norm(c)[0] + 1e-9
        )
        for a, b, c in zip(
            *(DRAW.normal(size=(20, *shape)) for shape in ((4, 5), (5,), (3,))), strict=True
        )
    ],
    "adasample-p-optimal": lambda: [least_variance(NORMS)],
    "adasample-p-eq-11": lambda: [
        least_variance(LOSSES**2 * NORMS),
        np.allclose((3 * LOSSES**2) / (LOSSES**2 * NORMS) * NORMS, 3),
    ],
    "adasample-p-eq-14": nearest_in_eq_14,
    "adasample-p-theorem-1": trace_of_variance,
    "adasample-p-eq-24": gradient_at_the_positive,
    # With α = 3 the estimator's mean is that of the gradients of the cubed losses, not of the losses;
    # it is the same for all probabilities.
    "adasample-p-proof": lambda: [
        bool(np.isclose((3 * LOSSES**2 * NORMS).mean(), NORMS.mean())),
        np.allclose(
            [p @ (3 * LOSSES**2 / (6 * p) * NORMS) for p in DRAW.dirichlet(np.ones(6), size=5)],
            (3 * LOSSES**2 * NORMS).mean(),
        ),
    ],
    "tcdesc-s1-closed-form": lambda: [bool(np.allclose(N.T @ N @ FITTED, N.T @ CENTRE))],
    "adasample-p-sufficient": lambda: [
        corrected < 0.05
        for corrected, p in zip(significance.holm(P_VALUES), P_VALUES, strict=True)
        if p < 0.05
    ],
    # Whether L_A and the two terms of L_B (HyNet's Eq. 9) fall as the positive comes closer.
    "hynet-p-eq-9": lambda: [
        derivative(0.4) > 0
        for derivative in (
            lambda angle: -np.sin(angle),
            lambda angle: -np.sin(angle),
            lambda angle: np.cos(angle / 2),
        )
    ],
}
P_VALUES = CELLS["value"][CELLS["statistic"] == "p_value"]


@pytest.mark.parametrize("name", CHECKS)
def test_numbers_confirm_what_was_judged_by_hand(name):
    checks = CHECKS[name]()
    outcome = HOLDS if all(checks) else PART if any(checks) else FAILS
    rule = ROWS.set_index("id").loc[name, "in_print"]
    assert outcome != HOLDS if rule == CONTRADICTS else rule == outcome


# --- the texts


def pieces(quote: str, plain: Callable[[str], str] = papers_text.plain) -> list[str]:
    """The pieces between marks of omission, letters and digits alone."""
    return [part for piece in quote.split("…") if (part := plain(piece))]


def uncited(words: str) -> str:
    """The words without citations, whose numbers a paper's transcriptions sort differently."""
    return re.sub(papers_text.CITATION, "", words)


@with_texts
@pytest.mark.parametrize("paper", TEXTS)
def test_every_sentence_with_a_number_or_a_comparison_is_listed_or_excluded(paper):
    quotes = ROWS["quote"][(ROWS["paper"] == paper) & (ROWS["quote"] != "")].unique()
    # A piece of two words is in many sentences.
    parts = [pieces(uncited(quote)) for quote in quotes]
    parts = [[part for part in quote_parts if len(part) > 24] or quote_parts for quote_parts in parts]
    rules = excluded(paper)
    unlisted = [
        sentence
        for heading, sentence in papers_text.sentences(TEXTS[paper])
        if papers_text.speaks_of_more(sentence)
        and not any(part in papers_text.plain(uncited(sentence)) for part in itertools.chain(*parts))
        and not any(
            re.search(row["section"], heading) and re.search(row["pattern"], sentence) for row in rules
        )
    ]
    assert unlisted == []


@with_texts
@pytest.mark.parametrize("paper", TEXTS)
def test_every_quote_is_in_the_paper_and_every_exclusion_excludes(paper):
    # AdaSample has two transcriptions; arXiv's decides.
    arxiv = paper == "adasample"
    plain = papers_text.plain_once if arxiv else papers_text.plain
    whole = plain(papers_text.text("adasample_arxiv_html.txt" if arxiv else TEXTS[paper]))
    for row in ROWS[ROWS["paper"] == paper].itertuples():
        assert all(piece in whole for piece in pieces(row.quote, plain)), row.id
    sentences = [
        section
        for section in papers_text.sentences(TEXTS[paper])
        if papers_text.speaks_of_more(section[1])
    ]
    for rule in excluded(paper):
        matched = [
            re.search(rule["section"], section) and re.search(rule["pattern"], sentence)
            for section, sentence in sentences
        ]
        assert rule["reason"]
        assert any(matched), rule
