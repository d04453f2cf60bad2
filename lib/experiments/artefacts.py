"""Every table and figure of the study: its notebook and the records it needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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

ARTEFACTS: Mapping[str, Artefact] = {
    "data/embedded": Artefact("notebooks/data/embedded.ipynb", datasets.embedded),
    "adasample/table1": Artefact("notebooks/adasample/table1.ipynb", adasample.table1),
    "study/learning_rate": Artefact("notebooks/study/learning_rate.ipynb", lambda study: []),
    "study/stated_settings": Artefact("notebooks/study/stated_settings.ipynb", training.stated_settings),
    "adasample/table3": Artefact("notebooks/adasample/table3.ipynb", _table3),
    "adasample/ladder": Artefact("notebooks/adasample/ladder.ipynb", ladder.ladder, extras=True),
    "adasample/generation": Artefact(
        "notebooks/adasample/generation.ipynb", ladder.generation, extras=True
    ),
    "adasample/options": Artefact("notebooks/adasample/options.ipynb", adasample.options, extras=True),
    "adasample/figure3": Artefact("notebooks/adasample/figure3.ipynb", adasample.figure3),
    "adasample/figure1": Artefact("notebooks/adasample/figure1.ipynb", adasample.figure1),
    "adasample/theory": Artefact("notebooks/adasample/theory.ipynb", adasample.theory),
    "study/precision": Artefact("notebooks/study/precision.ipynb", training.precision, extras=True),
    "data/hpatches": Artefact("notebooks/data/hpatches.ipynb", datasets.hpatches, hpatches=True),
    "data/ranking": Artefact("notebooks/data/ranking.ipynb", datasets.ranking, hpatches=True),
    "audit/print": Artefact("notebooks/audit/print.ipynb", lambda study: []),
    "adasample/figure2": Artefact("notebooks/adasample/figure2.ipynb", adasample.figure2, hpatches=True),
    "adasample/table2": Artefact("notebooks/adasample/table2.ipynb", adasample.table2, hpatches=True),
    "dsm/table1": Artefact("notebooks/dsm/table1.ipynb", dsm.table1),
    "dsm/table3": Artefact("notebooks/dsm/table3.ipynb", dsm.table3, hpatches=True),
    "dsm/table4": Artefact("notebooks/dsm/table4.ipynb", _table4, hpatches=True),
    "dsm/figure1": Artefact("notebooks/dsm/figure1.ipynb", dsm.figure1),
    "dsm/figure2": Artefact("notebooks/dsm/figure2.ipynb", dsm.figure2),
    "dsm/figure3": Artefact("notebooks/dsm/figure3.ipynb", dsm.figure3),
    "dsm/figure4": Artefact("notebooks/dsm/figure4.ipynb", dsm.figure4, hpatches=True),
    "dsm/softness": Artefact("notebooks/dsm/softness.ipynb", dsm.softness, extras=True),
    "dsm/options": Artefact("notebooks/dsm/options.ipynb", dsm.options, extras=True),
    "dsm/loss_shapes": Artefact("notebooks/dsm/loss_shapes.ipynb", dsm.loss_shapes),
    "dsm/figure5": Artefact(
        "notebooks/dsm/figure5.ipynb", whole_images.dsm_figure5, images=whole_images.OXFORD
    ),
    "dsm/table2": Artefact("notebooks/dsm/table2.ipynb", scenes.dsm_table2, images=scenes.LANDMARKS),
    "hynet/table1": Artefact("notebooks/hynet/table1.ipynb", hynet.table1),
    "hynet/table3": Artefact("notebooks/hynet/table3.ipynb", hynet.table3, hpatches=True),
    "hynet/table5": Artefact("notebooks/hynet/table5.ipynb", hynet.table5),
    "hynet/figure4": Artefact("notebooks/hynet/figure4.ipynb", hynet.figure4, hpatches=True),
    "hynet/figure5": Artefact("notebooks/hynet/figure5.ipynb", hynet.figure5, hpatches=True),
    "hynet/epochs": Artefact("notebooks/hynet/epochs.ipynb", hynet.epochs),
    "hynet/ladder": Artefact("notebooks/hynet/ladder.ipynb", hynet.ladder, extras=True),
    "hynet/options": Artefact("notebooks/hynet/options.ipynb", hynet.options, extras=True),
    "hynet/figure1": Artefact("notebooks/hynet/figure1.ipynb", hynet_analysis.figure1),
    "hynet/figure2": Artefact("notebooks/hynet/figure2.ipynb", hynet_analysis.figure2),
    "hynet/figure3": Artefact("notebooks/hynet/figure3.ipynb", hynet_analysis.figure3),
    "hynet/gradient_magnitudes": Artefact(
        "notebooks/hynet/gradient_magnitudes.ipynb", hynet_analysis.gradient_magnitudes
    ),
    "hynet/norms": Artefact("notebooks/hynet/norms.ipynb", hynet_analysis.norms),
    "hynet/table2": Artefact("notebooks/hynet/table2.ipynb", scenes.hynet_table2, images=scenes.ETH),
    "hynet/table4": Artefact("notebooks/hynet/table4.ipynb", scenes.hynet_table4, images=scenes.IMC),
    "tcdesc/figure1": Artefact("notebooks/tcdesc/figure1.ipynb", tcdesc.figure1),
    "tcdesc/figure2": Artefact("notebooks/tcdesc/figure2.ipynb", tcdesc.figure2),
    "tcdesc/table1": Artefact("notebooks/tcdesc/table1.ipynb", tcdesc.table1, hpatches=True),
    "tcdesc/table2": Artefact("notebooks/tcdesc/table2.ipynb", tcdesc.table2),
    "tcdesc/table3": Artefact("notebooks/tcdesc/table3.ipynb", tcdesc.table3, hpatches=True),
    "tcdesc/table5": Artefact("notebooks/tcdesc/table5.ipynb", tcdesc.table5),
    "tcdesc/figure4": Artefact("notebooks/tcdesc/figure4.ipynb", tcdesc.figure4, hpatches=True),
    "tcdesc/other_losses": Artefact(
        "notebooks/tcdesc/other_losses.ipynb", tcdesc.other_losses, extras=True
    ),
    "tcdesc/overfitting": Artefact(
        "notebooks/tcdesc/overfitting.ipynb", tcdesc.overfitting, extras=True
    ),
    "tcdesc/options": Artefact("notebooks/tcdesc/options.ipynb", tcdesc.options, extras=True),
    "tcdesc/figure5": Artefact(
        "notebooks/tcdesc/figure5.ipynb", whole_images.tcdesc_figure5, images=whole_images.W1BS
    ),
    "tcdesc/table6": Artefact(
        "notebooks/tcdesc/table6.ipynb", whole_images.tcdesc_table6, images=whole_images.OXFORD
    ),
    "together/equal_footing": Artefact(
        "notebooks/together/equal_footing.ipynb", together.equal_footing, hpatches=True
    ),
    "together/scenes": Artefact(
        "notebooks/together/scenes.ipynb", together.scenes, extras=True, hpatches=True
    ),
    "together/factorial": Artefact(
        "notebooks/together/factorial.ipynb", factorial.jobs, extras=True, hpatches=True
    ),
    "use/sparse_model": Artefact("notebooks/use/sparse_model.ipynb", lambda study: []),
}
