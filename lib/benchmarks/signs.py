"""A real-valued descriptor by its signs: a bit a number, 1 where it is above zero."""

import numpy as np

from lib.benchmarks.subject import Subject


def of_signs(subject: Subject) -> Subject:
    """The same descriptor by its signs, packed, which benchmarks compare by Hamming distance."""

    def describe(patches: np.ndarray) -> np.ndarray:
        return np.packbits(subject.describe(patches) > 0, axis=1)

    return Subject(describe, device=subject.device)
