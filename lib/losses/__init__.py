"""Losses: one module each, with `build(**options)` giving an nn.Module from triplets to losses (n,).

What a loss puts into its attribute `seen`, scalars by name, training keeps as curves.
"""
