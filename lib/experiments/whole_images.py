"""Which records the artefacts on whole images need: DSM's Figure 5, TCDesc's Figure 5 and Table VI.

No network is trained for them: the runs are those of the papers' other tables, measured on more sets.
"""

from collections.abc import Iterable
from dataclasses import replace

from lib.experiments import dsm, tcdesc
from lib.experiments.rows import by_sign, handcrafted_job, on
from lib.study.jobs import Job
from lib.study.open import Study

OXFORD, W1BS = "oxford_affine", "w1bs"


def image_sets(study: Study, kind: str) -> list[str]:
    """The sets of a kind that a study has: its own, and real ones where it was given some."""
    return [sets.name(kind) for sets in study.place.source.whole_images if kind in sets.kinds]


def _measured(study: Study, jobs: Iterable[Job], kind: str) -> list[Job]:
    wanted = on((kind,), image_sets(study, kind))
    return [replace(job, measures=(*job.measures, *wanted)) for job in jobs]


def dsm_figure5(study: Study) -> list[Job]:
    """DSM's Figure 5: the rows of its Figure 4 on the Oxford Affine set, real-valued and binary."""
    names = dict.fromkeys((*dsm.FIGURE4_REAL, *dsm.FIGURE4_SIGNS, *dsm.FIGURE4_BINARY))
    handcrafted = (handcrafted_job(study, name) for name in ("sift", "orb"))
    jobs = _measured(study, [*handcrafted, *dsm.dsm_jobs(study, names, study.table_seeds)], OXFORD)
    return [by_sign(job, OXFORD) if job.name in dsm.FIGURE4_SIGNS else job for job in jobs]


FIGURE5_BESIDE = ("hardnet_aug", "sosnet_aug", "dsm_aug")


def tcdesc_figure5(study: Study) -> list[Job]:
    """TCDesc's Figure 5: W1BS, on the first train set with the seeds of a table, and its curves."""
    names = (*FIGURE5_BESIDE, *tcdesc.METHODS)
    trained = tcdesc.tcdesc_jobs(study, names, study.table_seeds)
    jobs = _measured(study, [handcrafted_job(study, "sift"), *trained], W1BS)
    curves = on((W1BS,), image_sets(study, W1BS))
    return [replace(job, probes=(*job.probes, *curves)) for job in jobs]


TABLE6_BESIDE = ("hardnet", "hardnet_aug", "sosnet_aug", "dsm_aug")


def tcdesc_table6(study: Study) -> list[Job]:
    """TCDesc's Table VI: the Oxford Affine set, on the first train set with the seeds of a table."""
    names = (*TABLE6_BESIDE, *tcdesc.METHODS)
    return _measured(study, tcdesc.tcdesc_jobs(study, names, study.table_seeds), OXFORD)
