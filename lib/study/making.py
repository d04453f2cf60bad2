"""Make runs: train a network, and measure it.

A run's weights and arrays are written before its JSON file, so that a run on record has them; its
checkpoint is removed afterwards. Two processes never make the same run: the second waits for the first,
and finds the run.
"""

import hashlib
import json
import platform
import signal
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, partial
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from lib import parts
from lib.benchmarks import MEASURES
from lib.benchmarks.fpr95_by_stage import few_pairs, follow
from lib.benchmarks.subject import Subject, describe, of_signs, once
from lib.bfloat16 import fast_convolutions
from lib.data.sources import FREE, Source
from lib.files import locked, set_aside, sha256, write_bytes
from lib.models.exported import MAGNIFICATION
from lib.profiles import Profile
from lib.recipes import Budget, Part
from lib.study.requests import BY_SIGN, Request, configuration, merged, version
from lib.study.store import CURVES, NUMBERS, VERSIONS, Store, put_aside
from lib.study.sweep import Cluster, Task, processes_for, span, sweep, wall_clock
from lib.training import NUMERICS, ForeignCheckpoint, part_state, steps_per_epoch, train

ROOT = Path(__file__).resolve().parents[2]
# The libraries that numbers depend on, each with the module that is imported.
LIBRARIES = {
    "torch": "torch",
    "numpy": "numpy",
    "kornia": "kornia",
    "opencv-contrib-python-headless": "cv2",
    "scikit-image": "skimage",
    "scikit-learn": "sklearn",
    "pycolmap": "pycolmap",
    "pydegensac": "pydegensac",
    "faiss-cpu": "faiss",
}
# Seconds that the slow measures take on one CPU thread for one set of the repository's data.
SECONDS = {
    "hpatches": 5.0,
    "intensity_changes": 5.0,
    "oxford_affine": 5.0,
    "sfm": 26.0,
    "imc": 26.0,
    "retrieval": 26.0,
}
# Size that a probe's arrays on one set should have, in bytes; twenty times as many are refused.
LARGEST_ARRAYS = 200_000


def make(
    requests: Iterable[Request],
    source: Source,
    store: Store,
    profile: Profile,
    device: str = "cpu",
    jobs: int | None = None,
    address: str | None = None,
) -> list[tuple[str, str]]:
    """Make missing runs, several at once, and show the progress.

    Args:
        requests: what is needed; runs that are complete cost nothing.
        source: the data.
        store: the folder of runs.
        profile: the study's size; it says how many threads a run has.
        device: "cpu", "cuda", …
        jobs: how many runs are made at once; None is as many as the cores hold.
        address: of a Dask scheduler whose workers make the runs; None makes them here.

    Returns:
        The titles of the runs that failed, each with the reason.

    Raises:
        ValueError: data cannot be made or read.
        KeyboardInterrupt: what was done is kept, and the same call goes on.
    """
    every = merged(requests, source)
    todo = {name: request for name, request in every.items() if _is_due(name, request, source, store)}
    if not todo:
        return []
    threads = profile.threads if device == "cpu" else 0
    at_once = jobs or processes_for(threads)
    prepare(source, [name for request in todo.values() for name in request.sets], at_once)
    seconds = [sum(cost(request, source, profile, device)) for request in todo.values()]
    expected = span(wall_clock(seconds, at_once))
    print(f"{len(todo)} runs are missing: about {expected}, {at_once} at once.")
    print("After an interruption, the same call goes on.", flush=True)
    here = commit()
    # Methods are compared at one place with one seed. What lacks the fewest runs is completed first, so
    # that a sweep that is stopped leaves whole comparisons.
    missing = Counter((request.seed, request.train) for request in todo.values())
    group_of = {replicate: number for number, replicate in enumerate(sorted(missing, key=missing.get))}
    tasks = []
    for (name, request), length in zip(todo.items(), seconds, strict=True):
        do = partial(carry_out, name, request, source, store, profile.name, device, here)
        tasks.append(Task(request.title, do, length, group_of[request.seed, request.train]))
    cluster = Cluster(address, store.folder, state(), state) if address else None
    return sweep(tasks, at_once, threads, cluster)


def _is_due(name: str, request: Request, source: Source, store: Store) -> bool:
    run = store.find(name)
    return run is None or bool(run.lacks(request, source))


def prepare(source: Source, names: Iterable[str], jobs: int) -> None:
    """Make sets that are missing, and read the others once.

    Raises:
        FileNotFoundError: the photographs of a set are not on this machine.
        ValueError: a set could not be made or read; the message names each and why.
    """
    names = list(dict.fromkeys(names))
    if source.recorded and names:
        source.load(names[0])
    # Sets in one folder are made together.
    by_folder = {source.scene_folder(name): name for name in names}
    tasks = [Task(f"data {name}", partial(_load, source, name)) for name in by_folder.values()]
    failures = sweep(tasks, jobs, unit="set")
    if failures:
        raise ValueError("; ".join(f"{title}: {why}" for title, why in failures))


def _load(source: Source, name: str) -> None:
    source.load(name)


def cost(request: Request, source: Source, profile: Profile, device: str = "cpu") -> tuple[float, float]:
    """Estimate one process's seconds for a request from scratch: for training, and for measuring.

    Training time is the number of patches forwarded, a backward pass counted as two forward ones, over
    the profile's speed. Measures take the seconds of `SECONDS` a set.
    """
    if request.computation is not None:
        return 0.0, 5.0
    evaluation = 0.0
    for module, name in (*request.measures, *request.probes):
        # The repository's sets are small; others have ten times as many labelled pairs and images.
        larger = 1.0 if source.name == FREE or name.startswith(f"{FREE}-") else 10.0
        evaluation += larger * SECONDS.get(module.removesuffix(BY_SIGN), 0.7)
    if request.recipe is None:
        return 0.0, evaluation
    budget = request.profile.budget_for(request.recipe)
    candidates = 0
    if request.recipe.sampler.name != "random_pair":
        generate = request.recipe.generate
        candidates = generate.options["patches_per_class"] if generate else 3
    speed = profile.patches_per_second[device.partition(":")[0]]
    pairs = _steps(budget) * budget.batch_pairs
    return pairs * (6.0 + candidates) / speed, evaluation


def _steps(budget: Budget) -> int:
    """Return the number of training steps of a budget."""
    return budget.epochs * steps_per_epoch(budget)


@cache
def commit() -> str:
    """Return the commit of the code in 8 hexadecimal digits, with a "+" where it was edited since; ""
    outside a repository."""
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=True)
    try:
        name = git(["git", "rev-parse", "--short=8", "HEAD"]).stdout.strip()
        edited = git(["git", "status", "--porcelain", "--", "lib"]).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{name}+" if edited else name


def libraries() -> str:
    """Return the libraries that numbers depend on, with the versions imported here, in one line."""
    return "; ".join(f"{name} {held}" for name, held in _versions().items() if held)


def _versions() -> dict[str, str]:
    """Return the versions of `LIBRARIES`; "" for those that are not installed."""
    return {name: _version_of(name, module) for name, module in LIBRARIES.items()}


def _version_of(name: str, module: str) -> str:
    """Return the version of the library that a module is imported from; "" if it is not installed.

    Of several copies on the path, `importlib.metadata` may describe another than Python imports. So only
    what is installed beside the module counts, and if that is not one copy, what the module itself says.
    """
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    beside = str(Path(spec.origin).parents[1])
    held = {copy.version for copy in metadata.distributions(name=name, path=[beside])}
    if len(held) == 1:
        return held.pop()
    return str(getattr(import_module(module), "__version__", "unknown"))


def state() -> dict[str, object]:
    """Return what must be equal on two machines for a run to have the same numbers on both."""
    # A local label such as +cpu names a build of the same version.
    versions = {name: held.partition("+")[0] or "none" for name, held in _versions().items()}
    return {"commit": commit(), "NUMERICS": NUMERICS, "MEASURES": dict(MEASURES), **versions}


def device_name(device: str) -> str:
    """Return the kind of a device, for the record."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"


def carry_out(
    name: str,
    request: Request,
    source: Source,
    store: Store,
    profile: str,
    device: str = "cpu",
    commit: str = "",
) -> None:
    """Make a run in this process, or what it lacks.

    Args:
        name: the run's identity.
        request: the run, and what is measured on it.
        source: the data.
        store: the folder of runs.
        profile: the profile's name, for the record.
        device: "cpu", "cuda", …
        commit: of the code, for the record.

    Raises:
        ValueError, FloatingPointError: as training and evaluation raise.
        OSError: results cannot be written, or the disk is full; what was done is kept.
    """
    with locked(store.lock_path(name)):
        # We hold the lock, so any half-written file was left by a process that was killed.
        for half in store.folder.glob(f"{name}*.half*"):
            half.unlink(missing_ok=True)
        content = store.read(name)
        if content is not None and content["weights"]:
            lacking = store.as_run(name, content).lacks(request, source)
            stages = {str(stage) for stage in request.profile.stages}
            if lacking and not stages <= set(content["stages"]):
                put_aside(store.json_path(name), "weights of other stages are needed")
                content = None
            elif lacking and not _weights_are_whole(store, name, content):
                put_aside(store.json_path(name), "its weights are damaged")
                content = None
        if content is None:
            content = _begin(name, request, source, store, profile, device, commit)
        _measure(name, request, source, store, content, device)


def _weights_are_whole(store: Store, name: str, content: Mapping) -> bool:
    path = store.weights_path(name)
    if not path.exists():
        record = store.json_path(name)
        raise FileNotFoundError(f"{path} is missing: remove {record} too to train the run again")
    if path.is_file() and sha256(path) == content["weights"]:
        return True
    put_aside(path, "it is not what was written")
    return False


def _begin(
    name: str,
    request: Request,
    source: Source,
    store: Store,
    profile: str,
    device: str,
    commit: str,
) -> dict[str, object]:
    """Train a run or compute a computation, and write it before it is measured."""
    content: dict[str, object] = {
        "method": request.method,
        "label": request.label,
        "profile": profile,
        "data": source.name,
        "train": request.train,
        "seed": request.seed,
        "optimizer": None,
        "rate": request.rate,
        "steps": None,
        "batch": None,
        "width": None,
        "commit": commit,
        "device": device_name(device),
        "libraries": libraries(),
        "seconds": 0.0,
        "parameters": None,
        "config": configuration(request, source),
        "metrics": {},
        "probes": {},
        "followed": {},
        "curves": [],
        "stages": [],
        "weights": "",
    }
    if request.recipe is not None:
        budget = request.profile.budget_for(request.recipe)
        content |= {
            "optimizer": request.recipe.optimizer.name,
            "steps": _steps(budget),
            "batch": budget.batch_pairs,
            "width": request.profile.width,
        }
        content |= _train(name, request, source, store, device)
    store.write(name, content)
    for checkpoint in store.folder.glob(f"{name}.*.checkpoint"):
        checkpoint.unlink()
    return content


def _train(name: str, request: Request, source: Source, store: Store, device: str) -> dict[str, object]:
    profile = request.profile
    sets = request.followed[: profile.followed_sets]
    few = {own: few_pairs(source.load(own), profile.followed_pairs) for own in sets}
    followed = {own: source.digest(own) for own in sets}
    checkpoint = _checkpoint_path(name, store, profile, followed, device)
    begin = partial(
        train,
        request.recipe,
        profile,
        source.load(request.train),
        request.seed,
        device=device,
        evaluate=lambda model: follow(model, few, device),
        checkpoint=checkpoint,
    )
    with fast_convolutions(device):
        try:
            # torch verifies no checksum of what it loads.
            if checkpoint.exists() and zipfile.ZipFile(checkpoint).testzip() is not None:
                raise ForeignCheckpoint(f"{checkpoint} is damaged")
            trained = begin()
        except (zipfile.BadZipFile, zlib.error, ForeignCheckpoint, IsADirectoryError) as error:
            aside = set_aside(checkpoint)
            print(f"{error}: set aside as {aside.name}, and trained anew", file=sys.stderr, flush=True)
            trained = begin()
    kept = {}
    for stage, tensors in trained.stages.items():
        for tensor, value in tensors.items():
            kept[f"{stage}/{tensor}"] = value.contiguous()
    weights = safetensors.torch.save(kept)
    write_bytes(store.weights_path(name), weights)
    curves = {f"{CURVES}//{curve}": np.round(values, 6) for curve, values in trained.curve.items()}
    store.add_arrays(name, curves)
    return {
        "seconds": round(trained.seconds, 2),
        "parameters": sum(p.numel() for p in trained.model.parameters()),
        "curves": sorted(trained.curve),
        "followed": {
            own: {"set": followed[own], "values": [round(value, 6) for value in values]}
            for own, values in trained.epochs.items()
        },
        "stages": list(trained.stages),
        "weights": hashlib.sha256(weights).hexdigest(),
    }


def _checkpoint_path(
    name: str, store: Store, profile: Profile, followed: Mapping[str, str], device: str
) -> Path:
    """Return the path of a run's checkpoint, named by all that must not change when the run goes on."""
    begun = [
        torch.device(device).type,
        profile.threads or torch.get_num_threads(),
        torch.__version__,
        profile.stages,
        profile.followed_pairs,
        sorted(followed.items()),
    ]
    digest = hashlib.sha256(repr(begun).encode()).hexdigest()[:8]
    return store.folder / f"{name}.{digest}.checkpoint"


def load_stages(store: Store, name: str) -> dict[str, dict[str, Tensor]]:
    """Load a run's tensors by stage of its training, "0.0" first and "1.0" last, and by part and name,
    e.g. "model/features.0.weight".

    Raises:
        FileNotFoundError: the run has no weights here; the committed reference comes without.
    """
    path = store.weights_path(name)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: the committed reference comes without weights")
    stages: dict[str, dict[str, Tensor]] = {}
    kept = safetensors.torch.load(path.read_bytes())
    for tensor in sorted(kept, key=lambda tensor: float(tensor.partition("/")[0])):
        stage, _, parameter = tensor.partition("/")
        stages.setdefault(stage, {})[parameter] = kept[tensor]
    return stages


def load_network(store: Store, name: str) -> nn.Module:
    """Load a run's network from the end of its training, in evaluation mode.

    Raises:
        FileNotFoundError: there is no such run, or as `load_stages` raises.
    """
    path = store.json_path(name)
    try:
        config = json.loads(path.read_bytes())["config"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise FileNotFoundError(f"{path} is no run of this study ({error})") from error
    network = _network(config, load_stages(store, name)["1.0"])
    network.magnification = MAGNIFICATION
    return network


def _network(config: Mapping, tensors: Mapping[str, Tensor], device: str = "cpu") -> nn.Module:
    model = parts.build("model", Part(**config["recipe"]["model"]), width=config["size"]["width"])
    model.load_state_dict(part_state(tensors))
    return model.to(device, memory_format=torch.channels_last).eval()


def _subject(
    name: str, request: Request, store: Store, content: Mapping[str, object], device: str
) -> Subject:
    if request.descriptor is not None:
        model = parts.build("model", request.descriptor, **request.paths).to(device).eval()
        described = once(partial(describe, model, device=device))
        if hasattr(model, "of_image"):
            kind = _module("sfm").ImageSubject
            return kind(described, device=device, of_image=model.of_image)
        return Subject(described, device=device)
    stages = load_stages(store, name)
    models = {stage: _network(content["config"], tensors, device) for stage, tensors in stages.items()}
    described = once(partial(describe, models["1.0"], device=device))
    kept = store.as_run(name, content).probe(CURVES, "")
    curves = {curve: list(values) for curve, values in kept.items()}
    return Subject(described, request.recipe, models, content["batch"], curves, device)


def _measure(
    name: str,
    request: Request,
    source: Source,
    store: Store,
    content: dict[str, object],
    device: str,
) -> None:
    """Measure what a run lacks or has by another version or on other data."""
    lacking = store.as_run(name, content).lacks(request, source)
    if not lacking:
        return
    if request.computation is not None:
        _compute(name, request, store, content)
        return
    subject = _subject(name, request, store, content, device)
    # Each set is read and described once for all its measures and probes, then goes on record.
    for own in dict.fromkeys(test for _, test in lacking):
        data = source.load(own)
        digest = source.digest(own)
        for module in [module for module, test in lacking if test == own]:
            started = time.monotonic()
            made = {"set": digest, "version": version(module)}
            if (module, own) in request.measures:
                chosen = of_signs(subject) if module.endswith(BY_SIGN) else subject
                numbers = _module(module.removesuffix(BY_SIGN)).measure(chosen, data)
                made["values"] = {key: round(value, 6) for key, value in numbers.items()}
                content["metrics"].setdefault(own, {})[module] = made
            else:
                _add_arrays(store, name, module, own, _module(module).probe(subject, data))
                content["probes"].setdefault(own, {})[module] = made
            made["seconds"] = round(time.monotonic() - started, 2)
        store.write(name, content)


def _compute(name: str, request: Request, store: Store, content: dict[str, object]) -> None:
    computation = request.computation
    started = time.monotonic()
    numbers, arrays = _module(computation.name).compute(**computation.options)
    content["seconds"] = round(time.monotonic() - started, 2)
    # Tables of a computation are kept as text, and stand in no row of the tidy frame.
    kept = {**arrays, NUMBERS: np.array(json.dumps(numbers, allow_nan=False))}
    _add_arrays(store, name, computation.name, "", kept)
    made = {"set": "", "version": version(computation.name)}
    single = {key: value for key, value in numbers.items() if isinstance(value, int | float)}
    content["metrics"] = {"": {computation.name: {**made, "values": single}}}
    content["probes"] = {"": {computation.name: made}}
    store.write(name, content)


def _add_arrays(
    store: Store, name: str, module: str, own: str, arrays: Mapping[str, np.ndarray]
) -> None:
    named = {f"{module}/{own}/{key}": np.asarray(array) for key, array in arrays.items()}
    size = sum(array.nbytes for array in named.values())
    if size > 20 * LARGEST_ARRAYS:
        raise ValueError(f"{module} on {own}: arrays of {size:,} bytes; bin them to {LARGEST_ARRAYS:,}")
    named[f"{VERSIONS}{module}"] = np.int64(version(module))
    store.add_arrays(name, named)


def _module(name: str) -> ModuleType:
    """Import a module of `lib.benchmarks` or `lib.analysis`."""
    handler = signal.getsignal(signal.SIGTERM)
    package = "lib.benchmarks" if _is_benchmark(name) else "lib.analysis"
    module = import_module(f"{package}.{name}")
    # Some modules import pycolmap, which replaces our handler by one that ends the process without
    # unwinding it. Only the main thread may set a handler.
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGTERM, handler)
    return module


@cache
def _is_benchmark(name: str) -> bool:
    return (ROOT / "lib" / "benchmarks" / f"{name}.py").is_file()
