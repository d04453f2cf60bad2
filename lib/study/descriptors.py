"""Descriptors that are not trained here: handcrafted ones, and networks from files."""

import re
from collections.abc import Sequence
from pathlib import Path

from safetensors import safe_open

from lib.files import sha256
from lib.recipes import RECIPES, part
from lib.study.requests import Request

# In px of a 64 px patch, whose width is 14 standard deviations of its keypoint's Gaussian.
KEYPOINT_SMOOTHING = 4.6
# Label and part by name.
UNTRAINED = {
    "sift": ("SIFT", part("sift", root=False)),
    "rootsift": ("RootSIFT", part("sift", root=True)),
    "sift_smooth": ("SIFT, smoothed", part("sift", root=False, smoothing=KEYPOINT_SMOOTHING)),
    "rootsift_smooth": ("RootSIFT, smoothed", part("sift", root=True, smoothing=KEYPOINT_SMOOTHING)),
    "orb": ("ORB", part("orb")),
    "vgg": ("VGG (OpenCV)", part("opencv", kind="vgg")),
    "binboost": ("BinBoost (OpenCV)", part("opencv", kind="binboost")),
    # The row "SIFT" of the ETH benchmark: it describes images, not patches.
    "colmap_sift": ("SIFT (COLMAP)", part("colmap_sift")),
}
# A request, and the sets that its descriptor was trained on.
Described = tuple[Request, Sequence[str]]


def untrained_descriptor(name: str) -> Described:
    """Return the request for one of `UNTRAINED`.

    Raises:
        ValueError: the name is unknown; the message lists the known ones.
    """
    if name not in UNTRAINED:
        raise ValueError(f"unknown descriptor {name!r}; there are: {', '.join(UNTRAINED)}")
    label, descriptor = UNTRAINED[name]
    return Request(name, label, descriptor=descriptor), ()


def published(checkpoints: Sequence[str | Path]) -> list[Described]:
    """Return the requests for networks that others trained or that were exported here.

    A checkpoint is identified by its content: the same file elsewhere, also on another machine, is the
    same row.

    Args:
        checkpoints: files in one of `lib.models.published.LAYOUTS`, labelled by their names without the
            extension; or a network's ``model.safetensors`` (`lib.models.exported`), labelled by its
            folder or, if the folder has the name of a recipe, by that method.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is no such network, or loading it could execute something; two files have one
            name; or a text is given in place of a list of texts.
    """
    # Imported here, since kornia takes seconds.
    from lib.models import exported
    from lib.models import published as published_networks

    if isinstance(checkpoints, str | Path):
        raise ValueError(f"checkpoints is a list of files: give [{str(checkpoints)!r}]")
    described: dict[str, Described] = {}
    for path in (Path(path).expanduser().resolve() for path in checkpoints):
        model, name, method, train_sets = "published", path.stem, path.stem, []
        # Loaded before anything is made for its measures.
        (exported if path.suffix == ".safetensors" else published_networks).load(path)
        if path.suffix == ".safetensors":
            model, name = "exported", path.parent.name
            method = RECIPES[name].label if name in RECIPES else name
            with safe_open(path, "np") as file:
                train_sets = file.metadata().get("train_set", "").split("+")
        if name in described:
            raise ValueError(f"two checkpoints are called {name}: rename one, since rows are")
        content = sha256(path)
        request = Request(
            f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}-{content[:8]}",
            f"{method} ({model})",
            descriptor=part(model, sha256=content),
            paths={"weights": str(path)},
        )
        described[name] = request, train_sets
    return list(described.values())
