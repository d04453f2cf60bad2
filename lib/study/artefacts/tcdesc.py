"""TCDesc (Pan et al.): the records that its tables and figures need.

Under `paper`, runs of TCDesc and of the methods compared with it are as long as the authors', three
times DSM's. At other sizes all runs have the same number of steps, and at `quick` these have larger
batches than others (`Profile.larger`).
"""

from dataclasses import replace
from functools import partial

from lib.recipes import ADASAMPLE_TC, DSM, HYNET_TC, SOSNET, TCDESC_DSM, TCDESC_HN, part
from lib.study.artefacts.rows import Runs, changed, handcrafted_job, measured, probed, several, variants
from lib.study.artefacts.together import ALIKE, EQUAL, on_equal_footing
from lib.study.jobs import Job
from lib.study.open import Study

# TCDesc's base methods, in its setting and as long: these runs lack nothing but the topology.
LONG = {
    "hardnet_long": replace(TCDESC_HN, label="HardNet+, as long", positive=part("pair")),
    "dsm_long": replace(TCDESC_DSM, label="DSM+, as long", positive=part("pair")),
}
METHODS = ("hardnet_long", "tcdesc_hn_aug", "dsm_long", "tcdesc_dsm_aug")

# Keys of runs on equal footing, by loss and optimiser: without topology; with d⁺ = (1 − λ) d_E, which is
# what λ does without topology; and with both.
CONTROLLED = {
    "HardNet+, SGD": ("equal_hardnet_aug_undamped", "tc_control_hn", "equal_tcdesc_hn_aug"),
    "DSM+, SGD": ("dsm_long", "tc_control", "tcdesc_dsm_aug"),
    "HardNet+, Adam": ("equal_hardnet_aug_adam", "tc_control_hn_adam", "equal_tcdesc_hn_aug_adam"),
    "DSM+, Adam": ("equal_dsm_aug_adam", "tc_control_adam", "equal_tcdesc_dsm_aug_adam"),
}
_CONTROLS = {
    control: changed(
        ALIKE[key], f"{ALIKE[key].label}: no topology{ending}", {"positive": {"weights": "none"}}
    )
    for (_, control, key), ending in zip(CONTROLLED.values(), ("", "", ", Adam", ", Adam"), strict=True)
}

# Recipes with a learning rate of their own. Table II has SOSNet without flips and turns. Topology on
# other losses has the setting, and so the batches, of TCDesc's own rows.
SEARCHED = {
    **LONG,
    **_CONTROLS,
    "sosnet": replace(SOSNET, label="SOSNet", augment=None),
    "adasample_tc": on_equal_footing(ADASAMPLE_TC),
    "hynet_tc": on_equal_footing(HYNET_TC),
}

# k and γ of Table I by the runs' key, in the order of its rows; k = 16, γ = 1 are TCDesc-DSM+'s own.
GRID = {
    "tcdesc_dsm_aug" if (k, gamma) == (16, 1.0) else f"tc_{k}_{gamma:g}": (k, gamma)
    for gamma in (0.5, 1.0, 2.0)
    for k in (16, 32, 64)
}
# Weights of Tables III and IV by t of Eq. 3, and the hard weight of Eq. 12, with t = 1000.
_WEIGHTS = {"tc_hard": ("hard weight", {"positive": {"weights": "heat", "t": 1000.0}})} | {
    f"tc_heat_{t:g}": (f"t = {t:g}", {"positive": {"weights": "heat", "t": t}})
    for t in (0.1, 0.5, 1.0, 5.0, 10.0)
}
_FIXED = {
    f"tc_lambda_{lam:g}": (f"λ = {lam:g}", {"positive": {"lam": lam}})
    for lam in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
}
_VARIED = {
    key: (f"k = {k}, γ = {gamma:g}", {"positive": {"neighbours": k, "gamma": gamma}})
    for key, (k, gamma) in GRID.items()
    if key != "tcdesc_dsm_aug"
}
VARIANTS = {**SEARCHED, **variants(TCDESC_DSM, {**_VARIED, **_WEIGHTS, **_FIXED})}


# `Runs` with TCDesc's variants; those of TCDesc-DSM train at its rate.
_SEARCH_OF = dict.fromkeys(VARIANTS.keys() - SEARCHED.keys(), "tcdesc_dsm_aug")
tcdesc_runs = partial(Runs, recipes=VARIANTS, searched=_SEARCH_OF)


# Table I and Figure 3: k and γ, and DSM+ trained as long.
table1 = tcdesc_runs(("dsm_long", *GRID), "grid", hpatches="a")
# Tables III and IV: TCDesc-DSM+ and its control without topology, at a rate of its own, with the table
# seeds; topology weights with the grid seeds.
table3 = several(
    tcdesc_runs(("tcdesc_dsm_aug", "tc_control"), hpatches="a"),
    tcdesc_runs(_WEIGHTS, "grid", hpatches="a"),
)
# Table V: fixed λ and the adaptive one.
table5 = tcdesc_runs(("tcdesc_dsm_aug", *_FIXED), "grid")


# The effect of topology itself, and that of its λ alone.
control = Runs(
    [key for keys in CONTROLLED.values() for key in keys],
    recipes={**ALIKE, **_CONTROLS},
    hpatches="a",
)


# Rows of Table II that other papers' tables run with the table seeds, and other rows.
TABLE2_SEEDED = ("hardnet", "hardnet_aug", "doap_aug", "dsm_aug")
TABLE2_BESIDE = ("l2net_aug", "cs_l2net_aug", "sosnet")


def table2(study: Study) -> list[Job]:
    """Jobs of TCDesc's Table II: compared methods with the table seeds, on the first train set or, where
    a grid has several seeds, on the grid's train sets; other rows on the first set."""
    sets = "grid" if len(study.grid_seeds) > 1 else "first"
    return several(
        tcdesc_runs((*METHODS, *TABLE2_SEEDED), sets=sets, handcrafted=("sift",)),
        tcdesc_runs(TABLE2_BESIDE, "grid"),
    )(study)


# HPatches, with methods trained on the first train set with the table seeds.
FIGURE4 = ("hardnet_aug", "doap_aug", "sosnet_aug", *METHODS)
figure4 = tcdesc_runs(FIGURE4, handcrafted=("sift",), hpatches="a")
COMPARED = ("dsm_long", "tcdesc_dsm_aug")


def figure1(study: Study) -> list[Job]:
    """Jobs of TCDesc's Figure 1: DSM+ trained as long and TCDesc-DSM+, with the table seeds, and the
    neighbourhoods of their descriptors among points of the first test set."""
    jobs = tcdesc_runs(COMPARED)(study)
    return [probed(job, "neighbourhoods", job.test_sets[:1]) for job in jobs]


def image_sets(study: Study) -> list[str]:
    """Return the sets of images for Figure 2: the study's own, and real ones where it has them."""
    return [sets.images for sets in study.source.hpatches if sets.images]


def figure2(study: Study) -> list[Job]:
    """Jobs of TCDesc's Figure 2: matches on images of homography sequences, with SIFT on its own
    keypoints and on BRISK's, and the two networks on BRISK's."""
    sift = handcrafted_job(study, "sift")
    jobs = [sift, *tcdesc_runs(COMPARED)(study)]
    asked = [(job, "matches_on_brisk") for job in jobs] + [(sift, "matches_on_dog")]
    return [probed(job, probe, image_sets(study)) for job, probe in asked]


def overfitting(study: Study) -> list[Job]:
    """Runs that measure FPR95 on all pairs by stage of training, on the test sets and the train set."""
    jobs = tcdesc_runs(METHODS)(study)
    return [measured(job, "fpr95_by_stage", (*job.test_sets, job.train_set)) for job in jobs]


# By the loss to which topology is added: the recipe with topology and the one without.
TOPOLOGY_PAIRS = {
    "HardNet": ("tcdesc_hn_aug", "hardnet_long"),
    "DSM": ("tcdesc_dsm_aug", "dsm_long"),
    "AdaSample": ("adasample_tc", "equal_adasample_aug_gen"),
    "HyNet": ("hynet_tc", "equal_hynet_aug"),
}


# Each paper's loss, with topology and without.
other_losses = Runs(sum(TOPOLOGY_PAIRS.values(), ()), recipes={**EQUAL, **VARIANTS})


# Choices that the paper leaves open and that are most likely to matter.
_UNMIXED = part("unmixed", loss=DSM.loss, distance=DSM.distance)
OPTIONS = {
    "tcdesc_dsm_aug": {
        "mutual matches": {"positive": {"mutual": True}},
        "λ of the batch": {"positive": {"per": "batch"}},
        "neighbours detached": {"positive": {"detached": True}},
        "weights sum to one": {"positive": {"sum_to_one": True}},
        "ridge 0.01": {"positive": {"ridge": 0.01}},
        "CDF on the Euclidean difference": {"loss": _UNMIXED},
        "heat kernel, t = 1": {"positive": {"weights": "heat"}},
        "heat kernel on d²": {"positive": {"weights": "heat", "squared": True}},
    }
}
