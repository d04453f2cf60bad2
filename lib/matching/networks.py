"""Descriptors by name, and a trained network as one file that others load: safetensors and a card.

The file's metadata says which module of `lib.models` the tensors are of, so it needs no record. They are
called as in the checkpoints that HardNet's and HyNet's authors published, so that kornia's classes of
those names load the file itself where the architecture is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import jinja2
import safetensors.torch
import torch
from kornia.feature import hardnet, hynet, sosnet
from torch import nn

from lib.files import write_bytes
from lib.models import exported, orb, published, sift

HANDCRAFTED = {"sift": sift.build, "rootsift": lambda: sift.build(root=True), "orb": orb.build}
# Committed, a folder each by its recipe's key.
NETWORKS = Path(__file__).resolve().parents[2] / "networks"
ENDING = ".safetensors"
WEIGHTS, CARD = "model" + ENDING, "README.md"
# By kornia's name, whence it downloads weights; torch's cache calls them as the first address does.
_OF_KORNIA = {**hardnet.urls, "sosnet": sosnet.urls["lib"], "hynet": hynet.urls["liberty"]}


def find(name: str) -> nn.Module:
    """A handcrafted descriptor or a trained network, in evaluation mode.

    Args:
        name: of `HANDCRAFTED`, of a folder in `NETWORKS`, or kornia's of weights that it has downloaded;
            or the path of a published checkpoint or of a network exported here.

    Raises:
        FileNotFoundError, ValueError: as `build` of `lib.models.published` and `lib.models.exported`.
    """
    if name in HANDCRAFTED:
        return HANDCRAFTED[name]().eval()
    downloaded = Path(torch.hub.get_dir(), "checkpoints", Path(_OF_KORNIA.get(name, [""])[0]).name)
    files = (NETWORKS / name / WEIGHTS, downloaded, Path(name))
    path = next(filter(Path.is_file, files), None)
    if path is None:
        known = (*HANDCRAFTED, *sorted(file.parent.name for file in NETWORKS.glob(f"*/{WEIGHTS}")))
        raise FileNotFoundError(
            f"{name} is no file and no descriptor of {', '.join(known)}; nor is it one of "
            f"{', '.join(_OF_KORNIA)} that kornia has downloaded"
        )
    return (exported if path.suffix == ENDING else published).build(path)


def save(path: Path, network: nn.Module, record: Mapping, half: bool = False) -> None:
    """Writes a network with what `lib.models.exported` needs to build it again, and the digest by which
    its record knows the weights.

    Args:
        path: the file to make.
        network: a run's.
        record: of the run.
        half: with numbers of 16 bits, in half the bytes.
    """
    config = record["config"]
    metadata = {
        "model": json.dumps(config["recipe"]["model"]),
        "width": json.dumps(config["profile"]["width"]),
        "label": record["label"],
        "weights": record["weights"],
    }
    tensors = network.state_dict()
    for name, tensor in tensors.items():
        tensors[name] = (tensor.half() if half and tensor.is_floating_point() else tensor).contiguous()
    write_bytes(path, safetensors.torch.save(tensors, metadata))


def card(network: nn.Module, record: Mapping, terms: str = "") -> str:
    """A model card, Markdown: what it is, what it was trained on, how to use it, what for.

    Args:
        network: a run's.
        record: of the run.
        terms: what the owners of its train set's images ask for.
    """
    config, side = record["config"], network.input_size
    with torch.inference_mode():
        described = network.eval()(torch.zeros(1, 1, side, side))
    text = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    template = jinja2.Template(text, trim_blocks=True, keep_trailing_newline=True)
    return template.render(
        run=record,
        side=side,
        length=described.shape[1],
        binary=described.dtype == torch.bool,
        budget=config["profile"].get("budget") or config["recipe"]["budget"],
        terms=terms.rstrip(),
    )
