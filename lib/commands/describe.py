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

from lib.commands.options import add_descriptor, exit_status, network_of
from lib.files import make_once, write_bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    return exit_status(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    from lib.features.detectors import KINDS, Detector
    from lib.features.patches import MAGNIFICATION
    from lib.matching.folder import LONGEST_SIDE, RATIO

    parser = argparse.ArgumentParser(
        prog="python -m lib.commands.describe", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(required=True)

    folder = commands.add_parser("folder", help="describe and match the images of a folder")
    folder.add_argument("images", type=Path)
    folder.add_argument("out", type=Path, help="a folder that is not there yet")
    add_descriptor(folder)
    usual = Detector()
    text = "a checkpoint, of keynet alone"
    folder.add_argument("--detector", dest="kind", choices=KINDS, default=usual.kind)
    folder.add_argument("--detector-weights", dest="weights", type=Path, metavar="FILE", help=text)
    folder.add_argument("--affine", action="store_true", help="give each keypoint an affine shape")
    folder.add_argument("--upright", action="store_true", help="turn no patch")
    folder.add_argument("--most", type=int, default=usual.most, help="keypoints of an image")
    folder.add_argument("--contrast", type=float, default=usual.contrast, help="smallest, of DoG")
    folder.add_argument("--magnification", type=float, default=MAGNIFICATION, help="of patches")
    folder.add_argument("--longest-side", type=int, default=LONGEST_SIDE, help="px")
    stored = {"dest": "orientation", "action": "store_const", "const": "stored", "default": "refuse"}
    text = "take images that are to be turned (EXIF) as stored, which COLMAP does"
    folder.add_argument("--as-stored", help=text, **stored)
    folder.add_argument("--pairs", type=Path, help="two names a line (default: all pairs)")
    folder.add_argument("--ratio", type=float, default=RATIO, help="to the second-nearest")
    text = "take a keypoint's nearest though it is nearer to another (default: mutual nearest)"
    folder.add_argument("--one-way", dest="mutual", action="store_false", help=text)
    folder.add_argument("--one-camera", action="store_true", help="one camera took all images")
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
    return parser


def _folder(options: argparse.Namespace) -> None:
    from lib.features.detectors import Detector
    from lib.matching.folder import describe_and_match

    detector = Detector(**{field.name: getattr(options, field.name) for field in fields(Detector)})
    matching = ("pairs", "ratio", "mutual", "one_camera")
    describing = ("longest_side", "orientation", "magnification", "device")
    named = {name: getattr(options, name) for name in (*matching, *describing)}
    describe_and_match(options.images, options.out, detector, network_of(options), **named)
    print(f"{options.out} is written")


def _model(options: argparse.Namespace) -> None:
    from lib.matching import colmap
    from lib.matching.folder import DATABASE, PAIRS

    database, pairs, models = (options.out / name for name in (DATABASE, PAIRS, "models"))
    model = colmap.reconstruct(database, options.images, pairs, models)
    if model is None:
        raise ValueError(f"{options.out}: no two images could be put together; match more of them")
    print(model.summary())


def _export(options: argparse.Namespace) -> None:
    from lib.data.synthetic.allotment import packaged_photographs
    from lib.matching import networks
    from lib.study import records
    from lib.study.runs import load_network

    if options.out.exists():
        raise FileExistsError(f"{options.out} is there already: name a folder that is not, or remove it")
    network, record = load_network(options.record), records.read(options.record)
    scene = record["train_set"].removeprefix("mini-")
    known = packaged_photographs().get(scene, ()) if record["data"] == "mini" else ()

    def make(new: Path) -> None:
        networks.save(new / networks.WEIGHTS, network, record, options.half)
        card = networks.card(network, record, known, options.terms)
        write_bytes(new / networks.CARD, card.encode())

    make_once(options.out, options.out.name, make)
    print(f"{options.out}: {networks.WEIGHTS}, {networks.CARD}")


if __name__ == "__main__":
    sys.exit(main())
