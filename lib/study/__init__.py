"""The study: what notebooks ask for, the runs on disk, their making, and how they are shown."""

from lib.study.runs import TRAIN_SET, Runs, Study, open_study

__all__ = ["TRAIN_SET", "Runs", "Study", "open_study"]
