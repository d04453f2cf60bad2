"""HyNet (Tian et al.): the records that its tables and figures need, and its analysis of gradients and
norms (Sec. 2 and 3)."""

import math
from dataclasses import replace
from functools import partial

from lib.recipes import HARDNET, HYNET, SOSNET, TURNED, Recipe, find, hybrid, part, replace_options
from lib.study.artefacts.rows import HPATCHES_SPLIT, Runs, changed, measured, several, variants
from lib.study.artefacts.searches import searched_fpr95
from lib.study.artefacts.together import EQUAL
from lib.study.jobs import Job, merged
from lib.study.open import Study, open_study

# For each similarity of Table 3 (s_H, d, s): α of Eq. 6, and the margins, the best of which is shown.
# As shares of the similarity at 90 degrees, (α + √2) / Z, the margins are 0.08, 0.32 and 0.96 for s_H
# (3.414 / 2.736 there); 0.07, 0.28 and 0.99 for d (1.414); 0.1, 0.3 and 1 for 1 − s (1). At the quick
# size the first margin leaves a third to a half of the triplets without loss, the second a few in a
# hundred, the third none.
ALPHAS = {"h": 2.0, "d": 0.0, "s": math.inf}
MARGINS = {
    "h": {0.1: "hynet_h_0.1", 0.4: "hynet_h_0.4", 1.2: "hynet_aug"},
    "d": {margin: f"hynet_d_{margin:g}" for margin in (0.1, 0.4, 1.4)},
    "s": {margin: f"hynet_s_{margin:g}" for margin in (0.1, 0.3, 1.0)},
}
SHOWN = {"h": "s_H", "d": "d", "s": "s"}


def _with_loss_of(other: Recipe, label: str, norm: str) -> Recipe:
    """Return HyNet's setting and network with the loss of HardNet or SOSNet."""
    own = {axis: getattr(other, axis) for axis in ("distance", "negatives", "loss", "regularizers")}
    return changed(HYNET, label, {"model": {"norm": norm}, **own})


def _hybrid(alpha: float, margin: float, shown: str) -> Recipe:
    return replace(hybrid(HYNET, alpha, margin), label=f"{HYNET.label}: {shown}, margin {margin:g}")


_ON_D = hybrid(HYNET, 0.0)
[_R_L2], [_SOSR] = HYNET.regularizers, SOSNET.regularizers
SUMMED = {"reduction": "sum", "regularizers": (replace_options(_R_L2, reduction="sum"),)}
_ADAM = {axis: getattr(HYNET, axis) for axis in ("optimizer", "schedule", "budget")}
_HINGE = replace(_with_loss_of(SOSNET, "… plain hinge", "frn"), loss=part("hinge", margin=1.0))
# HyNet+ on equal footing: without R_L2, and with s_H not divided by Z, as in the authors' code.
_UNDIVIDED = hybrid(EQUAL["equal_hynet_aug"], z=1.0)
_WITHOUT = {"regularizers": ()}
CONTROLS = {
    "hy_undivided": replace(_UNDIVIDED, label="HyNet+: not divided by Z"),
    "hy_no_norm": changed(EQUAL["equal_hynet_aug"], "HyNet+: without R_L2", _WITHOUT),
    "hy_undivided_no_norm": changed(_UNDIVIDED, "HyNet+: without R_L2, not divided by Z", _WITHOUT),
}
control = Runs(["equal_hynet_aug", *CONTROLS], recipes={**EQUAL, **CONTROLS}, hpatches="a")
# Recipes with a learning rate of their own: Table 3 and Eq. 9, other losses, and rungs, each of which
# adds the one choice that its label names. A similarity changes together with its margin.
SEARCHED = {
    **{key: replace(own, label=f"{own.label}, equal footing") for key, own in CONTROLS.items()},
    **{
        key: _hybrid(ALPHAS[similarity], margin, SHOWN[similarity])
        for similarity, margins in MARGINS.items()
        for margin, key in margins.items()
        if key != "hynet_aug"
    },
    **variants(
        HYNET,
        {
            "hynet_no_norm": ("without R_L2", _WITHOUT),
            "hynet_bn": ("BN", {"model": {"norm": "batch"}}),
            "hynet_in": ("IN", {"model": {"norm": "instance"}}),
            # The authors' form of BN has no affine parameters, thresholds or biases; nor has our IN.
            "hynet_bn_alone": ("BN, all else kept", {"model": {"norm": "batch", "around": "hynet"}}),
            "hynet_in_alone": ("IN, all else kept", {"model": {"norm": "instance", "around": "hynet"}}),
        },
    ),
    "hard_bn": _with_loss_of(HARDNET, "Hard+BN", "batch"),
    "hard_frn": _with_loss_of(HARDNET, "Hard+FRN", "frn"),
    "sos_bn": _with_loss_of(SOSNET, "SOSNet+BN", "batch"),
    "sos_frn": _with_loss_of(SOSNET, "SOSNet+FRN", "frn"),
    "hynet_mixed": replace(_ON_D, label="HyNet+: L_A", loss=part("mixed_hinge", margin=1.0)),
    "hynet_stacked": replace(
        _ON_D,
        label="HyNet+: L_B",
        loss=part("stacked_hinge", alpha=2.0, similarity_margin=0.9, distance_margin=1.2),
    ),
    "hynet_sosr": replace(HYNET, label="HyNet+SOSR+", regularizers=(_R_L2, _SOSR)),
    "rung_adam": replace(SOSNET, label="… Adam", **_ADAM),
    "rung_hinge": _HINGE,
    "rung_hybrid": replace(hybrid(_HINGE), label="… s_H, margin 1.2"),
    "rung_summed": replace(HYNET, label="… summed", **SUMMED),
}
# Between the first rung and the second: SOSNet with HyNet's network and BN, and then with FRN. Before
# the last: HyNet+ without R_L2, and so without SOSR, and then HyNet+.
LADDER = (
    "sosnet_aug",
    "rung_adam",
    "sos_bn",
    "sos_frn",
    "rung_hinge",
    "rung_hybrid",
    "hynet_no_norm",
    "hynet_aug",
    "rung_summed",
)
# α and margin of Figure 5(a), by the runs' key. The paper's text does not state its grid. This is a
# cross through its best cell: α and margin vary one at a time. All train at HyNet's rate, since Z keeps
# the gradient's scale.
_AT = ((0.0, 1.2), (1.0, 1.2), (3.0, 1.2), (math.inf, 1.2), (2.0, 0.1), (2.0, 0.4), (2.0, 0.8))
_OTHERS = {f"grid_{alpha:g}_{margin:g}": (alpha, margin) for alpha, margin in _AT}
GRID = {**_OTHERS, "hynet_aug": (2.0, 1.2)}
VARIANTS = {
    **SEARCHED,
    **{key: _hybrid(alpha, margin, f"α = {alpha:g}") for key, (alpha, margin) in _OTHERS.items()},
}
# `Runs` with HyNet's variants and the searches that give them their rates.
hynet_runs = partial(Runs, recipes=VARIANTS, searched=dict.fromkeys(_OTHERS, "hynet_aug"))


def best_margin(similarity: str) -> str:
    """Return the key of a similarity's runs at its best margin: the one whose search has the lowest
    FPR95 at its best rate, or the largest if they tie. The quick searches decide for every profile, so
    that all profiles have the same margin.

    Raises:
        NoSearch: one of the searches is not on record.
    """
    keys = reversed(MARGINS[similarity].values())
    study = open_study()
    return min(keys, key=lambda key: min(searched_fpr95(study, key).values()))


# The methods that a claim on Table 1 compares column by column run on the grid's train sets; other
# baselines run on the first set.
_COMPARED = ("hardnet_aug", "doap_aug", "sosnet_aug", "hynet_aug")
table1 = several(
    hynet_runs(_COMPARED, sets="grid", handcrafted=("sift",)),
    hynet_runs(("tfeat_m_aug", "l2net_aug")),
)
table5 = hynet_runs(
    ("hardnet_aug", "sosnet_aug", "hynet_aug", "hynet_sosr"), sets="grid", handcrafted=("sift",)
)


def table3(study: Study) -> list[Job]:
    """Jobs of HyNet's Table 3, each row at its own rate: on the first train set with the table seeds, on
    HPatches with the grid seeds. Further rows: the losses of HardNet and SOSNet with BN, from which its
    text counts FRN's gains, and BN and IN with all else kept.

    Raises:
        NoSearch: the search of a margin is not on record.
    """
    # `evening` has time for the paper's rows only.
    alone = () if study.profile.name == "evening" else ("hynet_bn_alone", "hynet_in_alone")
    names = (
        *("hynet_no_norm", "hynet_aug", *map(best_margin, MARGINS), "hynet_bn", "hynet_in", *alone),
        *("hard_bn", "hard_frn", "sos_bn", "sos_frn"),
    )
    # The paper does not state its split; neither does TCDesc's.
    tested, grid = [study.source.homographies.test_set(HPATCHES_SPLIT)], study.grid_seeds
    jobs = hynet_runs(names)(study)
    return [measured(job, "hpatches", tested) if job.seed in grid else job for job in jobs]


# Figures 4 and 6: HPatches' test set "a".
figure4 = hynet_runs(("l2net_aug", *_COMPARED, "hynet_sosr"), handcrafted=("sift",), hpatches="a")
# One record: descent directions of the four measures, together with Eq. 3; and gradient magnitudes of s,
# d and s_H by the angle (Figures 2(b) and 5(b)).
figure1 = similarities = Runs(computations={"similarities": "Gradients of the measures"})
# The same record, and triplets in training batches of two methods, which the figure calls HardNet and
# SOSNet.
figure2 = several(similarities, hynet_runs(("hardnet_aug", "sosnet_aug"), probes=("triplets_in_batch",)))
# Layers of HyNet and L2-Net.
figure3 = Runs(computations={"architecture": "Layers of HyNet and L2-Net"})
# The runs that show a case of `lib.theory.loss_shapes` in a trained network, by the case's key.
MEASURED = {
    "hinge_1": "hardnet_aug",
    "dsm": "dsm_aug",
    "aht": "adasample_aug_gen",
    "squared_hinge": "sosnet_aug",
    "hynet": "hynet_aug",
    "mixed_hinge": "hynet_mixed",
    "stacked_hinge": "hynet_stacked",
}
# Each triplet loss's gradient magnitude by the angle, in theory and in trained networks (one seed).
gradient_magnitudes = hynet_runs(
    MEASURED.values(),
    "grid",
    1,
    probes=("gradient_magnitudes",),
    computations={"loss_shapes": "Pull and push of each loss"},
)
# The label by which the run of this option (one of `OPTIONS`) is found.
AT_ONE_RATE = "HyNet+: without R_L2, same rate"
_SAME_RATE = {"hynet_aug": replace(HYNET, label=AT_ONE_RATE, regularizers=())}
# How orthogonal gradients are to feature maps, with FRN, BN and IN; and how changes of exposure affect
# HyNet+, HyNet+ without R_L2 at its own rate, and without it at HyNet+'s. Both with the table seeds.
norms = several(
    hynet_runs(("hynet_aug", "hynet_bn", "hynet_in"), probes=("orthogonality",)),
    hynet_runs(("hynet_aug", "hynet_no_norm"), measures=("intensity_changes",)),
    Runs(_SAME_RATE, recipes=_SAME_RATE, measures=("intensity_changes",)),
)


def figure5(study: Study) -> list[Job]:
    """Jobs of HyNet's Figure 5, each record once: first (b), the record of `similarities`; (a), α and
    margin, with the grid seeds; (c), s_H, L_A and L_B, and also d and s alone at their best margins,
    with the table seeds."""
    names = ("hynet_aug", "hynet_mixed", "hynet_stacked", best_margin("d"), best_margin("s"))
    grid = hynet_runs(GRID, "grid", hpatches="a")
    runs = merged(several(grid, hynet_runs(names))(study), study)
    return [*similarities(study), *runs]


# From SOSNet+ to HyNet+ one choice at a time, each rung at its own rate, with the test seeds.
ladder = hynet_runs(LADDER, "test")
# Methods whose epoch is chosen. Each also runs at a constant rate, as in HyNet's code. That rate is the
# one searched under the profile's schedule, so the two schedules are not compared, only how much
# choosing the epoch flatters under each.
CHOSEN = ("hardnet_aug", "sosnet_aug", "hynet_aug")
_CONSTANT = {
    f"{name}_constant": replace(find(name), label=f"{find(name).label}, constant rate")
    for name in CHOSEN
}
_epochs = several(
    Runs(CHOSEN, measures=("fpr95_by_stage",)),
    Runs(
        _CONSTANT,
        recipes=_CONSTANT,
        searched={f"{name}_constant": name for name in CHOSEN},
        changes={"schedule": part("constant")},
        measures=("fpr95_by_stage",),
    ),
)


def epochs(study: Study) -> list[Job]:
    """Runs that measure FPR95 on all pairs with the weights of each epoch, on the first train set with
    the table seeds. HyNet's code keeps the epoch that is best on the test sets."""
    jobs = []
    for job in _epochs(study):
        count = study.profile.budget_for(job.recipe).epochs
        kept = tuple(epoch / count for epoch in range(count + 1))
        jobs.append(replace(job, overrides={"stages": kept}))
    return jobs


_WITHOUT_Z = hybrid(HYNET, z=1.0)
# Choices that the paper leaves open or that its code makes differently.
OPTIONS = {
    "hynet_aug": {
        "not divided by Z": {"distance": _WITHOUT_Z.distance, "negatives": _WITHOUT_Z.negatives},
        "summed": SUMMED,
        "negatives across": {"negatives": {"scope": "across"}},
        "dropout 0.1": {"model": {"dropout": 0.1}},
        # Changes of Table 3 and the ladder, here at one rate; there each side has its own.
        "without R_L2": _WITHOUT,
        "a tenth of R_L2's weight": {
            "regularizers": (replace_options(_R_L2, weight=_R_L2.options["weight"] / 10),)
        },
        "d in place of s_H": {"distance": _ON_D.distance, "negatives": _ON_D.negatives},
        "a rate of 0.005": {"optimizer": {"lr": 0.005}},
        "eight symmetries alike": {"augment": TURNED},
        "points shuffled": {"points": part("shuffled")},
    },
    "sosnet_aug": {
        "margin 1.2": {"loss": {"margin": 1.2}},
        "neighbours symmetrised": {"regularizers": (replace_options(_SOSR, symmetric=True),)},
        "neighbours across the sets": {"regularizers": (replace_options(_SOSR, across=True),)},
    },
}
