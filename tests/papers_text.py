"""The papers' texts, where a folder holds them: they belong to their authors and are not kept here.

`PAPERS=folder python -m pytest tests/test_papers_text.py` reads there `adasample.md`,
`adasample_arxiv_html.txt` (a second transcription), `dsm.md`, `hynet.txt` and `tcdesc.md`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

FOLDER = os.environ.get("PAPERS", "")
# Of each printed table the text that holds it, and the words that it stands between.
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
    return Path(FOLDER, name).read_text(encoding="utf-8")


def table_numbers(table: str) -> list[str]:
    """The numbers that a table prints, in its order, citations and what is part of a name left out."""
    name, start, end = TABLES[table]
    _, _, after = text(name).partition(start)
    part = re.sub(r"\[\d+\]|</?b>|\\cdashline\S*|plus-or-minus|\\pm", " ", after.partition(end)[0])
    return re.findall(r"(?<![\w.=/-])\d+(?:\.\d+)?(?=[KkM%]|px|\b)(?!/)", part)
