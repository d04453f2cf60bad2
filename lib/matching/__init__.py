"""From images to matches: reading, keypoints, patches, descriptors, matching."""

# If pycolmap is loaded before Pillow, Pillow's PNGs corrupt the heap (pycolmap 4.2.1 brings a zlib).
import PIL.Image  # noqa: F401
