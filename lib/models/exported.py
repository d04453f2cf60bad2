"""Networks of this study as `lib.matching.networks` exports them: safetensors with metadata.

The metadata of a file names the module of `lib.models` that the tensors belong to, its options and its
width, so no record is needed.
"""

import json
from importlib import import_module
from pathlib import Path

import safetensors.torch
from safetensors import safe_open
from torch import nn

from lib.models.published import checked_content


def build(weights: Path | str, sha256: str | None = None) -> nn.Module:
    """Load the network of a file, in evaluation mode, on the CPU, in float32.

    Args:
        weights: the file.
        sha256: SHA-256 of the file, in hexadecimal; None accepts any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not the one asked for, not an exported network, damaged, or of another
            network than it says.
    """
    path = Path(weights)
    content = checked_content(path, sha256)
    try:
        with safe_open(path, "pt") as file:
            model, width = (json.loads(file.metadata()[key]) for key in ("model", "width"))
        network = import_module(f"{__package__}.{model['name']}").build(width=width, **model["options"])
        network.load_state_dict(safetensors.torch.load(content), strict=True)
    # A file from another program, or for another network, may raise any exception.
    except Exception as error:
        raise ValueError(f"{path} holds no network of this study or a damaged one: {error!r}") from error
    return network.eval()
