"""DSM's weights where all triplets are about equally hard (Sec. 4.2).

The paper says that at a very small variance, where the CDF is close to a step function, all triplets
weigh nearly the same. The CDF of what follows a continuous distribution is uniform between 0 and 1
however narrow that is; what makes weights equal is that the histogram's bins have a width, and only
where no node divides them.
"""

from collections.abc import Sequence

import numpy as np
import torch

from lib.losses import cdf
from lib.theory import Computed

# By name, options of `lib.losses.cdf.build`.
FORMS = {
    "floor": {"lookup": "floor"},
    "interpolated": {"lookup": "interpolated"},
    "gaussian": {"form": "gaussian"},
}
BINS, EXTENT = 512, 2.0


def compute(
    deviations: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 25.0),
    positions: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    pairs: int = 1024,
    batches: int = 10,
) -> Computed:
    """Weights of normally distributed differences, after batches of the same distribution.

    Args:
        deviations: σ of d_pos − d_neg, in bins' widths.
        positions: where its mean lies, as a share of the way from one node to the next.
        pairs, batches: that the loss is given.

    Returns:
        The bin's "width", on the scale of the distance; and arrays "deviation" (D,), "position" (P,)
        and by name of `FORMS` "mean_…" and "spread_…" (D, P): of the last batch's weights the mean, 0 to
        1, and the standard deviation over the mean.
    """
    width = 2 * EXTENT / (BINS - 1)
    draws = torch.from_numpy(np.random.default_rng(0).normal(size=(batches, pairs)))
    # A node left of the middle, as triplets are mostly easier than not.
    node = -EXTENT + (3 * BINS // 8) * width
    arrays = {"deviation": np.array(deviations), "position": np.array(positions)}
    for name, options in FORMS.items():
        mean, spread = np.empty((2, len(deviations), len(positions)))
        for row, column in np.ndindex(mean.shape):
            loss = cdf.build(bins=BINS, extent=EXTENT, **options)
            for values in (node + width * (positions[column] + deviations[row] * draws)).float():
                loss.update(values)
            weights = loss.weights(values)
            mean[row, column], spread[row, column] = weights.mean(), weights.std() / weights.mean()
        arrays |= {f"mean_{name}": mean, f"spread_{name}": spread}
    return {"width": width}, arrays
