"""Every table and figure of the study: its notebook and the records it needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lib.experiments import adasample, datasets, dsm, ladder, training
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
    """

    notebook: str
    jobs: Callable[[Study], list[Job]]
    extras: bool = False
    hpatches: bool = False


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
}

ARTEFACTS: Mapping[str, Artefact] = {
    "data/embedded": Artefact("notebooks/data/embedded.ipynb", datasets.embedded),
    "adasample/table1": Artefact("notebooks/adasample/table1.ipynb", adasample.table1),
    "study/learning_rate": Artefact("notebooks/study/learning_rate.ipynb", lambda study: []),
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
}
