"""Patch sets of real photographs, whose correspondences come from the geometry of what they show."""
