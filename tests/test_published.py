"""Published checkpoints: their layouts, refused files, and their rows in tables."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
import torch
from kornia import feature
from small_study import requests_of
from torch import Tensor, nn
from torch.nn import functional

from lib.features import networks
from lib.models import l2net_binary, published, tfeat
from lib.study import open_study
from lib.study.descriptors import published as published_requests
from lib.study.requests import configuration

State = dict[str, Tensor]


def patches(seed: int, m: int) -> Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


def random_state(network: nn.Module, seed: int = 1) -> State:
    """A random checkpoint of a network as in 2017: without counts of batches."""
    random = torch.Generator().manual_seed(seed)
    return {
        name: torch.rand(value.shape, generator=random) / 10 + name.endswith("var")
        for name, value in network.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }


def renamed(state: State, names: dict[str, str]) -> State:
    """Replace the first part of each name, e.g. ``layers.1`` by ``layer1.1``."""
    split = {name: name.rpartition(".") for name in state}
    return {f"{names[first]}.{last}": state[name] for name, (first, _, last) in split.items()}


# L2-Net's layers with weights, in order, as named in SOSNet's code and in HyNet's.
IN_SOSNET = [f"layers.{n}" for n in (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 20, 21)]
IN_HYNET = ["layer1.1", "layer1.2"]
IN_HYNET += [f"layer{n}.{k}" for n in range(2, 7) for k in (0, 1)] + ["layer7.1", "layer7.2"]
TO_HYNETS = dict(zip(IN_SOSNET, IN_HYNET, strict=True))


def without_downloads(network: type[nn.Module]) -> nn.Module:
    return network(pretrained=False).eval()


NETWORKS = {
    "hardnet": lambda: without_downloads(feature.HardNet),
    "sosnet": lambda: without_downloads(feature.SOSNet),
    "tfeat": lambda: without_downloads(feature.TFeat),
    "hardnet8": lambda: without_downloads(feature.HardNet8),
    "hynet": lambda: without_downloads(feature.HyNet),
    "dsm, binary": lambda: l2net_binary.L2NetBinary().eval(),
}


def save(path: Path, content: object, **options: object) -> Path:
    torch.save(content, path, **options)
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save(tmp_path / "tfeat.params", random_state(tfeat.TFeat()))


@pytest.mark.parametrize(("name", "wrapped"), [*((name, False) for name in NETWORKS), ("tfeat", True)])
def test_a_checkpoint_gives_the_descriptors_of_its_network(tmp_path, name, wrapped):
    network = NETWORKS[name]()
    state = random_state(network)
    network.load_state_dict(state, strict=False)
    path = save(tmp_path / "x.pth", {"epoch": 9, "state_dict": state} if wrapped else state)
    loaded = published.load(path)
    assert not loaded.training
    assert loaded.input_size == 32
    with torch.no_grad():
        actual, expected = loaded(patches(0, 3)), network(patches(0, 3))
    assert actual.shape == (3, 256 if actual.dtype == torch.bool else 128)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_l2net_is_the_same_network_in_hynets_naming_as_in_sosnets(tmp_path):
    state = random_state(feature.SOSNet(pretrained=False))
    hynets = save(tmp_path / "hynets.pth", renamed(state, TO_HYNETS))
    sosnets = save(tmp_path / "sosnets.pth", state)
    with torch.no_grad():
        actual, expected = (published.load(path)(patches(1, 2)) for path in (hynets, sosnets))
    assert torch.equal(actual, expected)


# Shapes under "state_dict" in ducha-aiki/affnet's HardTFeat.pth.
HARDTFEAT_FILE = {
    "features.0.weight": (32, 1, 7, 7),
    "features.0.bias": (32,),
    "features.3.weight": (64, 32, 6, 6),
    "features.3.bias": (64,),
    "classifier.1.weight": (128, 64, 8, 8),
    "classifier.1.bias": (128,),
    "SIFT.gx.0.weight": (1, 1, 1, 3),
    "SIFT.gy.0.weight": (1, 1, 3, 1),
    "SIFT.pk.0.weight": (1, 1, 11, 11),
}


def hardtfeat_file() -> State:
    random = torch.Generator().manual_seed(3)
    return {name: torch.rand(shape, generator=random) / 10 for name, shape in HARDTFEAT_FILE.items()}


def hardtfeat_literally(state: State, images: Tensor) -> Tensor:
    """Apply HardTFeat's layers one by one to patches, each standardised by itself."""
    flat = images.flatten(1)
    normal = (images - flat.mean(1).view(-1, 1, 1, 1)) / (flat.std(1).view(-1, 1, 1, 1) + 1e-7)
    x = functional.conv2d(normal, state["features.0.weight"], state["features.0.bias"]).tanh()
    x = functional.max_pool2d(x, 2, 2)
    x = functional.conv2d(x, state["features.3.weight"], state["features.3.bias"]).tanh()
    x = functional.conv2d(x, state["classifier.1.weight"], state["classifier.1.bias"]).tanh()
    return functional.normalize(x.flatten(1))


def test_hardtfeat_loads_from_the_tensors_of_its_published_file(tmp_path):
    state = hardtfeat_file()
    loaded = published.load(save(tmp_path / "HardTFeat.pth", {"epoch": 9, "state_dict": state}))
    with torch.no_grad():
        descriptors = loaded(patches(2, 3))
    torch.testing.assert_close(descriptors, hardtfeat_literally(state, patches(2, 3)), atol=1e-5, rtol=0)


# Refused files


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."])
def test_a_checkpoint_of_a_wrapped_network_is_that_of_the_network(tmp_path, wrapper):
    state = random_state(NETWORKS["hardnet"]())
    plain = published.load(save(tmp_path / "plain.pth", state))
    names = {f"{wrapper}{name}": value for name, value in state.items()}
    wrapped = published.load(save(tmp_path / "wrapped.pth", {"state_dict": names}))
    torch.testing.assert_close(wrapped(patches(1, 2)), plain(patches(1, 2)), rtol=0, atol=0)


def test_missing_unknown_and_misshapen_tensors_are_listed(tmp_path):
    state = random_state(tfeat.TFeat()) | {
        "features.9.bias": torch.ones(1),
        "descr.0.bias": torch.ones(1),
    }
    del state["features.4.bias"]
    listed = (
        r'nearest is TFeat: .*Missing.*"features.4.bias".*Unexpected.*"features.9.bias".*descr.0.bias'
    )
    with pytest.raises(ValueError, match=rf"wrong\.params .*{listed}"):
        published.load(save(tmp_path / "wrong.params", state))


class Malicious:
    """Creates a folder when unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_that_would_execute_code_is_refused_and_not_executed(tmp_path, zipped):
    path, trace = tmp_path / "evil.params", tmp_path / "executed"
    content = {**random_state(tfeat.TFeat()), "descr.0.bias": Malicious(trace)}
    save(path, content, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"evil\.params was refused for safety"):
        published.load(path)
    assert not trace.exists()
    torch.load(path, weights_only=False)
    assert trace.exists()  # the file was indeed dangerous


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_a_torchscript_archive_is_named_and_not_called_damaged(tmp_path):
    path = tmp_path / "scripted.pt"
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    with pytest.raises(ValueError, match=r"scripted\.pt is a TorchScript archive") as refused:
        published.load(path)
    assert "state_dict" in str(refused.value)
    assert "weights_only" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"a page of text\n", b"PK\x03\x04 cut", {"epoch": 3}])
def test_a_file_without_a_state_dict_is_refused(tmp_path, content):
    path = tmp_path / "foreign.params"
    path.write_bytes(content) if isinstance(content, bytes) else save(path, content)
    with pytest.raises(ValueError, match=r"foreign\.params"):
        published.load(path)


def test_a_file_with_another_digest_is_refused(checkpoint):
    published.load(checkpoint, sha256=hashlib.sha256(checkpoint.read_bytes()).hexdigest())
    with pytest.raises(ValueError, match=r"tfeat.params is not the file asked for"):
        published.load(checkpoint, sha256="0" * 64)


# Rows


def test_a_row_is_identified_by_its_files_content_not_its_path(checkpoint, tmp_path):
    study = open_study()
    copy = tmp_path / "elsewhere" / checkpoint.name
    copy.parent.mkdir()
    shutil.copy(checkpoint, copy)

    def row(path):
        [(request, _)] = published_requests([path])
        return request, configuration(request, study.source)

    original, config = row(checkpoint)
    assert original.label == "tfeat (published)"
    assert row(copy)[1] == config
    assert str(tmp_path) not in str(config)
    save(copy, random_state(tfeat.TFeat(), seed=2))
    assert row(copy)[1] != config


def test_an_exported_network_is_not_measured_on_its_training_sets(tmp_path):
    path = tmp_path / "mine" / networks.WEIGHTS
    path.parent.mkdir()
    config = {"recipe": {"model": {"name": "tfeat", "options": {}}}, "size": {"width": 1.0}}
    run = {"config": config, "label": "Mine", "train": "banana+boruszyn", "weights": "0" * 64}
    networks.save(path, tfeat.TFeat(), run)
    [request] = requests_of(open_study(), checkpoints=[path])
    assert {name for _, name in request.measures} == {"conch"}


def test_a_row_is_measured_as_sift_is(checkpoint):
    options = {"untrained": ["sift"], "measures": ["set_statistics"]}
    sift, network = requests_of(open_study(), checkpoints=[checkpoint], **options)
    assert network.measures == sift.measures
