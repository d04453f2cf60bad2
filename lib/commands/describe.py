"""Descriptors for other people's pipelines, ``python -m lib.commands.describe``.

``folder IMAGES OUT --descriptor NAME`` describes and matches the images of a folder: ``features.h5``,
``matches.h5`` and ``pairs.txt`` in hloc's layout, and COLMAP's ``database.db``.
``model IMAGES OUT`` goes on from there to a sparse model, by pycolmap.
``export RECORD OUT`` writes a run's network as safetensors with a model card.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from lib.commands.options import add_descriptor, exit_status, network_of, positive, raise_at_interrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)

    # What is not given is left to the functions' own defaults.
    folder = commands.add_parser("folder", help="describe and match the images of a folder")
    add = folder.add_argument
    add("images", type=Path)
    add("out", type=Path, help="a new folder, or one that the same command left unfinished")
    add_descriptor(folder)
    add("--detector", dest="kind", help="dog (default), colmap, hessian, harris, brisk or keynet")
    add("--detector-weights", dest="weights", type=Path, metavar="FILE", help="of keynet alone")
    add("--affine", action="store_true", help="give each keypoint an affine shape")
    add("--upright", action="store_true", help="turn no patch")
    add("--most", type=int, help="keypoints of an image")
    add("--contrast", type=float, help="smallest, of DoG")
    add("--magnification", type=float, help="half a patch's width in scales of its keypoint")
    add("--longest-side", type=int, help="px to which larger images are reduced")
    add("--pairs", type=Path, help="two names a line (default: all pairs)")
    add("--ratio", type=float, help="to the second-nearest")
    text = "take a keypoint's nearest though it is nearer to another (default: mutual nearest)"
    add("--one-way", dest="mutual", action="store_false", help=text)
    add("--one-camera", action="store_true", help="one camera took all images")
    text = "one known camera: COLMAP's model and parameters with commas, or a file of K, 3×3"
    add("--camera", metavar="MODEL,PARAMETERS", help=text)
    add("--strict", action="store_true", help="refuse what would be set aside")
    add("--threads", type=positive, metavar="N", help="of the processor (default: all)")
    folder.set_defaults(run=_folder)

    model = commands.add_parser("model", help="a sparse model of what `folder` wrote")
    model.add_argument("images", type=Path)
    model.add_argument("out", type=Path, help="as `folder` left it; gets models/0, …")
    model.set_defaults(run=_model)

    export = commands.add_parser("export", help="a run's network, for others")
    export.add_argument("record", type=Path)
    export.add_argument("out", type=Path, help="a folder that is not there yet")
    export.add_argument("--half", action="store_true", help="numbers of 16 bits, in half the bytes")
    export.add_argument("--terms", default="", help="of the images that it was trained on, for the card")
    export.set_defaults(run=_export)
    return exit_status(parser, arguments, imports=True)


def _folder(options: argparse.Namespace) -> None:
    import cv2
    import faiss
    import torch

    from lib.features.detectors import Detector
    from lib.matching.folder import Settings, describe_and_match

    network = network_of(options)
    raise_at_interrupt()
    if options.threads:
        for set_threads in (torch.set_num_threads, cv2.setNumThreads, faiss.omp_set_num_threads):
            set_threads(options.threads)
    given = {name: value for name, value in vars(options).items() if value is not None}
    detector, settings = (
        kind(**{field.name: given[field.name] for field in fields(kind) if field.name in given})
        for kind in (Detector, Settings)
    )
    describe_and_match(
        options.images, options.out, detector, network, settings, options.pairs, options.strict
    )


def _model(options: argparse.Namespace) -> None:
    from lib.matching import colmap
    from lib.matching.folder import DATABASE

    raise_at_interrupt()
    models = colmap.sparse_models(options.out / DATABASE, options.images, options.out / "models")
    if not models:
        raise ValueError(f"{options.out}: no two images could be put together; match more of them")
    folder, model = models[0]
    print(f"{folder}, the largest of {len(models)}\n{model.summary()}")
    for name, length in colmap.implausible_focal_lengths(model).items():
        print(f"implausible: a focal length of {length:.2g} image widths for the camera of {name}")


def _export(options: argparse.Namespace) -> None:
    from lib.files import make_once, write_bytes
    from lib.matching import networks
    from lib.study import records
    from lib.study.runs import load_network

    raise_at_interrupt()
    if options.out.exists():
        raise FileExistsError(f"{options.out} is there already: name a folder that is not, or remove it")
    network, record = load_network(options.record), records.read(options.record)

    def make(new: Path) -> None:
        networks.save(new / networks.WEIGHTS, network, record, options.half)
        write_bytes(new / networks.CARD, networks.card(network, record, options.terms).encode())

    make_once(options.out, options.out.name, make)
    print(f"{options.out}: {networks.WEIGHTS}, {networks.CARD}")


if __name__ == "__main__":
    sys.exit(main())
