"""Does one job: trains and evaluates what is missing of it, into its record."""

from __future__ import annotations

import platform
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module, metadata
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, safe_open, save_file
from torch import Tensor, nn

from lib import parts
from lib.digests import value_digest
from lib.evaluation.fpr95 import measure as measure_fpr95
from lib.evaluation.subject import Subject, describe
from lib.files import locked, replacing, set_aside
from lib.recipes import Part
from lib.study import records
from lib.study.jobs import (
    NO_SET,
    Job,
    Place,
    configuration,
    digests,
    probe_path,
    record_path,
    state,
    to_evaluate,
)
from lib.training import Trained, train

LIBRARIES = ("torch", "numpy", "kornia", "opencv-python-headless", "scikit-image", "scikit-learn")


def carry_out(job: Job, place: Place, on_step: Callable[[int, int], None] | None = None) -> Path:
    """Does a job in this process, unless its record is complete, and returns the record's path.

    Training is skipped where weights by today's code are there. Probes and weights are written
    before the record, so a record that exists has them. Two processes never do the same job: the
    second waits for the first and finds the record.

    Args:
        job: what to have.
        place: where.
        on_step: called with steps done and steps in all.

    Raises:
        ValueError, FloatingPointError: as training and evaluation do.
        OSError: results cannot be written.
    """
    path = record_path(job, place)
    lock = place.folder / "locks" / f"{job.name}-{path.stem}.lock"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    except OSError as error:
        raise OSError(
            error.errno,
            f"results cannot be written ({error.strerror}: {lock.parent}); give another folder",
        ) from error
    with locked(lock):
        before = state(job, place)
        if before == "complete":
            return path
        if before == "damaged":
            set_aside(path)
        if job.computation is not None:
            record = _compute(job, place, path)
        else:
            record, subject = _subject(job, place, path, before, on_step)
            _evaluate(job, place, path, record, subject)
        records.write(path, record)
    return path


def weights_path(record: Path) -> Path:
    """Where a run's weights lie, beside its record: at the end and at the profile's stages."""
    return record.with_suffix(".safetensors")


def load_weights(record: Path, stage: str = "1.0") -> dict[str, Tensor]:
    """A run's state dict at a stage of its training.

    Raises:
        FileNotFoundError: no weights lie beside the record.
        KeyError: no such stage was kept.
    """
    prefix = f"{stage}/"
    kept = load_file(weights_path(record))
    weights = {n.removeprefix(prefix): v for n, v in kept.items() if n.startswith(prefix)}
    if not weights:
        raise KeyError(f"{weights_path(record)} holds no stage {stage}")
    return weights


def load_network(record: Path, stage: str = "1.0", device: str = "cpu") -> nn.Module:
    """A run's network at a stage of its training, in evaluation mode.

    Raises:
        FileNotFoundError: no record, or no weights beside it.
        KeyError: no such stage was kept.
        ValueError: the record is of nothing that was trained.
    """
    config = records.read(record)["config"]
    if "recipe" not in config:
        raise ValueError(f"{record} is the record of no training run, so it has no network")
    model = parts.build("model", Part(**config["recipe"]["model"]), width=config["profile"]["width"])
    model.load_state_dict(load_weights(record, stage))
    return model.to(device, memory_format=torch.channels_last).eval()


def _subject(
    job: Job, place: Place, path: Path, before: str, on_step: Callable[[int, int], None] | None
) -> tuple[dict, Subject]:
    today = digests(job, place)
    if job.descriptor is not None:
        model = parts.build("model", job.descriptor, **job.paths).to(place.device).eval()
        described = partial(describe, model, device=place.device)
        return _record(job, place, today), Subject(described, device=place.device)

    code = {"training": today["training"], "data": today["data"][job.train_set]}
    if before == "incomplete" and _weights_are(path, code):
        record = records.read(path)
    else:
        trained = _train(job, place, path, today, on_step)
        record = _record(job, place, today, trained)
        _save_weights(path, trained.stages, code)
        # From here on the training is on record, and what ends the evaluation costs no more than it.
        records.write(path, record)
    with safe_open(weights_path(path), "pt") as file:
        stages = sorted({name.partition("/")[0] for name in file.keys()}, key=float)  # noqa: SIM118
    models = {stage: load_network(path, stage, place.device) for stage in stages}
    described = partial(describe, models[stages[-1]], device=place.device)
    return record, Subject(described, job.recipe, models, record, place.device)


def _compute(job: Job, place: Place, path: Path) -> dict:
    module = import_module(f"lib.theory.{job.computation.name}")
    numbers, arrays = module.compute(**job.computation.options)
    records.write_probe(probe_path(path, job.computation.name, NO_SET), arrays)
    record = _record(job, place, digests(job, place))
    record["metrics"] = {NO_SET: {job.computation.name: numbers}}
    return record


def _train(
    job: Job, place: Place, path: Path, today: dict, on_step: Callable[[int, int], None] | None
) -> Trained:
    test_sets = {name: place.source.load(name) for name in job.sets_of("fpr95")}

    def evaluate(model: nn.Module) -> dict[str, float]:
        subject = Subject(partial(describe, model, device=place.device))
        return {name: measure_fpr95(subject, data)["expected"] for name, data in test_sets.items()}

    return train(
        job.recipe,
        job.profile(place),
        place.source.load(job.train_set),
        job.seed,
        device=place.device,
        evaluate=evaluate,
        checkpoint=_checkpoint(job, place, path, today),
        on_step=on_step,
    )


def _checkpoint(job: Job, place: Place, path: Path, today: dict) -> Path:
    # Named by all that a run must not be continued across: code, data, kind of device, torch.
    begun_with = [
        today["training"],
        today["data"][job.train_set],
        torch.device(place.device).type,
        torch.__version__,
    ]
    name = f"{job.name}-{path.stem}-{value_digest(begun_with)[:8]}.pt"
    checkpoint = place.folder / "checkpoints" / name
    if checkpoint.exists() and not _is_whole(checkpoint):
        set_aside(checkpoint)
    return checkpoint


def _is_whole(checkpoint: Path) -> bool:
    with open(checkpoint, "rb") as file:
        if file.read(1) == b"\x80":
            return True  # a bare pickle, which loading refuses by name
    try:
        with zipfile.ZipFile(checkpoint) as archive:
            return archive.testzip() is None
    except zipfile.BadZipFile:
        return False


def _record(job: Job, place: Place, today: dict, trained: Trained | None = None) -> dict:
    record = {
        "kind": "run" if job.recipe else "descriptor" if job.descriptor else "computation",
        "name": job.name,
        "label": job.label,
        "train_set": job.train_set,
        "seed": job.seed,
        "profile": place.profile.name,
        "data": place.source.name,
        "config": configuration(job, place),
        "digests": {**today, "evaluation": {}},
        "libraries": {name: metadata.version(name) for name in LIBRARIES if _installed(name)},
        "python": platform.python_version(),
        "device": _device_name(place.device),
        "threads": torch.get_num_threads(),
        "metrics": {},
    }
    if trained is not None:
        record["seconds"] = round(trained.seconds, 2)
        record["parameters"] = sum(p.numel() for p in trained.model.parameters())
        record["curve"] = {name: _rounded(values) for name, values in trained.curve.items()}
        record["epoch_fpr95"] = {name: _rounded(values) for name, values in trained.epochs.items()}
    return record


def _evaluate(job: Job, place: Place, path: Path, record: dict, subject: Subject) -> None:
    today = digests(job, place)
    for name, test_set in to_evaluate(job, place, record, path):
        module, data = import_module(f"lib.evaluation.{name}"), place.source.load(test_set)
        if (name, test_set) in job.measures:
            measured = module.measure(subject, data)
            record["metrics"].setdefault(test_set, {})[name] = {
                key: round(value, 6) for key, value in measured.items()
            }
        else:
            records.write_probe(probe_path(path, name, test_set), module.probe(subject, data))
    record["digests"]["evaluation"] |= today["evaluation"]
    record["digests"]["data"] |= today["data"]


def _save_weights(path: Path, stages: Mapping[str, Mapping[str, Tensor]], code: dict) -> None:
    flat = {f"{stage}/{name}": value for stage, kept in stages.items() for name, value in kept.items()}
    with replacing(weights_path(path)) as half:
        save_file({name: value.contiguous() for name, value in flat.items()}, half, metadata=code)


def _weights_are(path: Path, code: dict) -> bool:
    if not weights_path(path).exists():
        return False
    try:
        with safe_open(weights_path(path), "pt") as file:
            return file.metadata() == code
    except SafetensorError:
        set_aside(weights_path(path))
        return False


def _rounded(values: list[float]) -> list[float]:
    return [round(value, 6) for value in values]


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"
