"""Statistical tests and intervals on plain arrays."""
