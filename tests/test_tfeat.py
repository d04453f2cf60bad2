"""TFeat and HardTFeat: the published layouts, their input normalisation, their descriptors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate2d

from lib.models import tfeat
from networks import check_patch_without_contrast

PUBLISHED = {
    "features.1.weight": (32, 1, 7, 7),
    "features.1.bias": (32,),
    "features.4.weight": (64, 32, 6, 6),
    "features.4.bias": (64,),
    "descr.0.weight": (128, 4096),
    "descr.0.bias": (128,),
}


def published(seed: int = 1) -> dict[str, torch.Tensor]:
    """Weights small enough that no tanh saturates."""
    random = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=random) / 20 for name, shape in PUBLISHED.items()}


def patches(seed: int, m: int) -> torch.Tensor:
    return 255 * torch.rand(m, 1, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def network():
    network = tfeat.build()
    network.load_state_dict(published())
    return network.eval()


def test_the_state_dict_has_the_keys_and_shapes_of_the_published_checkpoint():
    assert {name: tuple(v.shape) for name, v in tfeat.build().state_dict().items()} == PUBLISHED


def literal(patch: np.ndarray, state: dict[str, torch.Tensor], unbiased: bool = False) -> np.ndarray:
    """The descriptor in float64, one channel at a time."""
    weights = {name: value.double().numpy() for name, value in state.items()}
    x = patch.astype(np.float64)
    deviation = x.std(ddof=1) + 1e-7 if unbiased else np.sqrt(x.var() + 1e-5)
    x = (x - x.mean()) / deviation
    first = [
        np.tanh(correlate2d(x, kernel[0], mode="valid") + bias)
        for kernel, bias in zip(weights["features.1.weight"], weights["features.1.bias"], strict=True)
    ]
    pooled = [channel.reshape(13, 2, 13, 2).max(axis=(1, 3)) for channel in first]
    second = [
        np.tanh(sum(map(lambda x, k: correlate2d(x, k, mode="valid"), pooled, kernels)) + bias)
        for kernels, bias in zip(weights["features.4.weight"], weights["features.4.bias"], strict=True)
    ]
    return np.tanh(weights["descr.0.weight"] @ np.ravel(second) + weights["descr.0.bias"])


def test_descriptors_are_those_of_a_literal_transcription_of_the_network(network):
    some = patches(3, 2)
    with torch.no_grad():
        found = network(some)
    for patch, descriptor in zip(some, found, strict=True):
        np.testing.assert_allclose(descriptor, literal(patch[0].numpy(), published()), atol=1e-5)


@given(seed=st.integers(0, 2**31), gain=st.floats(0.1, 5), offset=st.floats(-200, 200))
@settings(deadline=None, max_examples=10)
def test_brightness_and_contrast_do_not_change_a_descriptor(network, seed, gain, offset):
    some = patches(seed, 2)
    with torch.no_grad():
        torch.testing.assert_close(network(gain * some + offset), network(some), atol=1e-4, rtol=0)


def test_a_patch_is_normalised_by_itself_in_training_as_in_evaluation(network):
    some = patches(4, 3)
    with torch.no_grad():
        together = network(some)
        alone = torch.cat([network(patch[None]) for patch in some])
        network.train()
        training = network(some)
        network.eval()
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    assert torch.equal(training, together)


@pytest.mark.parametrize("value", [0.0, 37.0, 255.0])
def test_a_patch_without_contrast_gives_no_nan(network, value):
    check_patch_without_contrast(network, value)


def test_the_descriptor_is_the_raw_one_and_not_of_unit_length(network):
    some = patches(5, 3)
    with torch.no_grad():
        raw, described = network.raw(some), network(some)
    assert torch.equal(raw, described)
    assert (described.norm(dim=1) - 1).abs().min() > 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_descriptors_come_out_in_float32(network, dtype):
    raw = network.raw(patches(4, 2)).detach().to(dtype)
    assert network.normalise(raw).dtype == torch.float32
    assert torch.equal(network.normalise(raw), raw.float())


def test_every_weight_has_a_finite_gradient_in_training():
    torch.manual_seed(0)
    network = tfeat.build(width=0.25).train()
    network(patches(6, 4))[:, :3].sum().backward()
    for name, parameter in network.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(("width", "channels"), [(1, (32, 64)), (0.25, (8, 16)), (1 / 32, (1, 2))])
def test_a_thin_network_keeps_128_outputs(width, channels):
    network = tfeat.build(width=width)
    assert tuple(network.features[i].out_channels for i in (1, 4)) == channels
    with torch.no_grad():
        assert network(patches(7, 2)).shape == (2, 128)


def test_a_width_that_leaves_no_channel_is_refused():
    with pytest.raises(ValueError, match=r"width 0\.01 leaves no channel"):
        tfeat.build(width=0.01)


def test_hardtfeat_is_tfeat_by_other_names_on_hardnets_input_and_of_unit_length():
    state = {name.replace("descr.0", "classifier.1"): value for name, value in published().items()}
    for place in (1, 4):
        for kind in ("weight", "bias"):
            state[f"features.{place - 1}.{kind}"] = state.pop(f"features.{place}.{kind}")
    state["classifier.1.weight"] = state["classifier.1.weight"].view(128, 64, 8, 8)
    network = tfeat.HardTFeat()
    network.load_state_dict(state)
    for patch in patches(8, 2):
        with torch.no_grad():
            found = network.eval()(patch[None])[0]
        expected = literal(patch[0].numpy(), published(), unbiased=True)
        np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-6)
