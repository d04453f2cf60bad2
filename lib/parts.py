"""Build the parts of a recipe: from a `Part` to the object that its module builds."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from lib.recipes import Part, Recipe

# The package of each axis. If an option of a part is itself a part, it is named after its axis.
PACKAGES = {
    "model": "lib.models",
    "points": "lib.points",
    "sampler": "lib.samplers",
    "distance": "lib.distances",
    "positive": "lib.positives",
    "negatives": "lib.negatives",
    "loss": "lib.losses",
    "pair_weight": "lib.pair_weights",
    "regularizers": "lib.regularizers",
    "schedule": "lib.schedules",
}


def build(axis: str, part: Part, **more: object) -> object:
    """Build a part from its module and options, e.g. by ``lib.losses.hinge.build(margin=1.0)``.

    Args:
        axis: a key of `PACKAGES`.
        part: the module's name and options; an option that is a `Part` is built first.
        more: further options that the recipe does not choose, e.g. the network's width.

    Raises:
        ValueError: there is no such module; the message lists the known ones.
    """
    package = PACKAGES[axis]
    if part.name not in (there := _modules_that_build(package)):
        raise ValueError(
            f"{axis}: no module {package}.{part.name} with a build(); there are: {', '.join(there)}"
        )
    options = {k: build(k, v) if isinstance(v, Part) else v for k, v in part.options.items()}
    return import_module(f"{package}.{part.name}").build(**options, **more)


def _modules_that_build(package: str) -> list[str]:
    names = [module.name for module in iter_modules(import_module(package).__path__)]
    return [name for name in names if hasattr(import_module(f"{package}.{name}"), "build")]


def modules(recipe: Recipe) -> Iterator[str]:
    """Yield the module names of a recipe's parts, for its code digest, without importing them."""
    for axis in PACKAGES:
        chosen = getattr(recipe, axis)
        for part in chosen if isinstance(chosen, tuple) else (chosen,):
            if part is not None:
                yield from modules_of(axis, part)


def modules_of(axis: str, part: Part) -> Iterator[str]:
    """Yield the names of a part's module and of the modules of parts among its options."""
    yield f"{PACKAGES[axis]}.{part.name}"
    for name, option in part.options.items():
        if isinstance(option, Part):
            yield from modules_of(name, option)
