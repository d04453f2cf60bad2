"""Tables of HPatches (Balntas et al., CVPR 2017), in the numbers of `lib.benchmarks.hpatches`, percent.

Papers' tables differ in the protocol, above all in that of retrieval, so every head names it.
"""

from collections.abc import Sequence

import pandas as pd

from lib.study.open import Record
from lib.study.report import frames

# As in lib.data.hpatches.release, which needs OpenCV.
LEVELS = ("easy", "hard", "tough")
TASKS = ("verification", "matching", "retrieval")
# By the key of a number, what it is. Imbalanced verification has 0.2 positives to a negative.
PROTOCOLS = {
    "verification": "verification: AP, 1 to 5",
    "matching": "matching: mAP",
    "retrieval": "retrieval: mAP, whole pool",
    "retrieval.pools": "retrieval: mAP, pool sizes",
}
FPR95 = "FPR95"


def tested_on(runs: Sequence[Record]) -> str:
    """The one set of HPatches patches that runs were measured on, "" where none was."""
    return next((test_set for run in runs for test_set in run.job.sets_of("hpatches")), "")


def numbers(
    runs: Sequence[Record], test_set: str | None = None, hp_train: str | None = None
) -> pd.DataFrame:
    """All numbers of runs on one set of HPatches patches.

    Args:
        runs: records with the measure `hpatches`.
        test_set: the set they were measured on; by default that of `tested_on`.
        hp_train: a set of HPatches patches; a method trained on it is a method of its own, with "_hp"
            behind its key and "-HP" behind its label.

    Returns:
        One row a run as of `lib.study.report.frames.wide`, every number under its key in percent,
        NaN where a run does not have it.

    Raises:
        ValueError: two runs of one method and seed.
    """
    frame = frames.tidy(runs, "hpatches", test_set or tested_on(runs))
    if hp_train:
        frame.loc[frame["train_set"] == hp_train, frames.METHOD] += ["_hp", "-HP"]
    return frames.wide(frame)


def by_task(runs: pd.DataFrame) -> pd.DataFrame:
    """The three tasks, a row a method.

    Args:
        runs: of `numbers`.

    Returns:
        Index the methods' labels in the order given. Columns (protocol, `mean`) in percent and, where
        a method has several seeds, (protocol, `sd`) over them; (``, `n`) is the number of runs.
    """
    tables, count = frames.summary(runs), runs.groupby(level=frames.METHOD, sort=False).size()
    columns = {
        (head, name): table[key] for key, head in PROTOCOLS.items() for name, table in tables.items()
    }
    return pd.DataFrame(columns | {("", "n"): count}).droplevel("key").rename_axis("Method (in %)")


def paper_beside_ours(
    printed: pd.DataFrame, runs: Sequence[Record], fpr95: pd.Series, tasks: Sequence[str] = TASKS
) -> pd.DataFrame:
    """A printed table of FPR95 and tasks, or of tasks alone, and ours side by side.

    Args:
        printed: of `lib.study.printed.printed`, with a `task`, "" of FPR95.
        runs: records of one train set; what was not measured on HPatches has no such numbers.
        fpr95: of each run in percent, index as of `lib.study.report.frames.wide`, e.g. the "Mean" of
            `lib.study.report.phototour.by_column`.
        tasks: to show.

    Returns:
        As of `frames.beside`, FPR95 and the tasks in percent.
    """
    by_cell = printed.replace({"task": {"": FPR95}})
    paper = by_cell.pivot_table("value", frames.METHOD, "task", sort=False)
    ours = fpr95.to_frame(FPR95).join(numbers(runs)[list(tasks)])
    return frames.beside(paper, ours, (FPR95, *tasks))


def by_sequence(runs: pd.DataFrame, task: str) -> pd.DataFrame:
    """The columns of a frame of `numbers` that are a task's number of a level and a sequence; none of
    verification, which is over pairs of all sequences."""
    # A sequence's name begins with its kind, which tells its key from those of kinds and pool sizes.
    return runs.filter(regex=rf"^{task}\.({'|'.join(LEVELS)})\.[vi]_")


def things_shown(names: pd.Index) -> pd.Index:
    """What sequences show, by names that end with theirs: v_NAME and i_NAME may show one thing, and so
    may NAME_left and NAME_right."""
    return names.str.replace(r"^(.*\.)?[vi]_|_(left|right)$", "", regex=True)
