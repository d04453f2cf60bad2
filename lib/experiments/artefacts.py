"""Every table and figure of the study: its notebook and the records it needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from lib.experiments import (
    adasample,
    datasets,
    dsm,
    factorial,
    hynet,
    hynet_analysis,
    ladder,
    scenes,
    tcdesc,
    together,
    training,
    whole_images,
)
from lib.experiments.options import option_jobs
from lib.recipes import RECIPES, Recipe
from lib.study.jobs import Job
from lib.study.open import Study


@dataclass(frozen=True)
class Artefact:
    """A notebook and the jobs it asks for.

    Attributes:
        notebook: below the repository's root.
        jobs: from a study to what it needs.
        extras: left out unless asked for.
        hpatches: it needs HPatches patches, which a folder of real data may lack.
        images: the kind of whole images that it needs (`lib.data.whole_images`), or none; likewise.
    """

    notebook: str
    jobs: Callable[[Study], list[Job]]
    extras: bool = False
    hpatches: bool = False
    images: str = ""


def _table3(study: Study) -> list[Job]:
    return [*adasample.table3(study), *adasample.table3_shared(study)]


def _table4(study: Study) -> list[Job]:
    return [*dsm.table4(study), *dsm.small_variance(study)]


# Every recipe that has a learning rate of its own.
SEARCHED: Mapping[str, Recipe] = {
    **RECIPES,
    **ladder.RUNGS,
    **ladder.SAMPLING,
    **ladder.RIVALS,
    **dsm.SEARCHED,
    **hynet.SEARCHED,
    **tcdesc.SEARCHED,
    **together.SEARCHED,
    **factorial.SEARCHED,
}


def _artefact(name: str, jobs: Callable[[Study], list[Job]], **asked: object) -> tuple[str, Artefact]:
    """A name with its artefact, whose notebook stands where the name says."""
    return name, Artefact(f"notebooks/{name}.ipynb", jobs, **asked)


ARTEFACTS: Mapping[str, Artefact] = dict(
    [
        # Executed first, since it takes longest and the others fill the other cores meanwhile.
        _artefact("use/sparse_model", lambda study: []),
        _artefact("data/embedded", datasets.embedded),
        _artefact("adasample/table1", adasample.table1),
        _artefact("study/learning_rate", lambda study: []),
        _artefact("study/stated_settings", training.stated_settings),
        _artefact("adasample/table3", _table3),
        _artefact("adasample/ladder", ladder.ladder, extras=True),
        _artefact("adasample/generation", ladder.generation, extras=True),
        _artefact("adasample/options", partial(option_jobs, options=adasample.OPTIONS), extras=True),
        _artefact("adasample/figure3", adasample.figure3),
        _artefact("adasample/figure1", adasample.figure1),
        _artefact("adasample/theory", adasample.theory),
        _artefact("study/precision", training.precision, extras=True),
        _artefact("data/hpatches", datasets.hpatches, hpatches=True),
        _artefact("data/ranking", datasets.ranking, hpatches=True),
        _artefact("audit/print", lambda study: []),
        _artefact("adasample/figure2", adasample.figure2, hpatches=True),
        _artefact("adasample/table2", adasample.table2, hpatches=True),
        _artefact("dsm/table1", dsm.table1),
        _artefact("dsm/table3", dsm.table3, hpatches=True),
        _artefact("dsm/table4", _table4, hpatches=True),
        _artefact("dsm/figure1", dsm.figure1),
        _artefact("dsm/figure2", dsm.figure2),
        _artefact("dsm/figure3", dsm.figure3),
        _artefact("dsm/figure4", dsm.figure4, hpatches=True),
        _artefact("dsm/softness", dsm.softness, extras=True),
        _artefact("dsm/options", partial(option_jobs, options=dsm.OPTIONS), extras=True),
        _artefact("dsm/loss_shapes", dsm.loss_shapes),
        _artefact("dsm/figure5", whole_images.dsm_figure5, images=whole_images.OXFORD),
        _artefact("dsm/table2", scenes.dsm_table2, images=scenes.LANDMARKS),
        _artefact("hynet/table1", hynet.table1),
        _artefact("hynet/table3", hynet.table3, hpatches=True),
        _artefact("hynet/table5", hynet.table5),
        _artefact("hynet/figure4", hynet.figure4, hpatches=True),
        _artefact("hynet/figure5", hynet.figure5, hpatches=True),
        _artefact("hynet/epochs", hynet.epochs),
        _artefact("hynet/ladder", hynet.ladder, extras=True),
        _artefact("hynet/options", partial(option_jobs, options=hynet.OPTIONS), extras=True),
        _artefact("hynet/figure1", hynet_analysis.figure1),
        _artefact("hynet/figure2", hynet_analysis.figure2),
        _artefact("hynet/figure3", hynet_analysis.figure3),
        _artefact("hynet/gradient_magnitudes", hynet_analysis.gradient_magnitudes),
        _artefact("hynet/norms", hynet_analysis.norms),
        _artefact("hynet/table2", scenes.hynet_table2, images=scenes.ETH),
        _artefact("hynet/table4", scenes.hynet_table4, images=scenes.IMC),
        _artefact("tcdesc/figure1", tcdesc.figure1),
        _artefact("tcdesc/figure2", tcdesc.figure2),
        _artefact("tcdesc/table1", tcdesc.table1, hpatches=True),
        _artefact("tcdesc/table2", tcdesc.table2),
        _artefact("tcdesc/table3", tcdesc.table3, hpatches=True),
        _artefact("tcdesc/table5", tcdesc.table5),
        _artefact("tcdesc/figure4", tcdesc.figure4, hpatches=True),
        _artefact("tcdesc/other_losses", tcdesc.other_losses, extras=True),
        _artefact("tcdesc/overfitting", tcdesc.overfitting, extras=True),
        _artefact("tcdesc/options", partial(option_jobs, options=tcdesc.OPTIONS), extras=True),
        _artefact("tcdesc/figure5", whole_images.tcdesc_figure5, images=whole_images.W1BS),
        _artefact("tcdesc/table6", whole_images.tcdesc_table6, images=whole_images.OXFORD),
        _artefact("together/equal_footing", together.equal_footing, hpatches=True),
        _artefact("together/scenes", together.scenes, extras=True, hpatches=True),
        _artefact("together/factorial", factorial.jobs, extras=True, hpatches=True),
    ]
)
