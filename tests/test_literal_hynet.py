"""The oracle `literal_hynet` against facts that need no implementation of ours."""

import math

import literal_hynet as lit
import numpy as np
import pytest


def numeric(f, x, step=1e-5):
    x = np.array(x, dtype=np.float64)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        kept = x[index]
        values = []
        for move in (step, -step, 2 * step, -2 * step):
            x[index] = kept + move
            values.append(f(x))
        x[index] = kept
        gradient[index] = (
            4 * (values[0] - values[1]) / (2 * step) - (values[2] - values[3]) / (4 * step)
        ) / 3
    return gradient


def pairs(n=7, k=5, noise=0.4, seed=0):
    rng = np.random.default_rng(seed)
    anchors = rng.normal(size=(n, k)) * rng.uniform(0.5, 2, size=(n, 1))
    return np.stack(
        [anchors, anchors * rng.uniform(0.8, 1.25, size=(n, 1)) + noise * rng.normal(size=(n, k))]
    )


# ---- Eq. 2 to 4, Eq. 6


@pytest.mark.parametrize("name", ["inner_product", "cosine", "euclidean", "unit_distance"])
def test_printed_gradients_are_derivatives(name):
    rng = np.random.default_rng(1)
    function, gradients = getattr(lit, name), getattr(lit, name + "_gradients")
    for _ in range(5):
        x, y = rng.normal(size=6), rng.normal(size=6)
        by_x, by_y = gradients(x, y)
        np.testing.assert_allclose(by_x, numeric(lambda v, y=y: function(v, y), x), atol=1e-9)
        np.testing.assert_allclose(by_y, numeric(lambda v, x=x: function(x, v), y), atol=1e-9)


def test_only_normalised_similarities_have_orthogonal_gradients():
    x, y = np.random.default_rng(2).normal(size=(2, 8))
    for gradients in (lit.cosine_gradients, lit.unit_distance_gradients):
        by_x, by_y = gradients(x, y)
        assert abs(by_x @ x) < 1e-14
        assert abs(by_y @ y) < 1e-14
    # the bars in Sec. 2.2 are misprints
    assert lit.inner_product_gradients(x, y)[0] @ x == pytest.approx(lit.inner_product(x, y))
    assert abs(lit.euclidean_gradients(x, y)[0] @ x) > 1e-3


def test_angle_form_agrees_with_vectors():
    for theta in (0.01, 0.3, 1.0, 2.0, 3.1):
        x, y = np.array([3.0, 0.0]), 0.7 * np.array([math.cos(theta), math.sin(theta)])
        assert lit.cosine(x, y) == pytest.approx(lit.s_of_angle(theta), abs=1e-14)
        assert lit.unit_distance(x, y) == pytest.approx(lit.d_of_angle(theta), abs=1e-14)
        assert lit.d_of_s(lit.cosine(x, y)) == pytest.approx(lit.d_of_angle(theta), abs=1e-12)
        assert lit.dissimilarity(lit.cosine(x, y)) == pytest.approx(lit.s_hybrid(theta), abs=1e-12)


def test_magnitudes():
    assert lit.g_d(0.0) == 1.0
    assert lit.g_d(1e-160) == 1.0
    for theta in (1e-9, 1e-3, 0.5, 1.5, 3.0, math.pi, 4.0):
        assert lit.g_d(theta) == pytest.approx(abs(math.cos(theta / 2)), abs=1e-14)
    angles = np.linspace(0, math.pi / 2, 100)
    assert np.all(np.diff([lit.g_s(t) for t in angles]) > 0)
    assert np.all(np.diff([lit.g_d(t) for t in angles]) < 0)


@pytest.mark.parametrize(("alpha", "z"), [(0, 1.0), (1, 1.760), (2, 2.736), (3, 3.727)])
def test_normaliser(alpha, z):
    assert lit.normaliser(alpha) == pytest.approx(z, abs=5e-4)
    # stationary point in closed form: with t = sin(θ/2), α(1 − 2t²) = t/2
    if alpha:
        t = (-0.5 + math.sqrt(0.25 + 8 * alpha**2)) / (4 * alpha)
        assert lit.normaliser(alpha) == pytest.approx(
            math.sqrt(1 - t * t) * (2 * alpha * t + 1), abs=1e-12
        )


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0, 30.0, math.inf])
def test_hybrid_slope(alpha):
    angles = np.linspace(0.05, 3.1, 40)
    for theta in angles:
        slope = numeric(lambda t: lit.s_hybrid(float(t[0]), alpha), [theta])[0]
        assert lit.g_hybrid(theta, alpha) == pytest.approx(slope, abs=1e-8)
    top = max(lit.g_hybrid(t, alpha) for t in np.linspace(0, math.pi, 2001))
    assert top == pytest.approx(1.0, abs=1e-5)
    if alpha == 0.0:
        assert lit.s_hybrid(1.0, alpha) == pytest.approx(lit.d_of_angle(1.0))
    if math.isinf(alpha):
        assert lit.s_hybrid(1.0, alpha) == pytest.approx(lit.s_hybrid(1.0, 1e9), abs=1e-8)


# ---- network


def parameters(widths, rng, side=8):
    """Random weights of HyNet under the published names."""
    p, before = {}, 1

    def norm(name, width):
        p[name + ".weight"] = rng.uniform(0.5, 1.5, size=(1, width, 1, 1))
        p[name + ".bias"] = 0.3 * rng.normal(size=(1, width, 1, 1))
        p[name + ".eps"] = np.array([-1e-6])

    norm("layer1.0", 1)
    p["layer1.1.tau"] = rng.uniform(-1.2, 0.2, size=(1, 1, 1, 1))
    for layer, width in enumerate(widths[:6], start=1):
        first = 2 if layer == 1 else 0
        p[f"layer{layer}.{first}.weight"] = rng.normal(size=(width, before, 3, 3)) / math.sqrt(
            9 * before
        )
        p[f"layer{layer}.{first}.bias"] = 0.1 * rng.normal(size=width)
        norm(f"layer{layer}.{first + 1}", width)
        p[f"layer{layer}.{first + 2}.tau"] = rng.uniform(-1.2, 0.2, size=(1, width, 1, 1))
        before = width
    p["layer7.1.weight"] = rng.normal(size=(widths[6], before, side, side)) / math.sqrt(
        side * side * before
    )
    p["layer7.2.running_mean"] = 0.2 * rng.normal(size=widths[6])
    p["layer7.2.running_var"] = rng.uniform(0.5, 2.0, size=widths[6])
    return p


def test_network_is_the_published_one():
    """kornia's HyNet at full width: evaluation, and training mode without dropout with the running
    statistics after it."""
    torch = pytest.importorskip("torch")
    feature = pytest.importorskip("kornia.feature")
    rng = np.random.default_rng(3)
    p = parameters((32, 32, 64, 64, 128, 128, 128), rng)
    net = feature.HyNet(pretrained=False, drop_rate=0.0).double()
    state = {key: torch.tensor(value, dtype=torch.float64) for key, value in p.items()}
    state["layer7.2.num_batches_tracked"] = torch.tensor(0)
    net.load_state_dict(state)
    patches = rng.uniform(0, 255, size=(2, 32, 32))
    inputs = torch.tensor(patches)[:, None]
    ours = lit.hynet(patches, p, where="element")
    net.eval()
    with torch.no_grad():
        np.testing.assert_allclose(ours["unit"], net(inputs).numpy(), atol=1e-11)
        np.testing.assert_allclose(lit.normalise(ours["raw"]), ours["unit"], atol=1e-9)
        net.train()
        theirs = net(inputs).numpy()
    before = ours["before"]
    mean, variance, _ = lit.batch_statistics(before)
    trained = lit.normalise(lit.batch_norm(before, mean, variance)[:, :, 0, 0], where="element")
    np.testing.assert_allclose(trained, theirs, atol=1e-10)
    new_mean, new_var = lit.running_statistics(
        before, p["layer7.2.running_mean"], p["layer7.2.running_var"]
    )
    np.testing.assert_allclose(new_mean, net.layer7[2].running_mean.numpy(), atol=1e-12)
    np.testing.assert_allclose(new_var, net.layer7[2].running_var.numpy(), atol=1e-12)


def test_thin_network_modes_and_invariance():
    rng = np.random.default_rng(4)
    p = parameters((2, 3, 2, 3, 4, 2, 5), rng)
    patches = rng.uniform(1, 255, size=(4, 32, 32))
    out = lit.hynet(patches, p)
    assert out["raw"].shape == out["unit"].shape == (4, 5)
    np.testing.assert_allclose(np.linalg.norm(out["unit"], axis=1), 1, atol=1e-9)
    # intensities scaled: FRN at the input takes the scale away
    np.testing.assert_allclose(lit.hynet(3 * patches, p)["raw"], out["raw"], atol=1e-6)
    # dropout's kept values are scaled up
    kept = lit.hynet(patches, p, kept=np.ones((4, 2, 8, 8)), rate=0.5)
    np.testing.assert_allclose(kept["before"], 2 * out["before"], atol=1e-12)
    trained = lit.hynet(patches, p, training=True)["raw"]
    mean, variance, count = lit.batch_statistics(out["before"])
    assert count == 4
    np.testing.assert_allclose(
        trained, lit.batch_norm(out["before"], mean, variance)[:, :, 0, 0], atol=1e-12
    )
    np.testing.assert_allclose(trained.mean(0), 0, atol=1e-12)
    assert np.all(np.abs(trained.var(0) - 1) < 1e-2)
    halves = lit.hynet(patches, p, training=True, groups=2)["raw"]
    np.testing.assert_allclose(halves[:2].mean(0), 0, atol=1e-12)
    assert np.abs(halves - trained).max() > 1e-3


def test_filter_response_norm_has_orthogonal_gradients():
    """Sec. 3.3: gradients by f_i are orthogonal to f_i; and ‖f̂‖ = γ√N for β = 0 (Eq. 8)."""
    rng = np.random.default_rng(5)
    x, target = rng.normal(size=(2, 1, 1, 3, 4))

    def f(v):
        return float(np.sum(target * lit.filter_response_norm(v, [1.7], [0.2], 0.0)))

    gradient = numeric(f, x)
    assert abs(np.sum(gradient * x)) < 1e-9
    assert np.abs(gradient).max() > 1e-2
    assert np.linalg.norm(lit.filter_response_norm(x, [1.7], [0.0], 0.0)) == pytest.approx(
        1.7 * math.sqrt(12)
    )


@pytest.mark.parametrize("norm", ["bn", "in"])
@pytest.mark.parametrize("training", [False, True])
def test_normed_bodies_are_torch_layers(norm, training):
    torch = pytest.importorskip("torch")
    nn = torch.nn
    rng = np.random.default_rng(6)
    widths = (2, 3, 4, 3, 4, 3, 6)
    layers, p, before = [nn.InstanceNorm2d(1)], {}, 1
    for layer, (width, stride) in enumerate(zip(widths[:6], lit.STRIDES, strict=True), start=1):
        first = 1 if layer == 1 else 0
        convolution = nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False)
        p[f"layer{layer}.{first}.weight"] = convolution.weight.detach().double().numpy()
        middle = nn.BatchNorm2d(width, affine=False) if norm == "bn" else nn.InstanceNorm2d(width)
        if norm == "bn":
            name = f"layer{layer}.{first + 1}"
            p[name + ".running_mean"] = rng.normal(size=width)
            p[name + ".running_var"] = rng.uniform(0.5, 2, size=width)
            middle.double()
            middle.running_mean.copy_(torch.tensor(p[name + ".running_mean"]))
            middle.running_var.copy_(torch.tensor(p[name + ".running_var"]))
        layers += [convolution, middle, nn.ReLU()]
        before = width
    convolution, last = (
        nn.Conv2d(before, widths[6], 8, bias=False),
        nn.BatchNorm2d(widths[6], affine=False).double(),
    )
    p["layer7.1.weight"] = convolution.weight.detach().double().numpy()
    p["layer7.2.running_mean"], p["layer7.2.running_var"] = (
        rng.normal(size=6),
        rng.uniform(0.5, 2, size=6),
    )
    last.running_mean.copy_(torch.tensor(p["layer7.2.running_mean"]))
    last.running_var.copy_(torch.tensor(p["layer7.2.running_var"]))
    net = nn.Sequential(*layers, convolution, last).double().train(training)
    patches = rng.uniform(0, 255, size=(4, 32, 32))
    with torch.no_grad():
        theirs = net(torch.tensor(patches)[:, None]).flatten(1).numpy()
    np.testing.assert_allclose(lit.l2net(patches, p, norm, training)["raw"], theirs, atol=1e-9)


# ---- negatives


def test_hardest_negatives_over_four_blocks():
    raw = pairs(n=9)
    aa, pp, ap = lit.dissimilarity_matrices(raw, "d")
    found = lit.hardest_negatives(aa, pp, ap)
    for i, (value, p, q) in enumerate(found):
        stacked = np.stack([aa[i], pp[i], ap[i], ap[:, i]])
        stacked[:, i] = np.inf
        assert value == stacked.min()
        assert p[1] == i
        assert q[1] != i
        assert value == pytest.approx(lit.unit_distance(raw[p], raw[q]), abs=1e-12)
    # the same nodes in every unit, with the floor put into that unit, and the floor at work
    floor_d = float(np.median([value for value, _, _ in found]))
    nodes = [(p, q) for _, p, q in lit.hardest_negatives(aa, pp, ap, floor_d)]
    assert nodes != [(p, q) for _, p, q in found]
    for kind, alpha in (("s", 2.0), ("hybrid", 2.0), ("hybrid", math.inf)):
        blocks = lit.dissimilarity_matrices(raw, kind, alpha)
        floor = lit.floor_in_unit(floor_d - 1e-9, kind, alpha)
        assert [(p, q) for _, p, q in lit.hardest_negatives(*blocks, floor)] == nodes
    assert lit.hardest_negatives(aa, pp, ap, 3.0)[0] == (math.inf, None, None)


# ---- losses

LOSSES = [
    (lit.triplet, {}),
    (lit.triplet, {"kind": "s"}),
    (lit.triplet, {"kind": "d", "reduction": "sum"}),
    (lit.norm_regulariser, {}),
    (lit.hynet_loss, {}),
    (lit.hynet_loss, {"z": 1.0, "reduction": "sum"}),
    (lit.hynet_loss, {"alpha": math.inf}),
    (lit.hynet_loss, {"alpha": 0.0, "gamma": 1.0}),
    (lit.loss_a, {}),
    (lit.loss_a, {"as_printed": True}),
    (lit.loss_b, {}),
    (lit.loss_b, {"as_printed": True, "reduction": "sum"}),
    (lit.squared_hinge, {}),
    (lit.sosr, {"k": 2}),
    (lit.sosr, {"k": 2, "symmetric": True, "cross": True, "eps_root": 1e-6, "reduction": "sum"}),
    (lit.sosnet_loss, {"k": 2}),
    (lit.sosnet_loss, {"k": 3, "cross": True, "eps_root": 1e-6, "eps_d": 1e-3}),
    (lit.hynet_sosr_loss, {"k": 2}),
    (lit.hynet_sosr_loss, {"k": 2, "eps_unit": 1e-2, "z": 1.0, "symmetric": True, "eps_root": 1e-6}),
]


@pytest.mark.parametrize(("loss", "options"), LOSSES)
def test_gradients_two_ways(loss, options):
    raw = pairs(n=5, k=4)
    value, slopes, extra = loss(raw, **options)
    assert value > 0
    assert slopes or np.any(extra)
    closed = lit.closed_gradient(loss, raw, **options)
    np.testing.assert_allclose(closed, lit.difference_gradient(loss, raw, **options), atol=2e-8)
    if loss in (lit.triplet, lit.loss_a, lit.loss_b, lit.squared_hinge, lit.sosr) and not options.get(
        "eps_unit"
    ):
        assert np.abs(np.sum(closed * raw, axis=2)).max() < 1e-8  # normalised: orthogonal (Sec. 2.2)


def test_norm_regulariser_is_parallel():
    """Sec. 3.1: R_L2's gradient is along the descriptor."""
    raw = pairs(n=4)
    gradient = lit.closed_gradient(lit.norm_regulariser, raw)
    unit = lit.normalise(raw)
    np.testing.assert_allclose(
        gradient, np.sum(gradient * unit, axis=2, keepdims=True) * unit, atol=1e-9
    )


def test_losses_by_hand():
    """Two pairs in the plane: a_0 = p_0 = 0°, a_1 = 60°, p_1 = 90°."""
    angles = np.array([[0.0, math.pi / 3], [0.0, math.pi / 2]])
    raw = (
        np.stack([np.cos(angles), np.sin(angles)], axis=2)
        * np.array([[2.0, 3.0], [2.5, 1.0]])[:, :, None]
    )
    plain = {"eps_d": 0.0, "eps_unit": 0.0}
    for i, (p, q) in enumerate(lit.select_negatives(raw)):  # d = 1, from a_0 or p_0 to a_1
        assert (p[1], q[1]) == (i, 1 - i)
        assert lit.unit_distance(raw[p], raw[q]) == pytest.approx(1.0)
    z = lit.normaliser(2.0)
    near, far = (2 * 0.5 + 1) / z, lit.s_hybrid(math.pi / 6)
    expected = (max(0, 1.2 + 0 - near) + max(0, 1.2 + far - near)) / 2
    assert lit.triplet(raw, **plain)[0] == pytest.approx(expected, abs=1e-14)
    assert lit.norm_regulariser(raw, eps_norm=0.0)[0] == pytest.approx((0.5**2 + 2**2) / 2)
    total = lit.hynet_loss(raw, eps_norm=0.0, **plain)[0]
    assert total == pytest.approx(expected + 0.1 * 4.25 / 2, abs=1e-14)
    c, d = math.cos(math.pi / 6), 2 * math.sin(math.pi / 12)
    assert lit.loss_a(raw, **plain)[0] == pytest.approx((0 + (1 - c)) / 2)
    expected_b = (2 * (0.9 + 0.5 - 1) + 0.2 + 2 * (0.9 + 0.5 - c) + 1.2 + d - 1) / 2
    assert lit.loss_b(raw, **plain)[0] == pytest.approx(expected_b)
    assert lit.squared_hinge(raw, **plain)[0] == pytest.approx(d**2 / 2)
    assert lit.sosr(raw, **plain)[0] == pytest.approx(math.sqrt(2) - 1)
    assert lit.sosr(raw, reduction="sum", eps_root=0.5, **plain)[0] == pytest.approx(
        2 * math.sqrt((math.sqrt(2) - 1) ** 2 + 0.5)
    )
    assert lit.sosnet_loss(raw, **plain)[0] == pytest.approx(d**2 / 2 + math.sqrt(2) - 1)
    assert lit.hynet_sosr_loss(raw, eps_norm=0.0, **plain)[0] == pytest.approx(total + math.sqrt(2) - 1)


def test_alpha_ends_and_sums():
    raw = pairs()
    plain = {"eps_d": 0.0}
    assert lit.triplet(raw, alpha=0.0, **plain)[0] == pytest.approx(lit.triplet(raw, "d", **plain)[0])
    assert lit.triplet(raw, alpha=math.inf, **plain)[0] == pytest.approx(
        lit.triplet(raw, "s", **plain)[0]
    )
    for loss in (lit.hynet_loss, lit.loss_a, lit.loss_b, lit.sosnet_loss, lit.hynet_sosr_loss):
        assert loss(raw, reduction="sum")[0] == pytest.approx(7 * loss(raw)[0])
    # dividing by Z is the same as a margin larger by Z and the loss divided by Z
    z = lit.normaliser(2.0)
    assert lit.triplet(raw, margin=1.2)[0] == pytest.approx(
        lit.triplet(raw, margin=1.2 * z, z=1.0)[0] / z
    )


def test_neighbours():
    raw = pairs(n=8, noise=1.0)
    plain = lit.sos_neighbours(raw, 2)
    aa, pp, _ = lit.dissimilarity_matrices(raw, "d")
    for i in range(8):
        expected = set()
        for table in (aa, pp):
            row = table[i].copy()
            row[i] = np.inf
            expected |= set(np.argsort(row)[:2].tolist())
        assert set(plain[i]) == expected
    symmetric = lit.sos_neighbours(raw, 2, symmetric=True)
    cross = lit.sos_neighbours(raw, 2, cross=True)
    both = lit.sos_neighbours(raw, 2, symmetric=True, cross=True)
    for i in range(8):
        assert all(i in symmetric[j] for j in symmetric[i])
        assert set(plain[i]) <= set(symmetric[i]) <= set(both[i])
        assert set(plain[i]) <= set(cross[i]) <= set(both[i])
        assert i not in both[i]
    assert plain != symmetric
    assert plain != cross
    assert all(len(row) == 7 for row in lit.sos_neighbours(raw, 20))
