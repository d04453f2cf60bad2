"""Checks of the papers' theory: one module each, with `compute(**options)` giving numbers and arrays."""

import numpy as np

Computed = tuple[dict[str, object], dict[str, np.ndarray]]
# 2α − 1 = λ / L_avg of AdaSample's Eq. 13 at which its theory is tabulated: 1 is sampling by the
# gradient alone (α = 1); with λ = 10, training begins near 8, and a converged loss of 0.5, 0.2 or 0.1
# makes it 20, 50 or 100.
EXPONENTS = (1, 3, 6, 8, 10, 12, 14, 17, 20, 30, 50, 100)
