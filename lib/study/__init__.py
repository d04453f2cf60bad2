"""The study: what notebooks ask for, the runs on disk, their making, and how they are shown."""

from lib.study.requests import in_one_line
from lib.study.runs import TRAIN_SET, Runs, Study, open_study

__all__ = ["TRAIN_SET", "Runs", "Study", "in_one_line", "open_study"]
