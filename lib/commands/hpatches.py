"""HPatches, ``python -m lib.commands hpatches``: cut patches, describe them, score descriptors.

``build OUT SEQUENCES…`` cuts the patches of homography sequences and draws tasks.
``describe DATA OUT --descriptor NAME`` writes descriptors in the benchmark's CSV layout. NAME is a
committed network, a handcrafted descriptor or a checkpoint file; ``--run R`` takes a run's network. OUT
is new, or was begun with the same descriptor and DATA.
``score DATA DESCRIPTORS --split a`` measures the three tasks on such files, made here or elsewhere.

DATA contains ``hpatches-release`` and the benchmark's ``tasks``.
"""

import argparse
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from lib.benchmarks import hpatches, subject
from lib.commands.describe import add_descriptor, name_of, network_of
from lib.commands.options import exit_status
from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches.building import build_hpatches
from lib.data.hpatches.descriptors import (
    Origin,
    check_origin,
    read_descriptors,
    write_descriptors,
)
from lib.data.hpatches.release import read_sequences, read_splits
from lib.data.hpatches.tasks import open_split
from lib.data.synthetic import SequencesSize
from lib.features.networks import HANDCRAFTED, weights_digest
from lib.files import locked, make_once, write_bytes
from lib.study.tables import PROTOCOLS

# How much `build` draws by default, by option: verification pairs of each kind, and so on.
AMOUNTS = {"pairs": 200_000, "queries": 10_000, "distractors": 20_000, "seed": 0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.commands hpatches", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(required=True)

    build = commands.add_parser("build", help="patches and tasks from homography sequences")
    build.add_argument("out", type=Path, help="gets hpatches-release, tasks and build.json")
    build.add_argument("sequences", type=Path, nargs="+", help="sequences, or folders of them")
    build.add_argument("--patches", type=int, help="most of a sequence (default: all)")
    for name, amount in AMOUNTS.items():
        build.add_argument(f"--{name}", type=int, default=amount, help="default: %(default)s")
    build.set_defaults(run=_build)

    describe = commands.add_parser("describe", help="write descriptors of a release's patches")
    describe.add_argument("data", type=Path)
    describe.add_argument("out", type=Path, help="a new folder, or one that the same command began")
    add_descriptor(describe)
    describe.set_defaults(run=_describe)

    score = commands.add_parser("score", help="the three tasks on descriptors in CSV files")
    score.add_argument("data", type=Path)
    score.add_argument("descriptors", type=Path)
    score.add_argument("--split", help="default: a, or the only one there is")
    text = "numbers are bytes that pack eight bits each, or plain (default: as format.json says)"
    score.add_argument("--packed", action=argparse.BooleanOptionalAction, help=text)
    score.add_argument("--delimiter", default=",", choices=(",", ";", "\t", " ", "|"))
    score.add_argument("--device", default="cpu")
    score.add_argument("--json", type=Path, help="all numbers into this file")
    score.set_defaults(run=_score)
    return exit_status(parser, arguments)


def _build(options: argparse.Namespace) -> None:
    if options.out.exists():
        raise FileExistsError(f"{options.out} is there already: name a folder that is not, or remove it")
    amounts = {name: getattr(options, name) for name in AMOUNTS}
    size = SequencesSize(patches_per_sequence=options.patches, **amounts)
    make_once(options.out, options.out.name, lambda new: build_hpatches(new, options.sequences, size))
    print((options.out / "build.json").read_text())


def _describe(options: argparse.Namespace) -> None:
    network = network_of(options)
    by_network = partial(subject.describe, network, device=options.device)
    sequences = read_sequences(options.data / RELEASE)
    digests = {sequence.name: sequence.digest() for sequence in sequences.values()}
    name = name_of(options)
    # Filters of a handcrafted one are computed, and may differ in their last bits elsewhere.
    weights = None if name in HANDCRAFTED else weights_digest(network)
    origin = Origin(name, weights, digests)
    with locked(options.out / ".lock", wait=0):
        check_origin(options.out, origin)
        for sequence in sequences.values():
            described = hpatches.describe(subject.Subject(by_network), [sequence])
            write_descriptors(options.out, described, [sequence], origin)
            print(f"{sequence.name}: {16 * sequence.count} descriptors", flush=True)


def _score(options: argparse.Namespace) -> None:
    splits = read_splits(options.data / TASKS)
    name = options.split or (next(iter(splits)) if len(splits) == 1 else "a")
    split = open_split(options.data / RELEASE, options.data / TASKS, name)
    form = {"packed": options.packed, "delimiter": options.delimiter}
    try:
        descriptors = read_descriptors(options.descriptors, split.sequences, **form)
    except ValueError as error:
        # pandas quotes the whole of a row that it cannot parse.
        raise ValueError(re.sub(r"(float: '.{40})[^']+", r"\1…", str(error))) from error
    distractors, whole = len(split.tasks.distractors), hpatches.whole_pools(split)
    numbers = hpatches.without_pools(hpatches.score(descriptors, split, options.device), distractors)
    print(f"split {split.name}, {len(split.sequences)} sequences, in percent")
    tasks = split.tasks
    pairs = {"matching": tasks.positives, "intra": tasks.intra, "inter": tasks.inter}
    counts = ", ".join(f"{len(rows):,} {kind}" for kind, rows in pairs.items())
    print(f"of {counts} pairs in verification and {len(tasks.queries):,} queries in retrieval")
    for key, protocol in PROTOCOLS.items():
        if key in numbers:
            print(f"  {protocol:<34}{numbers[key]:7.2f}")
    if wanting := [m for m in hpatches.POOLS if m > whole.min()]:
        left_out = [str(m) for m in wanting if f"retrieval.easy.{m}" not in numbers]
        told = f"; pools of {', '.join(left_out)} are left out" if left_out else ""
        print(f"{distractors} distractors: the whole pools are of {whole.min()} to {whole.max()}{told}")
    table = torch.from_numpy(descriptors).to(options.device)
    by_views_last = hpatches.retrieval(table, split, views_first=False)
    tied = numbers["retrieval"] - by_views_last["retrieval"]
    numbers["retrieval.ties"] = tied
    # A smaller difference does not show in two decimals.
    if tied >= 0.01:
        print(f"ties decide {tied:.2f} points of retrieval, where the benchmark ranks views first")
    if options.json:
        write_bytes(options.json, (json.dumps(numbers, indent=1) + "\n").encode())
