"""Benchmarks: one module each, whose ``measure(subject, test_set)`` returns metrics of one test set.
Probes have ``probe(subject, test_set)`` instead, which returns arrays small enough to commit."""
