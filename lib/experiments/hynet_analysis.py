"""HyNet's analysis of gradients and norms (Sec. 2 and 3): which records each of its artefacts needs."""

from lib.experiments.hynet import hynet_jobs, similarities
from lib.experiments.rows import computation_job, measured, probed
from lib.study.jobs import Job
from lib.study.open import Study


def figure1(study: Study) -> list[Job]:
    """HyNet's Figure 1: descent directions of the four measures, with Eq. 3 beside them."""
    return [computation_job("descent_directions", "Descent directions")]


# The paper's figure calls them HardNet and SOSNet.
FIGURE2 = ("hardnet_aug", "sosnet_aug")


def figure2(study: Study) -> list[Job]:
    """HyNet's Figure 2: the magnitudes of `similarities`; and triplets of the two methods in batches of
    their training, with the seeds of a table."""
    runs = hynet_jobs(study, FIGURE2, study.table_seeds)
    return [*similarities(study), *(probed(job, "triplets_in_batch") for job in runs)]


def figure3(study: Study) -> list[Job]:
    """HyNet's Figure 3: its layers and L2-Net's."""
    return [computation_job("architecture", "Layers of HyNet and L2-Net")]


# By the key of a case of `lib.theory.loss_shapes`, the runs that show it in a trained network.
MEASURED = {
    "hinge_1": "hardnet_aug",
    "dsm": "dsm_aug",
    "aht": "adasample_aug_gen",
    "squared_hinge": "sosnet_aug",
    "hynet": "hynet_aug",
    "mixed_hinge": "hynet_mixed",
    "stacked_hinge": "hynet_stacked",
}


def gradient_magnitudes(study: Study) -> list[Job]:
    """Each triplet loss's gradient magnitude by the angle; and that in trained networks, one seed."""
    runs = hynet_jobs(study, MEASURED.values(), study.grid_seeds[:1])
    computed = computation_job("gradient_magnitudes", "Gradient magnitudes of each loss")
    return [computed, *(probed(job, "gradient_magnitudes") for job in runs)]


NORMS, INTENSITY = ("hynet_aug", "hynet_bn", "hynet_in"), ("hynet_aug", "hynet_no_norm")


def norms(study: Study) -> list[Job]:
    """How orthogonal gradients are to feature maps, with FRN, BN and IN; and what changes of exposure do
    to HyNet with and without R_L2, both with the seeds of a table."""
    probes = (probed(job, "orthogonality") for job in hynet_jobs(study, NORMS, study.table_seeds))
    exposed = hynet_jobs(study, INTENSITY, study.table_seeds)
    return [*probes, *(measured(job, "intensity_changes") for job in exposed)]
