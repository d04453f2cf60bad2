"""Command lines: the study, descriptors, HPatches, learning rate searches, fetching."""
