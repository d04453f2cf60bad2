"""The sizes at which the study runs: quick, evening, standard and paper. Plain data, no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lib.data.synthetic import SequencesSize, SyntheticSize
from lib.recipes import TCDESC_BUDGET, Budget, Part, Recipe, part


@dataclass(frozen=True)
class Search:
    """How a recipe's learning rate is searched, the same for every recipe.

    Attributes:
        rates: by optimiser, those tried first, ascending; SGD's with a dampening that equals the
            momentum (`lib.study.artefacts.searches.first_rates`). Where the best lies at an end,
            the grid goes on by steps of 1, 2, 5, 10, …
        seeds: of each rate and way.
        budget: of a run; None is the profile's own.
    """

    rates: Mapping[str, tuple[float, ...]]
    seeds: tuple[int, ...]
    budget: Budget | None = None


@dataclass(frozen=True)
class Profile:
    """How large and how long.

    Attributes:
        name: as on the command line.
        width: share of L2-Net's inner channels; the output keeps its length.
        budget: pairs a batch, pairs an epoch, epochs; None follows each recipe's own.
        larger: by a recipe's own budget that of its runs, of larger batches than `budget` has.
        grid_seeds: of a grid over a parameter.
        table_seeds: of a table of methods.
        test_seeds: of a comparison that needs a spread.
        grid_sets: on how many train sets tables of many rows are made, the first ones.
        schedule: of the learning rate, shared by all recipes; None follows each recipe's own.
        search: how each recipe's learning rate is found; None takes each recipe's own.
        precision: "float32", or "bfloat16" for autocast in training (evaluation is in float32).
        channels_last: memory format of activations and weights in training.
        compile: whether training compiles the network.
        threads: of one run; 0 leaves it to torch.
        stages: fractions of training at which weights are kept for probes.
        followed_pairs: matching pairs of each test set on which FPR95 is followed from epoch to epoch,
            so few that it costs at most a tenth of the training.
        mini: size of the embedded data.
        sequences: likewise, of its homography sequences.
        patches_per_second: forwarded in training, a backward pass counted as two forward ones, by kind
            of device; for forecasts only.
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
    mini: SyntheticSize
    sequences: SequencesSize
    patches_per_second: Mapping[str, float]

    def budget_for(self, recipe: Recipe) -> Budget:
        """This profile's budget, or the recipe's own."""
        return self.budget or recipe.budget

    def sized_for(self, recipe: Recipe) -> "Profile":
        """This profile with the budget that a run of the recipe has in a study."""
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
    mini=SyntheticSize(),
    sequences=SequencesSize(),
    patches_per_second={"cpu": 9_000.0, "cuda": 150_000.0},
)
QUICK = replace(
    STANDARD,
    name="quick",
    width=0.25,
    # 100 steps in 5 epochs.
    budget=Budget(batch_pairs=64, epoch_pairs=64 * 20, epochs=5),
    # TCDesc's k neighbours, and as many as 64, are to be the smaller share of a batch.
    larger={TCDESC_BUDGET: Budget(batch_pairs=128, epoch_pairs=128 * 20, epochs=5)},
    grid_seeds=(0,),
    table_seeds=(0, 1, 2),
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
    mini=replace(STANDARD.mini, pairs=50_000),
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
    profile.name: profile for profile in (QUICK, EVENING, STANDARD, PAPER)
}


def find(name: str) -> Profile:
    """The profile of that name.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}; there are: {', '.join(PROFILES)}")
    return PROFILES[name]
