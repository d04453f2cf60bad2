"""How long jobs will take, before any of them is begun. Plain arithmetic, no torch."""

from collections.abc import Iterable
from dataclasses import dataclass

from lib.study.jobs import SIGNS, Job, Setting, record_status

# Seconds on one CPU thread: of each module of `lib.benchmarks` or `lib.probes` that takes long, and of
# any "other", on one set of embedded data; of a computation, and of executing a notebook.
_SECONDS = {
    "hpatches": 4.0,
    "intensity_changes": 8.0,
    "oxford_affine": 8.0,
    "sfm": 28.0,
    "imc": 23.0,
    "retrieval": 28.0,
    "other": 0.7,
}
_COMPUTATION = 5.0
NOTEBOOK = 10.0
# A real set of patches has 100,000 labelled pairs, an embedded one 10,000 at the quick size.
_REAL = 10.0


@dataclass(frozen=True)
class Cost:
    """Seconds of one process: of training, and of metrics and probes."""

    training: float
    evaluation: float

    @property
    def seconds(self) -> float:
        """Of both."""
        return self.training + self.evaluation


def cost(job: Job, setting: Setting) -> Cost:
    """What a job takes from nothing.

    Training goes by the patches forwarded, a backward pass counted as two forward ones, at the speed
    that the profile states; metrics and probes by measured seconds for each set.
    """
    if job.computation is not None:
        return Cost(_COMPUTATION, 0.0)
    speeds = setting.profile.patches_per_second
    speed = speeds[setting.device.partition(":")[0]]
    larger = (1.0 if setting.source.embedded else _REAL) * speeds["cpu"] / speed
    modules = [module.removesuffix(SIGNS) for module, _ in (*job.measures, *job.probes)]
    evaluation = larger * sum(_SECONDS.get(module, _SECONDS["other"]) for module in modules)
    if job.recipe is None:
        return Cost(0.0, evaluation)
    budget = job.profile(setting).budget_for(job.recipe)
    steps = budget.epochs * max(1, budget.epoch_pairs // budget.batch_pairs)
    candidates = 0
    if job.recipe.sampler.name != "random_pair":
        generate = job.recipe.generate
        candidates = generate.options["patches_per_class"] if generate else 3
    return Cost(steps * budget.batch_pairs * (6.0 + candidates) / speed, evaluation)


def remaining(job: Job, setting: Setting) -> Cost:
    """What is left to be done of a job in the setting's folder."""
    whole, status = cost(job, setting), record_status(job, setting)
    if status.state != "incomplete" or job.computation is not None:
        return whole
    share = len({*status.lacking, *status.stale}) / len((*job.measures, *job.probes))
    return Cost(0.0, share * whole.evaluation)


def wall_clock(seconds: Iterable[float], at_once: int) -> float:
    """Seconds until work of these lengths is done, so much of it at once."""
    lengths = list(seconds)
    return max([sum(lengths) / at_once, *lengths])
