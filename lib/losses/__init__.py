"""Losses: one module each, with `build(**options)` giving an nn.Module from triplets to losses (n,).

No module stands for a whole paper: AdaSample's loss is `hinge` on a squared distance, DSM's is `cdf`,
HyNet's is `hinge` on `lib.distances.hybrid`, TCDesc's is `hinge` or `cdf` on `lib.positives.topology`.

What a loss puts into its attribute `seen`, scalars by name, training keeps as curves.
"""
