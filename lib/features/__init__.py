"""Keypoints and patches of whole images."""
