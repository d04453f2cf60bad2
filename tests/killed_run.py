"""A training that is killed and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.training import Trained, train


class Killed(Exception):
    """Stands for a signal in the middle of training."""


def resumed(
    step: int,
    *of: object,
    checkpoint: Path,
    on_step: Callable[[int, int], None] | None = None,
    **how: object,
) -> Trained:
    """What a training gives that is killed at a step and goes on from its checkpoint.

    Args:
        step: where it is killed.
        of, how: what `train` takes.
        on_step: of the training that goes on.
    """

    def kill(at: int, total: int) -> None:
        if at == step:
            raise Killed

    with pytest.raises(Killed):
        train(*of, checkpoint=checkpoint, checkpoint_seconds=0, on_step=kill, **how)
    assert checkpoint.exists()
    return train(*of, checkpoint=checkpoint, on_step=on_step, **how)
