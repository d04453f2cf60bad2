"""Command lines: the study, descriptors, HPatches, learning rate searches, stamps, fetching."""
