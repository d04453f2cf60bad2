"""Which runs and computations each artefact needs, a module a paper."""
