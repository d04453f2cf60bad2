"""How many patches of homography sequences, and tasks on them, a profile asks for. Plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SequencesSize:
    """Size of the embedded homography sequences; the defaults are the quick profile's.

    Attributes:
        longest_side: px; larger parts of photographs are reduced to it.
        patches_per_sequence: at most so many are kept of each sequence; None keeps all.
        pairs: verification pairs of each kind (matching, intra, inter).
        queries: of the retrieval task, at most a quarter of the patches that can be one.
        distractors: of the retrieval task, or as many as there are.
        seed: of everything drawn.
    """

    longest_side: int = 640
    patches_per_sequence: int | None = 200
    pairs: int = 20_000
    queries: int = 400
    distractors: int = 2_000
    seed: int = 0
