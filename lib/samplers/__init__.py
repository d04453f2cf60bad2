"""Batch samplers: one module each, with `build(**options)`; they pick the two patches of a pair."""
