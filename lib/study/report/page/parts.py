"""The parts of the report and the order in which artefacts stand there."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A paper, or what else the study has a folder of notebooks for.

    Attributes:
        title: heads the part.
        question: of a paper, what it claims, a sentence without its stop.
        source: of a paper, who wrote it and where it appeared.
    """

    title: str
    question: str = ""
    source: str = ""


# By the folder of its notebooks.
PARTS: Mapping[str, Part] = {
    "adasample": Part(
        "AdaSample",
        "AdaSample (Zhang et al.): positives drawn by their distance, the harder the likelier, train "
        "better descriptors of patches than positives drawn at random",
        "Zhang et al., “AdaSample: Adaptive Sampling of Hard Positives for Descriptor Learning”.",
    ),
    "dsm": Part(
        "DSM",
        "DSM (Zhang and Rusinkiewicz): triplets weighted by how hard they are among recent ones train "
        "better descriptors, real-valued and binary, than a margin that is set by hand",
        "Zhang and Rusinkiewicz, “Learning Local Descriptors With a CDF-Based Dynamic Soft Margin”, "
        "ICCV 2019.",
    ),
    "hynet": Part(
        "HyNet",
        "HyNet (Tian et al.): a similarity between inner product and distance, a bound on how the "
        "lengths of a pair differ, and filter response normalisation train better descriptors than "
        "either similarity alone",
        "Tian et al., “HyNet: Learning Local Descriptor with Hybrid Similarity Measure and Triplet "
        "Loss”, NeurIPS 2020.",
    ),
    "tcdesc": Part(
        "TCDesc",
        "TCDesc (Pan et al.): matching descriptors that have the same neighbours, at the same weights, "
        "are better than those that are near each other alone",
        "Pan et al., “TCDesc: Learning Topology Consistent Descriptors for Image Matching”.",
    ),
    "together": Part("The four together"),
    "audit": Part("What the papers print"),
    "study": Part("The study itself"),
    "data": Part("Data"),
    "use": Part("For use"),
}


def in_order(names: Iterable[str]) -> dict[str, list[str]]:
    """Notebooks by part: tables by their number, figures by theirs, then what no paper prints, as given.

    Args:
        names: such as "adasample/table1".
    """
    by_part: dict[str, list[str]] = {key: [] for key in PARTS}
    for name in names:
        by_part.setdefault(name.partition("/")[0], []).append(name)
    return {key: sorted(of, key=_place) for key, of in by_part.items() if of}


def _place(name: str) -> tuple[int, int]:
    printed = re.fullmatch(r".*/(table|figure)(\d+)", name)
    return (("table", "figure").index(printed[1]), int(printed[2])) if printed else (2, 0)
