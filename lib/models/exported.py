"""Networks of this study as `lib.features.networks` exports them: safetensors with metadata.

The metadata of a file names the network in `NETWORKS` that the tensors belong to, its options and its
width, so no record is needed.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors.torch
from safetensors import safe_open
from torch import nn

from lib.features.patches import PATCH_WIDTH
from lib.models.cs_l2net import CSL2Net
from lib.models.hynet import HyNet
from lib.models.l2net import L2Net
from lib.models.l2net_binary import L2NetBinary
from lib.models.l2net_maps import L2NetMaps
from lib.models.published import checked_content
from lib.models.tfeat import TFeat

# The networks that are trained here, by their name in a recipe.
NETWORKS: Mapping[str, Callable[..., nn.Module]] = {
    "l2net": L2Net,
    "l2net_binary": L2NetBinary,
    "l2net_maps": L2NetMaps,
    "cs_l2net": CSL2Net,
    "hynet": HyNet,
    "tfeat": TFeat,
}


# Half the width of the patches that they are trained on, in scales of their keypoints: that of places.
# A set of patches does not say how wide its own are.
MAGNIFICATION = PATCH_WIDTH / 2


def load(weights: Path | str, sha256: str | None = None) -> nn.Module:
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
            metadata = file.metadata()
        model = json.loads(metadata["model"])
        width = json.loads(metadata["width"])
        network = NETWORKS[model["name"]](width=width, **model["options"])
        network.load_state_dict(safetensors.torch.load(content), strict=True)
    # A file from another program, or for another network, may raise any exception.
    except Exception as error:
        raise ValueError(f"{path} holds no network of this study or a damaged one: {error!r}") from error
    network.magnification = MAGNIFICATION
    return network.eval()
