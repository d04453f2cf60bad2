"""DSM (Zhang and Rusinkiewicz): its Tables 1, 3 and 4.

Figure 2 and what the softness is worth are in `lib.study.report.papers.dsm_margins`, Figures 1, 3 and 4
in `…dsm_figures`, Figure 5 and Table 2 in `…dsm_images`. FPR95 is in percent; in Tables 3 and 4 it is
the mean over the two sets that are not trained on.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.statistics.intervals import Measured
from lib.study.artefacts.dsm import tested_on
from lib.study.claims.measured import OfClaim, fpr95_by_column, of_claims
from lib.study.open import Found, Study
from lib.study.printed import printed
from lib.study.report import frames, hpatches, phototour
from lib.study.report.changes import changes
from lib.study.report.phototour_figures import common_figure, common_rows


def claim_values(found: Sequence[Found], study: Study) -> OfClaim:
    """The values of a claim on Table 1, 3 or 4, as `lib.study.claims.measured.of_claims`.

    Args:
        found: records; those by their signs are methods of their own, without resamples.
        study: that they are of.
    """
    every = [*found, *frames.by_sign(found)]
    return of_claims(every, study.place.source.sets, tested_on(study))


def table1(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Table 1 beside ours, as `lib.study.report.phototour.paper_beside_ours`; real-valued descriptors by
    their signs are rows of their own."""
    return phototour.verification("dsm", "table1", [*found, *frames.by_sign(found)], study)


def table1_common(found: Sequence[Found], study: Study) -> tuple[pd.DataFrame, dict[str, Measured]]:
    """The rows that both tables have, over the columns that all of ours have, as
    `lib.study.report.phototour_figures.common_rows`, with the `kind` of descriptor; and ours, by key."""
    values = fpr95_by_column([*found, *frames.by_sign(found)], study.place.source.sets)
    common = common_rows(printed("dsm", "table1"), values)
    bits = common.index.get_level_values("key").str.contains("binary|_signs$|^orb$")
    return common.assign(kind=np.where(bits, "binary", "real-valued")), values


def table1_figure(found: Sequence[Found], study: Study) -> Figure:
    """The rows of `table1_common`, the paper's mean FPR95 and ours side by side; colour and marker tell
    real-valued descriptors from binary ones."""
    return common_figure(*table1_common(found, study), study.where, "kind")


def loss_alone(found: Sequence[Found], study: Study) -> pd.DataFrame:
    """What of the change from HardNet+ to DSM+ is the setting's and what the loss's, as
    `lib.study.report.changes.changes`."""
    steps = {
        "setting, HardNet's loss kept": ("real_margin_1", "hardnet_aug"),
        "loss, DSM's setting kept": ("dsm_aug", "real_margin_1"),
        "both": ("dsm_aug", "hardnet_aug"),
    }
    named = {name for pair in steps.values() for name in pair}
    of = fpr95_by_column([r for r in found if r.job.name in named], study.place.source.sets)
    return changes(of, steps)


def ablation(table: str, found: Sequence[Found], study: Study) -> pd.DataFrame:
    """Table 3 or 4 ("table3", "table4") as `lib.study.report.hpatches.paper_beside_ours`."""
    fpr95 = phototour.by_column(found, study.place.source.sets)["Mean"]
    return hpatches.paper_beside_ours(printed("dsm", table), found, fpr95)


def small_variance(record: Found) -> pd.DataFrame:
    """The weights of triplets that are about equally hard, by form of the CDF.

    Args:
        record: of `lib.theory.narrow_weights`.

    Returns:
        A row a form and σ; columns `CDF`, `σ (bins)`, the mean weight `from` and `to` over the places
        between two nodes, and the standard deviation over the mean, in percent, `spread`, at most.
    """
    probe = record.arrays
    tables = []
    for form in ("floor", "interpolated", "gaussian"):
        mean, spread = probe[f"mean_{form}"], 100 * probe[f"spread_{form}"].max(axis=1)
        ends = {"from": mean.min(axis=1), "to": mean.max(axis=1), "spread": spread}
        tables.append(pd.DataFrame({"CDF": form, "σ (bins)": probe["deviation"], **ends}))
    return pd.concat(tables, ignore_index=True)


def small_variance_values(record: Found) -> dict[str, np.ndarray]:
    """The values of the claims on it: by σ, of the loss as the paper has it, the spread in percent at
    each place between two nodes."""
    probe = record.arrays
    by_deviation = dict(zip(probe["deviation"], 100 * probe["spread_floor"], strict=True))
    return {"spread_one_bin": by_deviation[1.0], "spread_hundredth_bin": by_deviation[0.01]}
