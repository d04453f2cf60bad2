"""The training loop: repeating, resuming, and refused input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from resumed_training import resumed

from lib import profiles, recipes
from lib.benchmarks.fpr95 import measure
from lib.benchmarks.subject import Subject, describe
from lib.data.patchset import PatchSet
from lib.recipes import Budget, Recipe, at_rate, part, replace_options
from lib.training import ForeignCheckpoint, Trained, train

TINY = replace(
    profiles.find("quick"),
    width=1 / 16,
    # More pairs than TCDesc and SOSR use as neighbours of one pair.
    budget=Budget(batch_pairs=20, epoch_pairs=100, epochs=2),
    stages=(0.0, 0.5, 1.0),
)
ADASAMPLE = at_rate(recipes.find("adasample_aug_gen"), 0.1)


def same_weights(one: Trained, other: Trained) -> bool:
    ours, theirs = one.model.state_dict(), other.model.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


VARIANTS = (recipes.ADASAMPLE_TC, recipes.HYNET_TC, recipes.adasample(math.inf, "HT"))


@pytest.mark.parametrize(
    "recipe", [*recipes.RECIPES.values(), *VARIANTS], ids=lambda variant: variant.label
)
def test_every_recipe_trains_to_finite_weights(recipe: Recipe, small_set: PatchSet) -> None:
    trained = train(at_rate(recipe, 0.1), TINY, small_set, 0, max_steps=3)
    assert all(torch.isfinite(value).all() for value in trained.model.state_dict().values())
    assert trained.curve["step"] == [1, 2, 3]


# A recipe for each network, optimiser and kind of loss that the papers train.
PAPERS = (
    *("adasample_aug_gen", "dsm_binary_aug", "tcdesc_dsm_aug"),
    *("hynet_aug", "cs_l2net_aug", "doap_aug"),
)


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_recipe_takes_a_step_of_its_own_schedule(name: str, small_set: PatchSet) -> None:
    paper, recipe = profiles.find("paper"), recipes.find(name)
    assert paper.budget_for(recipe) == recipe.budget
    # The published batch of 1,024 pairs needs as many classes.
    wide = replace(
        small_set,
        patches=np.tile(small_set.patches, (26, 1, 1)),
        point_ids=np.arange(26 * 120) // 3,
    )
    narrow = replace(paper, width=1 / 32, threads=1)
    trained = train(recipe, narrow, wide, 0, max_steps=1)
    assert all(torch.isfinite(value).all() for value in trained.model.state_dict().values())


def test_training_lowers_fpr95(small_set: PatchSet) -> None:
    longer = replace(TINY, budget=Budget(batch_pairs=16, epoch_pairs=16 * 120, epochs=1))
    untrained = train(recipes.HARDNET, longer, small_set, 0, max_steps=1)
    trained = train(recipes.HARDNET, longer, small_set, 0)
    before, after = (
        measure(Subject(partial(describe, run.model)), small_set)["expected"]
        for run in (untrained, trained)
    )
    assert after < before / 2


@pytest.mark.parametrize("rate", [0.0, -0.1, float("nan"), "0.2"])
def test_a_rate_that_trains_nothing_is_refused(rate: object, small_set: PatchSet) -> None:
    with pytest.raises(ValueError, match=f"rate must be above 0, got {rate!r}"):
        at_rate(recipes.HARDNET, rate)
    optimizer = replace_options(recipes.HARDNET.optimizer, lr=rate)
    with pytest.raises(ValueError, match=f"rate must be above 0, got {rate!r}"):
        train(replace(recipes.HARDNET, optimizer=optimizer), TINY, small_set, 0, max_steps=1)


@pytest.mark.parametrize(
    ("axis", "chosen", "said"),
    [
        ("loss", part("hinge", margin=-1), "hinge needs a margin of 0 or more, got -1"),
        ("loss", part("hinge", margin="1.0"), "hinge needs a margin of 0 or more, got '1.0'"),
        ("loss", part("stacked_hinge", distance_margin=-0.5), "needs a distance_margin of 0 or more"),
        ("regularizers", (part("sosr", weight=-1.0),), "sosr needs a weight of 0 or more, got -1"),
        ("regularizers", (part("norm", weight=math.nan),), "norm needs a weight of 0 or more, got nan"),
    ],
)
def test_weights_and_margins_below_0_are_refused_before_a_step(
    axis: str, chosen: object, said: str, small_set: PatchSet
) -> None:
    with pytest.raises(ValueError, match=said):
        train(replace(recipes.HARDNET, **{axis: chosen}), TINY, small_set, 0, max_steps=1)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ((16, 64, 2.5), "epochs must be a whole number above 0, got 2.5"),
        ((16, 64, 0), "epochs must be a whole number above 0, got 0"),
        ((0, 64, 2), "batch_pairs must be a whole number above 0, got 0"),
        ((16, "64", 2), "epoch_pairs must be a whole number above 0, got '64'"),
        ((16, 15, 2), "an epoch of 15 pairs does not fill a batch of 16"),
    ],
)
def test_a_budget_that_no_training_has_is_refused(budget: tuple, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Budget(*budget)


@pytest.mark.parametrize(
    ("name", "rate", "precision"), [("sosnet_aug", 0.1, "float32"), ("hynet_aug", 0.005, "bfloat16")]
)
def test_training_lowers_the_loss(name: str, rate: float, precision: str, small_set: PatchSet) -> None:
    budget = Budget(batch_pairs=16, epoch_pairs=16 * 40, epochs=1)
    longer = replace(TINY, budget=budget, precision=precision)
    losses = train(at_rate(recipes.find(name), rate), longer, small_set, 0).curve["loss"]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_the_same_seed_gives_the_same_bits_and_another_different_ones(small_set: PatchSet) -> None:
    first, second = (train(ADASAMPLE, TINY, small_set, 3) for _ in range(2))
    assert same_weights(first, second)
    assert first.curve == second.curve
    assert not same_weights(first, train(ADASAMPLE, TINY, small_set, 4))


@pytest.mark.parametrize("draw", [torch.rand, torch.manual_seed])
def test_what_an_evaluation_draws_or_seeds_changes_no_mask_of_dropout(
    draw: Callable[[int], object], small_set: PatchSet
) -> None:
    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        draw(1)
        return {}

    dropping = replace(ADASAMPLE, model=replace_options(ADASAMPLE.model, dropout=0.3))
    alone = train(dropping, TINY, small_set, 0)
    assert same_weights(train(dropping, TINY, small_set, 0, evaluate=evaluate), alone)


@pytest.mark.parametrize("reuse", [False, True])
def test_a_killed_run_resumes_to_the_same_bits(reuse: bool, small_set: PatchSet, tmp_path: Path) -> None:
    recipe = replace(ADASAMPLE, sampler=replace_options(ADASAMPLE.sampler, reuse=reuse))
    arguments, evaluate = (recipe, TINY, small_set, 0), partial(fpr95_of, small_set)
    checkpoint, steps = tmp_path / "run.pt", []
    continued = resumed(
        7,
        *arguments,
        checkpoint=checkpoint,
        on_step=lambda step, total: steps.append(step),
        evaluate=evaluate,
    )
    uninterrupted = train(*arguments, evaluate=evaluate)
    assert steps[0] == 7, "the step that was cut off is done again, those before it are not"
    assert same_weights(continued, uninterrupted)
    assert continued.curve == uninterrupted.curve
    assert continued.epochs == uninterrupted.epochs
    for stage, weights in uninterrupted.stages.items():
        assert all(torch.equal(continued.stages[stage][name], value) for name, value in weights.items())
    assert checkpoint.exists(), "it goes when what training gave is kept elsewhere"


def fpr95_of(data: PatchSet, model: torch.nn.Module) -> dict[str, float]:
    return {data.name: measure(Subject(partial(describe, model)), data)["expected"]}


def test_stages_hold_the_weights_of_that_moment(small_set: PatchSet) -> None:
    halfway = train(recipes.HARDNET, TINY, small_set, 0, max_steps=5)
    whole = train(recipes.HARDNET, TINY, small_set, 0)
    assert list(whole.stages) == ["0.0", "0.5", "1.0"]
    for name, value in halfway.model.state_dict().items():
        assert torch.equal(whole.stages["0.5"][f"model/{name}"], value)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(whole.stages["1.0"][f"model/{name}"], value)


class WritesWhenUnpickled:
    """An object whose unpickling writes a file, as a malicious checkpoint could."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_a_checkpoint_of_arbitrary_objects_is_refused(small_set: PatchSet, tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.pt"
    written = tmp_path / "written"
    torch.save({"parts": WritesWhenUnpickled(written)}, checkpoint)
    with pytest.raises(ValueError, match=r"run\.pt is no checkpoint"):
        train(recipes.HARDNET, TINY, small_set, 0, checkpoint=checkpoint)
    assert checkpoint.exists(), "nothing is lost"
    assert not written.exists(), "no code of the file is run"


@pytest.fixture
def checkpoint(small_set: PatchSet, tmp_path: Path) -> Path:
    """A checkpoint of AdaSample after four steps."""
    path = tmp_path / "run.pt"
    train(ADASAMPLE, TINY, small_set, 0, checkpoint=path, checkpoint_seconds=0, max_steps=4)
    return path


OTHERS = {
    "another width": (ADASAMPLE, replace(TINY, width=1 / 8)),
    "another optimiser": (replace(ADASAMPLE, optimizer=part("adam", lr=0.01)), TINY),
    "another sampler": (replace(ADASAMPLE, sampler=part("random_pair")), TINY),
    "another loss": (replace(ADASAMPLE, loss=part("cdf")), TINY),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_other_names_or_shapes_is_foreign(
    other: str, small_set: PatchSet, checkpoint: Path
) -> None:
    with pytest.raises(ForeignCheckpoint, match=r"run\.pt is no checkpoint"):
        train(*OTHERS[other], small_set, 0, checkpoint=checkpoint)


RUN = {"recipe": ADASAMPLE, "profile": TINY, "seed": 0}
NEAR = {
    "recipe": {"recipe": replace(ADASAMPLE, optimizer=replace_options(ADASAMPLE.optimizer, lr=0.02))},
    "budget": {"profile": replace(TINY, budget=replace(TINY.budget, epochs=TINY.budget.epochs + 1))},
    "seed": {"seed": 1},
}


@pytest.mark.parametrize("what", [*NEAR, "patch set"])
def test_a_checkpoint_of_another_run_with_equal_shapes_is_foreign(
    what: str, small_set: PatchSet, checkpoint: Path
) -> None:
    patches = small_set.patches
    if what == "patch set":
        patches = np.flip(patches, axis=0).copy()
    with pytest.raises(ForeignCheckpoint, match=rf"run\.pt is of a run with another {what}"):
        train(
            patch_set=replace(small_set, patches=patches),
            checkpoint=checkpoint,
            **(RUN | NEAR.get(what, {})),
        )


def test_a_checkpoint_that_is_past_a_stage_it_did_not_keep_is_refused(
    small_set: PatchSet, tmp_path: Path
) -> None:
    def goes_on(kept: tuple[float, ...], asked: tuple[float, ...]) -> Trained:
        path = tmp_path / f"{kept}-{asked}.pt"
        # Four steps of ten.
        options = {"checkpoint": path, "checkpoint_seconds": 0}
        train(ADASAMPLE, replace(TINY, stages=kept), small_set, 0, max_steps=4, **options)
        return train(ADASAMPLE, replace(TINY, stages=asked), small_set, 0, **options)

    for kept, asked, missed in (((1.0,), (0.0, 0.2, 0.4, 1.0), "0.0, 0.2"), ((0.0,), (0.3,), "0.3")):
        with pytest.raises(ForeignCheckpoint, match=rf"is past stages .* \({missed}\)"):
            goes_on(kept, asked)
    whole = train(ADASAMPLE, replace(TINY, stages=(0.4, 1.0)), small_set, 0).stages
    for stage, weights in goes_on((1.0,), (0.4, 1.0)).stages.items():
        assert all(torch.equal(weights[name], value) for name, value in whole[stage].items())


@pytest.mark.parametrize(
    "missing", ["run", "progress", "parts", "generator", "torch", "cuda", "momentum"]
)
def test_a_checkpoint_that_lacks_something_is_foreign(
    missing: str, small_set: PatchSet, checkpoint: Path
) -> None:
    content = torch.load(checkpoint, weights_only=True)
    if missing == "momentum":
        content["parts"]["optimizer"]["state"][0]["momentum_buffer"] = torch.zeros(3)
    else:
        del content[missing]
    torch.save(content, checkpoint)
    with pytest.raises(ForeignCheckpoint, match=r"run\.pt is no checkpoint"):
        train(ADASAMPLE, TINY, small_set, 0, checkpoint=checkpoint)


@pytest.mark.parametrize("size", [0, 1, 500, -1])
def test_a_cut_checkpoint_is_foreign(size: int, small_set: PatchSet, checkpoint: Path) -> None:
    checkpoint.write_bytes(checkpoint.read_bytes()[:size])
    with pytest.raises(ForeignCheckpoint, match=r"run\.pt is no checkpoint"):
        train(ADASAMPLE, TINY, small_set, 0, checkpoint=checkpoint)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        MemoryError(),
        PermissionError(13, "denied"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_says_nothing_about_the_file_is_raised_as_it_is(
    error: Exception, small_set: PatchSet, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    for place, name in ((torch.optim.SGD, "load_state_dict"), (torch, "load")):
        monkeypatch.setattr(place, name, fail)
        with pytest.raises(type(error)) as raised:
            train(ADASAMPLE, TINY, small_set, 0, checkpoint=checkpoint)
        assert raised.value is error


def test_patches_that_are_no_grey_values_of_a_byte_are_refused(small_set: PatchSet) -> None:
    scaled = replace(small_set, patches=small_set.patches.astype(np.float32) / 255)
    with pytest.raises(ValueError, match="uint8 grey values, got float32"):
        train(recipes.HARDNET, profiles.QUICK, scaled, seed=0, max_steps=1)


def test_a_batch_of_two_pairs_trains(small_set: PatchSet) -> None:
    pair = replace(TINY, budget=Budget(batch_pairs=2, epoch_pairs=6, epochs=1))
    trained = train(ADASAMPLE, pair, small_set, 0)
    assert np.isfinite(trained.curve["loss"]).all()


def test_a_loss_that_is_no_longer_finite_is_reported_with_its_step(small_set: PatchSet) -> None:
    wild = at_rate(recipes.HARDNET, 1e30)
    with pytest.raises(FloatingPointError, match=r"HardNet, seed 0: the loss is .* at step \d"):
        train(wild, TINY, small_set, 0)


def test_the_curve_has_an_exponent_for_adasample_alone(small_set: PatchSet) -> None:
    sampled = train(ADASAMPLE, TINY, small_set, 0).curve
    blind = train(recipes.HARDNET, TINY, small_set, 0).curve
    assert "exponent" not in blind
    # λ / L_avg; L_avg starts at the first batch's loss and moves a tenth toward each batch's.
    average = sampled["loss"][0]
    for loss, exponent in zip(sampled["loss"], sampled["exponent"], strict=True):
        average = 0.9 * average + 0.1 * loss
        assert exponent == pytest.approx(10 / average, rel=1e-5)
