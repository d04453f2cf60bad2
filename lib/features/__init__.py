"""Whole images: keypoints, their patches and descriptors, matches, and files of hloc and COLMAP.

`detectors`, `keypoints`: where a patch lies. `patches`: cutting it. `networks`: describing it, with a
network by name. `matches`: matching descriptors. `folder`, `files`: a folder of photographs, described
and matched into files that others read.
"""

# If pycolmap is loaded before Pillow, Pillow's PNGs corrupt the heap (pycolmap 4.2.1 brings a zlib).
import PIL.Image  # noqa: F401
