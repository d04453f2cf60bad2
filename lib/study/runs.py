"""Does one job: trains and evaluates what is missing of it, into its record."""

import hashlib
import platform
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import safetensors.torch
import torch
from torch import Tensor, nn

from lib import parts
from lib.benchmarks.following import few_pairs, follow
from lib.benchmarks.signs import of_signs
from lib.benchmarks.subject import Subject, describe
from lib.bfloat16 import fast_convolutions
from lib.data.states import content_half
from lib.digests import value_digest
from lib.files import locked, set_aside, write_bytes
from lib.recipes import Part
from lib.study import jobs, records
from lib.study.jobs import NO_SET, SIGNS, Job, RecordStatus, Setting
from lib.training import ForeignCheckpoint, Trained, part_state, train

OnStep = Callable[[int, int], None]


def carry_out(job: Job, setting: Setting, on_step: OnStep | None = None) -> Path:
    """Does a job in this process, unless its record is complete, and returns the record's path.

    Training is skipped where weights by today's code are there. Probes and weights are written
    before the record, so a record that exists has them, and the checkpoint goes after it. Files that
    do not hold what was written are set aside, which stderr names, and made anew. Two processes never
    do the same job: the second waits for the first and finds the record.

    Args:
        job: what to have.
        setting: data, size and folder.
        on_step: called with steps done and steps in all.

    Raises:
        ValueError, FloatingPointError: as training and evaluation do.
        OSError: results cannot be written, or the disk is full; what was done is kept.
    """
    path = jobs.record_path(job, setting)
    lock = setting.folder / "locks" / f"{job.name}-{path.stem}.lock"
    with locked(lock):
        before = jobs.record_status(job, setting)
        for file in before.damaged:
            _put_aside(file)
        if before.state == "complete":
            return path
        if job.computation is not None:
            records.write(path, _compute(job, setting, path))
        else:
            record, subject = _subject(job, setting, before, on_step)
            fresh = record is not before.content
            wanted = (*job.measures, *job.probes) if fresh else (*before.lacking, *before.stale)
            _evaluate(job, setting, path, record, subject, tuple(dict.fromkeys(wanted)))
    return path


def weights_path(record: Path) -> Path:
    """Where a run's weights lie, beside its record: at the end and at the profile's stages."""
    return record.with_suffix(".safetensors")


def load_weights(record: Path) -> dict[str, dict[str, Tensor]]:
    """A run's tensors by stage of its training, "0.0" first and "1.0" last, and by part and name, e.g.
    "model/features.0.weight".

    Raises:
        FileNotFoundError: no record, or no weights beside it.
        DamagedRecord: one of them does not hold what was written.
        ValueError: the record is of nothing that was trained.
    """
    expected = records.read(record).get("weights")
    if expected is None:
        raise ValueError(f"{record} is the record of no training run, so it has no network")
    if not weights_path(record).is_file():
        raise FileNotFoundError(
            f"{weights_path(record)} is missing, without which {record.name} has no network: committed "
            "records come without weights, so give a record that a run has left here"
        )
    stages: dict[str, dict[str, Tensor]] = {}
    kept = safetensors.torch.load(records.read_checked(weights_path(record), expected))
    for name in sorted(kept, key=lambda name: float(name.partition("/")[0])):
        stage, _, parameter = name.partition("/")
        stages.setdefault(stage, {})[parameter] = kept[name]
    return stages


def load_network(record: Path) -> nn.Module:
    """A run's network at the end of its training, in evaluation mode.

    Raises:
        FileNotFoundError, ValueError: as for `load_weights`.
    """
    return _network(records.read(record)["config"], load_weights(record)["1.0"], "cpu")


def _network(config: Mapping, weights: Mapping[str, Tensor], device: str) -> nn.Module:
    model = parts.build("model", Part(**config["recipe"]["model"]), width=config["profile"]["width"])
    model.load_state_dict(part_state(weights))
    return model.to(device, memory_format=torch.channels_last).eval()


def checkpoint_path(job: Job, setting: Setting) -> Path:
    """Where an unfinished run's checkpoint lies, named by all that it must not be continued across."""
    begun_with = {
        "config": jobs.configuration(job, setting),
        "digests": {**jobs.digests(job, setting), "evaluation": {}},
        "device": torch.device(setting.device).type,
        "threads": job.profile(setting).threads or torch.get_num_threads(),
        "torch": torch.__version__,
    }
    name = f"{job.name}-{jobs.record_path(job, setting).stem}-{value_digest(begun_with)[:8]}.pt"
    return setting.folder / "checkpoints" / name


def _subject(
    job: Job, setting: Setting, before: RecordStatus, on_step: OnStep | None
) -> tuple[dict, Subject]:
    record = before.content if before.state == "incomplete" else None
    if job.descriptor is not None:
        model = parts.build("model", job.descriptor, **job.paths).to(setting.device).eval()
        described = partial(describe, model, device=setting.device)
        subject = Subject(described, device=setting.device)
        if hasattr(model, "of_image"):
            kind = _evaluating("lib.benchmarks.sfm").ImageSubject
            subject = kind(described, device=setting.device, of_image=model.of_image)
        return record or _record(job, setting), subject

    stages, weights = None, weights_path(before.path)
    if record is not None and records.is_whole(weights, record["weights"]):
        stages = load_weights(before.path)
    elif record is not None and weights.exists():
        _put_aside(weights)
    if stages is None:
        checkpoint = checkpoint_path(job, setting)
        trained = _train(job, setting, checkpoint, on_step)
        record, stages = _record(job, setting, trained), trained.stages
        record["weights"] = _save_weights(before.path, stages)
        # From here on the training is on record, and what ends the evaluation costs no more than it.
        records.write(before.path, record)
        checkpoint.unlink(missing_ok=True)
    models = {name: _network(record["config"], kept, setting.device) for name, kept in stages.items()}
    described = partial(describe, models[max(models, key=float)], device=setting.device)
    return record, Subject(described, job.recipe, models, record, setting.device)


def _compute(job: Job, setting: Setting, path: Path) -> dict:
    name = job.computation.name
    started = time.monotonic()
    numbers, arrays = import_module(f"lib.theory.{name}").compute(**job.computation.options)
    record = _record(job, setting)
    record["seconds"] = round(time.monotonic() - started, 2)
    record["metrics"] = {NO_SET: {name: numbers}}
    file = jobs.probe_path(path, name, NO_SET)
    record["probes"] = {f"{name}.{NO_SET}": records.write_probe(file, arrays)}
    return record


def _train(job: Job, setting: Setting, checkpoint: Path, on_step: OnStep | None) -> Trained:
    profile = job.profile(setting)
    sets = {name: setting.source.load(name) for name in job.sets_of("fpr95")}
    few = {name: few_pairs(whole, profile.followed_pairs) for name, whole in sets.items()}
    begin = partial(
        train,
        job.recipe,
        profile,
        setting.source.load(job.train_set),
        job.seed,
        device=setting.device,
        evaluate=lambda model: follow(model, few, setting.device),
        checkpoint=checkpoint,
        on_step=on_step,
    )
    if checkpoint.exists() and not _is_whole(checkpoint):
        _put_aside(checkpoint)
    with fast_convolutions(setting.device):
        try:
            return begin()
        except ForeignCheckpoint:
            _put_aside(checkpoint)
            return begin()


def _is_whole(checkpoint: Path) -> bool:
    # torch checks no checksum of what it loads.
    try:
        with zipfile.ZipFile(checkpoint) as archive:
            return archive.testzip() is None
    except zipfile.BadZipFile:
        return False


def _put_aside(file: Path) -> None:
    aside = set_aside(file)
    print(f"{file} is damaged: set aside as {aside.name} and made anew", file=sys.stderr, flush=True)


def _record(job: Job, setting: Setting, trained: Trained | None = None) -> dict:
    record = {
        "kind": "run" if job.recipe else "descriptor" if job.descriptor else "computation",
        "name": job.name,
        "label": job.label,
        "train_set": job.train_set,
        "seed": job.seed,
        "profile": setting.profile.name,
        "data": setting.source.name,
        "config": jobs.configuration(job, setting),
        "digests": {**jobs.digests(job, setting), "evaluation": {}},
        "libraries": records.libraries(),
        "python": platform.python_version(),
        "device": _device_name(setting.device),
        "threads": torch.get_num_threads(),
        "metrics": {},
        "probes": {},
        "evaluation_seconds": {},
    }
    if trained is not None:
        record["seconds"] = round(trained.seconds, 2)
        record["parameters"] = sum(p.numel() for p in trained.model.parameters())
        for name, lists in (("curve", trained.curve), ("epoch_fpr95", trained.epochs)):
            record[name] = {key: [round(value, 6) for value in curve] for key, curve in lists.items()}
    return record


def _evaluate(
    job: Job,
    setting: Setting,
    path: Path,
    record: dict,
    subject: Subject,
    wanted: Sequence[tuple[str, str]],
) -> None:
    today, held = jobs.digests(job, setting)["evaluation"], record["digests"]["evaluation"]
    # A set is read and described once for all that is asked of it, and on record when it is done.
    for test_set in dict.fromkeys(name for _, name in wanted):
        data = setting.source.load(test_set)
        for name in (module for module, own in wanted if own == test_set):
            measured = (name, test_set) in job.measures
            package, started = "lib.benchmarks" if measured else "lib.probes", time.monotonic()
            module, key = _evaluating(jobs.evaluating(package, name)[0]), f"{name}.{test_set}"
            if measured:
                values = module.measure(of_signs(subject) if name.endswith(SIGNS) else subject, data)
                record["metrics"].setdefault(test_set, {})[name] = {
                    key: round(value, 6) for key, value in values.items()
                }
            else:
                file = jobs.probe_path(path, name, test_set)
                record["probes"][key] = records.write_probe(file, module.probe(subject, data))
            record["evaluation_seconds"][key] = round(time.monotonic() - started, 2)
            made = held.setdefault(name, {"code": today[name]["code"], "data": {}})
            if made["code"] != today[name]["code"]:
                # What was measured on other sets was so by other code, which "0…" stands for.
                others = {own: content_half(digest) + "0" * 8 for own, digest in made["data"].items()}
                held[name] = {"code": today[name]["code"], "data": others}
            held[name]["data"][test_set] = today[name]["data"][test_set]
        records.write(path, record)


def _evaluating(name: str) -> ModuleType:
    ours, module = signal.getsignal(signal.SIGTERM), import_module(name)
    # Some import pycolmap, which puts a handler in the place of ours that ends a process without
    # unwinding it. Only a process's main thread may set one; a cluster works in others.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ours)
    return module


def _save_weights(path: Path, stages: Mapping[str, Mapping[str, Tensor]]) -> str:
    flat = {f"{stage}/{name}": value for stage, kept in stages.items() for name, value in kept.items()}
    content = safetensors.torch.save({name: value.contiguous() for name, value in flat.items()})
    write_bytes(weights_path(path), content)
    return hashlib.sha256(content).hexdigest()


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"
