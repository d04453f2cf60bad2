"""DSM (Zhang and Rusinkiewicz): which records each of its tables and figures needs."""

from functools import partial

from lib.recipes import RECIPES, TURNED, Recipe, part
from lib.study.artefacts.rows import Runs, probed, several, variants
from lib.study.jobs import Job
from lib.study.open import Study

KINDS = ("real", "binary")
DSM = {"real": "dsm_aug", "binary": "dsm_binary_aug"}
BITS = RECIPES["dsm_binary_aug"].distance.options["length"]
# Figure 2's margins, of Euclidean distances and in bits, from left to right, and the key of their runs;
# the paper's best are 0.375 and 32. With the largest no loss is ever cut off: all triplets weigh 1.
MARGINS = {
    "real": {m: f"real_margin_{m:g}" for m in (0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0)},
    "binary": {bits: f"binary_margin_{bits}" for bits in (8, 16, 32, 48, 64, 128, 256)},
}


def _variants(kind: str, unit: str, scale: float) -> dict[str, Recipe]:
    """DSM with another loss, all else kept.

    Args:
        kind: of `KINDS`; begins the names.
        unit: stands behind a static margin.
        scale: what a margin of 1 of the unit is as a distance, 0 to 2.
    """
    base = RECIPES[DSM[kind]]
    # The PDF of one distance is looked up at the distance of the codes, as the difference's is.
    codes = {"distance": base.distance} if kind == "binary" else {}
    gaussian = part("cdf", form="gaussian", momentum=base.loss.options["momentum"])
    losses = {
        key: (f"hinge, margin {margin:g}{unit}", part("hinge", margin=scale * margin))
        for margin, key in MARGINS[kind].items()
    }
    losses |= {
        f"{kind}_softplus": ("softplus", part("softplus", beta=1.0)),
        f"{kind}_hardest_eighth": ("hardest 1/8", part("hardest_fraction", fraction=1 / 8)),
        f"{kind}_hardest_quarter": ("hardest 1/4", part("hardest_fraction", fraction=1 / 4)),
        f"{kind}_pdf_positive": ("PDF of d_pos", {"of": "positive", **codes}),
        f"{kind}_pdf_negative": ("PDF of d_neg", {"of": "negative", **codes}),
        f"{kind}_pdf_gaussian": ("Gaussian of d_pos − d_neg", gaussian),
    }
    return variants(base, {name: (shown, {"loss": loss}) for name, (shown, loss) in losses.items()})


VARIANTS = _variants("real", "", 1.0) | _variants("binary", " bits", 2 / BITS)
# Those that have a learning rate of their own. `real_margin_1` has HardNet's loss and DSM's setting.
_OWN_RATE = (
    *("real_margin_2", "real_margin_1", "binary_margin_256"),
    *(f"{kind}_{loss}" for kind in KINDS for loss in ("softplus", "hardest_eighth", "hardest_quarter")),
)
SEARCHED = {name: VARIANTS[name] for name in _OWN_RATE}
# The search whose rate others take: a margin that of the largest, a PDF that of DSM.
_LARGEST = {"real": "real_margin_2", "binary": "binary_margin_256"}
SEARCH_OF = {
    name: (DSM if "_pdf_" in name else _LARGEST)[name.partition("_")[0]]
    for name in VARIANTS.keys() - SEARCHED.keys()
}

# Runs of variants and recipes.
dsm_runs = partial(Runs, recipes=VARIANTS, searched=SEARCH_OF)
# What a claim on Table 1 compares, on as many train sets as tables have and with seeds; other baselines
# on the first set; real-valued ones by their signs too.
_COMPARED = (
    *("dsm_aug", "hardnet_aug", "doap_aug", "real_margin_1"),
    *("dsm_binary_aug", "doap_binary_aug"),
)
_BASELINES = ("tfeat_m_aug", "l2net_aug", "cs_l2net_aug")
table1 = several(
    dsm_runs(handcrafted=("sift", "orb")),
    dsm_runs(_COMPARED, sets="grid", by_sign=("hardnet_aug",)),
    dsm_runs(_BASELINES, "grid", by_sign=_BASELINES[1:]),
)


def _with_dsm(*losses: str) -> dict[str, list[str]]:
    """By kind the names of its variants with these losses, and last that of DSM."""
    return {kind: [*(f"{kind}_{loss}" for loss in losses), DSM[kind]] for kind in KINDS}


TABLE3 = _with_dsm("softplus", "hardest_eighth", "hardest_quarter")


def table3(study: Study) -> list[Job]:
    """DSM's Table 3, each method at its own rate, on the first train set with the seeds of a table; and
    ORB's FPR95, beside which binary descriptors show whether they converged."""
    # An evening's time is for the real-valued rows alone.
    kinds = KINDS[:1] if study.profile.name == "evening" else KINDS
    trained = dsm_runs([name for kind in kinds for name in TABLE3[kind]], hpatches="full")
    return several(trained, Runs(handcrafted=("orb",) if "binary" in kinds else ()))(study)


# All at DSM's rate; and what the weights of the table's forms are where all triplets are about equally
# hard (Sec. 4.2).
_PDFS = _with_dsm("pdf_positive", "pdf_negative", "pdf_gaussian")
table4 = several(
    dsm_runs([*_PDFS["real"], *_PDFS["binary"]], "grid", hpatches="full"),
    Runs(computations={"narrow_weights": "DSM's weights at a small variance"}),
)
# Static margins and DSM.
figure2 = dsm_runs([name for kind in KINDS for name in (*MARGINS[kind].values(), DSM[kind])], "grid")
# HardNet+, and one run of its loss in DSM's setting.
figure1 = several(
    dsm_runs(["hardnet_aug"], probes=("triplets_in_batch",)),
    dsm_runs(["real_margin_1"], most=1, probes=("triplets_in_batch",)),
)


def figure3(study: Study) -> list[Job]:
    """DSM's Figure 3: the runs of a table on the first train set, and the histogram of the first."""
    first, *others = dsm_runs(["dsm_aug"])(study)
    return [probed(first, "moving_histogram", [first.train_set]), *others]


FIGURE4_REAL = ("hardnet_aug", "real_margin_1", "doap_aug", "dsm_aug")
FIGURE4_BINARY = ("doap_binary_aug", "dsm_binary_aug")
# Real-valued ones that stand among the binary ones by their signs.
FIGURE4_SIGNS = ("l2net_aug", "hardnet_aug")
FIGURE4 = tuple(dict.fromkeys((*FIGURE4_REAL, *FIGURE4_SIGNS, *FIGURE4_BINARY)))
# HPatches' full split, real-valued descriptors and binary ones.
figure4 = dsm_runs(FIGURE4, handcrafted=("sift", "orb"), hpatches="full", by_sign=FIGURE4_SIGNS)
# What the paper leaves open, or its code has otherwise, and is most likely to matter.
OPTIONS = {
    "dsm_aug": {
        "momentum 0.01": {"loss": {"momentum": 0.01}},
        "32 bins": {"loss": {"bins": 32}},
        "interpolated lookup": {"loss": {"lookup": "interpolated"}},
        "dropout 0.3": {"model": {"dropout": 0.3}},
        "points drawn for each batch": {"points": None},
        "eight symmetries alike": {"augment": TURNED},
    }
}
