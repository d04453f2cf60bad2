"""Descriptors that others trained: checkpoints as published, read safely and strictly.

The names and shapes of its tensors tell which network a checkpoint belongs to. Only tensors in plain
containers are read: nothing in the file is executed.
"""

import hashlib
import io
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from kornia import feature
from torch import Tensor, nn

from lib.models.l2net import L2Net
from lib.models.l2net_binary import L2NetBinary
from lib.models.tfeat import HardTFeat, TFeat

# Name for messages -> function that builds a network with any weights; its state dict has the shapes.
LAYOUTS: Mapping[str, Callable[[], nn.Module]] = {
    "HardNet (or L2-Net in its naming)": L2Net,
    "DSM's binary L2-Net": L2NetBinary,
    "SOSNet (or L2-Net in its naming or HyNet's)": lambda: feature.SOSNet(pretrained=False),
    "TFeat": TFeat,
    "HardTFeat": HardTFeat,
    "HardNet8": lambda: feature.HardNet8(pretrained=False),
    "HyNet": lambda: feature.HyNet(pretrained=False),
}
# HardTFeat as published holds gradient filters and the window of a SIFT module, which it does not use.
_UNUSED = "SIFT."
# What torch.compile and DataParallel put before the names of a network's tensors.
_WRAPPERS = re.compile(r"^(_orig_mod\.|module\.)+")


def load(weights: Path | str, sha256: str | None = None) -> nn.Module:
    """Load the network of a checkpoint, in evaluation mode, on the CPU.

    It maps grey patches (m, 1, 32, 32) of 0 to 255 to descriptors (m, 128), of unit length except
    TFeat's, or to bits (m, 256) if it is binary.

    Args:
        weights: a state dict as ``torch.save`` wrote it, bare or under "state_dict" of a dict, in one
            of `LAYOUTS`.
        sha256: SHA-256 of the file, in hexadecimal; None accepts any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not the one asked for, is no checkpoint, is damaged, or holds objects
            that loading could execute; or its names and shapes fit no layout, and the message says
            which tensors the nearest layout misses and does not know.
    """
    state = _read(Path(weights), checked_content(Path(weights), sha256))
    misfits: dict[str, str] = {}
    for name, build_network in LAYOUTS.items():
        network = build_network()
        try:
            # To a plain dict torch adds batch norm's counts of batches, which files of 2017 lack.
            network.load_state_dict(_renamed(state, network))
        except RuntimeError as error:
            misfits[name] = " ".join(str(error).split())
        else:
            network.input_size = 32
            return network.eval()
    nearest = min(misfits, key=lambda name: len(misfits[name]))
    raise ValueError(f"{weights} fits no published layout; nearest is {nearest}: {misfits[nearest]}")


def checked_content(path: Path, sha256: str | None) -> bytes:
    """Return a file's bytes if they have this SHA-256, in hexadecimal; None accepts any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: its SHA-256 is another.
    """
    content = path.read_bytes()
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path} is not the file asked for: its SHA-256 is not {sha256}")
    return content


def _is_torchscript(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(name.endswith("/constants.pkl") for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def _read(path: Path, content: bytes) -> Mapping[str, Tensor]:
    if _is_torchscript(content):
        raise ValueError(
            f"{path} is a TorchScript archive, which holds code: load it with torch.jit.load and give "
            "its state_dict, written with torch.save"
        )
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} was refused for safety: it holds more than tensors, which loading could execute, "
            "or is no checkpoint at all. Give a plain state dict"
        ) from error
    # Which exception foreign bytes raise depends on the first of them: KeyError, EOFError, …
    except Exception as error:
        raise ValueError(f"{path} is no checkpoint, or a damaged one: {error!r}") from error
    if isinstance(state, Mapping):
        state = state.get("state_dict", state)
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise ValueError(f"{path} holds no state dict (tensors by name) but a {type(state).__name__}")
    if all(_WRAPPERS.match(name) for name in state):
        return {_WRAPPERS.sub("", name): value for name, value in state.items()}
    return state


def _renamed(state: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that are used. If ``network`` is SOSNet, HyNet's names of the same layers,
    ``layer1.1`` to ``layer7.2``, become SOSNet's ``layers.N``."""
    names: dict[str, str] = {}
    if isinstance(network, feature.SOSNet):
        for name in network.state_dict():
            _, number, tensor = name.split(".")
            layer, within = divmod(int(number) + 2, 3)
            names[f"layer{layer}.{within + (layer == 1)}.{tensor}"] = name
    return {names.get(k, k): value for k, value in state.items() if not k.startswith(_UNUSED)}
