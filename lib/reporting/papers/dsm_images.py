"""DSM's Figure 5 (Zhang and Rusinkiewicz): matching images of the Oxford Affine set."""

from collections.abc import Mapping, Sequence

import pandas as pd

from lib.experiments.whole_images import OXFORD, UNITED
from lib.reporting import frames, whole_images
from lib.reporting.claims.measured import OfClaim
from lib.reporting.papers.dsm_figures import by_kind
from lib.study.open import Found


def figure5_runs(found: Sequence[Found], test_set: str) -> dict[str, pd.DataFrame]:
    """The numbers of Figure 5's rows `by_kind`, as `lib.reporting.whole_images.numbers`."""
    signs = [of for of in frames.by_sign(found) if OXFORD in of.content["metrics"].get(test_set, {})]
    return by_kind(whole_images.numbers([*found, *signs], OXFORD, test_set), UNITED)


def figure5_values(runs: Mapping[str, pd.DataFrame]) -> OfClaim:
    """The values of a claim on Figure 5, as `lib.reporting.whole_images.claim_values`."""
    return whole_images.claim_values(pd.concat(runs.values()))
