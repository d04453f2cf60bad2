"""Tables as text: the same to the letter, rounded, aligned."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.study.report.text import as_text

SMALL = pd.DataFrame(
    {"value": [1.005, -0.001, np.nan], "n": pd.array([1, None, 30], dtype="Int64")},
    index=pd.Index(["a", "bb", "λ"], name="method"),
)


def test_the_text_of_a_small_table_is_exactly_this():
    assert as_text(SMALL) == ("method value  n\na       1.00  1\nbb      0.00  ·\nλ          · 30")


def test_decimals_may_differ_by_column_and_none_is_given_to_whole_numbers():
    assert as_text(SMALL, decimals={"value": 1}).splitlines()[1] == "a        1.0  1"


def test_an_index_without_a_name_is_not_shown():
    assert as_text(SMALL.rename_axis(None)).splitlines()[0] == "value  n"


def test_words_stand_left_and_numbers_right_under_two_levels_of_heads():
    columns = pd.MultiIndex.from_tuples([("", "dim"), ("Mean", "paper"), ("Mean", "ours")])
    table = pd.DataFrame([[128, 1.5, 2.25], [64, 10.0, np.nan]], ["HardNet", "A"], columns)
    head, second, first_row, second_row = as_text(table.rename_axis("Method")).splitlines()
    assert head.split() == ["Mean"]
    assert second.split() == ["Method", "dim", "paper", "ours"]
    assert [second.index("Method"), first_row.index("HardNet"), second_row.index("A")] == [0, 0, 0]
    ends = [second.index("ours") + 4, first_row.index("2.25") + 4, second_row.index("·") + 1]
    assert len(set(ends)) == 1


def test_heads_that_are_wider_than_their_columns_keep_the_columns_apart():
    columns = pd.MultiIndex.from_tuples(
        [("a very wide head", "x"), ("a very wide head", "y"), ("b", "z")]
    )
    table = pd.DataFrame([[1, 2, 3]], columns=columns, index=pd.Index(["m"], name="k"))
    head, second, row = as_text(table).splitlines()
    assert head.index("b") >= head.index("head") + 5
    assert [second.index(c) for c in "yz"] == [row.index(c) for c in "23"]
