"""Run one job: train and evaluate what its record lacks."""

import hashlib
import platform
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import safetensors.torch
import torch
from torch import Tensor, nn

from lib import parts
from lib.benchmarks.fpr95_by_stage import few_pairs, follow
from lib.benchmarks.subject import Subject, describe, of_signs
from lib.bfloat16 import fast_convolutions
from lib.data.states import content_half
from lib.digests import value_digest
from lib.files import locked, set_aside, write_bytes
from lib.recipes import Part
from lib.study import jobs, records
from lib.study.jobs import NO_SET, SIGNS, Job, Record, Setting
from lib.training import ForeignCheckpoint, part_state, train


def carry_out(job: Job, setting: Setting) -> Path:
    """Run a job in this process, unless its record is complete, and return the record's path.

    Training is skipped where weights by today's code exist. Probes and weights are written before the
    record, so a record that exists has them; the checkpoint is deleted after it. Damaged files are set
    aside, named on stderr, and made again. Two processes never run the same job: the second waits for
    the first and finds the record.

    Args:
        job: the job whose record is needed.
        setting: data, size and folder.

    Raises:
        ValueError, FloatingPointError: as training and evaluation raise.
        OSError: results cannot be written, or the disk is full; what was done is kept.
    """
    path = jobs.record_path(job, setting)
    with locked(setting.folder / "locks" / f"{job.name}-{path.stem}.lock"):
        # We hold the lock, so any half-written file was left by a process that was killed.
        for half in setting.folder.rglob(f"*{path.stem}*.half.*"):
            half.unlink()
        record, weights = jobs.record_status(job, setting), weights_path(path)
        begun = record.state == "incomplete" and job.computation is None
        if begun and job.recipe and not records.is_whole(weights, record.content["weights"]):
            begun = False
            _put_aside(weights)
        for file in record.damaged:
            _put_aside(file)
        if record.state == "complete":
            return path
        if not begun:
            _begin(job, setting, path)
        if job.computation is None:
            _evaluate(jobs.record_status(job, setting), setting)
    return path


def weights_path(record: Path) -> Path:
    """Return the path of a run's weights, at the end and at the profile's stages, beside its record."""
    return record.with_suffix(".safetensors")


def load_weights(record: Path) -> dict[str, dict[str, Tensor]]:
    """Load a run's tensors by stage of its training, "0.0" first and "1.0" last, and by part and name,
    e.g. "model/features.0.weight".

    Raises:
        FileNotFoundError: no record, or no weights beside it.
        DamagedRecord: one of them does not contain what was written.
        ValueError: the record is not of a training run.
    """
    expected, weights = records.read(record).get("weights"), weights_path(record)
    if expected is None:
        raise ValueError(f"{record} is the record of no training run, so it has no network")
    if not weights.is_file():
        raise FileNotFoundError(f"{weights} is missing: committed records come without weights")
    stages = {}
    kept = safetensors.torch.load(records.read_checked(weights, expected))
    for name in sorted(kept, key=lambda name: float(name.partition("/")[0])):
        stage, _, parameter = name.partition("/")
        stages.setdefault(stage, {})[parameter] = kept[name]
    return stages


def load_network(record: Path) -> nn.Module:
    """Load a run's network from the end of its training, in evaluation mode.

    Raises:
        FileNotFoundError, ValueError: as for `load_weights`.
    """
    return _network(records.read(record)["config"], load_weights(record)["1.0"])


def _network(config: Mapping, weights: Mapping[str, Tensor], device: str = "cpu") -> nn.Module:
    model = parts.build("model", Part(**config["recipe"]["model"]), width=config["profile"]["width"])
    model.load_state_dict(part_state(weights))
    return model.to(device, memory_format=torch.channels_last).eval()


def checkpoint_path(job: Job, setting: Setting) -> Path:
    """Path of an unfinished run's checkpoint, named by all that must not change when it resumes."""
    begun_with = {
        "config": jobs.configuration(job, setting),
        "digests": {**jobs.digests(job, setting), "evaluation": {}},
        "device": torch.device(setting.device).type,
        "threads": job.profile(setting).threads or torch.get_num_threads(),
        "torch": torch.__version__,
    }
    name = f"{job.name}-{jobs.record_path(job, setting).stem}-{value_digest(begun_with)[:8]}.pt"
    return setting.folder / "checkpoints" / name


def _begin(job: Job, setting: Setting, path: Path) -> None:
    """Write a record with all that a job has before it is measured."""
    device = f"CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"
    if setting.device.startswith("cuda"):
        device = torch.cuda.get_device_name(setting.device)
    record = {
        "kind": "run" if job.recipe else "descriptor" if job.descriptor else "computation",
        **{name: getattr(job, name) for name in ("name", "label", "train_set", "seed")},
        "profile": setting.profile.name,
        "data": setting.source.name,
        "config": jobs.configuration(job, setting),
        "digests": {**jobs.digests(job, setting), "evaluation": {}},
        "libraries": records.libraries(),
        "python": platform.python_version(),
        "device": device,
        "threads": torch.get_num_threads(),
        "metrics": {},
        "probes": {},
        "evaluation_seconds": {},
    }
    if job.computation is not None:
        record |= _computed(job, path)
    if job.recipe is not None:
        record |= _trained(job, setting, path)
    # From here on the training is on record: an interrupted evaluation loses no more than itself.
    records.write(path, record)
    if job.recipe is not None:
        checkpoint_path(job, setting).unlink(missing_ok=True)


def _computed(job: Job, path: Path) -> dict:
    name, started = job.computation.name, time.monotonic()
    numbers, arrays = import_module(f"lib.theory.{name}").compute(**job.computation.options)
    seconds = round(time.monotonic() - started, 2)
    probe = records.write_probe(jobs.probe_path(path, name, NO_SET), arrays)
    metrics, probes = {NO_SET: {name: numbers}}, {f"{name}.{NO_SET}": probe}
    return {"seconds": seconds, "metrics": metrics, "probes": probes}


def _trained(job: Job, setting: Setting, path: Path) -> dict:
    profile, checkpoint = job.profile(setting), checkpoint_path(job, setting)
    few = {
        name: few_pairs(setting.source.load(name), profile.followed_pairs)
        for name in job.sets_of("fpr95")
    }
    begin = partial(
        train,
        job.recipe,
        profile,
        setting.source.load(job.train_set),
        job.seed,
        device=setting.device,
        evaluate=lambda model: follow(model, few, setting.device),
        checkpoint=checkpoint,
    )
    with fast_convolutions(setting.device):
        try:
            # torch verifies no checksum of what it loads.
            if checkpoint.exists() and zipfile.ZipFile(checkpoint).testzip() is not None:
                raise ForeignCheckpoint
            trained = begin()
        except (zipfile.BadZipFile, ForeignCheckpoint, IsADirectoryError):
            _put_aside(checkpoint)
            trained = begin()
    stages = {
        f"{stage}/{name}": value.contiguous()
        for stage, tensors in trained.stages.items()
        for name, value in tensors.items()
    }
    content = safetensors.torch.save(stages)
    write_bytes(weights_path(path), content)
    return {
        "seconds": round(trained.seconds, 2),
        "parameters": sum(p.numel() for p in trained.model.parameters()),
        "curve": _rounded(trained.curve),
        "epoch_fpr95": _rounded(trained.epochs),
        "weights": hashlib.sha256(content).hexdigest(),
    }


def _rounded(curves: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {name: [round(value, 6) for value in curve] for name, curve in curves.items()}


def _put_aside(file: Path) -> None:
    if file.exists():
        aside = set_aside(file)
        print(f"{file} is damaged: set aside as {aside.name} and made anew", file=sys.stderr, flush=True)


def _subject(record: Record, setting: Setting) -> Subject:
    job, device = record.job, setting.device
    if job.descriptor is not None:
        model = parts.build("model", job.descriptor, **job.paths).to(device).eval()
        described = partial(describe, model, device=device)
        if hasattr(model, "of_image"):
            kind = _evaluating("lib.benchmarks.sfm").ImageSubject
            return kind(described, device=device, of_image=model.of_image)
        return Subject(described, device=device)
    config, stages = record.content["config"], load_weights(record.path)
    models = {stage: _network(config, tensors, device) for stage, tensors in stages.items()}
    described = partial(describe, models["1.0"], device=device)
    return Subject(described, job.recipe, models, record.content, device)


def _evaluate(record: Record, setting: Setting) -> None:
    """Measure and probe what a record lacks or has by other code."""
    job, content, subject = record.job, record.content, _subject(record, setting)
    wanted = (*record.lacking, *record.stale)
    today, held = jobs.digests(job, setting)["evaluation"], content["digests"]["evaluation"]
    # Each set is read and described once for all its measures and probes, then goes on record.
    for test_set in dict.fromkeys(name for _, name in wanted):
        data = setting.source.load(test_set)
        for name in (module for module, own in wanted if own == test_set):
            started, key = time.monotonic(), f"{name}.{test_set}"
            module = _evaluating(jobs.evaluating(job, name))
            if (name, test_set) in job.measures:
                values = module.measure(of_signs(subject) if name.endswith(SIGNS) else subject, data)
                values = {metric: round(value, 6) for metric, value in values.items()}
                content["metrics"].setdefault(test_set, {})[name] = values
            else:
                file = jobs.probe_path(record.path, name, test_set)
                content["probes"][key] = records.write_probe(file, module.probe(subject, data))
            content["evaluation_seconds"][key] = round(time.monotonic() - started, 2)
            made = held.setdefault(name, {**today[name], "data": {}})
            if made["code"] != today[name]["code"]:
                # The other sets were measured by other code, which "0…" stands for.
                others = {own: content_half(digest) + "0" * 8 for own, digest in made["data"].items()}
                made |= {"code": today[name]["code"], "data": others}
            made["data"][test_set] = today[name]["data"][test_set]
        records.write(record.path, content)


def _evaluating(name: str) -> ModuleType:
    ours, module = signal.getsignal(signal.SIGTERM), import_module(name)
    # Some modules import pycolmap, which replaces our handler by one that ends the process without
    # unwinding it. Only the main thread may set a handler; a cluster runs jobs in other threads.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ours)
    return module
