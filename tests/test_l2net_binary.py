"""L2-Net with a binary head (DSM, Sec. 3.2): tanh for the loss, signs for mining, bits at test."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

from lib.analysis.training_batch import with_statistics
from lib.benchmarks.subject import describe, pair_distances
from lib.data.patchset import PatchSet
from lib.models import l2net, l2net_binary


def patches(seed: int, m: int) -> torch.Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def network():
    """A network whose batch norms have seen data, so that only some bits of its codes are set."""
    torch.manual_seed(0)
    return with_statistics(l2net_binary.L2NetBinary(width=0.25).eval(), [patches(1, 64)])


def test_binary_l2_net_differs_in_256_outputs_and_dropout():
    real, binary = l2net.L2Net().state_dict(), l2net_binary.L2NetBinary().state_dict()
    shapes = {name: tuple(value.shape) for name, value in real.items()}
    shapes["features.19.weight"] = (256, 128, 8, 8)
    shapes |= {f"features.20.{name}": (256,) for name in ("running_mean", "running_var")}
    assert {name: tuple(value.shape) for name, value in binary.items()} == shapes
    layers = [type(layer).__name__ for layer in l2net_binary.L2NetBinary().features]
    assert layers == [type(layer).__name__ for layer in l2net.L2Net().features]
    assert l2net_binary.L2NetBinary().features[18].p == 0.1
    assert not l2net_binary.L2NetBinary().features[20].affine


def test_bits_signs_and_tanh_agree(network):
    batch = patches(2, 5)
    with torch.no_grad():
        raw, bits = network.raw(batch), network(batch)
    value = network.normalise(raw)
    code = network.code(value)
    torch.testing.assert_close(value, raw.tanh())
    assert torch.equal(code, 2.0 * bits - 1)
    assert torch.equal(bits, raw > 0)
    assert 0.3 < bits.float().mean() < 0.7


def test_a_zero_output_is_not_a_set_bit(network):
    assert network.code(torch.tensor([-0.0, 0.0, 1e-45, -1e-45])).tolist() == [-1, -1, 1, -1]


def test_evaluation_gets_32_bytes_for_256_bits(network):
    batch = np.random.default_rng(3).integers(0, 256, (6, 64, 64), dtype=np.uint8)
    packed = describe(network, batch)
    assert packed.shape == (6, 32)
    assert packed.dtype == np.uint8
    images = torch.from_numpy(batch).float().unflatten(1, (32, 2)).unflatten(3, (32, 2)).mean((2, 4))
    with torch.no_grad():
        assert np.unpackbits(packed, axis=1).tolist() == network(images[:, None]).int().tolist()


def test_a_non_finite_descriptor_is_not_taken_for_bits(small_set: PatchSet) -> None:
    network = l2net_binary.L2NetBinary(width=1 / 32).eval()
    network.features[20].running_mean[7] = math.nan
    with pytest.raises(ValueError, match="not finite: the network diverged"):
        pair_distances(partial(describe, network), small_set)
