"""Descriptors for other people's pipelines, ``python -m lib.commands.describe``.

``folder IMAGES OUT --descriptor NAME`` describes and matches the images of a folder: ``features.h5``,
``matches.h5`` and ``pairs.txt`` in hloc's layout, and COLMAP's ``database.db``.
``model IMAGES OUT`` goes on from there to a sparse model, by pycolmap.
``export RECORD OUT`` writes a run's network as safetensors with a model card.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lib.files import make_once, write_bytes

if TYPE_CHECKING:
    from torch import nn


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    return carry_out(_parser(), arguments)


def carry_out(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Does what a command line asks, by the ``run`` of its subcommand; returns the exit status."""
    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except (ValueError, OSError, KeyError, RuntimeError, AssertionError) as error:
        # The last two are torch's, of a device that is not there.
        print(f"{parser.prog.rpartition('.')[2]}: {error}", file=sys.stderr)
        return 1
    return 0


def add_descriptor(parser: argparse.ArgumentParser) -> None:
    """The options that name a descriptor: ``--descriptor``, as `lib.matching.networks.find` takes it, or
    ``--record``; and ``--device``."""
    which = parser.add_mutually_exclusive_group(required=True)
    told = "sift, rootsift, orb, a folder of networks/, or a file: a published or an exported one"
    which.add_argument("--descriptor", metavar="NAME", help=told)
    which.add_argument("--record", type=Path, help="a run's record, with its weights beside it")
    parser.add_argument("--device", default="cpu")


def network_of(chosen: argparse.Namespace) -> "nn.Module":
    """The network that the options of `add_descriptor` name, on their device."""
    from lib.matching.networks import find
    from lib.study.runs import load_network

    network = load_network(chosen.record) if chosen.record else find(chosen.descriptor)
    return network.to(chosen.device)


def _parser() -> argparse.ArgumentParser:
    from lib.features.keypoints import KINDS, Detector
    from lib.features.patches import MAGNIFICATION
    from lib.matching import folder as defaults

    parser = argparse.ArgumentParser(
        prog="python -m lib.commands.describe", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(required=True)

    folder = commands.add_parser("folder", help="describe and match the images of a folder")
    folder.add_argument("images", type=Path)
    folder.add_argument("out", type=Path, help="a folder that is not there yet")
    add_descriptor(folder)
    usual = Detector()
    folder.add_argument("--detector", choices=KINDS, default=usual.kind)
    told = "a checkpoint, of keynet alone"
    folder.add_argument("--detector-weights", type=Path, metavar="FILE", help=told)
    folder.add_argument("--affine", action="store_true", help="give each keypoint an affine shape")
    folder.add_argument("--upright", action="store_true", help="turn no patch")
    folder.add_argument("--most", type=int, default=usual.most, help="keypoints of an image")
    folder.add_argument("--contrast", type=float, default=usual.contrast, help="smallest, of DoG")
    folder.add_argument("--magnification", type=float, default=MAGNIFICATION, help="of patches")
    folder.add_argument("--longest-side", type=int, default=defaults.LONGEST_SIDE, help="px")
    told = "take images that are to be turned (EXIF) as stored, which COLMAP does"
    folder.add_argument("--as-stored", action="store_true", help=told)
    folder.add_argument("--pairs", type=Path, help="two names a line (default: all pairs)")
    folder.add_argument("--ratio", type=float, default=defaults.RATIO, help="to the second-nearest")
    told = "take a keypoint's nearest though it is nearer to another (default: mutual nearest)"
    folder.add_argument("--one-way", action="store_true", help=told)
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


def _folder(chosen: argparse.Namespace) -> None:
    from lib.features.keypoints import Detector
    from lib.matching.folder import describe_and_match

    describe_and_match(
        chosen.images,
        chosen.out,
        Detector(
            chosen.detector,
            chosen.affine,
            chosen.most,
            chosen.upright,
            chosen.contrast,
            chosen.detector_weights,
        ),
        network_of(chosen),
        pairs=chosen.pairs,
        ratio=chosen.ratio,
        mutual=not chosen.one_way,
        one_camera=chosen.one_camera,
        longest_side=chosen.longest_side,
        orientation="stored" if chosen.as_stored else "refuse",
        magnification=chosen.magnification,
        device=chosen.device,
    )
    print(f"{chosen.out} is written")


def _model(chosen: argparse.Namespace) -> None:
    from lib.matching import colmap
    from lib.matching.folder import DATABASE, PAIRS

    database, pairs, models = (chosen.out / name for name in (DATABASE, PAIRS, "models"))
    model = colmap.reconstruct(database, chosen.images, pairs, models)
    if model is None:
        raise ValueError(f"{chosen.out}: no two images could be put together; match more of them")
    print(model.summary())


def _export(chosen: argparse.Namespace) -> None:
    from lib.data.synthetic.allotment import packaged_photographs
    from lib.matching import networks
    from lib.study import records
    from lib.study.runs import load_network

    if chosen.out.exists():
        raise FileExistsError(f"{chosen.out} is there already: name a folder that is not, or remove it")
    network, record = load_network(chosen.record), records.read(chosen.record)
    part = record["train_set"].removeprefix("mini-")
    known = packaged_photographs().get(part, ()) if record["data"] == "mini" else ()

    def make(new: Path) -> None:
        networks.save(new / networks.WEIGHTS, network, record, chosen.half)
        card = networks.card(network, record, known, chosen.terms)
        write_bytes(new / networks.CARD, card.encode())

    make_once(chosen.out, chosen.out.name, make)
    print(f"{chosen.out}: {networks.WEIGHTS}, {networks.CARD}")


if __name__ == "__main__":
    sys.exit(main())
