"""Command lines: run_all.sh's study, HPatches, the search for learning rates, the benchmark, the fetcher."""
