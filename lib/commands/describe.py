"""Descriptors for other pipelines, ``python -m lib.commands describe``.

``folder IMAGES OUT --descriptor NAME`` describes and matches the images of a folder. It writes
``features.h5``, ``matches.h5`` and ``pairs.txt`` in hloc's layout, and COLMAP's ``database.db``.
``model IMAGES OUT`` reconstructs a sparse model from that output with pycolmap.
``export RUN OUT`` writes a run's network as safetensors with a model card.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeVar

import cv2
import faiss
import torch
from torch import nn

from lib.commands.options import exit_status, positive, stated
from lib.data.colmap import stationary_share
from lib.features import files, networks
from lib.features.detectors import Detector
from lib.features.folder import Settings, check_unchanged, describe_and_match, stated_camera
from lib.files import write_bytes
from lib.study.making import load_network
from lib.study.store import Store

Chosen = TypeVar("Chosen", Detector, Settings)
# Share of matches at the same pixels from which a logo or the like is suspected.
_STATIONARY = 0.015


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lib.commands describe", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(required=True)

    folder = commands.add_parser("folder", help="describe and match the images of a folder")
    add = folder.add_argument
    add("images", type=Path)
    add("out", type=Path, help="a new folder, or one that the same command left unfinished")
    add_descriptor(folder)
    add("--detector", dest="kind", help="dog (default), colmap, hessian, harris, brisk or keynet")
    add("--detector-weights", dest="weights", type=Path, metavar="FILE", help="of keynet alone")
    add("--affine", action="store_true", help="give each keypoint an affine shape")
    add("--upright", action="store_true", help="turn no patch")
    add("--most", type=int, help="keypoints of an image (default: %(default)s)")
    add("--contrast", type=float, help="smallest, of DoG (default: %(default)s)")
    text = (
        "half a patch's width in scales of its keypoint (default: 7 for this study's networks, else 6)"
    )
    add("--magnification", type=float, help=text)
    add("--longest-side", type=int, help="px to which larger images are reduced (default: %(default)s)")
    add("--pairs", type=Path, help="two names a line (default: all pairs)")
    add("--ratio", type=float, help="to the second-nearest (default: %(default)s)")
    add("--one-way", dest="mutual", action="store_false", help="nearest neighbours need not be mutual")
    add("--one-camera", action="store_true", help="one camera took all images")
    text = "known, as COLMAP has it; or a file of K, 3×3"
    add("--camera", type=stated, metavar="MODEL,PARAMETERS", help=text)
    text = "images were cut out of larger ones: the principal point of --camera may be off their middle"
    add("--cropped", action="store_true", help=text)
    add("--strict", action="store_true", help="refuse what would be set aside")
    add("--threads", type=positive, metavar="N", help="of the processor (default: all)")
    folder.set_defaults(run=_folder, **asdict(Detector()), **asdict(Settings()))

    model = commands.add_parser("model", help="a sparse model of what `folder` wrote")
    model.add_argument("images", type=Path)
    model.add_argument("out", type=Path, help="as `folder` left it; gets models/0, …")
    model.add_argument("--refine-camera", action="store_true", help="also where `folder` got --camera")
    text = "leave out matches at the same pixels of both images: a logo, a time stamp"
    model.add_argument("--drop-stationary", action="store_true", help=text)
    model.set_defaults(run=_model)

    export = commands.add_parser("export", help="a run's network, for others")
    export.add_argument("trained", metavar="RUN", type=Path, help="its JSON file, results/…/runs/….json")
    export.add_argument("out", type=Path, help="a folder that is not there yet")
    export.add_argument("--half", action="store_true", help="numbers of 16 bits, in half the bytes")
    export.add_argument("--terms", default="", help="of the images that it was trained on, for the card")
    export.set_defaults(run=_export)
    return exit_status(parser, arguments)


def add_descriptor(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a descriptor, ``--descriptor`` (as `lib.features.networks.find` takes
    it) or ``--run``, and ``--device``."""
    descriptor = parser.add_mutually_exclusive_group(required=True)
    text = "sift, rootsift, orb, a folder of networks/, or a file: a published or an exported one"
    descriptor.add_argument("--descriptor", metavar="NAME", help=text)
    text = "a run's JSON file, results/…/runs/….json, with its weights beside it"
    descriptor.add_argument("--run", dest="trained", metavar="RUN", type=Path, help=text)
    parser.add_argument("--device", default="cpu")


def network_of(options: argparse.Namespace) -> nn.Module:
    """Return the network that the options of `add_descriptor` name, on their device."""
    if options.trained is None:
        return networks.find(options.descriptor).to(options.device)
    return load_network(Store(options.trained.parent), options.trained.stem).to(options.device)


def name_of(options: argparse.Namespace) -> str:
    """Return the name of the network that the options of `add_descriptor` name, without its folder."""
    if options.trained is None:
        return Path(options.descriptor).name
    return options.trained.stem


def _folder(options: argparse.Namespace) -> None:
    if options.threads:
        for set_threads in (torch.set_num_threads, cv2.setNumThreads, faiss.omp_set_num_threads):
            set_threads(options.threads)
    describe_and_match(
        options.images,
        options.out,
        _from_options(Detector, options),
        network_of(options),
        _from_options(Settings, options),
        options.pairs,
        options.strict,
        cropped=options.cropped,
    )


def _from_options(kind: type[Chosen], options: argparse.Namespace) -> Chosen:
    """Return a dataclass whose fields are options of the same names."""
    return kind(**{field.name: getattr(options, field.name) for field in fields(kind)})


def _model(options: argparse.Namespace) -> None:
    check_unchanged(options.images, options.out)
    known = stated_camera(options.out)
    keeps = bool(known) and not options.refine_camera
    if known:
        print(f"the camera is {'kept as given' if keeps else 'refined from'}: {known}")
    database, models = options.out / files.DATABASE, options.out / "models"
    models = files.sparse_models(
        database, options.images, models, keeps, drop_stationary=options.drop_stationary
    )
    if not models:
        raise ValueError(f"{options.out}: {files.why_no_model(database)}")
    folder, model = models[0]
    print(f"{folder}, the largest of {len(models)}\n{model.summary()}")
    if (share := stationary_share(database)) > _STATIONARY:
        print(
            f"{share:.1%} of the verified matches lie at the same pixels although the images moved, as "
            "on a logo or a time stamp, and may bend the model: try --drop-stationary"
        )
    if panoramas := files.panoramas(model, options.images):
        print(
            f"{len(panoramas)} images look like 360° panoramas, such as {panoramas[0]}: describe them "
            "with --camera EQUIRECTANGULAR,WIDTH,HEIGHT"
        )
    for name, length in files.implausible_focal_lengths(model).items():
        print(f"implausible: a focal length of {length:.2g} image widths for the camera of {name}")


def _export(options: argparse.Namespace) -> None:
    store, name = Store(options.trained.parent), options.trained.stem
    network = load_network(store, name)
    run = json.loads(options.trained.read_bytes())
    options.out.mkdir(parents=True)
    try:
        networks.save(options.out / networks.WEIGHTS, network, run, options.half)
    except ValueError:
        # The same command without --half needs a folder that is not there.
        options.out.rmdir()
        raise
    write_bytes(options.out / networks.CARD, networks.card(network, run, options.terms).encode())
    write_bytes(options.out / networks.RECORD, options.trained.read_bytes())
    print(f"{options.out}: {networks.WEIGHTS}, {networks.CARD}, {networks.RECORD}")
