"""A training that is killed and resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lib.training import Trained, train


class Killed(Exception):
    """Stand-in for a signal in the middle of training."""


def resumed(
    step: int,
    *arguments: object,
    checkpoint: Path,
    on_step: Callable[[int, int], None] | None = None,
    **options: object,
) -> Trained:
    """Kill a training at a step, resume it from its checkpoint and return its result.

    Args:
        step: where it is killed.
        arguments, options: passed to `train`.
        on_step: passed to the resumed training.
    """

    def kill(at: int, total: int) -> None:
        if at == step:
            raise Killed

    with pytest.raises(Killed):
        train(*arguments, checkpoint=checkpoint, checkpoint_seconds=0, on_step=kill, **options)
    assert checkpoint.exists()
    return train(*arguments, checkpoint=checkpoint, on_step=on_step, **options)
