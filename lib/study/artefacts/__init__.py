"""The runs and computations that each artefact needs, one module per paper."""
