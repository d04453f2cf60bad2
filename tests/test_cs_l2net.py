"""L2-Net with maps and CS-L2-Net: each tower's input, mean image and outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lib.losses.descriptions import descriptions
from lib.models import cs_l2net, l2net, l2net_maps

WIDTH = 1 / 16


def patches(seed: int, m: int, side: int = 64) -> Tensor:
    return 255 * torch.rand(m, 1, side, side, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def towers() -> cs_l2net.CSL2Net:
    torch.manual_seed(0)
    return cs_l2net.CSL2Net(WIDTH).eval()


def record(module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Record the images given to the module's ``raw`` from here on."""
    inputs, original = [], module.raw

    def raw(images: Tensor) -> tuple[Tensor, ...]:
        inputs.append(images)
        return original(images)

    monkeypatch.setattr(module, "raw", raw)
    return inputs


def test_the_surround_is_the_means_of_four_and_the_centre_rows_and_columns_17_to_48(towers, monkeypatch):
    surround, centre = record(towers.surround, monkeypatch), record(towers.centre, monkeypatch)
    batch = patches(1, 2)
    towers(batch)
    (surround,), (centre,) = surround, centre
    assert surround.shape == centre.shape == (2, 1, 32, 32)
    literal = batch.double().numpy()
    for row in range(32):
        for column in range(32):
            square = literal[:, 0, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            np.testing.assert_allclose(surround[:, 0, row, column], square.mean(axis=(1, 2)), rtol=1e-6)
            # Counted from 1, its first row is the 17th and its last the 48th.
            assert (centre[:, 0, row, column] == batch[:, 0, 17 - 1 + row, 17 - 1 + column]).all()
    assert torch.equal(centre[:, 0, 31, 31], batch[:, 0, 48 - 1, 48 - 1])


def test_descriptors_have_unit_length_and_each_tower_half_of_it(towers):
    descriptors = towers(patches(3, 4))
    assert descriptors.shape == (4, 256)
    torch.testing.assert_close(descriptors.norm(dim=1), torch.ones(4))
    for half in descriptors.split(128, dim=1):
        torch.testing.assert_close(half.norm(dim=1), torch.full((4,), 0.5**0.5))


def test_each_tower_returns_its_first_and_last_map_and_the_descriptors_are_the_last(towers):
    raw, *maps = towers.raw(patches(5, 4))
    narrow = round(WIDTH * 32)
    assert [tuple(feature_map.shape) for feature_map in maps] == [
        (4, narrow, 32, 32),
        (4, 128, 1, 1),
    ] * 2
    torch.testing.assert_close(raw, torch.cat([maps[1], maps[3]], dim=1).flatten(1))
    outputs = descriptions(towers, (raw, *maps))
    assert [tuple(feature_map.shape[:2]) for feature_map in outputs.maps] == [(2, 2)] * 4
    assert outputs.value.shape == (2, 2, 256)


def test_the_maps_are_those_after_the_first_and_the_last_batch_norm():
    torch.manual_seed(0)
    network = l2net_maps.L2NetMaps(WIDTH).train()
    outputs = []
    for layer in (network.features[1], network.features[20]):
        layer.register_forward_hook(lambda module, given, output: outputs.append(output))
    raw, first, last = network.raw(patches(6, 8, side=32))
    assert [first is outputs[0], last is outputs[1]] == [True, True]
    assert (first < 0).any(), "before the ReLU"
    torch.testing.assert_close(raw, last.flatten(1))


def test_without_a_mean_image_the_network_is_l2net():
    torch.manual_seed(0)
    ours = l2net_maps.L2NetMaps(WIDTH).eval()
    theirs = l2net.L2Net(WIDTH, dropout=0.0).eval()
    theirs.load_state_dict({name: ours.state_dict()[name] for name in theirs.state_dict()})
    batch = patches(7, 3, side=32)
    torch.testing.assert_close(ours(batch), theirs(batch))
    ours.mean_image.copy_(patches(8, 1, side=32))
    torch.testing.assert_close(ours(batch), theirs(batch - ours.mean_image))


def test_the_mean_image_is_that_of_all_patches_seen_in_training():
    network = l2net_maps.L2NetMaps(WIDTH)
    batches = [patches(seed, 4, side=32) for seed in range(3)]
    network.train()
    for batch in batches:
        network.raw(batch)
    expected = torch.cat(batches).double().numpy().mean(axis=0)[0]
    np.testing.assert_allclose(network.mean_image[0, 0], expected, rtol=1e-5)
    network.eval()
    network(patches(9, 4, side=32))
    np.testing.assert_allclose(network.mean_image[0, 0], expected, rtol=1e-5)
    restored = l2net_maps.L2NetMaps(WIDTH)
    restored.load_state_dict(network.state_dict())
    assert int(restored.batches) == 3
