"""Probes: arrays that figures need beyond metrics, one module each with `probe(subject, data)`."""
