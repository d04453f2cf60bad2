"""The papers' texts, read from a folder: they belong to their authors and are not kept here.

`PAPERS=folder python -m pytest tests/test_papers_text.py` reads `adasample.md`,
`adasample_arxiv_html.txt` (a second transcription), `dsm.md`, `hynet.txt` and `tcdesc.md` from it.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

FOLDER = os.environ.get("PAPERS", "")
# Printed table -> (its text, the words before its numbers, the words after them).
TABLES = {
    "adasample_table1": ("adasample_arxiv_html.txt", "SIFT [17] 128", "Table 1: Patch"),
    "adasample_table2": ("adasample_arxiv_html.txt", "Loss AHT HT", "Table 2: Ablation"),
    "adasample_table3": ("adasample_arxiv_html.txt", "p value", "Table 3: Repro"),
    "dsm_table1": ("dsm.md", "Real-valued Descriptors\t", "size is set to 1024"),
    "dsm_table2": ("dsm.md", "Method\tOxford5k", "of-the-art results. Also"),
    "dsm_table3": ("dsm.md", "softplus [7]\t", "Expansion [30]"),
    "dsm_table4": ("dsm.md", "PDF built from\t", "a PDF of  $d_{"),
    "hynet_table1": ("hynet.txt", "Train ND YOS", "Table 1: Patch"),
    "hynet_table2": ("hynet.txt", "Images Points Points", "Table 2: Evaluation"),
    "hynet_table3": ("hynet.txt", "Other components MAP", "Table 3: Ablation"),
    "hynet_table4": ("hynet.txt", "Stereo Multi-View", "Table 4: Mean"),
    "hynet_table5": ("hynet.txt", "7.2 Integrating", "Table 5: Patch"),
    "tcdesc_table1": ("tcdesc.md", "TABLE I\n", "2) Comparison of"),
    "tcdesc_table2": ("tcdesc.md", "TABLE II\n", "TABLE III\n"),
    "tcdesc_table3": ("tcdesc.md", "TABLE III\n", "TABLE IV\n"),
    "tcdesc_table4": ("tcdesc.md", "TABLE IV\n", "hard task (testing"),
    "tcdesc_table5": ("tcdesc.md", "TABLE V\n", "benchmark [46]. We test six"),
    "tcdesc_table6": ("tcdesc.md", "TABLE VI\n", "matching. In task"),
}


def text(name: str) -> str:
    """Return a text; a misread word of `adasample.md` is corrected by the other transcription."""
    return Path(FOLDER, name).read_text(encoding="utf-8").replace("HardNos", "Hardpos")


def table_numbers(table: str) -> list[str]:
    """Return the numbers that a table prints, in its order, without citations and parts of names."""
    name, start, end = TABLES[table]
    _, _, after = text(name).partition(start)
    part = re.sub(r"\[\d+\]|</?b>|\\cdashline\S*|plus-or-minus|\\pm", " ", after.partition(end)[0])
    return re.findall(r"(?<![\w.=/-])\d+(?:\.\d+)?(?=[KkM%]|px|\b)(?!/)", part)


# The heading that ends a paper's text, and the forms of its other headings.
END = re.compile(r"(?m)^#* ?\**(?:References|REFERENCES)\**\s*$")
HEADING = re.compile(
    r"#+ +(.*)|((?:\d(?:\.\d)?\.?|[IVX]+\.|[A-F]\.) [A-Z][\w\- ]{3,60}|Abstract|Broader Impact"
    r"|Acknowl.*)"
)
ABBREVIATION = re.compile(r"\b(et al|i\.e|e\.g|Eqn|Eq|Sec|Fig|Tab|Thm|Alg|vs|cf|w\.r\.t|etc)\.")
CITATION = r"\[[\d,\s–-]+\]"
REFERENCE = (
    r"\b(?:Eqns?|Eqs?|Equations?|Secs?|Sections?|Figs?|Figures?|Tabs?|Tables?|Thms?|Theorems?|Algs?|Steps?"
    r"|Definition|Algorithm)\.?\s*\(?(?:\d[\d.()a-z]*|[IVX]+\b)(?:(?:, | and )\(?\d[\d.()a-z]*)*"
)
# Digits that are not numbers: in names, footnote marks, indices and exponents.
NAME = r"\b(?:L2|l2|3D|2D|D2-Net|R2D2|L_2|l1|l_1|W1BS|\w+[56]k)\b|L2L2|\\ell_2|[_^]\{?[-+]?[\di]+\}?"
NUMBER = r"(?<![A-Za-z\\])\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|half|twice|double)\b"
COMPARISON = (
    r"\b(?:more|less|most(?:ly)?|least|fewer|majority|better|best|worse|worst|superior\w*|outperform\w*"
    r"|surpass\w*|exceed\w*|state[- ]of[- ]the[- ]art|top[- ]performing|consistent(?:ly)?|improv\w*"
    r"|significant(?:ly)?|advances?|(?:sub-?)?optimal|high(?:er|est)|low(?:er|est)|larg(?:er|est)"
    r"|small(?:er|est)|hard(?:er|est)|eas(?:ier|iest)|great(?:er|est)|stronger|deeper|fast(?:er|est)"
    r"|clos(?:er|est)|shorter|longer|further|saturat\w+|nearly|almost|comparable|competitive|on par"
    r"|as \w+ as|success\w*|than|reduc\w+|declin\w+|increas\w+|decreas\w+|boost\w*|gains?)\b"
)


def sentences(name: str) -> list[tuple[str, str]]:
    """Return the sentences of a text's body, each with its heading; no tables, no formulas."""
    pieces, heading = [], ""
    for line in map(str.strip, END.split(text(name))[0].splitlines()):
        heading_match = HEADING.fullmatch(line)
        if heading_match:
            heading = (heading_match[1] or heading_match[2]).strip("*# ")
        elif line and not _is_formula(line) and not _is_table(line):
            joined = pieces and pieces[-1][0] == heading and not re.search(r"[.!?:]\W*$", pieces[-1][1])
            if joined:
                pieces[-1] = (heading, f"{pieces[-1][1]} {line}")
            else:
                pieces.append((heading, line))
    result = [
        (heading, sentence.replace("·", "."))
        for heading, piece in pieces
        for sentence in re.split(
            r"(?<=[.!?])[”)*]?\s+(?=[A-Z“\"*(•])",
            ABBREVIATION.sub(lambda abbreviation: abbreviation[0].replace(".", "·"), piece),
        )
    ]
    return result


def speaks_of_more(sentence: str) -> bool:
    """Return whether a sentence has a number, a comparative, a superlative or a verb of comparison."""
    rest = re.sub(f"{CITATION}|{REFERENCE}|{NAME}", " ", sentence)
    return bool(re.search(NUMBER, rest) or re.search(COMPARISON, rest, re.IGNORECASE))


def plain(words: str) -> str:
    """Return letters and digits alone, so that the notation of formulas does not matter."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\\[a-zA-Z]+", " ", words.lower()))


def plain_once(words: str) -> str:
    """As `plain`, for arXiv's page, which gives a formula as characters, in words and as LaTeX."""
    words = re.sub("(?:sub|super)script|percent", "", unicodedata.normalize("NFKC", words))
    return re.sub(r"(.{1,12}?)\1\1", r"\1", plain(words))


def _is_formula(line: str) -> bool:
    return (
        "$$" in line or "formulae-sequence" in line or bool(re.search(r"\\.*\(\d+\)$|^\(\d+\)?$", line))
    )


def _is_table(line: str) -> bool:
    words = line.split()
    return "\t" in line or sum(map(str.isdigit, line)) / len(line) > 0.2 or "cdashline" in words[0]
