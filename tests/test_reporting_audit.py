"""The test behind AdaSample's printed p-values: each outcome of five runs against five, by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mann_whitney_oracle import exact_by_hand, normal_by_hand, u_by_hand

from lib.statistics import significance
from lib.study.report import adasample
from lib.study.report.frames import COLUMN_NAMES

coarse = st.integers(0, 6).map(float)
fives = st.lists(coarse, min_size=5, max_size=5)
SCIPY_DEFAULT = "normal, continuity + ties"


def tied_groups(values) -> str:
    counts = (values.count(value) for value in set(values))
    return "+".join(map(str, sorted((count for count in counts if count > 1), reverse=True)))


@pytest.fixture(scope="module")
def five_against_five():
    return significance.mann_whitney_outcomes(5, 5)


@pytest.fixture(scope="module")
def paper():
    return adasample.comparisons()


def test_the_papers_columns_keep_their_values_under_the_short_names(paper):
    assert list(paper.index) == list(COLUMN_NAMES)
    assert paper.loc["Yos>Ntr"].tolist() == [0.627, 0.012, 0.671, 0.010, 6.62, 0.006]
    # Sec. 5.4 names only Notre Dame to Liberty as not significant.
    assert paper.index[paper["p"] > 0.05].tolist() == ["Lib>Ntr"]


@given(lower=fives, higher=fives)
@settings(deadline=None, max_examples=40)
def test_each_form_gives_the_p_of_the_values_themselves(five_against_five, lower, higher):
    outcomes, p_values = five_against_five
    exact, above = exact_by_hand(lower, higher), exact_by_hand(higher, lower)
    [index, *_] = np.flatnonzero(
        (outcomes["ties"] == tied_groups([*lower, *higher]))
        & (outcomes["u"] == u_by_hand(lower, higher))
        & np.isclose(outcomes["at_most"], exact)
        & np.isclose(outcomes["at_least"], above)
    )
    p, less = p_values.iloc[index], normal_by_hand(lower, higher, 0.5)
    assert p["exact", 1] == pytest.approx(exact)
    assert p["exact", 2] == pytest.approx(min(1, 2 * min(exact, above)))
    assert p["normal, ties", 1] == pytest.approx(normal_by_hand(lower, higher, 0.0))
    assert p[SCIPY_DEFAULT, 1] == pytest.approx(less)
    both_tails = min(1, 2 * min(less, normal_by_hand(higher, lower, 0.5)))
    assert p[SCIPY_DEFAULT, 2] == pytest.approx(both_tails)


def test_the_outcomes_are_all_that_two_and_three_values_can_have():
    outcomes = significance.mann_whitney_outcomes(2, 3)[0].round(9)
    listed = set(zip(*(outcomes[name] for name in ("u", "ties", "at_most", "at_least")), strict=True))
    enumerated = set()
    for values in itertools.product(range(5), repeat=5):
        lower, higher = values[:2], values[2:]
        tails = exact_by_hand(lower, higher), exact_by_hand(higher, lower)
        enumerated.add((u_by_hand(lower, higher), tied_groups(values), *(round(p, 9) for p in tails)))
    assert listed == enumerated


def test_the_runs_of_each_explanation_have_the_printed_p(paper):
    """For each printed p: the U of the likeliest form, and runs that have this U."""
    holm = adasample.holm_table(paper)
    witnesses = {
        "Ntr>Lib": ([1, 1, 1, 2, 2], [1, 3, 4, 4, 4]),
        "Yos>Lib": ([1, 2, 3, 4, 7], [5, 6, 8, 9, 10]),
        "Lib>Ntr": ([1, 2, 3, 6, 8], [2, 4, 5, 6, 7]),
        "Yos>Ntr": ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]),
        "Lib>Yos": ([1, 2, 3, 4, 8], [5, 6, 7, 9, 10]),
        "Ntr>Yos": ([1, 2, 3, 4, 6], [5, 7, 8, 9, 10]),
    }
    for name, (lower, higher) in witnesses.items():
        tested, row = significance.mann_whitney(lower, higher), holm.loc[name]
        least, most = row["exact, at least", "p"], row["exact, at most", "p"]
        assert row["implied", "U"] == tested["u"]
        assert round(float(tested["continuity"]), 3) == paper.loc[name, "p"]
        assert least - 1e-9 <= tested["exact"] <= most + 1e-9
        # The positions of the two tied pairs decide the exact p; without ties it is unique.
        assert (least < most) == (name in ("Ntr>Lib", "Lib>Ntr"))


def test_only_one_form_gives_four_p_untied_and_0031_only_with_nine_tied_runs(paper):
    forms = adasample.forms_table(paper)
    best = forms.iloc[0]
    assert forms.index[0] == ("normal, continuity + ties", 1)
    assert best[list(COLUMN_NAMES)].tolist() == ["3.5 (4+3+2)", "2", "10 (2+2)", "0", "3", "1"]
    others = forms.iloc[1:]
    assert (others.loc[others["fits"] == 6, "untied"] == 0).all()
    assert forms.loc[("exact", 1), "fits"] == 1


def test_holm_on_the_printed_p_by_hand(paper):
    table = adasample.holm_table(paper)
    assert table[("as printed", "Holm")].tolist() == pytest.approx(
        [0.090, 0.072, 0.337, 0.036, 0.090, 0.055]
    )
    exact = table[("exact, at most", "p")]
    assert exact["Yos>Ntr"] == pytest.approx(1 / 252)
    assert exact["Ntr>Yos"] == pytest.approx(2 / 252)
    # The third smallest is 4 / 252; four times that is above 5%.
    assert table.loc["Ntr>Yos", ("exact, at most", "Holm")] == pytest.approx(5 * 2 / 252)
    assert table.loc["Yos>Lib", ("exact, at most", "Holm")] == pytest.approx(4 * 4 / 252)
