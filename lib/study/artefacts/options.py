"""What the papers leave open, one choice changed at a time, on the first train set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from lib.recipes import RECIPES
from lib.study.artefacts.rows import at_profile, training_job
from lib.study.jobs import Job
from lib.study.open import Found, Study

# By recipe and name of the choice, the axes changed; each recipe has a "default" that changes none.
Options = Mapping[str, Mapping[str, Mapping[str, object]]]
OPTION_SEEDS = 3


def option_jobs(study: Study, options: Options) -> list[Job]:
    """Every option of every recipe at the rate that was found for the recipe as it stands."""
    train_set = study.place.source.sets[0]
    return [
        training_job(study, name, train_set, seed, replace(at_profile(study, name), **changed))
        for name, changes in options.items()
        for changed in changes.values()
        for seed in study.test_seeds[:OPTION_SEEDS]
    ]


def by_option(
    found: Sequence[Found], study: Study, options: Options
) -> dict[str, dict[str, list[Found]]]:
    """The runs of `option_jobs`, in their order, by recipe's label and by option."""
    runs, seeds = iter(found), len(study.test_seeds[:OPTION_SEEDS])
    return {
        RECIPES[name].label: {option: list(islice(runs, seeds)) for option in changes}
        for name, changes in options.items()
    }
