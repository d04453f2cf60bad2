"""L2-Net with a binary head (DSM, Sec. 3.2): tanh for the loss, signs for mining, bits at test."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from small_study import SMALL, open_small

from lib import profiles
from lib.benchmarks.fpr95 import measure
from lib.benchmarks.subject import Subject, describe, pair_distances
from lib.data.patchset import PatchSet
from lib.descriptions import descriptions
from lib.models import l2net, l2net_binary
from lib.probes.training_batch import with_statistics
from lib.recipes import Budget, find
from lib.study import records
from lib.study.artefacts.rows import training_job
from lib.study.runs import carry_out, load_network
from lib.training import train


def patches(seed: int, m: int) -> torch.Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def network():
    """One whose batch norms have seen data, so that bits of its codes are set and others are not."""
    torch.manual_seed(0)
    return with_statistics(l2net_binary.build(width=0.25).eval(), [patches(1, 64)])


def test_it_is_l2_net_but_for_256_outputs_and_dropout():
    real, binary = l2net.build().state_dict(), l2net_binary.build().state_dict()
    shapes = {name: tuple(value.shape) for name, value in real.items()}
    shapes["features.19.weight"] = (256, 128, 8, 8)
    shapes |= {f"features.20.{name}": (256,) for name in ("running_mean", "running_var")}
    assert {name: tuple(value.shape) for name, value in binary.items()} == shapes
    layers = [type(layer).__name__ for layer in l2net_binary.build().features]
    assert layers == [type(layer).__name__ for layer in l2net.build().features]
    assert l2net_binary.build().features[18].p == 0.1
    assert not l2net_binary.build().features[20].affine


def test_weights_begin_orthogonal_with_gain_six_tenths():
    torch.manual_seed(0)
    network = l2net_binary.build(width=0.25)
    for index in (0, 3, 6, 9, 12, 15, 19):
        weight = network.features[index].weight.detach().flatten(1)
        wide = weight.shape[0] <= weight.shape[1]
        gram = weight @ weight.T if wide else weight.T @ weight
        torch.testing.assert_close(gram, 0.36 * torch.eye(len(gram)), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("width", "length"), [(1 / 32, 256), (0.25, 256), (0.25, 64), (1.0, 8)])
def test_a_thin_network_keeps_the_length_of_its_code(width, length):
    network = l2net_binary.build(width=width, length=length).eval()
    with torch.no_grad():
        assert network(patches(0, 2)).shape == (2, length)


def test_bits_signs_and_tanh_agree(network):
    some = patches(2, 5)
    with torch.no_grad():
        raw, bits = network.raw(some), network(some)
    value = network.normalise(raw)
    code = network.code(value)
    torch.testing.assert_close(value, raw.tanh())
    assert torch.equal(code, 2.0 * bits - 1)
    assert torch.equal(bits, raw > 0)
    assert 0.3 < bits.float().mean() < 0.7


def test_what_lies_on_the_border_is_no_set_bit(network):
    assert network.code(torch.tensor([-0.0, 0.0, 1e-45, -1e-45])).tolist() == [-1, -1, 1, -1]


def test_evaluation_gets_32_bytes_for_256_bits(network):
    some = np.random.default_rng(3).integers(0, 256, (6, 64, 64), dtype=np.uint8)
    packed = describe(network, some)
    assert packed.shape == (6, 32)
    assert packed.dtype == np.uint8
    images = torch.from_numpy(some).float().unflatten(1, (32, 2)).unflatten(3, (32, 2)).mean((2, 4))
    with torch.no_grad():
        assert np.unpackbits(packed, axis=1).tolist() == network(images[:, None]).int().tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32_before_the_head(network, dtype):
    value = network.normalise(torch.tensor([[-3.0, 0.1, 6e4]], dtype=dtype))
    assert value.dtype == torch.float32
    assert (value.abs() <= 1).all()


def test_the_loss_has_a_gradient_and_the_code_none():
    torch.manual_seed(0)
    network = l2net_binary.build(width=0.125).train()
    of = descriptions(network, network.raw(patches(4, 8)))
    assert of.value.requires_grad
    assert not of.code.requires_grad
    assert torch.equal(of.code, torch.where(of.raw > 0, 1.0, -1.0))
    of.value[:, :, :3].sum().backward()
    for name, parameter in network.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("length", [0, -8, 4, 100, 255])
def test_a_length_that_does_not_fill_bytes_is_refused(length):
    with pytest.raises(ValueError, match=f"multiple of 8, so that bits fill bytes, got {length}"):
        l2net_binary.build(length=length)


def test_a_width_that_leaves_no_channel_is_refused():
    with pytest.raises(ValueError, match=r"width 0\.01 leaves no channel"):
        l2net_binary.build(width=0.01)


def test_a_descriptor_that_is_not_finite_is_not_taken_for_bits(small_set: PatchSet) -> None:
    network = l2net_binary.build(width=1 / 32).eval()
    network.features[20].running_mean[7] = math.nan
    with pytest.raises(ValueError, match="not finite: the network diverged"):
        pair_distances(partial(describe, network), small_set)


def test_a_trained_one_is_measured_by_hamming_distance(small_set: PatchSet) -> None:
    size = replace(
        profiles.find("quick"),
        width=1 / 16,
        budget=Budget(batch_pairs=16, epoch_pairs=16 * 30, epochs=1),
    )
    recipe = find("dsm_binary_aug")
    untrained, trained = (
        Subject(partial(describe, train(recipe, size, small_set, 0, max_steps=steps).model))
        for steps in (1, None)
    )
    distances = trained.pair_distances(small_set)[0]
    np.testing.assert_array_equal(distances, distances.round())
    before, after = (measure(of, small_set) for of in (untrained, trained))
    assert after["expected"] < before["expected"]
    assert after["low"] <= after["expected"] <= after["high"]


def test_a_job_of_it_is_trained_measured_and_read_again(tmp_path: Path) -> None:
    opened = open_small(tmp_path, replace(SMALL, width=1 / 8))
    train_set = opened.place.source.sets[0]
    job = training_job(opened, "dsm_binary_aug", train_set, 0, find("dsm_binary_aug"))
    path = carry_out(job, opened.place)
    record = records.read(path)
    for measured in record["metrics"].values():
        assert 0 <= measured["fpr95"]["low"] <= measured["fpr95"]["high"] <= 100
        assert measured["fpr95"]["threshold"] == round(measured["fpr95"]["threshold"])
    assert {"mean_weight", "beyond_share"} <= record["curve"].keys()
    with torch.no_grad():
        assert load_network(path)(patches(5, 2)).unique().tolist() == [0, 1]
