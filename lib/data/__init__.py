"""Data sets: one module per format; each reader of patches returns a `PatchSet`."""
