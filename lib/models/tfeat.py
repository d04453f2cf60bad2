"""TFeat (Balntas et al., BMVC 2016): two convolutions and a fully connected layer, tanh throughout.

The layers and their names are those of the PyTorch model that the authors published
(``features.N``, ``descr.0``), so that their checkpoints load strictly. Its descriptor is not normalised.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lib.evaluation import subject

DESCRIPTOR_LENGTH = 128
_MAP = 8  # side of the last map of a 32×32 patch: (32 - 6) / 2 - 5


class TFeat(nn.Module):
    """From a 32×32 patch to a descriptor of length 128, each value between -1 and 1.

    Args:
        width: share of the inner channels; 1 is the published network. The output keeps its length.

    Raises:
        ValueError: the width leaves no channel.
    """

    def __init__(self, width: float = 1.0):
        super().__init__()
        first, second = (round(width * channels) for channels in (32, 64))
        if first < 1:
            raise ValueError(f"width {width} leaves no channel; take 1/32 or more")
        self.features = nn.Sequential(
            nn.InstanceNorm2d(1, affine=False, track_running_stats=False),
            nn.Conv2d(1, first, 7),
            nn.Tanh(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 6),
            nn.Tanh(),
        )
        self.descr = nn.Sequential(nn.Linear(second * _MAP**2, DESCRIPTOR_LENGTH), nn.Tanh())

    def raw(self, patches: Tensor) -> Tensor:
        """Descriptors (n, 128) of grey patches (n, 1, 32, 32).

        The first layer takes each patch to zero mean and unit (biased) variance, so that 0 to 255 and
        0 to 1 give the same descriptor, but for the 1e-5 that it adds to the variance.
        """
        return self.descr(self.features(patches).flatten(1))

    def normalise(self, raw: Tensor) -> Tensor:
        """The raw descriptors (n, 128) as they are, in float32 whatever the network computed in."""
        return raw.float()

    def forward(self, patches: Tensor) -> Tensor:
        """Descriptors (n, 128), not of unit length, of grey patches (n, 1, 32, 32) on any scale."""
        return self.normalise(self.raw(patches))


def build(width: float = 1.0) -> TFeat:
    """A freshly initialised TFeat, by PyTorch's own initialisation; see `TFeat`."""
    return TFeat(width)


def load_checkpoint(path: Path | str) -> TFeat:
    """The full-width network with the weights of a published checkpoint, in evaluation mode, on the CPU.

    Only tensors in plain containers are read: nothing that the file holds is executed.

    Args:
        path: a state dict as ``torch.save`` wrote it, on any device.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no checkpoint, is damaged, holds objects that loading could execute, or its
            names and shapes are not TFeat's.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no TFeat checkpoint at {path}; give the path of a published one")
    network = build()
    state = _read(path)
    if faults := _faults(state, network.state_dict()):
        raise ValueError(f"{path} does not fit TFeat: {'; '.join(faults)}")
    network.load_state_dict(state)
    return network.eval()


def describe(
    patches: np.ndarray, *, weights: Path | str, sha256: str | None = None, device: str = "cpu"
) -> np.ndarray:
    """Descriptors of patches by a published checkpoint.

    Args:
        patches: (m, 64, 64) uint8.
        weights: path of the checkpoint.
        sha256: of the file, so that another file of this name is another descriptor; None for any.
        device: where to compute.

    Returns:
        (m, 128) float32, not of unit length.

    Raises:
        FileNotFoundError, ValueError: as `load_checkpoint`, or the file is another one.
    """
    network = load_checkpoint(weights)
    if sha256 is not None and hashlib.sha256(Path(weights).read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{weights} is not the file asked for: its SHA-256 is not {sha256}")
    return subject.describe(network.to(device), patches, device)


def _read(path: Path) -> Mapping[str, Tensor]:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} was refused for safety: it holds more than tensors, which loading could execute, "
            "or is no checkpoint at all. Give a plain state dict"
        ) from error
    except OSError:
        raise
    # What foreign bytes raise depends on the first of them: KeyError, EOFError, RuntimeError, …
    except Exception as error:
        raise ValueError(f"{path} is no checkpoint, or a damaged one: {error!r}") from error
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise ValueError(f"{path} holds no state dict (tensors by name) but a {type(state).__name__}")
    return state


def _faults(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[str]:
    missing = [f"{name} is missing" for name in expected if name not in found]
    foreign = [f"{name} is not TFeat's" for name in found if name not in expected]
    misshapen = [
        f"{name} has shape {tuple(found[name].shape)} and not {tuple(value.shape)}"
        for name, value in expected.items()
        if name in found and found[name].shape != value.shape
    ]
    return missing + foreign + misshapen
