"""Command lines: the study, HPatches, the search for learning rates, stamps, fetching."""
