"""The parts of recipes by name: which class or function of lib a name on an axis stands for.

A new part is written in its room (`lib.models`, `lib.losses`, `lib.samplers`), gets its line here, and
can then be named in a recipe.
"""

from collections.abc import Callable, Mapping

from lib import schedules
from lib.losses import cdf, distances, hinges, negatives, pair_weights, regularizers, topology
from lib.losses.average_precision import AveragePrecision
from lib.losses.l2net import L2NetLoss
from lib.models import exported, handcrafted, published
from lib.models.learned_by_others import OpenCvDescriptor
from lib.recipes import Part, check_options
from lib.samplers.adasample import AdaSample
from lib.samplers.augmentation import Turns
from lib.samplers.candidates import Generation
from lib.samplers.hardpos import Hardpos
from lib.samplers.points import Shuffled
from lib.samplers.random_pair import RandomPair

# By axis and name. If an option of a part is itself a part, it is named after its axis.
PARTS: Mapping[str, Mapping[str, Callable[..., object]]] = {
    "model": {
        **exported.NETWORKS,
        "sift": handcrafted.Sift,
        "orb": handcrafted.Orb,
        "colmap_sift": handcrafted.ColmapSift,
        "opencv": OpenCvDescriptor,
        "published": published.load,
        "exported": exported.load,
    },
    "points": {"shuffled": Shuffled},
    "sampler": {"random_pair": RandomPair, "adasample": AdaSample, "hardpos": Hardpos},
    "generate": {"rotation": Generation},
    "augment": {"turns": Turns},
    "distance": {
        "euclidean": distances.euclidean,
        "angular": distances.angular,
        "hybrid": distances.hybrid_similarity,
        "hamming": distances.hamming,
    },
    "positive": {"pair": topology.Pair, "topology": topology.topology},
    "negatives": {"hardest": negatives.Hardest, "random": negatives.Random},
    "loss": {
        "hinge": hinges.Hinge,
        "squared_hinge": hinges.SquaredHinge,
        "mixed_hinge": hinges.MixedHinge,
        "stacked_hinge": hinges.StackedHinge,
        "softplus": hinges.Softplus,
        "hardest_fraction": hinges.HardestFraction,
        "cdf": cdf.dynamic_soft_margin,
        "unmixed": cdf.Unmixed,
        "average_precision": AveragePrecision,
        "l2net": L2NetLoss,
    },
    "pair_weight": {"inverse_distance": pair_weights.InverseDistance},
    "regularizers": {
        "gor": regularizers.Gor,
        "norm": regularizers.Norm,
        "sosr": regularizers.Sosr,
    },
    "schedule": {
        "constant": schedules.constant,
        "linear": schedules.linear,
        "steps": schedules.steps,
    },
}


def build(axis: str, part: Part | None, **more: object) -> object:
    """Build a part from its name and options, e.g. ``Hinge(margin=1.0)``; None for an empty axis.

    Args:
        axis: a key of `PARTS`.
        part: the part's name and options; an option that is a `Part` is built first. None where a
            recipe leaves the axis empty.
        more: further options that the recipe does not choose, e.g. the network's width.

    Raises:
        ValueError: there is no such part; the message lists the known ones. Or as `check_options`.
    """
    if part is None:
        return None
    make = find(axis, part.name)
    check_options(axis, part)
    options = {
        name: build(name, option) if isinstance(option, Part) else option
        for name, option in part.options.items()
    }
    return make(**options, **more)


def find(axis: str, name: str) -> Callable[..., object]:
    """Return the class or function that a name on an axis stands for.

    Raises:
        ValueError: there is no such part; the message lists the known ones.
    """
    known = PARTS[axis]
    if name not in known:
        raise ValueError(f"{axis}: no part {name!r}; there are: {', '.join(known)}")
    return known[name]
