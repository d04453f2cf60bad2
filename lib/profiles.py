"""The sizes at which the study runs: quick, half, evening, standard and paper. Plain data, no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lib.data.synthetic import SequencesSize
from lib.recipes import COMPARED, TCDESC_BUDGET, Budget, Part, Recipe, part, shared


@dataclass(frozen=True)
class Search:
    """How a recipe's learning rate is searched, the same for every recipe.

    Attributes:
        rates: by optimiser, the rates tried first, ascending; SGD's are for a dampening that equals
            the momentum (`lib.study.searches`). If the best rate lies at an end, the grid is extended
            by steps of 1, 2, 5, 10, …
        seeds: seeds for each rate and pair of train and test set.
        budget: budget of a run; None is the profile's own.
        families: methods that take one rate, the median of their searches' best, unless another is
            clearly better (`lib.study.searches.family_rate`); the others take their own best.
        inherited: whether a variant of a method takes its rate, unless the scale of what a step
            minimises is another (`lib.study.searches.inherited_from`); if not, it has its own search.
    """

    rates: Mapping[str, tuple[float, ...]]
    seeds: tuple[int, ...]
    budget: Budget | None = None
    families: tuple[tuple[str, ...], ...] = ()
    inherited: bool = False


@dataclass(frozen=True)
class Profile:
    """The size and length of the study's runs.

    Attributes:
        name: as on the command line.
        width: share of L2-Net's inner channels; the output keeps its length.
        budget: pairs per batch, pairs per epoch, epochs; None uses each recipe's own.
        larger: maps a recipe's own budget to the budget of its runs here, for recipes whose batches
            must be larger than those of `budget`.
        grid_seeds: seeds of a grid over a parameter.
        table_seeds: seeds of a table of methods.
        test_seeds: seeds of a comparison that needs a spread.
        grid_sets: number of train sets, from the first, on which the papers' main tables are made.
        by_place: whether the replicate is the place: every table is made on all train sets, each of
            which has seeds of its own, the same for all methods (`lib.study.runs.Study.seed_at`).
        schedule: learning rate schedule shared by all recipes; None uses each recipe's own.
        search: how each recipe's learning rate is found; None uses each recipe's own rate.
        precision: "float32", or "bfloat16" for autocast in training (evaluation is in float32).
        channels_last: memory format of activations and weights in training.
        compile: whether training compiles the network.
        threads: threads per run; 0 leaves the number to torch.
        stages: fractions of training at which weights are kept for probes.
        followed_pairs: matching pairs of each test set on which FPR95 is measured after every epoch;
            few enough that this costs at most a tenth of the training.
        followed_sets: on how many of a run's test sets, from the first; None is all of them.
        sequences: size of the homography sequences that are made of photographs.
        patches_per_second: patches forwarded per second in training, by kind of device, with a backward
            pass counted as two forward passes; for forecasts only.
    """

    name: str
    width: float
    budget: Budget | None
    larger: Mapping[Budget, Budget]
    grid_seeds: tuple[int, ...]
    table_seeds: tuple[int, ...]
    test_seeds: tuple[int, ...]
    grid_sets: int
    schedule: Part | None
    search: Search | None
    precision: str
    channels_last: bool
    compile: bool
    threads: int
    stages: tuple[float, ...]
    followed_pairs: int
    sequences: SequencesSize
    patches_per_second: Mapping[str, float]
    by_place: bool = False
    followed_sets: int | None = None

    def budget_for(self, recipe: Recipe) -> Budget:
        """Return this profile's budget, or the recipe's own where the profile has none."""
        return self.budget or recipe.budget

    def sized_for(self, recipe: Recipe) -> "Profile":
        """Return this profile with the budget that the recipe's runs have in a study."""
        return replace(self, budget=self.larger.get(recipe.budget, self.budget))


STANDARD = Profile(
    name="standard",
    width=1.0,
    budget=Budget(batch_pairs=512, epoch_pairs=512 * 500, epochs=20),
    larger={},
    grid_seeds=(0, 1, 2, 3, 4),
    table_seeds=(0, 1, 2, 3, 4),
    test_seeds=(0, 1, 2, 3, 4),
    grid_sets=3,
    schedule=part("linear"),
    search=Search(
        {"sgd": (1.0, 2.0, 5.0), "adam": (0.002, 0.005, 0.01)}, (0,), Budget(512, 512 * 500, 4)
    ),
    precision="bfloat16",
    channels_last=True,
    compile=False,
    threads=0,
    stages=(0.0, 0.05, 0.1, 0.3, 0.6, 1.0),
    followed_pairs=10_000,
    sequences=SequencesSize(),
    patches_per_second={"cpu": 9_000.0, "cuda": 150_000.0},
)
QUICK = replace(
    STANDARD,
    name="quick",
    width=0.25,
    # 100 steps in 5 epochs.
    budget=Budget(batch_pairs=64, epoch_pairs=64 * 20, epochs=5),
    # TCDesc's k neighbours, even 64 of them, should be the smaller share of a batch.
    larger={TCDESC_BUDGET: Budget(batch_pairs=128, epoch_pairs=128 * 20, epochs=5)},
    grid_seeds=(0,),
    # Two, so that a spread can be computed; what it is worth is for larger sizes to say.
    table_seeds=(0, 1),
    search=Search(
        {"sgd": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0), "adam": (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)},
        (0, 1),
    ),
    precision="float32",
    threads=1,
    stages=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    followed_pairs=180,
    patches_per_second={"cpu": 4_500.0, "cuda": 400_000.0},
)
# Methods of one setting and one kind of optimiser. A single search rarely tells its best rate from the
# next.
_FAMILIES = (
    tuple(shared(COMPARED, "SGD")),
    tuple(shared(COMPARED, "Adam")),
    ("hardnet_aug, shared, damped SGD", "sosnet_aug, shared, damped SGD"),
)
# Evidence without a GPU. In float32, since most processors without one emulate bfloat16.
HALF = replace(
    STANDARD,
    name="half",
    width=0.5,
    budget=Budget(batch_pairs=128, epoch_pairs=128 * 50, epochs=10),
    grid_seeds=(0,),
    table_seeds=(0,),
    by_place=True,
    # Of three fifths of the length.
    search=Search(
        {"sgd": (0.5, 1.0, 2.0), "adam": (0.002, 0.005, 0.01)},
        (0,),
        Budget(128, 128 * 100, 3),
        families=_FAMILIES,
        inherited=True,
    ),
    precision="float32",
    threads=1,
    followed_pairs=500,
    # Eighteen would cost 0.44 of the training.
    followed_sets=3,
    patches_per_second={"cpu": 3_000.0, "cuda": 300_000.0},
)
EVENING = replace(
    STANDARD,
    name="evening",
    width=0.5,
    budget=Budget(batch_pairs=128, epoch_pairs=128 * 100, epochs=10),
    grid_sets=1,
    search=Search(
        {"sgd": (0.5, 1.0, 2.0), "adam": (0.002, 0.005, 0.01)}, (0,), Budget(128, 128 * 100, 3)
    ),
    threads=1,
    followed_pairs=500,
    patches_per_second={"cpu": 3_000.0, "cuda": 300_000.0},
)
PAPER = replace(
    STANDARD,
    name="paper",
    budget=None,
    schedule=None,
    search=None,
    precision="float32",
    followed_pairs=50_000,
    patches_per_second={"cpu": 4_000.0, "cuda": 60_000.0},
)
PROFILES: Mapping[str, Profile] = {
    profile.name: profile for profile in (QUICK, HALF, EVENING, STANDARD, PAPER)
}


def find(name: str) -> Profile:
    """Return the profile of that name.

    Raises:
        ValueError: the name is unknown; the message lists the known ones.
    """
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}; there are: {', '.join(PROFILES)}")
    return PROFILES[name]
