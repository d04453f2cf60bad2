"""From an image to matches: reading, keypoints, patches, descriptors, matching."""
