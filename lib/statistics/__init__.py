"""Tests and intervals, of plain arrays."""
