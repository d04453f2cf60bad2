"""Golden values: losses of 20 steps of training, and measures of one small input, as committed.

They guard two promises. A run of training is current as long as `lib.training.NUMERICS` is, and a
measure as long as its module's number in `lib.benchmarks.MEASURES` is. So whoever changes what training
or a measure computes raises that number, and writes the golden values anew:

    python tests/golden.py [CASE …]

`test_golden.py` compares.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import golden_inputs as inputs
import numpy as np
import torch

from lib import profiles, training
from lib.benchmarks import MEASURES
from lib.benchmarks.subject import Subject, describe, of_signs
from lib.recipes import (
    ACROSS,
    DSM,
    HYNET,
    RECIPES,
    TURNED,
    WITHIN,
    Budget,
    Recipe,
    adasample,
    at_rate,
    changed,
    hybrid,
    part,
    replace_options,
)

FOLDER = Path(__file__).parent

# Training: two epochs of ten steps. The classes are so few that points which are used up before they
# repeat are shuffled anew every four steps.
PAIRS, STEPS, CLASSES = 16, 20, 75
SHOWN = (1, 2, 5, 10, 20)
# TCDesc's neighbours are a smaller share of these small batches, so that not all λ are at their limit.
NEIGHBOURS = 5
IN_FLOAT32 = "step 2 in float32"
# Of a recipe's own learning rate. At the whole rate, 20 steps turn the last digit of float64 into the
# third, and the values would depend on the processor.
SLOWER = 0.01


# Axes that change, by the recipe's name and what is shown: a dict changes options of the axis's part.
# They are the parts and options that the notebooks' own variants use.
_R_L2, _SOSR = HYNET.regularizers[0], RECIPES["sosnet_aug"].regularizers[0]
_BITS = RECIPES["dsm_binary_aug"].distance
_WITHOUT_Z, _ON_D, _ON_S = hybrid(HYNET, z=1.0), hybrid(HYNET, 0.0), hybrid(HYNET, float("inf"))
_GAUSSIAN = part("cdf", form="gaussian", momentum=0.1)
CHANGES: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "hardnet_aug": {
        "four symmetries": {"augment": {"among": "transpose_flip"}},
        "topology, Adam": {
            "positive": part("topology", neighbours=NEIGHBOURS, gamma=1.0),
            "optimizer": HYNET.optimizer,
        },
    },
    "hardnet_gor_aug": {"one negative each": {"regularizers": (part("gor", weight=1.0, pairs="one"),)}},
    "hardnet_aug_gen": {
        "negatives within": {"negatives": WITHIN},
        "negatives of all four blocks": {"negatives": {"scope": "all"}},
        "squared distance": {"distance": part("euclidean", power=2)},
        "squared angle": {"distance": part("angular", power=2)},
        "no dampening": {"optimizer": {"dampening": 0.0}},
    },
    "adasample": {
        "negatives across": {"negatives": ACROSS},
        "negatives of all four blocks": {"negatives": {"scope": "all"}},
        "w_i = 1": {"pair_weight": None},
        "w_i = 1/d, raw": {"pair_weight": {"scale": "raw"}},
        "w_i = Z/d, by class": {"pair_weight": {"scale": "class"}},
        "reused": {"sampler": {"reuse": True}},
        "windowed": {"sampler": {"average": "windowed"}},
        "cumulative": {"sampler": {"average": "cumulative"}},
        "constant rate": {"schedule": part("constant")},
        "random positives, Adam": {
            "sampler": part("random_pair"),
            "pair_weight": None,
            "optimizer": HYNET.optimizer,
        },
        "topology": {"positive": part("topology", neighbours=NEIGHBOURS, gamma=1.0)},
    },
    "adasample_aug_gen": {
        "any rotation": {"generate": {"max_degrees": 180.0}},
        "angles fixed": {"generate": {"renew": False}},
        "patches turned each for itself": {"augment": {"shared": False}},
    },
    "dsm_aug": {
        "margin 0.375": {"loss": part("hinge", margin=0.375)},
        "softplus": {"loss": part("softplus", beta=1.0)},
        "hardest 1/8": {"loss": part("hardest_fraction", fraction=1 / 8)},
        "of the positive": {"loss": {"of": "positive"}},
        "of the negative": {"loss": {"of": "negative"}},
        "Gaussian": {"loss": _GAUSSIAN},
        "momentum 0.01, 32 bins": {"loss": {"momentum": 0.01, "bins": 32}},
        "interpolated lookup": {"loss": {"lookup": "interpolated"}},
        "points drawn for each batch": {"points": None},
        "eight symmetries alike": {"augment": TURNED},
        "AdaSample, L_avg of a hinge": {
            "sampler": part("adasample", lam=10.0, distance=DSM.distance, of="hinge")
        },
    },
    "dsm_binary_aug": {
        "margin 32 bits": {"loss": part("hinge", margin=32 * 2 / 256)},
        "softplus": {"loss": part("softplus", beta=1.0)},
        "hardest 1/4": {"loss": part("hardest_fraction", fraction=1 / 4)},
        "of the positive": {"loss": {"of": "positive", "distance": _BITS}},
        "of the negative": {"loss": {"of": "negative", "distance": _BITS}},
        "Gaussian": {"loss": _GAUSSIAN},
    },
    "sosnet_aug": {
        "margin 1.2": {"loss": {"margin": 1.2}},
        "symmetrised": {"regularizers": (replace_options(_SOSR, symmetric=True),)},
        "across": {"regularizers": (replace_options(_SOSR, across=True),)},
        "Adam, BN": {
            "model": part("hynet", norm="batch", dropout=0.3),
            "optimizer": HYNET.optimizer,
            "schedule": part("constant"),
        },
    },
    "hynet_aug": {
        "BN": {"model": {"norm": "batch"}},
        "IN": {"model": {"norm": "instance"}},
        "BN, all else kept": {"model": {"norm": "batch", "around": "hynet"}},
        "IN, all else kept": {"model": {"norm": "instance", "around": "hynet"}},
        "no R_L2": {"regularizers": ()},
        "SOSR too": {"regularizers": (_R_L2, _SOSR)},
        "summed": {"reduction": "sum", "regularizers": (replace_options(_R_L2, reduction="sum"),)},
        "not divided by Z": {"distance": _WITHOUT_Z.distance, "negatives": _WITHOUT_Z.negatives},
        "d": {axis: getattr(_ON_D, axis) for axis in ("distance", "negatives")},
        "s": {axis: getattr(_ON_S, axis) for axis in ("distance", "negatives")},
        "L_A": {
            "distance": _ON_D.distance,
            "negatives": _ON_D.negatives,
            "loss": part("mixed_hinge", margin=1.0),
        },
        "L_B": {
            "distance": _ON_D.distance,
            "negatives": _ON_D.negatives,
            "loss": part("stacked_hinge", alpha=2.0, similarity_margin=0.9, distance_margin=1.2),
        },
        "SGD": {"optimizer": DSM.optimizer},
        "points shuffled": {"points": part("shuffled")},
        "topology": {"positive": part("topology", neighbours=NEIGHBOURS, gamma=1.0)},
    },
    "tcdesc_dsm_aug": {
        "λ alone": {"positive": {"weights": "none"}},
        "3 neighbours, γ = 2": {"positive": {"neighbours": 3, "gamma": 2.0}},
        "λ = 0.3": {"positive": {"lam": 0.3}},
        "heat kernel": {"positive": {"weights": "heat"}},
        "heat kernel on d²": {"positive": {"weights": "heat", "squared": True}},
        "hard weight": {"positive": {"weights": "heat", "t": 1000.0}},
        "mutual matches": {"positive": {"mutual": True}},
        "λ of the batch": {"positive": {"per": "batch"}},
        "neighbours detached": {"positive": {"detached": True}},
        "weights sum to one": {"positive": {"sum_to_one": True}},
        "ridge 0.01": {"positive": {"ridge": 0.01}},
        "CDF on the Euclidean difference": {
            "loss": part("unmixed", loss=DSM.loss, distance=DSM.distance)
        },
    },
}


def recipes() -> dict[str, Recipe]:
    """Return what is trained, by name: every recipe, AdaSample by λ and loss, and `CHANGES`."""
    cases = dict(RECIPES)
    for lam, loss in ((0.0, "AHT"), (2.0, "HT"), (float("inf"), "AHT"), (float("inf"), "HT")):
        cases[f"adasample: λ = {lam:g}, {loss}"] = adasample(lam, loss, generate=False)
    fewer = {"positive": {"neighbours": NEIGHBOURS}}
    cases |= {
        name: changed(RECIPES[name], RECIPES[name].label, fewer)
        for name in ("tcdesc_hn_aug", "tcdesc_dsm_aug")
    }
    for name, choices in CHANGES.items():
        for shown, changes in choices.items():
            cases[f"{name}: {shown}"] = changed(cases[name], shown, changes)
    return cases


@contextmanager
def in_float64() -> Iterator[None]:
    """Compute in float64 throughout.

    The library converts its integers, and what autocast may have left in half precision, by
    ``Tensor.float``, which here means float64 too.
    """
    torch.set_default_dtype(torch.float64)
    try:
        with patch.object(torch.Tensor, "float", torch.Tensor.double):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


@cache
def _trained_on() -> inputs.PatchSet:
    return inputs.patch_set(0, CLASSES)


def profile_of(steps: int, pairs: int = PAIRS, stages: tuple[float, ...] = ()) -> profiles.Profile:
    """Return the size of a run of two epochs."""
    budget = Budget(batch_pairs=pairs, epoch_pairs=pairs * steps // 2, epochs=2)
    return replace(profiles.QUICK, width=1 / 8, budget=budget, stages=stages)


def losses(recipe: Recipe, steps: int = STEPS) -> list[float]:
    """Return the loss of each step of training, in the default precision."""
    slower = at_rate(recipe, SLOWER * recipe.optimizer.options["lr"])
    # The curve has one value a step, because the run is short.
    run = training.train(slower, profile_of(STEPS), _trained_on(), seed=0, max_steps=steps)
    return run.curve["loss"]


def golden_losses(name: str) -> dict[str, float]:
    """Return a case's losses: those of the steps `SHOWN` in float64, and of the second in float32."""
    recipe = recipes()[name]
    with in_float64():
        wide = losses(recipe)
    shown = {f"step {step}": float(f"{wide[step - 1]:.10g}") for step in SHOWN}
    return shown | {IN_FLOAT32: float(f"{losses(recipe, 2)[1]:.6g}")}


def trained(recipe: Recipe) -> Subject:
    """Return a network after 0, 2 and 4 steps of training, as measures and analyses get it."""
    # TCDesc's 16 neighbours, whose likeness an analysis measures, need a larger batch.
    profile = profile_of(4, pairs=20, stages=(0.0, 0.5, 1.0))
    run, stages = training.train(recipe, profile, _trained_on(), seed=0), {}
    for stage, tensors in run.stages.items():
        stages[stage] = copy.deepcopy(run.model)
        stages[stage].load_state_dict(training.part_state(tensors))
    pairs = profile.budget.batch_pairs
    return Subject(partial(describe, run.model), recipe, stages, pairs, run.curve)


def module(name: str) -> ModuleType:
    """Return the module of a measure or an analysis."""
    room = "benchmarks" if importlib.util.find_spec(f"lib.benchmarks.{name}") else "analysis"
    return importlib.import_module(f"lib.{room}.{name}")


def by_network(name: str, recipe: str, changes: Mapping[str, object] | None = None) -> object:
    """Measure or analyse a network that a recipe trained, in float64; on patches with labelled pairs or,
    for an analysis, on those that it was trained on."""
    with in_float64():
        subject = trained(changed(RECIPES[recipe], recipe, changes or {}))
        if hasattr(module(name), "probe"):
            return module(name).probe(subject, _trained_on())
        return module(name).measure(subject, inputs.labelled_set())


def measured(name: str) -> object:
    """Measure the projection of patches on labelled pairs, or probe it."""
    function = getattr(module(name), "measure", None) or module(name).probe
    return function(Subject(inputs.projected), inputs.labelled_set())


def of_bits(name: str) -> object:
    """Measure the signs of the projection."""
    return module(name).measure(of_signs(Subject(inputs.projected)), inputs.labelled_set())


def in_folder(measure: Callable[[Path], object]) -> object:
    """Measure what is written to a folder for it."""
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder, "made"))


def on_homographies(name: str) -> object:
    """Measure the projection on two sequences of images, or count its right matches and all."""

    def measure(folder: Path) -> object:
        subject, sequences = Subject(inputs.projected), inputs.homography_sequences(folder)
        if hasattr(module(name), "measure"):
            return module(name).measure(subject, sequences)
        probed = module(name).probe(subject, sequences)
        return {count: probed[count].tolist() for count in ("right", "matches")}

    return in_folder(measure)


def on_scene(name: str) -> object:
    """Measure descriptors of a scene's keypoints."""
    scene = inputs.scene()
    return module(name).measure(inputs.numbered_keypoints(scene), [scene])


def on_models(name: str, scenes: Callable[[inputs.Pictured], list]) -> object:
    """Measure features of photographs, from which COLMAP makes a model."""

    def measure(folder: Path) -> object:
        made = inputs.pictured(folder)
        return module(name).measure(made.subject, scenes(made))

    return in_folder(measure)


def on_cities(name: str) -> object:
    """Measure retrieval in two cities."""

    def measure(folder: Path) -> object:
        made, subject = inputs.cities(folder)
        return module(name).measure(subject, made)

    return in_folder(measure)


def with_opencv(measure: Callable[[], object]) -> object:
    """Measure stereo by OpenCV's RANSAC, also where pydegensac is installed, which is optional."""
    with patch.object(module("imc"), "DEGENSAC", False):
        return measure()


_FEW_CANDIDATES = {"generate": {"patches_per_class": 6}}
# By the name of a module and, after a colon, of the case: what computes its numbers or arrays.
CASES: Mapping[str, Callable[[], object]] = {
    "architecture": lambda: module("architecture").compute(width=0.25),
    "carrying_error": lambda: on_scene("carrying_error"),
    "descriptor_spread": lambda: by_network("descriptor_spread", "hardnet_aug"),
    "descriptor_spread: bits": lambda: by_network("descriptor_spread", "dsm_binary_aug"),
    "drawn_pairs": lambda: by_network("drawn_pairs", "adasample_aug_gen", _FEW_CANDIDATES),
    "fpr95": lambda: measured("fpr95"),
    "fpr95: bits": lambda: of_bits("fpr95"),
    "fpr95_by_stage": lambda: by_network("fpr95_by_stage", "hardnet_aug"),
    "gradient_magnitudes": lambda: by_network("gradient_magnitudes", "hynet_aug"),
    "gradient_magnitudes: w_i": lambda: by_network("gradient_magnitudes", "adasample"),
    "gradient_norms": lambda: by_network("gradient_norms", "adasample_aug_gen", _FEW_CANDIDATES),
    "hpatches": lambda: module("hpatches").measure(Subject(inputs.projected), inputs.hpatches_split()),
    "hpatches: bits": lambda: module("hpatches").measure(
        of_signs(Subject(inputs.projected)), inputs.hpatches_split()
    ),
    "image_pairs": lambda: on_scene("image_pairs"),
    "imc": lambda: with_opencv(lambda: on_models("imc", inputs.challenge_scenes)),
    "intensity_changes": lambda: by_network("intensity_changes", "hynet_aug"),
    "loss_shapes": lambda: module("loss_shapes").compute(angles=12, triplets=63),
    "matches_on_brisk": lambda: on_homographies("matches_on_brisk"),
    "matches_on_dog": lambda: on_homographies("matches_on_dog"),
    "moving_histogram": lambda: by_network("moving_histogram", "dsm_aug"),
    "narrow_weights": lambda: module("narrow_weights").compute(pairs=128, batches=3),
    "neighbourhoods": lambda: by_network("neighbourhoods", "tcdesc_dsm_aug"),
    "orthogonality": lambda: by_network("orthogonality", "hynet_aug"),
    "output_gradient": lambda: module("output_gradient").compute(points=11),
    "oxford_affine": lambda: on_homographies("oxford_affine"),
    "retrieval": lambda: on_cities("retrieval"),
    "set_statistics": lambda: measured("set_statistics"),
    "sfm": lambda: on_models("sfm", inputs.eth_scenes),
    "similarities": lambda: module("similarities").compute(pairs=40, points=80),
    "theorem_2": lambda: module("theorem_2").compute(exponents=(1, 3)),
    "triplets_in_batch": lambda: by_network("triplets_in_batch", "hardnet_aug"),
    "triplets_in_batch: bits": lambda: by_network("triplets_in_batch", "dsm_binary_aug"),
    "unbiasedness": lambda: module("unbiasedness").compute(exponents=(1, 10)),
    "w1bs": lambda: module("w1bs").measure(Subject(inputs.projected), inputs.w1bs_pairs()),
    "w1bs_curves": lambda: module("w1bs_curves").probe(Subject(inputs.projected), inputs.w1bs_pairs()),
}


def golden_measures(name: str) -> dict[str, float]:
    """Return the numbers of one of `CASES` by their names, to 8 digits; arrays as `summarised`. Texts,
    which are labels, are left out."""
    values = dict(flattened(CASES[name](), ""))
    return {key: float(f"{value:.8g}") for key, value in values.items() if not isinstance(value, str)}


def flattened(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Yield the names and values of nested results; arrays are summarised."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flattened(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, tuple | list):
        for number, inner in enumerate(value):
            yield from flattened(inner, f"{name}.{number}" if name else str(number))
    elif isinstance(value, np.ndarray):
        for key, inner in summarised(value).items():
            yield f"{name}.{key}", inner
    elif value is not None:
        yield name, value


def summarised(array: np.ndarray) -> dict[str, float]:
    """Return an array's lengths, its number of finite values, their mean and standard deviation, and
    their mean weighted by a wave, in which their order counts."""
    lengths = {f"length.{axis}": length for axis, length in enumerate(array.shape)}
    if array.dtype.kind == "U":
        return lengths
    flat = array.astype(float).ravel()
    places = np.flatnonzero(np.isfinite(flat))
    kept = flat[places]
    numbers = {"finite": len(kept)}
    if len(kept):
        wave = kept @ np.cos(places) / len(kept)
        numbers |= {"mean": kept.mean(), "deviation": kept.std(), "wave": wave}
    return lengths | numbers


def differences(name: str, was: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """Return in words where two sets of golden values differ by more than rounding."""
    told = [f"{name}: {key} is missing" for key in was if key not in now]
    told += [f"{name}: {key} is new" for key in now if key not in was]
    for key in was.keys() & now.keys():
        tolerance = tolerance_of(name, key)
        # DSM's loss is a difference, and near 0 at first.
        if not math.isclose(was[key], now[key], rel_tol=tolerance, abs_tol=tolerance / 10):
            told.append(f"{name}: {key} was {was[key]} and is {now[key]}")
    return told


# Values differ by processor: those of training in float64 in the tenth digit after 20 steps, those in
# float32 in the fifth, and generated positives, which lie close to their anchors, in the fourth.
# COLMAP's models lose more digits than other measures.
STEPS_APART, SECOND_STEP_APART, GENERATED_APART = 1e-8, 1e-4, 1e-3
MEASURES_APART, MODELS_APART = 1e-5, 1e-3
# Processors differ by a keypoint or two, and so by a match or two of a hundred.
DETECTED_APART = {"oxford_affine": 0.01, "matches_on_brisk": 0.03, "matches_on_dog": 0.03}


def tolerance_of(name: str, key: str) -> float:
    """Return the relative tolerance of a golden value."""
    if key == IN_FLOAT32:
        sampled = name.startswith("adasample_") and "gen" in name
        return GENERATED_APART if sampled else SECOND_STEP_APART
    if key.startswith("step "):
        return STEPS_APART
    if name in ("imc", "sfm"):
        return MODELS_APART
    return DETECTED_APART.get(name, MEASURES_APART)


def digest(version: object, values: object) -> str:
    """Return 16 hex digits of golden values and their version, so that an edit by hand is noticed."""
    text = json.dumps([version, values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# The files by what they guard.
FILES = {
    "training": FOLDER / "golden_training.json",
    "measures": FOLDER / "golden_measures.json",
}


def version_of(kind: str, name: str) -> int:
    """Return the version that today's code gives a case: `NUMERICS`, or its module's of `MEASURES`."""
    return training.NUMERICS if kind == "training" else MEASURES[name.partition(":")[0]]


def compute(kind: str, name: str) -> dict[str, float]:
    """Compute the golden values of a case."""
    return golden_losses(name) if kind == "training" else golden_measures(name)


def names(kind: str) -> list[str]:
    """Return the names of all cases."""
    return list(recipes() if kind == "training" else CASES)


def read(kind: str) -> dict[str, dict]:
    """Return the golden values on record: by case "version", "values" and "digest"."""
    return json.loads(FILES[kind].read_text()) if FILES[kind].exists() else {}


def main(asked: Sequence[str] = ()) -> None:
    """Compute golden values and write them, unless values changed and their version did not.

    Args:
        asked: names of cases; without any, all cases are computed.
    """
    refused, contents = [], {}
    for kind in FILES:
        held, made = read(kind), {}
        for name in names(kind):
            was = held.get(name)
            if was and asked and name not in asked:
                made[name] = was
                continue
            version, values = version_of(kind, name), compute(kind, name)
            if was and version == was["version"]:
                refused += differences(name, was["values"], values)
                # Values that differ by rounding alone stay as they are.
                values = was["values"]
            made[name] = {"version": version, "values": values, "digest": digest(version, values)}
        contents[kind] = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    if refused:
        where = "raise NUMERICS in lib/training.py, or the module's number in lib/benchmarks/__init__.py"
        sys.exit("\n".join([*refused, f"Nothing was written: if these changes are meant, {where}."]))
    for kind, content in contents.items():
        FILES[kind].write_text(content)


if __name__ == "__main__":
    main(sys.argv[1:])
