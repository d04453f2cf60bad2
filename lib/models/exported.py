"""Networks of this study as `lib.matching.networks` exports them: safetensors with what they are of.

The file's metadata names the module of `lib.models` whose tensors it holds, its options and its width,
so no record is needed.
"""

import json
from importlib import import_module
from pathlib import Path

import safetensors.torch
from safetensors import safe_open
from torch import nn

from lib.models.published import checked_content


def build(weights: Path | str, sha256: str | None = None) -> nn.Module:
    """The network of a file, in evaluation mode, on the CPU, with numbers of 32 bits.

    Args:
        weights: the file.
        sha256: of it, in hexadecimal; None for any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is another file than asked for, no such file, a damaged one, or of another network
            than it says.
    """
    path = Path(weights)
    content = checked_content(path, sha256)
    try:
        with safe_open(path, "pt") as file:
            model, width = (json.loads(file.metadata()[key]) for key in ("model", "width"))
        network = import_module(f"{__package__}.{model['name']}").build(width=width, **model["options"])
        network.load_state_dict(safetensors.torch.load(content), strict=True)
    # What a file raises that another program wrote, or this one for another network, is not known.
    except Exception as error:
        raise ValueError(f"{path} holds no network of this study or a damaged one: {error!r}") from error
    return network.eval()
