"""Patch sets of real photographs, with correspondences from the geometry of the scenes."""
