"""A run's network as a file for others: it describes as before, in this library and in kornia."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
from kornia import feature
from safetensors import safe_open
from torch import Tensor, nn

from lib.commands import describe
from lib.features import networks
from lib.features.detectors import Detector
from lib.features.networks import find, folded
from lib.models.exported import NETWORKS
from lib.models.published import LAYOUTS

# Terms of the photographs that the committed networks were trained on.
TERMS = (
    "It was trained on photographs of two places: castle-P30, entry-P10 and fountain-P11 of Strecha et "
    "al. (CVPR 2008), taken in Ettlingen, and drone photographs of Caliterra (OpenDroneMap, CC0); and "
    "on planes that the study's generator textured with photographs of the BSDS500 (Arbeláez, Maire, "
    "Fowlkes and Malik, PAMI 2011), which are for research and education only."
)
COMMITTED = ["adasample_aug_gen", "dsm_aug", "hardnet_aug", "hynet_aug", "sosnet_aug", "tcdesc_dsm_aug"]
PATCHES = 255 * torch.rand(3, 1, 32, 32, generator=torch.Generator().manual_seed(0))


def record(model: str, width: float, **options: object) -> dict:
    """Return the fields of a run's JSON file that saving a network needs."""
    return {
        "label": "Mine+",
        "train": "banana",
        "data": "free",
        "profile": "quick",
        "seed": 3,
        "steps": 100,
        "batch": 64,
        "parameters": 123_456,
        "weights": "0" * 64,
        "config": {
            "recipe": {"model": {"name": model, "options": options}},
            "size": {"width": width},
        },
        "metrics": {"conch": {"fpr95": {"expected": 11.5}}, "free-hp-a": {"hpatches": {}}},
    }


@pytest.mark.parametrize(
    ("model", "options"),
    [("l2net", {"dropout": 0.1}), ("hynet", {"norm": "frn"}), ("l2net_binary", {"length": 64})],
)
def test_a_saved_network_describes_as_before(tmp_path: Path, model: str, options: dict) -> None:
    network = NETWORKS[model](width=0.25, **options).eval()
    path = tmp_path / networks.WEIGHTS
    networks.save(path, network, record(model, 0.25, **options))
    torch.testing.assert_close(find(str(path))(PATCHES), network(PATCHES), rtol=0, atol=0)


def test_numbers_too_large_for_16_bits_are_refused_by_their_tensors_name(tmp_path: Path) -> None:
    network, path = NETWORKS["hynet"](width=0.25), tmp_path / "hynet.safetensors"
    name, tensor = next(iter(network.state_dict().items()))
    tensor.view(-1)[0] = -70_000
    with pytest.raises(ValueError, match=f"{name} has numbers of up to 7e[+]04"):
        networks.save(path, network, record("hynet", 0.25), half=True)
    assert not path.exists()
    networks.save(path, network, record("hynet", 0.25))


def test_an_export_that_is_refused_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    network, run = NETWORKS["hynet"](width=0.25), tmp_path / "run.json"
    next(iter(network.state_dict().values())).view(-1)[0] = 70_000
    monkeypatch.setattr(describe, "load_network", lambda *_: network)
    run.write_text(json.dumps(record("hynet", 0.25)))
    assert describe.main(["export", str(run), str(tmp_path / "out"), "--half"]) == 1
    assert "store it in 32 bits" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_of_half_the_bytes_describes_nearly_as_before(tmp_path: Path) -> None:
    network = NETWORKS["hynet"](width=0.25).eval()
    whole, half = tmp_path / "whole.safetensors", tmp_path / "half.safetensors"
    networks.save(whole, network, record("hynet", 0.25))
    networks.save(half, network, record("hynet", 0.25), half=True)
    assert half.stat().st_size < 0.55 * whole.stat().st_size
    loaded = find(str(half))
    assert next(loaded.parameters()).dtype == torch.float32
    assert (loaded(PATCHES) * network(PATCHES)).sum(dim=1).min() > 1 - 1e-4


@pytest.mark.parametrize("name", ["l2net", "hynet", "l2net_maps", "l2net_binary", "tfeat"])
def test_folding_batch_norms_leaves_descriptors_unchanged(name: str) -> None:
    network = NETWORKS[name](width=0.25)
    network.train()(PATCHES)
    network.eval()
    state = {name: value.clone() for name, value in network.state_dict().items()}
    fused = folded(network)
    before = network.raw if name == "l2net_binary" else network
    after = fused.raw if name == "l2net_binary" else fused
    torch.testing.assert_close(after(PATCHES), before(PATCHES), rtol=1e-4, atol=1e-4)
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())
    assert not batch_norms(fused)


def batch_norms(network: nn.Module) -> list[nn.Module]:
    return [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_batch_norms_of_published_networks_are_folded(layout: str) -> None:
    assert not batch_norms(folded(LAYOUTS[layout]().eval()))


class TwoLayers(nn.Module):
    """Two layers of a convolution, a batch norm and a ReLU, defined in some order."""

    def __init__(self, order: str, unit_first: bool):
        super().__init__()
        self.unit_first = unit_first
        modules = {
            "convolution1": nn.Conv2d(1, 8, 5, stride=3),
            "convolution2": nn.Conv2d(8, 8, 5, stride=3),
            "norm1": nn.BatchNorm2d(8),
            "norm2": nn.BatchNorm2d(8),
        }
        for name in order.split():
            self.add_module(name, modules[name])

    def layer(self, maps: Tensor, convolution: nn.Module, norm: nn.Module) -> Tensor:
        if self.unit_first:
            return norm(F.relu(convolution(maps)))
        return F.relu(norm(convolution(maps)))

    def forward(self, patches: Tensor) -> Tensor:
        maps = self.layer(patches, self.convolution1, self.norm1)
        return self.layer(maps, self.convolution2, self.norm2).flatten(1)


@pytest.mark.parametrize(
    "order", ["convolution1 convolution2 norm1 norm2", "convolution1 norm1 convolution2 norm2"]
)
@pytest.mark.parametrize("unit_first", [False, True])
def test_a_folded_network_describes_as_itself_in_whatever_order_its_layers_are_defined(
    order: str, unit_first: bool
) -> None:
    torch.manual_seed(0)
    network = TwoLayers(order, unit_first)
    network.train()(PATCHES)
    network.eval()
    torch.testing.assert_close(folded(network)(PATCHES), network(PATCHES), rtol=1e-4, atol=1e-4)


def test_a_convolution_or_a_norm_that_stands_twice_in_a_sequence_is_folded_at_each_place() -> None:
    torch.manual_seed(0)
    convolution, norm = nn.Conv2d(1, 1, 3), nn.BatchNorm2d(1)
    layers = [convolution, nn.BatchNorm2d(1), nn.ReLU(), convolution, norm, nn.Conv2d(1, 1, 3), norm]
    network = nn.Sequential(*layers)
    network.train()(PATCHES)
    network.eval()
    fused = folded(network)
    torch.testing.assert_close(fused(PATCHES), network(PATCHES), rtol=1e-4, atol=1e-4)
    assert not batch_norms(fused)


@pytest.mark.parametrize(("ours", "theirs"), [("l2net", feature.HardNet), ("hynet", feature.HyNet)])
def test_the_file_itself_loads_strictly_into_kornias_class(tmp_path: Path, ours: str, theirs) -> None:
    network = NETWORKS[ours]().eval()
    path = tmp_path / networks.WEIGHTS
    networks.save(path, network, record(ours, 1.0))
    loaded = theirs(pretrained=False).eval()
    loaded.load_state_dict(safetensors.torch.load_file(path), strict=True)
    torch.testing.assert_close(loaded(PATCHES), network(PATCHES), rtol=1e-4, atol=1e-5)
    image, frame = torch.rand(1, 1, 90, 90), torch.tensor([[[[20.0, 5.0, 44.0], [-5.0, 20.0, 46.0]]]])
    descriptors = (feature.LAFDescriptor(model)(image, frame) for model in (network, loaded))
    torch.testing.assert_close(*descriptors, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["hynet_aug", "sift", "orb"])
def test_kornias_descriptor_of_an_image_takes_what_is_found_by_name(name: str) -> None:
    image = torch.rand(1, 1, 90, 90, generator=torch.Generator().manual_seed(1))
    frame = torch.tensor([[[[20.0, 5.0, 44.0], [-5.0, 20.0, 46.0]]]])
    descriptor = feature.LAFDescriptor(find(name), patch_size=32)
    of_1, of_255 = (descriptor(scale * image, frame).float() for scale in (1, 255))
    # ORB rounds to whole grey values before it compares, once in 0.4% of comparisons to a tie.
    assert (of_1 - of_255).abs().mean() < 0.01


def test_weights_downloaded_by_kornia_are_found_by_its_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"liberty_aug.* that kornia has downloaded"):
        find("liberty_aug")
    network = feature.HardNet(pretrained=False).eval()
    file = tmp_path / "checkpoints" / "checkpoint_liberty_with_aug.pth"
    file.parent.mkdir()
    torch.save({"epoch": 10, "state_dict": network.state_dict()}, file)
    torch.testing.assert_close(find("liberty_aug")(PATCHES), network(PATCHES), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("key", COMMITTED)
def test_a_committed_network_has_a_record_and_a_card_that_agrees_with_it(key: str) -> None:
    folder = networks.NETWORKS / key
    with safe_open(folder / networks.WEIGHTS, "pt") as file:
        metadata = file.metadata()
    saved_record = json.loads((folder / networks.RECORD).read_text(encoding="utf-8"))
    assert saved_record["weights"] == metadata["weights"]
    assert {*saved_record["metrics"]} >= {"herzjesu", "sacre_coeur"}, "the places that are held out"
    assert not {*saved_record["metrics"]} & {*metadata["train_set"].split("+")}
    card = (folder / networks.CARD).read_text(encoding="utf-8")
    assert card == networks.card(find(key), saved_record, TERMS)


def test_each_paper_has_a_committed_network() -> None:
    names = sorted(path.parent.name for path in networks.NETWORKS.glob(f"*/{networks.WEIGHTS}"))
    assert names == COMMITTED
    for name in names:
        with torch.inference_mode():
            lengths = find(name)(PATCHES).norm(dim=1)
        torch.testing.assert_close(lengths, torch.ones(3))
    sizes = [path.stat().st_size for path in networks.NETWORKS.rglob("*") if path.is_file()]
    assert sum(sizes) < 8_000_000


def test_a_network_in_training_mode_describes_nothing_and_stays_as_it_was() -> None:
    network = find("hardnet_aug").train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    grey = np.random.default_rng(0).integers(0, 256, (100, 100), np.uint8)
    for call in (
        lambda: networks.patch_descriptors(network, np.zeros((3, 32, 32), np.uint8)),
        lambda: networks.describe(grey, Detector(most=5), network),
    ):
        with pytest.raises(ValueError, match=r"call network\.eval\(\) first"):
            call()
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
