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

# By name, options of `lib.losses.cdf.build`.
FORMS = {
    "floor": {"lookup": "floor"},
    "interpolated": {"lookup": "interpolated"},
    "gaussian": {"form": "gaussian"},
}


def compute(
    deviations: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 25.0),
    positions: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    pairs: int = 1024,
    batches: int = 10,
    bins: int = 512,
    seed: int = 0,
) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Weights of normally distributed differences, after batches of the same distribution.

    Args:
        deviations: σ of d_pos − d_neg, in bins' widths.
        positions: where its mean lies, as a share of the way from one node to the next.
        pairs, batches, bins: of the loss.
        seed: of the draws.

    Returns:
        The bin's "width", on the scale of the distance; and arrays "deviation" (D,), "position" (P,)
        and by name of `FORMS` "mean_…" and "spread_…" (D, P): of the last batch's weights the mean, 0 to
        1, and the standard deviation over the mean.
    """
    extent = 2.0
    width = 2 * extent / (bins - 1)
    random = np.random.default_rng(seed)
    draws = torch.from_numpy(random.normal(size=(batches, pairs)))
    # A node left of the middle, as triplets are mostly easier than not.
    node = -extent + (3 * bins // 8) * width
    arrays = {"deviation": np.array(deviations), "position": np.array(positions)}
    for name, options in FORMS.items():
        found = np.empty((2, len(deviations), len(positions)))
        for row, deviation in enumerate(deviations):
            for column, position in enumerate(positions):
                loss = cdf.build(bins=bins, extent=extent, **options)
                for batch in draws:
                    values = (node + width * (position + deviation * batch)).float()
                    loss.update(values)
                weights = loss.weights(values)
                found[:, row, column] = weights.mean(), weights.std() / weights.mean()
        arrays |= {f"mean_{name}": found[0], f"spread_{name}": found[1]}
    return {"width": width}, arrays
