"""Which records the artefacts on scenes need: HyNet's Tables 2 and 4, and DSM's Table 2.

The runs are those of the papers' other tables and of DSM's Figure 5, measured on more sets.
"""

from lib.experiments import dsm, hynet
from lib.experiments.rows import handcrafted_job
from lib.experiments.whole_images import on_images, united_jobs
from lib.study.jobs import Job
from lib.study.open import Study

# Kinds of whole images, and the modules of `lib.evaluation` that measure on them.
ETH, IMC, LANDMARKS = "eth", "imc", "landmarks"
MEASURES = {ETH: "sfm", IMC: "imc", LANDMARKS: "retrieval"}
COMPARED = ("hardnet_aug", "sosnet_aug", "hynet_aug")
RETRIEVING = ("hardnet_aug", "dsm_aug")


def _hynets(study: Study, kind: str) -> list[Job]:
    trained = hynet.hynet_jobs(study, COMPARED, study.table_seeds)
    return on_images(study, [handcrafted_job(study, "sift"), *trained], kind, MEASURES[kind])


def hynet_table2(study: Study) -> list[Job]:
    """HyNet's Table 2, its rows on DoG keypoints, on the first train set with the seeds of a table."""
    return _hynets(study, ETH)


def hynet_table4(study: Study) -> list[Job]:
    """HyNet's Table 4, and SIFT, on the first train set with the seeds of a table."""
    return _hynets(study, IMC)


def dsm_table2(study: Study) -> list[Job]:
    """DSM's Table 2, likewise; its last rows are trained with two collections."""
    trained = [*dsm.dsm_jobs(study, RETRIEVING, study.table_seeds), *united_jobs(study)]
    jobs = [handcrafted_job(study, "rootsift"), *trained]
    return on_images(study, jobs, LANDMARKS, MEASURES[LANDMARKS])
