"""TFeat and HardTFeat: the published layouts, their input normalisation, their descriptors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
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


@pytest.fixture(scope="module")
def network():
    network = tfeat.TFeat()
    network.load_state_dict(published())
    return network.eval()


def test_the_state_dict_has_the_keys_and_shapes_of_the_published_checkpoint():
    assert {name: tuple(v.shape) for name, v in tfeat.TFeat().state_dict().items()} == PUBLISHED


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
    images = patches(3, 2)
    with torch.no_grad():
        descriptors = network(images)
    for patch, descriptor in zip(images, descriptors, strict=True):
        np.testing.assert_allclose(descriptor, literal(patch[0].numpy(), published()), atol=1e-5)
