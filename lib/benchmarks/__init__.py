"""Benchmarks: one module each, with ``measure(subject, test_set)`` for a metric of one test set, and
probes: modules with ``probe(subject, test_set)`` giving arrays small enough to commit."""
