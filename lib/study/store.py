"""Runs on disk: one JSON file a run, with its arrays and weights beside it, and the reference's CSVs.

A run's files are ``<run>.json``, ``<run>.npz`` and ``<run>.safetensors``, where ``<run>`` is its
identity (`lib.study.requests`). They are written whole or not at all. A file that cannot be read is set
aside, and the run is made again. The committed reference of a profile has the same numbers as
``metrics.csv`` (a row a number), ``runs.csv`` (a row a run), ``sets.csv`` and a folder ``arrays``, so
that pandas alone opens them. No torch.
"""

import io
import json
import sys
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.scenes.places import ROLES, Places
from lib.data.sources import Source
from lib.files import set_aside, write_bytes
from lib.study.requests import BY_SIGN, Request, version

# The columns of the tidy frame: a row is one number of one run.
METRICS = [
    *("run", "method", "label", "optimizer", "data", "train", "test", "seed", "stage"),
    *("measure", "value"),
]
# What is on record about a run besides its names.
ABOUT = [
    *("optimizer", "data", "train", "seed", "rate", "steps", "batch", "width"),
    *("commit", "device", "libraries", "seconds", "parameters", "config"),
]
# What a run's JSON file has besides.
REST = ["method", "label", "metrics", "probes", "followed", "curves", "stages", "weights"]
# The columns of the frame of runs.
RUNS = ["run", "method", "label", *ABOUT]
# The number that stands for a whole measure is named after its module alone.
MAIN = {"fpr95": "expected"}
FOLLOWED = "followed_fpr95"
BY_STAGE = "fpr95_by_stage"
# Prefixes of the names of arrays: training curves, and the versions of probes.
CURVES = "curves"
VERSIONS = "versions/"
# Name of the array that holds a computation's numbers, tables included, as JSON.
NUMBERS = "numbers"
# What damaged files raise when they are read; an error of the file system is none of them.
UNREADABLE = (
    ValueError,
    RecursionError,
    IsADirectoryError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    # From zipfile: flipped bits tell of a compression that it does not know, or of a password.
    NotImplementedError,
    RuntimeError,
)


@dataclass(frozen=True)
class Run:
    """A run as it is on disk.

    Attributes:
        name: its identity.
        about: the row of `RUNS` without names: configuration, data, train set, seed, rate, …
        metrics: by (module, set), the version, the set's digest and the numbers by key.
        followed: by set, its digest and FPR95 on a few pairs at the end of each epoch, in percent.
        arrays_path: the file of its arrays, which may not exist.
        probes: by (module, set), the version and the set's digest of the arrays that it has.
        weights: SHA-256 of its weights; "" where none were kept.
    """

    name: str
    about: Mapping[str, object]
    metrics: Mapping[tuple[str, str], Mapping]
    followed: Mapping[str, Mapping]
    arrays_path: Path
    probes: Mapping[tuple[str, str], Mapping]
    weights: str = ""

    def lacks(self, request: Request, source: Source) -> list[tuple[str, str]]:
        """Return the measures and probes of a request that the run has not, or not of today's data and
        version."""
        held = {**self.metrics, **self.probes}
        wanted = dict.fromkeys((*request.measures, *request.probes))
        return [
            (module, name)
            for module, name in wanted
            if (module, name) not in held
            or held[module, name]["version"] != version(module)
            or (name and held[module, name]["set"] != source.digest(name))
        ]

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays of the run, by "probe/set/name", and its training curves by "curves//name"."""
        return read_arrays(self.arrays_path)

    def probe(self, name: str, test: str) -> dict[str, np.ndarray]:
        """Return the arrays of one probe on one set, by name."""
        prefix = f"{name}/{test}/"
        return {
            key.removeprefix(prefix): array
            for key, array in self.arrays.items()
            if key.startswith(prefix)
        }


@dataclass(frozen=True)
class Store:
    """A folder of runs.

    Attributes:
        folder: results/<profile>/runs; made when the first run is written.
    """

    folder: Path

    def json_path(self, run: str) -> Path:
        """Return the path of a run's JSON file, which exists if the run does."""
        return self.folder / f"{run}.json"

    def arrays_path(self, run: str) -> Path:
        """Return the path of a run's arrays."""
        return self.folder / f"{run}.npz"

    def weights_path(self, run: str) -> Path:
        """Return the path of a run's weights."""
        return self.folder / f"{run}.safetensors"

    def lock_path(self, run: str) -> Path:
        """Return the path of the lock that a process holds while it makes a run."""
        return self.folder / f"{run}.lock"

    def find(self, run: str) -> Run | None:
        """Return a run, or None if there is none. A file that cannot be read is set aside."""
        content = self.read(run)
        if content is None:
            return None
        return self.as_run(run, content)

    def as_run(self, run: str, content: Mapping[str, object]) -> Run:
        """Return a run from the content of its JSON file."""
        return Run(
            run,
            {name: content[name] for name in ABOUT},
            _by_module_and_set(content["metrics"]),
            content["followed"],
            self.arrays_path(run),
            _by_module_and_set(content["probes"]),
            content["weights"],
        )

    def read(self, run: str) -> dict | None:
        """Return the content of a run's JSON file, or None if there is none that can be read."""
        path = self.json_path(run)
        try:
            content = json.loads(path.read_bytes())
            if not (isinstance(content, dict) and {*ABOUT, *REST} <= content.keys()):
                raise ValueError("it holds something else")
            if content["probes"] or content["curves"]:
                _check_arrays(self.arrays_path(run))
        except FileNotFoundError as missing:
            if missing.filename == str(path):
                return None
            put_aside(path, f"{missing.filename} is missing")
            return None
        except UNREADABLE as error:
            put_aside(path, f"{error}")
            put_aside(self.arrays_path(run), "its run could not be read")
            return None
        return content

    def write(self, run: str, content: Mapping[str, object]) -> None:
        """Write a run's JSON file.

        Raises:
            ValueError: a number is not finite.
            OSError: the folder cannot be written, or the disk is full.
        """
        text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)
        write_bytes(self.json_path(run), (text + "\n").encode())

    def add_arrays(self, run: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Add arrays to those that a run has, in place of those of the same probe and set."""
        path = self.arrays_path(run)
        replaced = {key.rpartition("/")[0] for key in arrays if not key.startswith(VERSIONS)}
        held = read_arrays(path)
        kept = {key: held[key] for key in held if key.rpartition("/")[0] not in replaced}
        write_bytes(path, packed({**kept, **arrays}))


def _by_module_and_set(by_set: Mapping[str, Mapping]) -> dict[tuple[str, str], Mapping]:
    flat = {}
    for name, modules in by_set.items():
        for module, made in modules.items():
            flat[module, name] = made
    return flat


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an ``.npz`` by name; empty if the file does not exist.

    Raises:
        ValueError: the file is damaged.
    """
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except UNREADABLE as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays as the bytes of a compressed ``.npz``."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _check_arrays(path: Path) -> None:
    # A zip file has a checksum of each of its members.
    with zipfile.ZipFile(path) as file:
        if damaged := file.testzip():
            raise ValueError(f"{path.name}: {damaged} is damaged")


def put_aside(path: Path, why: str) -> None:
    """Set a damaged file aside, if it is there, and say so on stderr."""
    if path.exists():
        aside = set_aside(path)
        print(f"{path} cannot be used ({why}): set aside as {aside.name}", file=sys.stderr, flush=True)


def measure_name(module: str, key: str) -> str:
    """Return the tidy frame's name of a number, e.g. "fpr95", "hpatches.matching"."""
    if MAIN.get(module.removesuffix(BY_SIGN)) == key:
        return module
    return f"{module}.{key}"


def rows_of(run: Run, request: Request, source: Source) -> list[dict[str, object]]:
    """Return the rows of the tidy frame that a request asks of a run."""
    about = {
        "run": run.name,
        "method": request.method,
        "label": request.label,
        "optimizer": run.about["optimizer"],
        "data": source.name,
        "train": run.about["train"],
        "seed": run.about["seed"],
    }
    rows = []
    # A computation's single numbers are measures on no set.
    measured = list(run.metrics) if request.computation else dict.fromkeys(request.measures)
    for module, test in measured:
        for key, value in run.metrics[module, test]["values"].items():
            if module == BY_STAGE:
                row = {"stage": float(key), "measure": BY_STAGE}
            else:
                row = {"measure": measure_name(module, key)}
            rows.append({**about, "test": test, **row, "value": value})
    for test, curve in run.followed.items():
        # A curve on other content than the set has now is left out: following cannot be repeated.
        if test not in request.followed or curve["set"] != source.digest(test):
            continue
        for epoch, value in enumerate(curve["values"], 1):
            stage = epoch / len(curve["values"])
            rows.append({**about, "test": test, "stage": stage, "measure": FOLLOWED, "value": value})
    return rows


@dataclass(frozen=True)
class Reference:
    """The committed numbers of a profile, read from its CSVs.

    What is read of it raises FileNotFoundError where a file is missing that the others speak of, and
    ValueError where a file is damaged; the message names the file.

    Attributes:
        folder: results/reference/<profile>.
    """

    folder: Path
    _runs: dict = field(default_factory=dict, repr=False, compare=False)

    @property
    def exists(self) -> bool:
        """Whether the profile has a reference."""
        return any((self.folder / f"{name}.csv").is_file() for name in ("runs", "metrics"))

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """All numbers, with the columns `METRICS` and the measure's "version"."""
        text = {"run": str, "stage": float, "seed": "Int64"}
        kept = {"keep_default_na": False, "na_values": {c: [""] for c in ("stage", "seed", "value")}}
        return _read_table(self.folder / "metrics.csv", [*METRICS, "version"], dtype=text, **kept)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All runs, with the columns `RUNS`, indexed by data and run: a descriptor without training is
        one run on all data."""
        text = {"run": str, "commit": str, "seed": "Int64"}
        frame = _read_table(self.folder / "runs.csv", RUNS, dtype=text)
        return frame.set_index(["data", "run"], drop=False)

    @cached_property
    def sets(self) -> pd.DataFrame:
        """What the sets contain: "data", "name", "digest", "classes", "role"."""
        columns = ["data", "name", "digest", "classes", "role"]
        return _read_table(self.folder / "sets.csv", columns, dtype=str, keep_default_na=False)

    @cached_property
    def searches(self) -> pd.DataFrame:
        """The learning rate searches: see `lib.study.searches`. Empty if there are none."""
        path = self.folder / "searches.csv"
        columns = ["method", "data"]
        return _read_table(path, columns) if path.is_file() else pd.DataFrame(columns=columns)

    def recorded(self, data: str) -> dict[str, str]:
        """Return the digests of the sets of a data source, by name; empty if it has none of them."""
        if not (self.exists or (self.folder / "sets.csv").is_file()):
            return {}
        own = self.sets[self.sets["data"] == data]
        return dict(zip(own["name"], own["digest"], strict=True))

    def places(self, data: str) -> Places | None:
        """Return the places of a data source, or None if it has none."""
        if not self.recorded(data):
            return None
        own = self.sets[self.sets["data"] == data]
        by_role = {role: tuple(own["name"][own["role"] == role]) for role in ROLES}
        if not by_role["train_and_test"]:
            return None
        named = [name for names in by_role.values() for name in names]
        return Places({name: (name,) for name in named}, **by_role)

    def arrays_of(self, run: str) -> dict[str, np.ndarray]:
        """Return all arrays of a run; empty if it has none."""
        return read_arrays(self._arrays_path(run))

    def _arrays_path(self, run: str) -> Path:
        path = self.folder / "arrays" / f"{run}.npz"
        if run in self._with_arrays and not path.exists():
            raise FileNotFoundError(f"{path} is missing: a run of {self.folder / 'runs.csv'} needs it")
        return path

    @cached_property
    def _with_arrays(self) -> frozenset[str]:
        """The runs that always have arrays: those that were trained have curves, and computations their
        numbers. What probes left of other runs, `Run.lacks` misses."""
        is_computation = self.runs["config"].str.startswith('{"computation"', na=False)
        return frozenset(self.runs.loc[self.runs["rate"].notna() | is_computation, "run"])

    @cached_property
    def _by_run(self) -> Mapping[tuple[str, str], pd.DataFrame]:
        return dict(list(self.metrics.groupby(["data", "run"], sort=False)))

    @cached_property
    def _digests(self) -> Mapping[tuple[str, str], str]:
        return {(row.data, row.name): row.digest for row in self.sets.itertuples(index=False)}

    def find(self, run: str, data: str) -> Run | None:
        """Return a run with its numbers on a data source, or None if the reference has none."""
        if not self.exists or (data, run) not in self.runs.index:
            return None
        if (data, run) not in self._runs:
            self._runs[data, run] = self._read(run, data)
        return self._runs[data, run]

    def _read(self, run: str, data: str) -> Run:
        row = self.runs.loc[(data, run)]
        about = {name: None if pd.isna(row[name]) else row[name] for name in ABOUT}
        try:
            about["config"] = json.loads(row["config"])
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.folder / 'runs.csv'} is damaged: run {run}: {error}") from error
        metrics: dict[tuple[str, str], dict] = {}
        followed: dict[str, dict] = {}
        own = self._by_run.get((data, run))
        numbers = [] if own is None else own.itertuples(index=False)
        for number in numbers:
            digest = self._digests.get((data, number.test), "")
            if number.measure == FOLLOWED:
                curve = followed.setdefault(number.test, {"set": digest, "values": []})
                curve["values"].append(number.value)
                continue
            module, key = _module_and_key(number)
            made = metrics.setdefault((module, number.test), {"set": digest, "values": {}})
            made["version"] = number.version
            made["values"][key] = number.value
        arrays = self._arrays_path(run)
        return Run(run, about, metrics, followed, arrays, self._probes(arrays, data))

    def _probes(self, arrays: Path, data: str) -> dict[tuple[str, str], Mapping]:
        if not arrays.exists():
            return {}
        try:
            with np.load(arrays, allow_pickle=False) as held:
                versions = {
                    key.split("/")[1]: int(held[key]) for key in held if key.startswith(VERSIONS)
                }
                pairs = {tuple(key.split("/")[:2]) for key in held if not key.startswith(VERSIONS)}
        except UNREADABLE as error:
            raise ValueError(f"{arrays} is damaged: {error}") from error
        return {
            (probe, test): {"version": versions[probe], "set": self._digests.get((data, test), "")}
            for probe, test in pairs
            if probe != CURVES
        }


def _read_table(path: Path, columns: Iterable[str], **options: object) -> pd.DataFrame:
    """Return a CSV that has at least these columns, as `Reference` reads and raises."""
    try:
        frame = pd.read_csv(path, **options)
        if absent := [name for name in columns if name not in frame]:
            raise ValueError(f"it has no column {absent[0]!r}")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing") from None
    except (*UNREADABLE, TypeError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"{path} is damaged: {why}") from error
    return frame


def _module_and_key(number) -> tuple[str, str]:
    """Return the module and the key of a number of the tidy frame: the inverse of `measure_name`."""
    if number.measure == BY_STAGE:
        return BY_STAGE, str(number.stage)
    module, point, key = number.measure.partition(".")
    if not point:
        key = MAIN[module.removesuffix(BY_SIGN)]
    return module, key
