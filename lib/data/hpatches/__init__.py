"""HPatches (Balntas, Lenc, Vedaldi and Mikolajczyk, CVPR 2017): its files read and written, and made.

The release: `release` (patches, splits, and patches to train on), `tasks` (verification pairs, queries
and distractors), `descriptors` (the benchmark's CSV layout). Patches made from images and homographies:
`homographies`, `detection`, `building`.
"""

# Folders as in the benchmark's repository: the patches by sequence, and beside them the tasks by split.
RELEASE, TASKS = "hpatches-release", "tasks"
