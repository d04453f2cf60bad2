"""The records that the artefacts on whole images need: DSM's Figure 5 and Table 2, TCDesc's Figure 5 and
Table VI, HyNet's Tables 2 and 4.

The runs are those of the papers' other tables, measured on more sets. The only networks trained for
these artefacts are those on two collections of patches, "++".
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib.recipes import find, part
from lib.study.artefacts.dsm import FIGURE4, FIGURE4_SIGNS, dsm_runs
from lib.study.artefacts.hynet import hynet_runs
from lib.study.artefacts.rows import Row, Runs, by_sign, measured, probed, published_jobs, several
from lib.study.artefacts.tcdesc import METHODS, tcdesc_runs
from lib.study.jobs import Job
from lib.study.open import Study

# Kinds of whole images. The modules of `lib.benchmarks` for the last three have other names.
OXFORD, W1BS = "oxford_affine", "w1bs"
ETH, IMC, LANDMARKS = "eth", "imc", "landmarks"
MEASURES = {ETH: "sfm", IMC: "imc", LANDMARKS: "retrieval"}
# By the key of the runs: the recipe whose settings and rate they take, and their label.
UNITED = {
    "hardnet_all": ("hardnet_aug", "HardNet++"),
    "dsm_all": ("dsm_aug", "DSM++"),
}


def image_sets(study: Study, kind: str) -> list[str]:
    """Return a study's sets of a kind: its own, and real ones where it was given some."""
    return [sets.name(kind) for sets in study.source.whole_images if kind in sets.kinds]


def measured_on(kind: str, *parts: Row) -> Row:
    """Return a row of all jobs of several rows, also measured on all sets of a kind by its module of
    `lib.benchmarks`."""
    return lambda study, **options: [
        measured(job, MEASURES.get(kind, kind), image_sets(study, kind))
        for job in several(*parts)(study, **options)
    ]


def united_jobs(study: Study) -> list[Job]:
    """Jobs of networks trained on UBC PhotoTour's patches and HPatches', with the table seeds; tested on
    neither."""
    recipes = {key: replace(find(name), label=label) for key, (name, label) in UNITED.items()}
    searched = {key: name for key, (name, _) in UNITED.items()}
    united = (study.source.united,)
    jobs = Runs(UNITED, sets=united, recipes=recipes, searched=searched)(study)
    return [replace(job, measures=(), probes=()) for job in jobs]


_figure5 = measured_on(OXFORD, dsm_runs(FIGURE4, handcrafted=("sift", "orb")), united_jobs)


def dsm_figure5(study: Study) -> list[Job]:
    """Jobs of DSM's Figure 5: the rows of its Figure 4 on the Oxford Affine set, real-valued and binary,
    and networks trained on two collections."""
    return [by_sign(job, OXFORD) if job.name in FIGURE4_SIGNS else job for job in _figure5(study)]


_W1BS = ("hardnet_aug", "sosnet_aug", "dsm_aug", *METHODS)
_tcdesc_figure5 = measured_on(W1BS, tcdesc_runs(_W1BS, handcrafted=("sift",)))


def tcdesc_figure5(study: Study) -> list[Job]:
    """Jobs of TCDesc's Figure 5: W1BS and its curves, on the first train set with the table seeds."""
    return [probed(job, "w1bs_curves", image_sets(study, W1BS)) for job in _tcdesc_figure5(study)]


# TCDesc's Table VI: the Oxford Affine set.
tcdesc_table6 = measured_on(OXFORD, tcdesc_runs(("hardnet", *_W1BS)))
_COMPARED = ("hardnet_aug", "sosnet_aug", "hynet_aug")


def hynet_table2(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Jobs of HyNet's Table 2: its rows on DoG keypoints, on the first train set with the table seeds.

    Released scenes may show what the study's photographs show. The study's networks are therefore
    measured on them only if trained on UBC PhotoTour; others come as checkpoints.

    Args:
        study: supplies the data.
        checkpoints: of networks that were trained elsewhere, as `rows.published_jobs` takes them.
    """
    source, scenes = study.source, image_sets(study, ETH)
    ours = () if source.own_images is None else source.own_images.names
    own = [name for name in scenes if source.name == "ubc" or name in ours]
    jobs = Runs(handcrafted=("sift",))(study)
    # The benchmark's own "SIFT" row is COLMAP's SIFT.
    jobs.append(Job("colmap_sift", "SIFT (COLMAP)", descriptor=part("colmap_sift")))
    jobs += [replace(job, measures=(), probes=()) for job in published_jobs(study, checkpoints)]
    jobs += hynet_runs(_COMPARED)(study)
    return [measured(job, MEASURES[ETH], own if job.recipe else scenes) for job in jobs]


# HyNet's Table 4, SIFT, and checkpoints, as `rows.published_jobs` takes them.
hynet_table4 = measured_on(IMC, hynet_runs(_COMPARED, handcrafted=("sift",)))
# DSM's Table 2; its last rows are trained on two collections.
dsm_table2 = measured_on(
    LANDMARKS, dsm_runs(("hardnet_aug", "dsm_aug"), handcrafted=("rootsift",)), united_jobs
)
