"""DSM's weights when all triplets are about equally hard (Sec. 4.2).

The paper says that at a very small variance, where the CDF is close to a step function, all triplets
weigh nearly the same. But a continuous variable's CDF, taken at the variable itself, is uniform between
0 and 1 however narrow the distribution is. The weights become equal only because the histogram's bins
have a width, and only where no node divides the values.
"""

from collections.abc import Sequence

import numpy as np
import torch

from lib.analysis import Computed
from lib.losses import cdf

# Name -> options of `lib.losses.cdf.dynamic_soft_margin`.
FORMS = {
    "floor": {"lookup": "floor"},
    "interpolated": {"lookup": "interpolated"},
    "gaussian": {"form": "gaussian"},
}
BINS = 512
EXTENT = 2.0


def compute(
    deviations: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 25.0),
    positions: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    pairs: int = 1024,
    batches: int = 10,
) -> Computed:
    """Compute the weights of normally distributed differences, after batches of the same distribution.

    Args:
        deviations: σ of d_pos − d_neg, in bin widths.
        positions: where the mean of d_pos − d_neg lies between two nodes, as a share of the bin width.
        pairs, batches: pairs in a batch, and batches that the loss sees.

    Returns:
        Numbers: "width", a bin's width on the scale of the distance. Arrays: "deviation" (D,),
        "position" (P,) and, for each name of `FORMS`, "mean_…" and "spread_…" (D, P): the mean of the
        last batch's weights, 0 to 1, and their standard deviation over that mean.
    """
    width = 2 * EXTENT / (BINS - 1)
    draws = torch.from_numpy(np.random.default_rng(0).normal(size=(batches, pairs)))
    # A node below 0, because most triplets are easy (d_pos < d_neg).
    node = -EXTENT + (3 * BINS // 8) * width
    arrays = {"deviation": np.array(deviations), "position": np.array(positions)}
    for name, options in FORMS.items():
        mean, spread = np.empty((2, len(deviations), len(positions)))
        for row, column in np.ndindex(mean.shape):
            loss = cdf.dynamic_soft_margin(bins=BINS, extent=EXTENT, **options)
            differences = node + width * (positions[column] + deviations[row] * draws)
            for values in differences.float():
                loss.update(values)
            weights = loss.weights(values)
            mean[row, column] = weights.mean()
            spread[row, column] = weights.std() / weights.mean()
        arrays |= {f"mean_{name}": mean, f"spread_{name}": spread}
    return {"width": width}, arrays
