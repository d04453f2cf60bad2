"""Make the small run of `test_making` with a checkpoint at each step, and be killed at a step.

``python tests/killed_run.py FOLDER STEP``; a step of 0 is never reached.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

from small_study import make_one, open_small, requests_of

from lib.study import making


def main(folder: Path, last: int) -> None:
    study = open_small(folder)

    def kill(step: int, total: int) -> None:
        with open(folder / "steps", "a") as file:
            file.write(f"{step}\n")
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    making.train = partial(making.train, checkpoint_seconds=0, on_step=kill)
    [request] = requests_of(study, ["hardnet"], seeds=[0])
    make_one(study, request)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
