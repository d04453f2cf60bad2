"""DSM's Figure 5 (Zhang and Rusinkiewicz): matching images of the Oxford Affine set."""

from collections.abc import Mapping, Sequence

import pandas as pd

from lib.experiments.dsm import FIGURE4_BINARY, FIGURE4_REAL, FIGURE4_SIGNS
from lib.experiments.whole_images import OXFORD, UNITED
from lib.intervals import Measured
from lib.reporting import frames, whole_images
from lib.reporting.claims import Claim
from lib.reporting.claims.measured import OfClaim
from lib.study.open import Found

KINDS: Mapping[str, tuple[str, ...]] = {
    "real": ("sift", *FIGURE4_REAL, *UNITED),
    "binary": ("orb", *(f"{name}_signs" for name in FIGURE4_SIGNS), *FIGURE4_BINARY),
}
BY_NUISANCE = "_by_nuisance"


def figure5_runs(found: Sequence[Found], test_set: str) -> dict[str, pd.DataFrame]:
    """The numbers of Figure 5's rows by kind, as `lib.reporting.whole_images.numbers`; real-valued
    descriptors by their signs are among the binary."""
    signs = [of for of in frames.by_sign(found) if OXFORD in of.content["metrics"].get(test_set, {})]
    runs = whole_images.numbers([*found, *signs], OXFORD, test_set)
    keys = runs.index.get_level_values("key")
    return {kind: pd.concat([runs[keys == key] for key in row]) for kind, row in KINDS.items()}


def figure5_values(runs: Mapping[str, pd.DataFrame]) -> OfClaim:
    """The values of a claim on Figure 5, by its metric: one of `lib.reporting.whole_images.SCORES`, or
    with "_by_nuisance" behind it with a cell for each."""
    every = pd.concat(runs.values())

    def values(claim: Claim) -> Mapping[str, Measured]:
        of = claim.metric.removesuffix(BY_NUISANCE)
        if of not in every:
            return {}
        return whole_images.measured(every, of, parts=claim.metric.endswith(BY_NUISANCE))

    return values
