"""Every table and figure of the study: its notebook and the records it needs."""

from collections.abc import Callable
from dataclasses import dataclass

from lib.data.hpatches import RELEASE, TASKS
from lib.recipes import RECIPES
from lib.study.artefacts import adasample, dsm, hynet, tcdesc, together
from lib.study.artefacts import whole_images as images
from lib.study.artefacts.rows import Row, option_runs, several
from lib.study.jobs import Job, Record, record_status
from lib.study.open import Study


@dataclass(frozen=True)
class Artefact:
    """A notebook and the jobs it asks for.

    Attributes:
        jobs: from a study to what it needs.
        extras: left out unless asked for.
        hpatches: it needs HPatches patches, which a folder of real data may lack.
        images: the kind of whole images that it needs (`lib.data.sources`), or none; likewise.
        longer: its runs are made at the evening's size or longer, not at quick.
    """

    jobs: Callable[[Study], list[Job]]
    extras: bool = False
    hpatches: bool = False
    images: str = ""
    longer: bool = False

    def records(self, study: Study) -> list[Record]:
        """Its jobs' records, as they stand in the folder that a study reads first."""
        return [record_status(job, study, study.reading[0]) for job in self.jobs(study)]

    def lacking(self, study: Study) -> str:
        """What a study lacks for it, in words; empty if nothing."""
        source = study.source
        if self.longer and study.profile.name == "quick":
            return "whose runs are made at longer profiles"
        if self.hpatches and source.own_hpatches is None:
            return f"since {study.data} holds no {RELEASE} with {TASKS}"
        kinds = source.own_images.kinds if source.own_images else ()
        return "" if self.images in ("", *kinds) else f"since {study.data} holds no {self.images}"


# Every recipe that has a learning rate of its own.
SEARCHED = {
    **RECIPES,
    **adasample.SEARCHED,
    **dsm.SEARCHED,
    **hynet.SEARCHED,
    **tcdesc.SEARCHED,
    **together.SEARCHED,
}

# By the folder of notebooks, the module that says which runs each of them needs, under its name.
_MODULES = {"data": together, "together": together, "study": adasample}
_MODULES |= {"adasample": adasample, "dsm": dsm, "hynet": hynet, "tcdesc": tcdesc}
# Those that no function of that name says it for.
_OTHERS = dict.fromkeys(("use/sparse_model", "study/learning_rate", "audit/print"), several())
_OTHERS |= {"adasample/table3": several(adasample.table3, adasample.table3_shared)}


def _jobs(name: str) -> Row:
    folder, _, artefact = name.partition("/")
    if name in _OTHERS:
        return _OTHERS[name]
    if artefact == "options":
        return option_runs(_MODULES[folder].OPTIONS)
    return getattr(images, f"{folder}_{artefact}", None) or getattr(_MODULES[folder], artefact)


# Names of notebooks, below notebooks/ and without the ending, and what they need besides their runs. The
# first is executed first, since it takes longest and the others fill the other cores meanwhile.
_NEEDS = (
    (
        (
            *("use/sparse_model", "data/embedded", "adasample/table1", "study/learning_rate"),
            *("adasample/table3", "adasample/figure3", "adasample/figure1", "adasample/theory"),
            *("data/scenes", "audit/print"),
            *("dsm/table1", "dsm/figure1", "dsm/figure2", "dsm/figure3"),
            *("hynet/table1", "hynet/table5", "hynet/epochs", "hynet/figure1", "hynet/figure2"),
            *("hynet/figure3", "hynet/gradient_magnitudes", "hynet/norms"),
            *("tcdesc/figure1", "tcdesc/figure2", "tcdesc/table2", "tcdesc/table5"),
            *("together/equal_footing",),
        ),
        {},
    ),
    (("study/stated_settings",), {"longer": True}),
    (
        (
            *("adasample/ladder", "adasample/options", "study/precision", "dsm/options"),
            *("hynet/ladder", "hynet/options"),
            *("tcdesc/other_losses", "tcdesc/overfitting", "tcdesc/options", "together/orders"),
        ),
        {"extras": True},
    ),
    (
        ("adasample/control", "hynet/control", "tcdesc/control", "together/duration"),
        {"extras": True, "longer": True},
    ),
    (
        (
            *("data/hpatches", "data/ranking", "adasample/figure2", "adasample/table2"),
            *("dsm/table3", "dsm/table4", "dsm/figure4"),
            *("hynet/table3", "hynet/figure4", "hynet/figure5"),
            *("tcdesc/table1", "tcdesc/table3", "tcdesc/figure4"),
        ),
        {"hpatches": True},
    ),
    (("dsm/figure5", "tcdesc/table6"), {"images": images.OXFORD}),
    (("dsm/table2",), {"images": images.LANDMARKS}),
    (("hynet/table2",), {"images": images.ETH}),
    (("hynet/table4",), {"images": images.IMC}),
    (("tcdesc/figure5",), {"images": images.W1BS}),
)
ARTEFACTS = {name: Artefact(_jobs(name), **needs) for names, needs in _NEEDS for name in names}
