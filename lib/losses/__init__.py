"""What a step minimises, part by part; `lib.objective` puts the parts of a recipe together.

`descriptions`: a network's descriptors of n matching pairs, and triplets. `distances`, `negatives`,
`topology` (the distance of a matching pair; TCDesc's): what a triplet is made of. `hinges`, `cdf` (DSM):
losses of triplets. `average_precision` (DOAP), `l2net`: losses of all descriptors of a batch.
`pair_weights` (AdaSample's w_i), `regularizers` (GOR, R_L2, SOSR): what is added.

A loss is an nn.Module from triplets to losses (n,). It may put scalars by name into its attribute
`seen`, which training keeps as curves.
"""
