"""Descriptors by name, for patches and whole images; and trained networks as files that others can load.

A file is in safetensors format, and its metadata names the network (`lib.models.exported`) that the
tensors belong to, so it needs no record. A card lies beside it. The tensors are named as in the
checkpoints that HardNet's and HyNet's authors published, so kornia's classes of those names can load the
file itself if the architecture is theirs.
"""

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path

import jinja2
import numpy as np
import safetensors.torch
import torch
from kornia.feature import hardnet, hynet, sosnet
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lib.benchmarks import subject
from lib.features.detectors import Detector, Regions
from lib.features.patches import (
    MAGNIFICATION,
    PATCH,
    Describe,
    Features,
    as_image,
    as_patches,
    image_features,
)
from lib.files import write_bytes
from lib.models import exported, handcrafted, published

HANDCRAFTED = {
    "sift": handcrafted.Sift,
    "rootsift": lambda: handcrafted.Sift(root=True),
    "orb": handcrafted.Orb,
}
# The committed networks, one folder per recipe, named by the recipe's key.
NETWORKS = Path(__file__).resolve().parents[2] / "networks"
ENDING = ".safetensors"
WEIGHTS, CARD, RECORD = "model" + ENDING, "README.md", "record.json"
# Addresses by kornia's name of weights; a file in torch's cache is named as in the first address.
_KORNIA_ADDRESSES = {**hardnet.urls, "sosnet": sosnet.urls["lib"], "hynet": hynet.urls["liberty"]}


def find(name: str) -> nn.Module:
    """Load a handcrafted descriptor or a trained network, in evaluation mode.

    Args:
        name: a name in `HANDCRAFTED`, a folder in `NETWORKS`, or kornia's name of weights that it has
            downloaded; or the path of a published checkpoint or of a network exported here.

    Raises:
        FileNotFoundError, ValueError: as `load` of `lib.models.published` and `lib.models.exported`.
    """
    if name in HANDCRAFTED:
        return HANDCRAFTED[name]().eval()
    files = [NETWORKS / name / WEIGHTS, Path(name)]
    if name in _KORNIA_ADDRESSES:
        file_name = Path(_KORNIA_ADDRESSES[name][0]).name
        files.insert(1, Path(torch.hub.get_dir(), "checkpoints", file_name))
    path = next(filter(Path.is_file, files), None)
    if path is None:
        committed = sorted(file.parent.name for file in NETWORKS.glob(f"*/{WEIGHTS}"))
        raise FileNotFoundError(
            f"{name} is no file, none of {', '.join([*HANDCRAFTED, *committed])}, nor one of "
            f"{', '.join(_KORNIA_ADDRESSES)} that kornia has downloaded"
        )
    return (exported if path.suffix == ENDING else published).load(path)


def describe(
    image: np.ndarray,
    keypoints: Regions | Detector,
    descriptor: nn.Module | Describe,
    magnification: float | None = None,
    device: str = "cpu",
) -> Features:
    """Describe an image's keypoints, given or detected, with a network or a function of patches.

    Args:
        image: (H, W) uint8, or floating point from 0 to 1 or from 0 to 255.
        keypoints: given ones, or the detector that finds them, as `image_features` takes them.
        descriptor: a network of `lib.models` in evaluation mode, as `find` and
            `lib.study.making.load_network` return it, or a function of patches like `Subject.describe`.
        magnification: half a patch's width in scales of its keypoint; None is `own_magnification`.
        device: the network's.

    Raises:
        ValueError: the image has colours, another type or other values; the network is in training
            mode; or given keypoints have values that are not finite, no scale, or lie outside the image.
    """
    image = as_image(image)
    if magnification is None:
        magnification = own_magnification(descriptor)
    if isinstance(descriptor, nn.Module):
        _check_evaluation(descriptor)
        descriptor = partial(patch_descriptors, folded(descriptor), device=device)
    return image_features(image, keypoints, descriptor, magnification)


def own_magnification(descriptor: nn.Module | Describe) -> float:
    """Return half a patch's width, in scales of its keypoint, of the patches that a descriptor was
    trained on; for descriptors that do not say, that of the papers' matching experiments.

    Networks of `train`, and exported ones, say that of places, 7. A set of patches does not say how wide
    its own are: for a network of other sets, such as HPatches or your own, give `magnification` or set
    the network's.
    """
    return getattr(descriptor, "magnification", MAGNIFICATION)


def patch_descriptors(network: nn.Module, patches: np.ndarray, device: str = "cpu") -> np.ndarray:
    """Describe patches with a network.

    Args:
        network: in evaluation mode, on `device`.
        patches: as `as_patches` takes them.
        device: the network's.

    Returns:
        (m, k) float32, or (m, k / 8) uint8 of packed bits.

    Raises:
        ValueError: patches have another shape, type or other values, or the network is in training mode.
    """
    _check_evaluation(network)
    patches = as_patches(patches)
    # Without patches, an empty one shows how long a descriptor is.
    some = patches if len(patches) else np.zeros((1, PATCH, PATCH), np.uint8)
    return subject.describe(network, some, device)[: len(patches)]


def _check_evaluation(network: nn.Module) -> None:
    if network.training:
        raise ValueError(
            "the network is in training mode, in which descriptors depend on the batch: "
            "call network.eval() first"
        )


def folded(network: nn.Module) -> nn.Module:
    """Return a copy whose batch norms are folded into the convolutions before them.

    The descriptors are the same up to rounding; L2-Net takes 0.55 of the time. Only the layers of an
    `nn.Sequential` are folded: elsewhere, the order of definition need not be that of use.

    Args:
        network: in evaluation mode; a network without batch norm is returned unchanged.
    """
    if not any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules()):
        return network
    network = deepcopy(network)
    for layers in [module for module in network.modules() if isinstance(module, nn.Sequential)]:
        for index in range(len(layers) - 1):
            first, second = layers[index], layers[index + 1]
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                layers[index] = fuse_conv_bn_eval(first, second)
                layers[index + 1] = nn.Identity()
    return network.to(memory_format=torch.channels_last)


def weights_digest(network: nn.Module) -> str:
    """Return 16 hexadecimal digits that identify a network's tensors."""
    tensors = {name: tensor.cpu().contiguous() for name, tensor in network.state_dict().items()}
    return hashlib.sha256(safetensors.torch.save(tensors)).hexdigest()[:16]


def save(path: Path, network: nn.Module, run: Mapping, half: bool = False) -> None:
    """Write a network with what `lib.models.exported` needs to build it again.

    The metadata also holds the train set and the hash of the run's weights.

    Args:
        path: the file to make.
        network: the run's network.
        run: content of the run's JSON file.
        half: whether to store numbers in 16 bits, in half the bytes.

    Raises:
        ValueError: a number is too large for 16 bits; the message names its tensor.
    """
    config = run["config"]
    metadata = {
        "model": json.dumps(config["recipe"]["model"]),
        "width": json.dumps(config["size"]["width"]),
        "label": run["label"],
        "train_set": run["train"],
        "weights": run["weights"],
    }
    tensors = {}
    for name, tensor in network.state_dict().items():
        if half and tensor.is_floating_point():
            # Larger numbers would become infinities.
            if (tensor.abs() > torch.finfo(torch.float16).max).any():
                largest = tensor.abs().max()
                raise ValueError(f"{name} has numbers of up to {largest:.3g}: store it in 32 bits")
            tensor = tensor.half()
        tensors[name] = tensor.contiguous()
    write_bytes(path, safetensors.torch.save(tensors, metadata))


def card(network: nn.Module, run: Mapping, terms: str = "") -> str:
    """Return a model card in Markdown: what the network is, its training, its use and its purpose.

    Args:
        network: the run's network.
        run: content of the run's JSON file.
        terms: what the owners of its train set's images ask for.
    """
    side = network.input_size
    with torch.inference_mode():
        described = network.eval()(torch.zeros(1, 1, side, side))
    text = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    template = jinja2.Template(text, trim_blocks=True, keep_trailing_newline=True)
    return template.render(
        run=run,
        side=side,
        length=described.shape[1],
        binary=described.dtype == torch.bool,
        terms=terms.rstrip(),
    )
