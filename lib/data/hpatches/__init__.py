"""HPatches (Balntas, Lenc, Vedaldi and Mikolajczyk, CVPR 2017): read, write and build its files.

Modules for the release: `release` (patches, splits, and patches to train on), `tasks` (verification
pairs, queries and distractors), `descriptors` (the benchmark's CSV layout). Modules that build patches
from images and homographies: `homographies`, `agreement` (of the two), `detection`, `building`.
"""

# Folders as in the benchmark's repository: the patches by sequence, and the tasks by split.
RELEASE, TASKS = "hpatches-release", "tasks"
