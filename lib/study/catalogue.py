"""Every table and figure of the study: its notebook and the records it needs."""

from collections.abc import Callable
from dataclasses import dataclass

from lib.data.hpatches import RELEASE, TASKS
from lib.recipes import RECIPES
from lib.study.artefacts import adasample, dsm, hynet, tcdesc, together
from lib.study.artefacts import whole_images as images
from lib.study.artefacts.rows import option_runs, several
from lib.study.jobs import Job, Record, record_status
from lib.study.open import Study


@dataclass(frozen=True)
class Artefact:
    """A notebook and the jobs it needs.

    Attributes:
        jobs: returns the jobs that it needs in a study.
        extras: whether it is left out unless asked for.
        hpatches: whether it needs HPatches patches, which a folder of real data may lack.
        images: the kind of whole images that it needs (`lib.data.sources`), which may also be lacking;
            "" for none.
        longer: whether its runs are made at `evening` and longer profiles, but not at `quick`.
    """

    jobs: Callable[[Study], list[Job]]
    extras: bool = False
    hpatches: bool = False
    images: str = ""
    longer: bool = False

    def records(self, study: Study) -> list[Record]:
        """Return its jobs' records, in whatever state, from the folder that a study reads first."""
        return [record_status(job, study, study.reading[0]) for job in self.jobs(study)]

    def lacking(self, study: Study) -> str:
        """Say in words what a study lacks for the artefact; empty if nothing."""
        source = study.source
        if self.longer and study.profile.name == "quick":
            return "whose runs are made at longer profiles"
        if self.hpatches and source.own_hpatches is None:
            return f"since {study.data} holds no {RELEASE} with {TASKS}"
        kinds = source.own_images.kinds if source.own_images else ()
        return "" if self.images in ("", *kinds) else f"since {study.data} holds no {self.images}"


# Every recipe with a learning rate search of its own.
SEARCHED = {
    **RECIPES,
    **adasample.SEARCHED,
    **dsm.SEARCHED,
    **hynet.SEARCHED,
    **tcdesc.SEARCHED,
    **together.SEARCHED,
}

# By the path of the notebook below notebooks/, without the extension.
ARTEFACTS = {
    # Executed first, since it takes longest; the others fill the other cores meanwhile.
    "use/sparse_model": Artefact(several()),
    "data/embedded": Artefact(together.embedded),
    "adasample/table1": Artefact(adasample.table1),
    "study/learning_rate": Artefact(several()),
    "study/stated_settings": Artefact(adasample.stated_settings, longer=True),
    "adasample/table3": Artefact(several(adasample.table3, adasample.table3_shared)),
    "adasample/ladder": Artefact(adasample.ladder, extras=True),
    "adasample/control": Artefact(adasample.control, extras=True, longer=True),
    "adasample/options": Artefact(option_runs(adasample.OPTIONS), extras=True),
    "adasample/figure3": Artefact(adasample.figure3),
    "adasample/figure1": Artefact(adasample.figure1),
    "adasample/theory": Artefact(adasample.theory),
    "study/precision": Artefact(adasample.precision, extras=True),
    "data/hpatches": Artefact(together.hpatches, hpatches=True),
    "data/scenes": Artefact(together.scenes),
    "data/ranking": Artefact(together.ranking, hpatches=True),
    "audit/print": Artefact(several()),
    "adasample/figure2": Artefact(adasample.figure2, hpatches=True),
    "adasample/table2": Artefact(adasample.table2, hpatches=True),
    "dsm/table1": Artefact(dsm.table1),
    "dsm/table3": Artefact(dsm.table3, hpatches=True),
    "dsm/table4": Artefact(dsm.table4, hpatches=True),
    "dsm/figure1": Artefact(dsm.figure1),
    "dsm/figure2": Artefact(dsm.figure2),
    "dsm/figure3": Artefact(dsm.figure3),
    "dsm/figure4": Artefact(dsm.figure4, hpatches=True),
    "dsm/options": Artefact(option_runs(dsm.OPTIONS), extras=True),
    "dsm/figure5": Artefact(images.dsm_figure5, images=images.OXFORD),
    "dsm/table2": Artefact(images.dsm_table2, images=images.LANDMARKS),
    "hynet/table1": Artefact(hynet.table1),
    "hynet/table3": Artefact(hynet.table3, hpatches=True),
    "hynet/table5": Artefact(hynet.table5),
    "hynet/figure4": Artefact(hynet.figure4, hpatches=True),
    "hynet/figure5": Artefact(hynet.figure5, hpatches=True),
    "hynet/epochs": Artefact(hynet.epochs),
    "hynet/control": Artefact(hynet.control, extras=True, longer=True),
    "hynet/ladder": Artefact(hynet.ladder, extras=True),
    "hynet/options": Artefact(option_runs(hynet.OPTIONS), extras=True),
    "hynet/figure1": Artefact(hynet.figure1),
    "hynet/figure2": Artefact(hynet.figure2),
    "hynet/figure3": Artefact(hynet.figure3),
    "hynet/gradient_magnitudes": Artefact(hynet.gradient_magnitudes),
    "hynet/norms": Artefact(hynet.norms),
    "hynet/table2": Artefact(images.hynet_table2, images=images.ETH),
    "hynet/table4": Artefact(images.hynet_table4, images=images.IMC),
    "tcdesc/figure1": Artefact(tcdesc.figure1),
    "tcdesc/figure2": Artefact(tcdesc.figure2),
    "tcdesc/table1": Artefact(tcdesc.table1, hpatches=True),
    "tcdesc/table2": Artefact(tcdesc.table2),
    "tcdesc/table3": Artefact(tcdesc.table3, hpatches=True),
    "tcdesc/table5": Artefact(tcdesc.table5),
    "tcdesc/figure4": Artefact(tcdesc.figure4, hpatches=True),
    "tcdesc/control": Artefact(tcdesc.control, extras=True, longer=True),
    "tcdesc/other_losses": Artefact(tcdesc.other_losses, extras=True),
    "tcdesc/overfitting": Artefact(tcdesc.overfitting, extras=True),
    "tcdesc/options": Artefact(option_runs(tcdesc.OPTIONS), extras=True),
    "tcdesc/figure5": Artefact(images.tcdesc_figure5, images=images.W1BS),
    "tcdesc/table6": Artefact(images.tcdesc_table6, images=images.OXFORD),
    "together/equal_footing": Artefact(together.equal_footing),
    "together/orders": Artefact(together.orders, extras=True),
    "together/duration": Artefact(together.duration, extras=True, longer=True),
}
