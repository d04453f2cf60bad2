"""What figures need beyond measures, a module each.

A module has ``probe(subject, data)``, which returns arrays small enough to commit of a descriptor on a
set: `gradient_norms`, `gradient_magnitudes`, `triplets_in_batch`, … Or it has ``compute(**options)``,
which checks the papers' theory without data and returns numbers and arrays: `theorem_2`, `unbiasedness`,
`similarities`, …

`training_batch` draws the batches that probes describe, and `correlations` compares the arrays of
`gradient_norms` (AdaSample, Fig. 3).
"""

import numpy as np

# What ``compute`` returns: numbers, JSON-able, and arrays by name.
Computed = tuple[dict[str, object], dict[str, np.ndarray]]
# Values of the exponent 2α − 1 = λ / L_avg (AdaSample, Eq. 13) at which the theory is tabulated. 1 is
# sampling by the gradient alone (α = 1). With λ = 10, training begins near 8; a converged loss of 0.5,
# 0.2 or 0.1 makes it 20, 50 or 100.
EXPONENTS = (1, 3, 6, 8, 10, 12, 14, 17, 20, 30, 50, 100)
