"""The numbers of the papers' own texts and their copies here are the same.

The texts are not part of this repository: `tests/papers_text.py` says where they are read from.
"""

from __future__ import annotations

from collections import Counter

import pandas as pd
import papers_text
import pytest

from lib.study.printed import PRINTED

pytestmark = pytest.mark.skipif(not papers_text.FOLDER, reason="PAPERS names no folder with the texts")
FILES = {path.stem: path for path in sorted(PRINTED.glob("*.csv"))}
# Tables whose numbers stand in sentences.
IN_SENTENCES = {
    "dsm_margins": "dsm.md",
    "hynet_figure4": "hynet.txt",
    "tcdesc_figure5": "tcdesc.md",
}

# Printed numbers without a row in the CSV: a row that the CSV has once already, and the values of γ.
NOT_CELLS = {"hynet_table3": {"53.97"}, "tcdesc_table1": {"0.5", "1.0", "2.0"}}


def values(table: str, **columns: str) -> list[str]:
    frame = pd.read_csv(FILES[table], dtype=str, keep_default_na=False)
    for name, value in columns.items():
        frame = frame[frame[name] == value]
    return list(frame["value"])


def test_every_csv_has_a_place_in_a_text():
    assert not set(FILES) - set(papers_text.TABLES) - set(IN_SENTENCES)


@pytest.mark.parametrize("table", sorted(set(FILES) & set(papers_text.TABLES)))
def test_a_csv_has_all_of_the_texts_numbers_in_the_texts_order(table):
    in_table = values(table, statistic="map") if table == "hynet_table3" else values(table)
    in_text = papers_text.table_numbers(table)
    numbers = iter(in_text)
    missing = next((value for value in in_table if not any(value == number for number in numbers)), None)
    assert missing is None
    # Whole numbers are also lengths of descriptors, of sets and of sequences.
    unmatched = Counter(in_text) - Counter(in_table)
    assert {value for value in unmatched if "." in value} <= NOT_CELLS.get(table, set())


@pytest.mark.parametrize("table", IN_SENTENCES)
def test_numbers_of_sentences_are_in_the_text(table):
    text = papers_text.text(IN_SENTENCES[table])
    assert all(value in text for value in values(table))


def test_hynets_gains_from_frn_are_in_the_text():
    text = papers_text.text("hynet.txt")
    assert all(value in text for value in values("hynet_table3", statistic="frn_gain"))


def test_the_csv_has_a_note_where_two_transcriptions_differ():
    """The other transcription of AdaSample's Table 1 has all numbers but the noted ones."""
    frame = pd.read_csv(FILES["adasample_table1"], dtype=str, keep_default_na=False)
    _, _, after = papers_text.text("adasample.md").partition("SIFT [17]\t128")
    transcribed = after.partition("Table 1.")[0].replace("\n", "\t").split("\t")
    missing = Counter(frame["value"]) - Counter(transcribed)
    noted = Counter(frame["value"][frame["note"] != ""])
    assert missing == noted
