"""Losses: one module each, with `build(**options)` returning an nn.Module from triplets to losses (n,).

No module is a whole paper: AdaSample's loss is `hinge` on a squared distance, DSM's is `cdf`,
HyNet's is `hinge` on `lib.distances.hybrid`, TCDesc's is `hinge` or `cdf` on `lib.positives.topology`.

A loss may put scalars by name into its attribute `seen`, which training keeps as curves.
"""
