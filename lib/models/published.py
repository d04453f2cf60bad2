"""Descriptors that others trained: checkpoints as published, read safely and strictly.

Which network a checkpoint is of is told by the names and shapes of its tensors. Only tensors in plain
containers are read: nothing that the file holds is executed.
"""

import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from kornia import feature
from torch import Tensor, nn

from lib.models import l2net, l2net_binary, tfeat

# Batch norm's count of batches, which PyTorch had not yet in 2017 and no evaluation looks at.
_COUNT = "num_batches_tracked"


@dataclass(frozen=True)
class Layout:
    """How the tensors of a published network are called.

    Attributes:
        name: of the network, for messages.
        build: makes it with any weights; its state dict has the shapes.
        theirs: from a name in that state dict to the checkpoint's.
        constants: shapes by name of tensors that published files hold besides, which no layer of the
            network uses; they are left out.
    """

    name: str
    build: Callable[[], nn.Module]
    theirs: Callable[[str], str] = str
    constants: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def _by_layer(name: str) -> str:
    """SOSNet's ``layers.N`` as HyNet's code numbers the same layers: ``layer1.1`` to ``layer7.2``."""
    _, place, tensor = name.split(".")
    layer, within = divmod(int(place) + 2, 3)
    return f"layer{layer}.{within + (layer == 1)}.{tensor}"


# Beside HardTFeat as published: gradient filters and the window of a SIFT module.
_SIFT_CONSTANTS = {
    "SIFT.gx.0.weight": (1, 1, 1, 3),
    "SIFT.gy.0.weight": (1, 1, 3, 1),
    "SIFT.pk.0.weight": (1, 1, 11, 11),
}
LAYOUTS = (
    Layout("HardNet (or L2-Net in its naming)", l2net.build),
    Layout("DSM's binary L2-Net", l2net_binary.build),
    Layout("SOSNet (or L2-Net in its naming)", lambda: feature.SOSNet(pretrained=False)),
    Layout("L2-Net in HyNet's naming", lambda: feature.SOSNet(pretrained=False), _by_layer),
    Layout("TFeat", tfeat.build),
    Layout("HardTFeat", tfeat.HardTFeat, constants=_SIFT_CONSTANTS),
    Layout("HardNet8", lambda: feature.HardNet8(pretrained=False)),
    Layout("HyNet", lambda: feature.HyNet(pretrained=False)),
)


def build(weights: Path | str, sha256: str | None = None) -> nn.Module:
    """The network of a checkpoint, from (m, 1, 32, 32) grey patches of 0 to 255 to (m, 128) descriptors
    or, of the binary one, to (m, 256) bits.

    It is in evaluation mode, on the CPU. Descriptors have unit length but for TFeat's.

    Args:
        weights: a state dict as ``torch.save`` wrote it, bare or under "state_dict" of a dict, in one
            of `LAYOUTS`.
        sha256: of the file, in hexadecimal; None for any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is another file, no checkpoint, a damaged one, holds objects that loading could
            execute, or its names and shapes are those of no layout; the message tells what the nearest
            one misses and does not know.
    """
    path = Path(weights)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}; give the path of a published one")
    content = checked_content(path, sha256)
    state = _read(path, content)
    misfits: dict[str, list[str]] = {}
    for layout in LAYOUTS:
        network = layout.build()
        theirs = {layout.theirs(name): value for name, value in network.state_dict().items()}
        own = {n: v for n, v in state.items() if (n, (*v.shape,)) not in layout.constants.items()}
        misfits[layout.name] = _misfits(own, theirs)
        if not misfits[layout.name]:
            with torch.no_grad():
                for name, value in theirs.items():
                    value.copy_(state.get(name, value))
            network.input_size = 32
            return network.eval()
    nearest = min(misfits, key=lambda name: len(misfits[name]))
    raise ValueError(
        f"{path} fits no published layout; nearest is that of {nearest}: {'; '.join(misfits[nearest])}"
    )


def checked_content(path: Path, sha256: str | None) -> bytes:
    """A file's bytes, which have this SHA-256, in hexadecimal; None for any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is another.
    """
    content = path.read_bytes()
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path} is not the file asked for: its SHA-256 is not {sha256}")
    return content


def _read(path: Path, content: bytes) -> Mapping[str, Tensor]:
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} was refused for safety: it holds more than tensors, which loading could execute, "
            "or is no checkpoint at all. Give a plain state dict"
        ) from error
    # What foreign bytes raise depends on the first of them: KeyError, EOFError, RuntimeError, …
    except Exception as error:
        raise ValueError(f"{path} is no checkpoint, or a damaged one: {error!r}") from error
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise ValueError(f"{path} holds no state dict (tensors by name) but a {type(state).__name__}")
    return state


def _misfits(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[str]:
    missing = [f"{name} is missing" for name in expected if name not in state and _COUNT not in name]
    unknown = [f"{name} is unknown" for name in state if name not in expected]
    misshapen = [
        f"{name} has shape {tuple(state[name].shape)} and not {tuple(value.shape)}"
        for name, value in expected.items()
        if name in state and state[name].shape != value.shape
    ]
    return missing + unknown + misshapen
