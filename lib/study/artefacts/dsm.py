"""DSM (Zhang and Rusinkiewicz): the records that its tables and figures need."""

from functools import partial

from lib.recipes import RECIPES, TURNED, Recipe, part
from lib.study.artefacts.rows import Runs, probed, several, variants
from lib.study.jobs import Job
from lib.study.open import Study

KINDS = ("real", "binary")
DSM = {"real": "dsm_aug", "binary": "dsm_binary_aug"}
BITS = RECIPES["dsm_binary_aug"].distance.options["length"]
# Figure 2's margins from left to right, as Euclidean distances and in bits, with the keys of their runs.
# The paper's best are 0.375 and 32. The largest never cut a loss off: all triplets weigh 1.
MARGINS = {
    "real": {m: f"real_margin_{m:g}" for m in (0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0)},
    "binary": {bits: f"binary_margin_{bits}" for bits in (8, 16, 32, 48, 64, 128, 256)},
}


def _variants(kind: str, unit: str, scale: float) -> dict[str, Recipe]:
    """Return DSM with other losses, by name, all else kept.

    Args:
        kind: of `KINDS`; prefix of the names.
        unit: shown after a static margin.
        scale: a margin of 1 of the unit as a distance, 0 to 2.
    """
    base = RECIPES[DSM[kind]]
    # The PDF of a single distance is looked up at the codes' distance, as that of the difference is.
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
# Variants with a learning rate of their own. `real_margin_1` has HardNet's loss and DSM's setting.
_OWN_RATE = (
    *("real_margin_2", "real_margin_1", "binary_margin_256"),
    *(f"{kind}_{loss}" for kind in KINDS for loss in ("softplus", "hardest_eighth", "hardest_quarter")),
)
SEARCHED = {name: VARIANTS[name] for name in _OWN_RATE}
# The searches that give the others their rates: margins take the largest margin's, PDFs take DSM's.
_LARGEST = {"real": "real_margin_2", "binary": "binary_margin_256"}
SEARCH_OF = {
    name: (DSM if "_pdf_" in name else _LARGEST)[name.partition("_")[0]]
    for name in VARIANTS.keys() - SEARCHED.keys()
}

# `Runs` with DSM's variants and the searches that give them their rates.
dsm_runs = partial(Runs, recipes=VARIANTS, searched=SEARCH_OF)
# The methods that a claim on Table 1 compares run on the grid's train sets with the table seeds; other
# baselines run on the first set. Those in `by_sign` are also measured by their signs.
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
    """Return, by kind, the names of the variants with these losses, and last that of DSM."""
    return {kind: [*(f"{kind}_{loss}" for loss in losses), DSM[kind]] for kind in KINDS}


TABLE3 = _with_dsm("softplus", "hardest_eighth", "hardest_quarter")


def table3(study: Study) -> list[Job]:
    """Jobs of DSM's Table 3: each method at its own rate, on the first train set with the table seeds.
    ORB's FPR95 is added to show whether binary descriptors converged."""
    # `evening` has time for the real-valued rows only.
    kinds = KINDS[:1] if study.profile.name == "evening" else KINDS
    trained = dsm_runs([name for kind in kinds for name in TABLE3[kind]], hpatches="full")
    return several(trained, Runs(handcrafted=("orb",) if "binary" in kinds else ()))(study)


# All runs are at DSM's rate. The computation gives the weights of the table's forms where all triplets
# are about equally hard (Sec. 4.2).
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
    """Jobs of DSM's Figure 3: table seeds on the first train set, and the histogram of the first run."""
    first, *others = dsm_runs(["dsm_aug"])(study)
    return [probed(first, "moving_histogram", [first.train_set]), *others]


FIGURE4_REAL = ("hardnet_aug", "real_margin_1", "doap_aug", "dsm_aug")
FIGURE4_BINARY = ("doap_binary_aug", "dsm_binary_aug")
# Real-valued descriptors that are shown among the binary ones by their signs.
FIGURE4_SIGNS = ("l2net_aug", "hardnet_aug")
FIGURE4 = tuple(dict.fromkeys((*FIGURE4_REAL, *FIGURE4_SIGNS, *FIGURE4_BINARY)))
# Real-valued and binary descriptors on HPatches' full split.
figure4 = dsm_runs(FIGURE4, handcrafted=("sift", "orb"), hpatches="full", by_sign=FIGURE4_SIGNS)
# Choices that the paper leaves open or its code makes differently, and that are most likely to matter.
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
