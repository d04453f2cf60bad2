"""TFeat: the published layout, its input normalisation, and checkpoints that are refused."""

from __future__ import annotations

import hashlib
import os
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate2d

from lib.models import tfeat

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


def stored(seed: int, m: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (m, 64, 64), dtype=np.uint8)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("tfeat") / "tfeat.params"
    torch.save(published(), path)
    return path


@pytest.fixture(scope="module")
def network(checkpoint):
    return tfeat.load_checkpoint(checkpoint)


def refused(path, **changed: object) -> str:
    """What is said of a state dict with some entries replaced, or removed where None."""
    entries = {name.replace("__", "."): value for name, value in changed.items()}
    state = {name: value for name, value in {**published(), **entries}.items() if value is not None}
    torch.save(state, path)
    with pytest.raises(ValueError, match=path.name) as caught:
        tfeat.load_checkpoint(path)
    return str(caught.value)


class Malicious:
    """Makes a folder when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_the_state_dict_has_the_keys_and_shapes_of_the_published_checkpoint():
    assert {name: tuple(v.shape) for name, v in tfeat.build().state_dict().items()} == PUBLISHED


def literal(patch: np.ndarray, state: dict[str, torch.Tensor]) -> np.ndarray:
    """The descriptor in float64, one channel at a time."""
    weights = {name: value.double().numpy() for name, value in state.items()}
    x = patch.astype(np.float64)
    x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
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
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)
    assert torch.equal(training, together)


@pytest.mark.parametrize("value", [0.0, 37.0, 255.0])
def test_a_patch_without_contrast_gives_no_nan(network, value):
    flat = torch.full((2, 1, 32, 32), value, requires_grad=True)
    described = network(flat)
    described.sum().backward()
    assert torch.isfinite(described).all()
    assert torch.isfinite(flat.grad).all()


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


# Stored patches


def test_stored_patches_get_128_float32_values_each_the_same_every_time(checkpoint):
    described = tfeat.describe(stored(1, 5), weights=checkpoint)
    assert described.shape == (5, 128)
    assert described.dtype == np.float32
    assert np.abs(described).max() <= 1
    assert np.array_equal(described, tfeat.describe(stored(1, 5), weights=str(checkpoint)))


def test_a_stored_patch_is_described_by_its_halved_image(checkpoint):
    images = stored(2, 2)
    halved = images.reshape(2, 32, 2, 32, 2).mean(axis=(2, 4))
    for image, descriptor in zip(halved, tfeat.describe(images, weights=checkpoint), strict=True):
        np.testing.assert_allclose(descriptor, literal(image, published()), atol=1e-5)


def test_the_weights_are_the_files_of_the_moment(tmp_path):
    path = tmp_path / "tfeat.params"
    torch.save(published(1), path)
    before = tfeat.describe(stored(3, 2), weights=path)
    torch.save(published(2), path)
    assert np.abs(tfeat.describe(stored(3, 2), weights=path) - before).max() > 0.01


# Checkpoints


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_of_either_format_loads_whole(tmp_path, zipped):
    path = tmp_path / "tfeat.params"
    torch.save(published(), path, _use_new_zipfile_serialization=zipped)
    network = tfeat.load_checkpoint(path)
    assert not network.training
    for name, value in network.state_dict().items():
        assert torch.equal(value, published()[name]), name


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.params"):
        tfeat.load_checkpoint(tmp_path / "nowhere.params")


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_that_would_execute_code_is_refused_and_not_executed(tmp_path, zipped):
    path, trace = tmp_path / "evil.params", tmp_path / "executed"
    content = {**published(), "descr.0.bias": Malicious(trace)}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"evil\.params was refused for safety"):
        tfeat.load_checkpoint(path)
    assert not trace.exists()
    torch.load(path, weights_only=False)
    assert trace.exists()  # the file was indeed dangerous


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_bare_pickle_that_would_execute_code_is_refused_and_not_executed(tmp_path, protocol):
    path, trace = tmp_path / "evil.params", tmp_path / "executed"
    path.write_bytes(pickle.dumps(Malicious(trace), protocol=protocol))
    with pytest.raises(ValueError, match=r"evil\.params was refused for safety"):
        tfeat.load_checkpoint(path)
    assert not trace.exists()


def test_a_whole_pickled_network_is_refused(tmp_path):
    torch.save(tfeat.build(), tmp_path / "network.params")
    with pytest.raises(ValueError, match=r"network\.params was refused for safety"):
        tfeat.load_checkpoint(tmp_path / "network.params")


@pytest.mark.parametrize("content", [b"", b"a page of text\n", b"\x89PNG\r\n\x1a\n", b"PK\x03\x04 cut"])
def test_a_file_that_is_no_checkpoint_is_named(tmp_path, content):
    path = tmp_path / "foreign.params"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"foreign\.params .*is no checkpoint"):
        tfeat.load_checkpoint(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_that_is_cut_off_is_named(tmp_path, zipped):
    path = tmp_path / "short.params"
    torch.save(published(), path, _use_new_zipfile_serialization=zipped)
    path.write_bytes(path.read_bytes()[:500_000])
    with pytest.raises(ValueError, match=r"short\.params is no checkpoint, or a damaged one"):
        tfeat.load_checkpoint(path)


@pytest.mark.parametrize(("content", "kind"), [([torch.zeros(3)], "list"), ({"epoch": 3}, "dict")])
def test_a_file_without_a_state_dict_is_named(tmp_path, content, kind):
    torch.save(content, tmp_path / "other.params")
    with pytest.raises(ValueError, match=rf"other\.params holds no state dict .* but a {kind}"):
        tfeat.load_checkpoint(tmp_path / "other.params")


def test_a_missing_an_extra_and_a_misshapen_tensor_are_listed(tmp_path):
    path = tmp_path / "wrong.params"
    assert "features.4.bias is missing" in refused(path, features__4__bias=None)
    assert "descr.2.weight is not TFeat's" in refused(path, descr__2__weight=torch.zeros(2))
    shape = "descr.0.weight has shape (64, 4096) and not (128, 4096)"
    assert shape in refused(path, descr__0__weight=torch.zeros(64, 4096))
    of_all = refused(
        path, features__4__bias=None, features__9__bias=torch.ones(1), descr__0__bias=torch.ones(1)
    )
    assert of_all.endswith(
        "features.4.bias is missing; features.9.bias is not TFeat's; "
        "descr.0.bias has shape (1,) and not (128,)"
    )


def test_another_file_than_the_one_asked_for_is_refused(checkpoint):
    images = stored(2, 2)
    contents = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    asked = tfeat.describe(images, weights=checkpoint, sha256=contents)
    np.testing.assert_array_equal(asked, tfeat.describe(images, weights=checkpoint))
    with pytest.raises(ValueError, match=r"tfeat.params is not the file asked for"):
        tfeat.describe(images, weights=checkpoint, sha256="0" * 64)
