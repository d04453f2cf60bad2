"""Which records the artefacts on whole images need: DSM's Figure 5 and Table 2, TCDesc's Figure 5 and
Table VI, HyNet's Tables 2 and 4.

The runs are those of the papers' other tables, measured on more sets; networks are trained for them
only where that is with two collections of patches, "++".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lib.recipes import part
from lib.study.artefacts import dsm, hynet, tcdesc
from lib.study.artefacts.rows import (
    at_profile,
    by_sign,
    handcrafted_job,
    jobs_of,
    measured,
    probed,
    published_jobs,
)
from lib.study.jobs import Job
from lib.study.open import Study

# Kinds of whole images; of the last three the modules of `lib.benchmarks` have other names.
OXFORD, W1BS = "oxford_affine", "w1bs"
ETH, IMC, LANDMARKS = "eth", "imc", "landmarks"
MEASURES = {ETH: "sfm", IMC: "imc", LANDMARKS: "retrieval"}
# By key of their runs, whose recipe and rate they have, and what they are called.
UNITED: Mapping[str, tuple[str, str]] = {
    "hardnet_all": ("hardnet_aug", "HardNet++"),
    "dsm_all": ("dsm_aug", "DSM++"),
}


def image_sets(study: Study, kind: str) -> list[str]:
    """The sets of a kind that a study has: its own, and real ones where it was given some."""
    return [sets.name(kind) for sets in study.place.source.whole_images if kind in sets.kinds]


def on_images(study: Study, jobs: Iterable[Job], kind: str) -> list[Job]:
    """Jobs that are measured on all sets of a kind, too, by its module of `lib.benchmarks`."""
    return [measured(job, MEASURES.get(kind, kind), image_sets(study, kind)) for job in jobs]


def united_jobs(study: Study) -> list[Job]:
    """Networks trained with UBC PhotoTour's patches and HPatches', with the seeds of a table; tested on
    neither."""
    recipes = {
        key: replace(at_profile(study, name), label=label) for key, (name, label) in UNITED.items()
    }
    jobs = jobs_of(study, recipes, study.table_seeds, [study.place.source.united])
    return [replace(job, measures=(), probes=()) for job in jobs]


def dsm_figure5(study: Study) -> list[Job]:
    """DSM's Figure 5: the rows of its Figure 4 on the Oxford Affine set, real-valued and binary, and
    those trained with two collections."""
    names = dict.fromkeys((*dsm.FIGURE4_REAL, *dsm.FIGURE4_SIGNS, *dsm.FIGURE4_BINARY))
    handcrafted = (handcrafted_job(study, name) for name in ("sift", "orb"))
    trained = [*dsm.dsm_jobs(study, names, study.table_seeds), *united_jobs(study)]
    jobs = on_images(study, [*handcrafted, *trained], OXFORD)
    return [by_sign(job, OXFORD) if job.name in dsm.FIGURE4_SIGNS else job for job in jobs]


FIGURE5_BESIDE = ("hardnet_aug", "sosnet_aug", "dsm_aug")


def tcdesc_figure5(study: Study) -> list[Job]:
    """TCDesc's Figure 5: W1BS, on the first train set with the seeds of a table, and its curves."""
    names = (*FIGURE5_BESIDE, *tcdesc.METHODS)
    trained = tcdesc.tcdesc_jobs(study, names, study.table_seeds)
    jobs = on_images(study, [handcrafted_job(study, "sift"), *trained], W1BS)
    return [probed(job, "w1bs_curves", image_sets(study, W1BS)) for job in jobs]


TABLE6_BESIDE = ("hardnet", "hardnet_aug", "sosnet_aug", "dsm_aug")


def tcdesc_table6(study: Study) -> list[Job]:
    """TCDesc's Table VI: the Oxford Affine set, on the first train set with the seeds of a table."""
    names = (*TABLE6_BESIDE, *tcdesc.METHODS)
    return on_images(study, tcdesc.tcdesc_jobs(study, names, study.table_seeds), OXFORD)


COMPARED = ("hardnet_aug", "sosnet_aug", "hynet_aug")
RETRIEVING = ("hardnet_aug", "dsm_aug")


# The benchmark's own row "SIFT" is COLMAP's.
COLMAP_SIFT = Job("colmap_sift", "SIFT (COLMAP)", descriptor=part("colmap_sift"))


def hynet_table2(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """HyNet's Table 2, its rows on DoG keypoints, on the first train set with the seeds of a table.

    On released scenes, which may show what the study's photographs do, its networks are measured where
    they were trained on UBC PhotoTour; others come as checkpoints.

    Args:
        study: whose data it takes.
        checkpoints: of networks that were trained elsewhere, as `published_jobs` takes them.
    """
    source, scenes = study.place.source, image_sets(study, ETH)
    ours = () if source.own_images is None else source.own_images.names
    own = [name for name in scenes if source.real is not None or name in ours]
    given = [replace(job, measures=(), probes=()) for job in published_jobs(study, checkpoints)]
    trained = hynet.hynet_jobs(study, COMPARED, study.table_seeds)
    everywhere = [handcrafted_job(study, "sift"), COLMAP_SIFT, *given]
    return [measured(job, MEASURES[ETH], scenes) for job in everywhere] + [
        measured(job, MEASURES[ETH], own) for job in trained
    ]


def hynet_table4(study: Study) -> list[Job]:
    """HyNet's Table 4, and SIFT, on the first train set with the seeds of a table."""
    trained = hynet.hynet_jobs(study, COMPARED, study.table_seeds)
    return on_images(study, [handcrafted_job(study, "sift"), *trained], IMC)


def dsm_table2(study: Study) -> list[Job]:
    """DSM's Table 2, likewise; its last rows are trained with two collections."""
    trained = [*dsm.dsm_jobs(study, RETRIEVING, study.table_seeds), *united_jobs(study)]
    return on_images(study, [handcrafted_job(study, "rootsift"), *trained], LANDMARKS)
