"""HyNet's hybrid similarity s_H(θ) = [α (1 − s) + d] / Z of unit descriptors (Eq. 6), a distance.

s = cos θ is the inner product and d = √(2 − 2s) the Euclidean distance. 1 − s is steepest where a pair
is far apart, at θ = π/2, and d where it is close, which suits positives and negatives (Sec. 2.3).
Z, the largest |α sin θ + cos(θ/2)|, is `lib.recipes.largest_gradient`; the hinge is `lib.losses.hinge`.
"""

import math

from torch import Tensor

from lib.distances import Distance, euclidean


def build(alpha: float | str = 2.0, z: float = 1.0, epsilon: float = 1e-6) -> Distance:
    """The hybrid similarity from inner products.

    Args:
        alpha: α of Eq. 6; 0 gives d / Z, and ``math.inf`` gives (1 − s) / Z, which has no root. A recipe
            writes "inf", because its values go into JSON.
        z: Z of Eq. 6, the largest slope by θ (`lib.recipes.largest_gradient`). The default is 1, as in
            the authors' code, which is not Eq. 6.
        epsilon: added under the root, whose gradient at zero is infinite.

    Raises:
        ValueError: α is below 0, or Z not positive and finite.
    """
    alpha = float(alpha)
    if not alpha >= 0:
        raise ValueError(f"α must be 0 or more, got {alpha}")
    if not 0 < z < math.inf:
        raise ValueError(f"Z must be positive and finite, got {z}")
    distance = euclidean.build(power=1, epsilon=epsilon)

    def cosine(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        return (1 - inner) / z

    def hybrid(inner: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        return (alpha * (1 - inner) + distance.between(inner, x, y)) / z

    if math.isinf(alpha):
        return Distance(cosine, power=1, maximum=2 / z)
    return Distance(hybrid, power=1, maximum=(2 * alpha + 2) / z)
