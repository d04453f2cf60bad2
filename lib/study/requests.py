"""What a study asks for: a network to train, a descriptor or a computation, and what to measure on it.

A run is identified by its resolved configuration: the recipe with its learning rate and schedule, the
size, the content of the train set, the seed, and `NUMERICS` of `lib.training`. Names, labels, measures,
kept stages and followed sets are not part of it, and neither is the device, which is only recorded.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from lib.benchmarks import MEASURES
from lib.data.sources import Source
from lib.files import digest
from lib.profiles import Profile
from lib.recipes import Part, Recipe, values
from lib.training import NUMERICS

# Suffix of a measure that is taken by the signs of descriptors.
BY_SIGN = " by sign"
# The fields of a profile that a run's numbers depend on, besides its budget.
SIZE = ("width", "precision", "channels_last", "compile")
# A module of `lib.benchmarks` or `lib.analysis`, and the set that it is applied to.
Measured = tuple[str, str]


class Refused(ValueError):
    """A request that cannot be met. IPython shows it in one line, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@contextmanager
def in_one_line() -> Iterator[None]:
    """Refuse what the block finds wrong with a reader's own files and settings: a notebook then shows
    the reason in one line.

    Raises:
        Refused: the block raised it, or an OSError or a ValueError, whose text it then has.
    """
    try:
        yield
    except Refused:
        raise
    except (OSError, ValueError) as error:
        raise Refused(f"This notebook's first cell: {error}") from None


@dataclass(frozen=True)
class Request:
    """One run that is needed: what is trained or computed, and what is measured on it.

    Attributes:
        method: the method's name, e.g. a key of `lib.recipes.RECIPES`.
        label: the name that readers see.
        recipe: how the network is trained, with its learning rate and schedule; None where nothing is
            trained.
        train: the train set.
        seed: the training's seed.
        profile: the size of the run.
        descriptor: a descriptor that is not trained here, as a part of `lib.models`.
        paths: options of the descriptor that name files of this machine. They are not part of the run's
            identity; the files' content is.
        computation: a module of `lib.analysis` that needs no data, and its options.
        measures: modules of `lib.benchmarks` with the set that each measures.
        probes: modules of `lib.analysis` with the set that each examines; they return arrays.
    """

    method: str
    label: str
    recipe: Recipe | None = None
    train: str | None = None
    seed: int | None = None
    profile: Profile | None = None
    descriptor: Part | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    computation: Part | None = None
    measures: tuple[Measured, ...] = ()
    probes: tuple[Measured, ...] = ()

    @property
    def title(self) -> str:
        """The request in one line, e.g. "HardNet+ on banana, seed 0"."""
        if self.recipe is None:
            return self.label
        return f"{self.label} on {self.train}, seed {self.seed}"

    @property
    def sets(self) -> tuple[str, ...]:
        """All sets that it reads, the train set first, each once."""
        named = [self.train, *(name for _, name in (*self.measures, *self.probes))]
        return tuple(dict.fromkeys(name for name in named if name))

    @property
    def followed(self) -> tuple[str, ...]:
        """The sets on which FPR95 may be followed during training: those it is measured on."""
        return tuple(dict.fromkeys(name for module, name in self.measures if module == "fpr95"))

    @property
    def rate(self) -> float | None:
        """The learning rate of a run; None where nothing is trained."""
        if self.recipe is None:
            return None
        return self.recipe.optimizer.options["lr"]


def configuration(request: Request, source: Source) -> dict[str, object]:
    """Return what decides the numbers of a run, as JSON-able values."""
    if request.computation is not None:
        return {"computation": values(request.computation)}
    if request.descriptor is not None:
        return {"descriptor": values(request.descriptor)}
    # The budget that the authors state is left out: the run has its profile's.
    recipe = values(request.recipe)
    recipe.pop("budget", None)
    return {
        "recipe": recipe,
        "size": {name: getattr(request.profile, name) for name in SIZE},
        "budget": values(request.profile.budget_for(request.recipe)),
        "train": source.digest(request.train),
        "seed": request.seed,
        "numerics": NUMERICS,
    }


def identity(config: Mapping[str, object]) -> str:
    """Return the name of the run with a configuration: 12 hexadecimal digits."""
    return digest(config, length=12)


def version(module: str) -> int:
    """Return the version of a measure or probe, with or without the suffix for signs."""
    return MEASURES[module.removesuffix(BY_SIGN)]


def merged(requests: Iterable[Request], source: Source) -> dict[str, Request]:
    """Return requests by identity; those of one run become one request for all that they measure.

    Recipes may differ and yet be one run here: in the length that their authors state, or in whose rate
    they take.

    Raises:
        ValueError: one recipe has two method names.
    """
    together: dict[str, Request] = {}
    for request in requests:
        run = identity(configuration(request, source))
        first = together.setdefault(run, request)
        if first.method != request.method and _is_same_recipe(first, request):
            raise ValueError(f"{first.method!r} and {request.method!r} are one recipe: give it one name")
        profile = first.profile
        if profile is not None:
            stages = {*profile.stages, *request.profile.stages}
            profile = replace(profile, stages=tuple(sorted(stages)))
        together[run] = replace(
            first,
            profile=profile,
            measures=tuple(dict.fromkeys((*first.measures, *request.measures))),
            probes=tuple(dict.fromkeys((*first.probes, *request.probes))),
        )
    return together


def _is_same_recipe(one: Request, other: Request) -> bool:
    if one.recipe is None or other.recipe is None:
        return True
    return values(one.recipe) == values(other.recipe) and one.recipe.rate_of == other.recipe.rate_of
