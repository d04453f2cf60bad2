"""Measures of a descriptor: each module's ``measure(subject, test_set)`` returns numbers of a test set.

Modules of `lib.analysis` have ``probe(subject, test_set)``, which returns arrays small enough to commit,
or ``compute(**options)``, which needs no data.
"""

# The version of each module of `lib.benchmarks` and `lib.analysis`. It is raised by hand when a module's
# numbers change; what was measured with another version is then measured again, from the run's weights.
# Golden values (`tests/test_golden.py`) fail if someone forgets.
MEASURES: dict[str, int] = dict.fromkeys(
    (
        "architecture",
        "carrying_error",
        "descriptor_spread",
        "drawn_pairs",
        "fpr95",
        "fpr95_by_stage",
        "gradient_magnitudes",
        "gradient_norms",
        "hpatches",
        "image_pairs",
        "imc",
        "intensity_changes",
        "loss_shapes",
        "matches_on_brisk",
        "matches_on_dog",
        "moving_histogram",
        "narrow_weights",
        "neighbourhoods",
        "orthogonality",
        "output_gradient",
        "oxford_affine",
        "retrieval",
        "set_statistics",
        "sfm",
        "similarities",
        "theorem_2",
        "triplets_in_batch",
        "unbiasedness",
        "w1bs",
        "w1bs_curves",
    ),
    1,
)
# HyNet's Z is no longer rounded to 2.736.
MEASURES["loss_shapes"] = 2
# BRISK's keypoints are OpenCV's.
MEASURES["matches_on_brisk"] = 2
# Rotations are no longer compared after a similarity of the cameras' centres alone.
MEASURES["sfm"] = 2
