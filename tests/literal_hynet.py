"""The formulas of HyNet (Tian et al., NeurIPS 2020) and SOSNet's loss, transcribed literally: an
oracle for tests.

Slow on purpose: float64, plain loops over images, channels, pixels and pairs; the only vectorised step
of the network is the sum over one kernel window. Written from the paper's text and the list of open
choices (CHOICES), without sight of the implementation.

Conventions
- A patch batch has shape (N, height, width); a feature map (N, channels, height, width).
- Descriptors of pairs have shape (2, n, k): [0] anchors, [1] positives; `raw` before, `unit` after
  normalisation.
- A node is (which set, index), e.g. (1, 3) = p_3.
- All similarities in losses are dissimilarities (small = alike) of kind "d", "s" (meaning 1 − s) or
  "hybrid" (s_H).
- eps_unit: u = x/√(‖x‖² + eps_unit); eps_d: d = √(|2(1 − s)| + eps_d); eps_norm: √(‖x‖² + eps_norm) in
  R_L2; eps_root: under SOSR's outer root. The paper has none of them (all 0).

Slips of the printed paper (arXiv text), none of which changes a formula below except Eq. 9:
- Sec. 2.2 writes xᵀ∂s̄/∂x = 0 and xᵀ∂d̄/∂x = 0 for raw similarities; the bars are wrong: this holds
  for s and d only (xᵀ∂s̄/∂x = s̄). |Δ∥| is also lacking its division by ‖x‖. Eq. 3 itself is right as
  printed.
- Sec. 2.3: "periodic with period π" is true of g_s only; g_d = |cos(θ/2)| has period 2π.
- Sec. 3.2: ∂L/∂s_H(θ⁻) is −1 where the hinge is active, not 1.
- Sec. 5: s_H's gains 1.87 and 0.78 are over d and s, in this order; the sentence has them the other
  way round.
- Eq. 9: s must be read as 1 − s (as printed, positives are pulled apart). `as_printed=True` keeps the
  print.
"""

import math

import numpy as np

# ---- similarities of two raw vectors


def dot(x, y):
    """xᵀy by a loop."""
    total = 0.0
    for a, b in zip(x, y, strict=True):
        total += float(a) * float(b)
    return total


def length(x, eps=0.0):
    """‖x‖ = √(Σ x_i² + eps) (below Eq. 2; eps = 0 there)."""
    return math.sqrt(dot(x, x) + eps)


def inner_product(x, y):
    """s̄ = xᵀy (Eq. 2)."""
    return dot(x, y)


def cosine(x, y, eps_unit=0.0):
    """s = xᵀy / (‖x‖ ‖y‖) (Eq. 2)."""
    return dot(x, y) / (length(x, eps_unit) * length(y, eps_unit))


def euclidean(x, y):
    """d̄ = ‖x − y‖ (Eq. 2)."""
    return math.sqrt(sum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)))


def unit_distance(x, y):
    """d = ‖x/‖x‖ − y/‖y‖‖ (Eq. 2)."""
    lx, ly = length(x), length(y)
    return math.sqrt(sum((float(a) / lx - float(b) / ly) ** 2 for a, b in zip(x, y, strict=True)))


def inner_product_gradients(x, y):
    """∂s̄/∂x = y, ∂s̄/∂y = x (Eq. 3)."""
    return np.array(y, dtype=np.float64), np.array(x, dtype=np.float64)


def euclidean_gradients(x, y):
    """∂d̄/∂x = (x − y)/d̄, ∂d̄/∂y = (y − x)/d̄ (Eq. 3)."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    d = euclidean(x, y)
    return (x - y) / d, (y - x) / d


def cosine_gradients(x, y, eps_unit=0.0):
    """∂s/∂x = (y − xᵀy/‖x‖² x)/(‖x‖‖y‖) and with x, y exchanged (Eq. 3).

    Exact for eps_unit > 0 too, with ‖·‖ read as √(‖·‖² + eps_unit).
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    lx, ly, xy = length(x, eps_unit), length(y, eps_unit), dot(x, y)
    return (y - xy / lx**2 * x) / (lx * ly), (x - xy / ly**2 * y) / (lx * ly)


def unit_distance_gradients(x, y):
    """∂d/∂x = (xᵀy/‖x‖² x − y)/(d‖x‖‖y‖) and with x, y exchanged (Eq. 3)."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    lx, ly, xy, d = length(x), length(y), dot(x, y), unit_distance(x, y)
    return (xy / lx**2 * x - y) / (d * lx * ly), (xy / ly**2 * y - x) / (d * lx * ly)


# ---- functions of the angle


def s_of_angle(theta):
    """s(θ) = cos θ (Eq. 4)."""
    return math.cos(theta)


def d_of_angle(theta):
    """d(θ) = √(2(1 − cos θ)) (Eq. 4), with 1 − cos θ = 2 sin²(θ/2) so that small angles keep their
    digits."""
    return math.sqrt(2.0 * (2.0 * math.sin(theta / 2.0) ** 2))


def g_s(theta):
    """g_s(θ) = |s′(θ)| = |sin θ| (Eq. 4)."""
    return abs(math.sin(theta))


def g_d(theta):
    """g_d(θ) = |d′(θ)| = |sin θ / √(2(1 − cos θ))| (Eq. 4); its limit 1 where the fraction is 0/0.

    It equals |cos(θ/2)|; the fraction is kept, as printed.
    """
    d = d_of_angle(theta)
    if d < 1e-150:
        return 1.0
    return abs(math.sin(theta) / d)


def _signed_slope(theta, alpha):
    """(α(1 − s) + d)′ = α sin θ + cos(θ/2) on [0, π] (from Eq. 6 and Eq. 4): both parts are
    non-negative there."""
    return alpha * math.sin(theta) + g_d(theta)


_Z = {}


def normaliser(alpha, points=20001):
    """Z(α): the largest |α(1 − s(θ)) + d(θ)|′ over 0 ≤ θ ≤ π (below Eq. 6), by a dense search, then
    one in the best cells.

    α = ∞ is its own case: s_H = 1 − s, whose slope sin θ is at most 1, so Z = 1.
    """
    if math.isinf(alpha):
        return 1.0
    if (alpha, points) not in _Z:
        low, high = 0.0, math.pi
        best, best_theta = -1.0, 0.0
        for _ in range(2):
            step = (high - low) / (points - 1)
            for t in range(points):
                theta = low + t * step
                value = abs(_signed_slope(theta, alpha))
                if value > best:
                    best, best_theta = value, theta
            low, high = max(0.0, best_theta - step), min(math.pi, best_theta + step)
        _Z[alpha, points] = best
    return _Z[alpha, points]


def s_hybrid(theta, alpha=2.0, z=None):
    """s_H(θ) = [α(1 − s(θ)) + d(θ)]/Z (Eq. 6); z=None: Z(α), z=1: the released code. α = ∞:
    1 − s."""
    one_minus_s = 2.0 * math.sin(theta / 2.0) ** 2
    if math.isinf(alpha):
        return one_minus_s
    z = normaliser(alpha) if z is None else z
    return (alpha * one_minus_s + d_of_angle(theta)) / z


def g_hybrid(theta, alpha=2.0, z=None):
    """g_H(θ) = |s_H′(θ)| (Sec. 5, Fig. 5b) for 0 ≤ θ ≤ π."""
    if math.isinf(alpha):
        return g_s(theta)
    z = normaliser(alpha) if z is None else z
    return abs(_signed_slope(theta, alpha)) / z


# ---- the network


def convolve(x, weight, bias=None, stride=1, padding=1):
    """Cross-correlation (what networks call convolution) of (N, c, h, w) with (o, c, kh, kw); zeros
    outside."""
    x = np.asarray(x, dtype=np.float64)
    weight = np.asarray(weight, dtype=np.float64)
    images, channels, height, width = x.shape
    outputs, inputs, kh, kw = weight.shape
    assert channels == inputs, (channels, inputs)
    padded = np.zeros((images, channels, height + 2 * padding, width + 2 * padding))
    padded[:, :, padding : padding + height, padding : padding + width] = x
    rows = (height + 2 * padding - kh) // stride + 1
    columns = (width + 2 * padding - kw) // stride + 1
    y = np.zeros((images, outputs, rows, columns))
    for n in range(images):
        for r in range(rows):
            for c in range(columns):
                window = padded[n, :, r * stride : r * stride + kh, c * stride : c * stride + kw]
                for o in range(outputs):
                    y[n, o, r, c] = np.sum(window * weight[o])
                    if bias is not None:
                        y[n, o, r, c] += float(bias[o])
    return y


def filter_response_norm(x, weight, bias, eps=1e-6):
    """f̂_i = γ √N f_i/‖f_i‖ + β (Eq. 8) = γ f/√(mean f² + |ε|) + β: no mean is subtracted."""
    x = np.asarray(x, dtype=np.float64)
    weight, bias = np.ravel(weight), np.ravel(bias)
    eps = abs(float(np.ravel(eps)[0]))
    y = np.zeros_like(x)
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            f = x[n, i]
            mean_square = 0.0
            for value in f.ravel():
                mean_square += float(value) ** 2
            mean_square /= f.size
            y[n, i] = float(weight[i]) * f / math.sqrt(mean_square + eps) + float(bias[i])
    return y


def thresholded_linear_unit(x, tau):
    """TLU: max(f̂, τ), one τ for each channel (Sec. 3.3)."""
    tau = np.ravel(tau)
    y = np.zeros_like(np.asarray(x, dtype=np.float64))
    for n in range(y.shape[0]):
        for i in range(y.shape[1]):
            y[n, i] = np.maximum(x[n, i], float(tau[i]))
    return y


def rectify(x):
    """ReLU."""
    return np.maximum(np.asarray(x, dtype=np.float64), 0.0)


def instance_norm(x, eps=1e-5):
    """(f − mean)/√(biased variance + ε) of each image and channel, no affine."""
    x = np.asarray(x, dtype=np.float64)
    y = np.zeros_like(x)
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            f = x[n, i]
            mean = sum(float(v) for v in f.ravel()) / f.size
            variance = sum((float(v) - mean) ** 2 for v in f.ravel()) / f.size
            y[n, i] = (f - mean) / math.sqrt(variance + eps)
    return y


def batch_statistics(x):
    """Mean and biased variance of each channel over images and pixels, and the number of values behind
    each."""
    x = np.asarray(x, dtype=np.float64)
    means, variances = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    count = x.shape[0] * x.shape[2] * x.shape[3]
    for i in range(x.shape[1]):
        values = [float(v) for v in x[:, i].ravel()]
        means[i] = sum(values) / count
        variances[i] = sum((v - means[i]) ** 2 for v in values) / count
    return means, variances, count


def batch_norm(x, mean, variance, eps=1e-5):
    """(f − mean)/√(variance + ε), no affine."""
    x = np.asarray(x, dtype=np.float64)
    y = np.zeros_like(x)
    for i in range(x.shape[1]):
        y[:, i] = (x[:, i] - float(mean[i])) / math.sqrt(float(variance[i]) + eps)
    return y


def running_statistics(x, running_mean, running_var, momentum=0.1):
    """PyTorch's running statistics after one training batch: (1 − m) old + m new, the new variance
    unbiased."""
    mean, variance, count = batch_statistics(x)
    unbiased = variance * count / (count - 1)
    new_mean = (1 - momentum) * np.asarray(running_mean, dtype=np.float64) + momentum * mean
    new_var = (1 - momentum) * np.asarray(running_var, dtype=np.float64) + momentum * unbiased
    return new_mean, new_var


def _batch_norm_layer(x, parameters, name, training, groups, eps):
    """Evaluation: running statistics. Training: the batch's own, over `groups` equal parts of the
    batch each by itself."""
    if not training:
        return batch_norm(x, parameters[name + ".running_mean"], parameters[name + ".running_var"], eps)
    part = x.shape[0] // groups
    assert part * groups == x.shape[0]
    pieces = []
    for g in range(groups):
        piece = x[g * part : (g + 1) * part]
        mean, variance, _ = batch_statistics(piece)
        pieces.append(batch_norm(piece, mean, variance, eps))
    return np.concatenate(pieces)


def normalise(raw, eps=1e-10, where="root"):
    """x/‖x‖ with ε: "root": x/√(‖x‖² + ε); "element": (x + ε)/‖x + ε‖ (kornia's HyNet). Any leading
    shape."""
    raw = np.asarray(raw, dtype=np.float64)
    y = np.zeros_like(raw)
    for index in np.ndindex(raw.shape[:-1]):
        x = raw[index] if where == "root" else raw[index] + eps
        y[index] = x / length(x, eps if where == "root" else 0.0)
    return y


STRIDES = (1, 1, 2, 1, 2, 1)


def _as_maps(patches):
    patches = np.asarray(patches, dtype=np.float64)
    return patches[:, None] if patches.ndim == 3 else patches


def _descriptor_layer(x, parameters, training, groups, kept, rate, eps):
    """layer7: dropout (`kept`: mask of what stays, or None), convolution by the whole map, batch norm
    without affine."""
    if kept is not None:
        x = x * np.asarray(kept, dtype=np.float64) / (1.0 - rate)
    x = convolve(x, parameters["layer7.1.weight"], None, 1, 0)
    before = x
    x = _batch_norm_layer(x, parameters, "layer7.2", training, groups, eps)
    assert x.shape[2:] == (1, 1), x.shape
    return x[:, :, 0, 0], before


def hynet(
    patches,
    parameters,
    training=False,
    groups=1,
    kept=None,
    rate=0.3,
    eps_unit=1e-10,
    where="root",
    eps_bn=1e-5,
):
    """HyNet (Sec. 3.3, Fig. 3): FRN, TLU, six times (convolution 3×3, FRN, TLU), convolution 8×8,
    batch norm, L2 norm.

    parameters: the published names. layer1: 0 FRN (weight, bias, eps), 1 TLU (tau), 2 convolution, 3
    FRN, 4 TLU; layer2 to layer6: 0 convolution, 1 FRN, 2 TLU; layer7: 0 dropout, 1 convolution without
    bias, 2 batch norm (running_mean, running_var). Widths come from the shapes; a missing convolution
    bias is none, a missing eps 1e-6. training: batch statistics (groups=1: over the whole batch, i.e.
    anchors and positives together; groups=2: each half by itself). Returns {"raw": (N, k), "unit": (N,
    k), "before": maps before the last batch norm, (N, k, 1, 1)}.
    """
    p = parameters
    x = _as_maps(patches)

    def frn_tlu(x, norm, unit):
        x = filter_response_norm(x, p[norm + ".weight"], p[norm + ".bias"], p.get(norm + ".eps", 1e-6))
        return thresholded_linear_unit(x, p[unit + ".tau"])

    x = frn_tlu(x, "layer1.0", "layer1.1")
    for layer, stride in enumerate(STRIDES, start=1):
        first = 2 if layer == 1 else 0
        name = f"layer{layer}.{first}"
        x = convolve(x, p[name + ".weight"], p.get(name + ".bias"), stride, 1)
        x = frn_tlu(x, f"layer{layer}.{first + 1}", f"layer{layer}.{first + 2}")
    raw, before = _descriptor_layer(x, p, training, groups, kept, rate, eps_bn)
    return {"raw": raw, "unit": normalise(raw, eps_unit, where), "before": before}


def l2net(
    patches,
    parameters,
    norm="bn",
    training=False,
    groups=1,
    kept=None,
    rate=0.3,
    eps_unit=1e-10,
    where="root",
    eps=1e-5,
):
    """The same body with batch norm ("bn") or instance norm ("in") and ReLU (Table 3's norm types).

    As the authors' L2Net class: instance norm at the input, no biases, no affine. The last norm is
    batch norm in both (on a 1×1 map instance norm gives 0). parameters: layer1.1.weight (layer1.0 is
    the input's instance norm), layer2.0.weight to layer6.0.weight, layer7.1.weight; for evaluation
    running_mean and running_var of layer1.2, layer2.1 to layer6.1 ("bn" only) and layer7.2. Returns
    what `hynet` returns.
    """
    p = parameters
    x = instance_norm(_as_maps(patches), eps)
    for layer, stride in enumerate(STRIDES, start=1):
        first = 1 if layer == 1 else 0
        x = convolve(x, p[f"layer{layer}.{first}.weight"], None, stride, 1)
        if norm == "bn":
            x = _batch_norm_layer(x, p, f"layer{layer}.{first + 1}", training, groups, eps)
        else:
            assert norm == "in", norm
            x = instance_norm(x, eps)
        x = rectify(x)
    raw, before = _descriptor_layer(x, p, training, groups, kept, rate, eps)
    return {"raw": raw, "unit": normalise(raw, eps_unit, where), "before": before}


# ---- dissimilarities in losses


def d_of_s(s, eps_d=0.0):
    """d = √(|2(1 − s)| + eps_d) (Eq. 4; eps_d = 1e-6 in HyNet's code)."""
    return math.sqrt(abs(2.0 * (1.0 - s)) + eps_d)


def dissimilarity(s, kind="hybrid", alpha=2.0, z=None, eps_d=0.0):
    """The pair's d, 1 − s or s_H (Eq. 6) from its cosine s. z=None: Z(α); z=1: undivided.
    α = ∞: 1 − s."""
    if kind == "d":
        return d_of_s(s, eps_d)
    if kind == "s" or (kind == "hybrid" and math.isinf(alpha)):
        return 1.0 - s
    assert kind == "hybrid", kind
    z = normaliser(alpha) if z is None else z
    return (alpha * (1.0 - s) + d_of_s(s, eps_d)) / z


def dissimilarity_slope(s, kind="hybrid", alpha=2.0, z=None, eps_d=0.0):
    """Its derivative by s: d: −1/d (s ≤ 1; −∞ at d = 0), 1 − s: −1, s_H: (−α − 1/d)/Z."""
    if kind == "s" or (kind == "hybrid" and math.isinf(alpha)):
        return -1.0
    d = d_of_s(s, eps_d)
    slope_d = -math.inf if d == 0.0 else (-1.0 if s <= 1.0 else 1.0) / d
    if kind == "d":
        return slope_d
    z = normaliser(alpha) if z is None else z
    return (-alpha + slope_d) / z


def floor_in_unit(floor_d=0.008, kind="hybrid", alpha=2.0, z=None, eps_d=0.0):
    """The floor for false negatives, given for d (as eps_d makes it), in the unit of another
    dissimilarity."""
    return dissimilarity(1.0 - (floor_d**2 - eps_d) / 2.0, kind, alpha, z, eps_d)


def pair_cosine(raw, p, q, eps_unit=0.0):
    """s of two nodes (set, index) of raw descriptors (2, n, k)."""
    return cosine(raw[p[0]][p[1]], raw[q[0]][q[1]], eps_unit)


def dissimilarity_matrices(raw, kind="d", alpha=2.0, z=None, eps_d=0.0, eps_unit=0.0):
    """(aa, pp, ap): three (n, n) matrices, ap[i, j] of (a_i, p_j)."""
    n = len(raw[0])
    blocks = []
    for left, right in ((0, 0), (1, 1), (0, 1)):
        block = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                s = pair_cosine(raw, (left, i), (right, j), eps_unit)
                block[i, j] = dissimilarity(s, kind, alpha, z, eps_d)
        blocks.append(block)
    return blocks


# ---- hardest negatives


def hardest_negatives(aa, pp, ap, floor=None):
    """For each i the nearest of (a_i, a_j), (p_i, p_j), (a_i, p_j), (p_i, a_j), j ≠ i, over all four
    blocks.

    Candidates below `floor` (unit of the matrices) are passed over as false negatives. Returns a list
    of (value, node, node); (inf, None, None) if none is left. Ties: the first found (j upwards, blocks
    in the order above).
    """
    n = len(aa)
    found = []
    for i in range(n):
        best = (math.inf, None, None)
        for j in range(n):
            if j == i:
                continue
            candidates = (
                (aa[i][j], (0, i), (0, j)),
                (pp[i][j], (1, i), (1, j)),
                (ap[i][j], (0, i), (1, j)),
                (ap[j][i], (1, i), (0, j)),
            )
            for candidate in candidates:
                if floor is not None and candidate[0] < floor:
                    continue
                if candidate[0] < best[0]:
                    best = (float(candidate[0]), candidate[1], candidate[2])
        found.append(best)
    return found


def select_negatives(raw, floor_d=0.008, eps_d=1e-6, eps_unit=1e-10):
    """Nodes of the hardest negatives by d; d, 1 − s and s_H grow with the angle, so they all choose
    alike."""
    aa, pp, ap = dissimilarity_matrices(raw, "d", eps_d=eps_d, eps_unit=eps_unit)
    return [(p, q) for _, p, q in hardest_negatives(aa, pp, ap, floor_d)]


# ---- losses
#
# Every loss returns (value, slopes, extra): slopes[(p, q)] = ∂L/∂s of the two nodes, extra = (2, n, k)
# of ∂L/∂raw that does not go through a cosine. Eq. 1 then gives the whole gradient: see
# `closed_gradient`.


def _scale(n, reduction):
    return {"mean": 1.0 / n, "sum": 1.0}[reduction]


def _add(slopes, p, q, value):
    slopes[p, q] = slopes.get((p, q), 0.0) + value


def _join(*parts):
    """The weighted sum of (weight, (value, slopes, extra))."""
    value, slopes, extra = 0.0, {}, 0.0
    for weight, (v, sl, ex) in parts:
        value += weight * v
        extra = extra + weight * ex
        for (p, q), slope in sl.items():
            _add(slopes, p, q, weight * slope)
    return value, slopes, extra


def triplet(
    raw,
    kind="hybrid",
    alpha=2.0,
    margin=1.2,
    z=None,
    reduction="mean",
    eps_d=1e-6,
    eps_unit=1e-10,
    floor_d=0.008,
    power=1,
    negatives=None,
):
    """L_Triplet = 1/N Σ max(0, m + s_H(θ⁺) − s_H(θ⁻)) (Eq. 6); kind "s" or "d" are Table 3's; power 2
    squares the hinge.

    negatives: nodes chosen beforehand (None: `select_negatives`). A pair without a negative adds 0.
    """
    n = len(raw[0])
    negatives = select_negatives(raw, floor_d, eps_d, eps_unit) if negatives is None else negatives
    scale = _scale(n, reduction)
    value, slopes = 0.0, {}
    for i in range(n):
        p, q = negatives[i]
        if p is None:
            continue
        s_pos, s_neg = pair_cosine(raw, (0, i), (1, i), eps_unit), pair_cosine(raw, p, q, eps_unit)
        positive = dissimilarity(s_pos, kind, alpha, z, eps_d)
        negative = dissimilarity(s_neg, kind, alpha, z, eps_d)
        hinge = max(0.0, margin + positive - negative)
        value += scale * hinge**power
        if hinge > 0.0:
            outer = scale * (1.0 if power == 1 else power * hinge ** (power - 1))
            _add(slopes, (0, i), (1, i), outer * dissimilarity_slope(s_pos, kind, alpha, z, eps_d))
            _add(slopes, p, q, -outer * dissimilarity_slope(s_neg, kind, alpha, z, eps_d))
    return value, slopes, 0.0


def norm_regulariser(raw, reduction="mean", eps_norm=1e-6):
    """R_L2 = 1/N Σ (‖x_i‖ − ‖x_i⁺‖)² (Eq. 5), of raw descriptors; ‖x‖ = √(Σ x² + eps_norm)."""
    n = len(raw[0])
    scale = _scale(n, reduction)
    value, extra = 0.0, np.zeros(np.shape(raw))
    for i in range(n):
        a, p = length(raw[0][i], eps_norm), length(raw[1][i], eps_norm)
        value += scale * (a - p) ** 2
        extra[0, i] += scale * 2.0 * (a - p) * np.asarray(raw[0][i]) / a
        extra[1, i] -= scale * 2.0 * (a - p) * np.asarray(raw[1][i]) / p
    return value, {}, extra


def hynet_loss(
    raw,
    alpha=2.0,
    margin=1.2,
    gamma=0.1,
    z=None,
    kind="hybrid",
    reduction="mean",
    eps_d=1e-6,
    eps_unit=1e-10,
    eps_norm=1e-6,
    floor_d=0.008,
    negatives=None,
):
    """L = L_Triplet + γ R_L2 (Eq. 7)."""
    first = triplet(raw, kind, alpha, margin, z, reduction, eps_d, eps_unit, floor_d, 1, negatives)
    return _join((1.0, first), (gamma, norm_regulariser(raw, reduction, eps_norm)))


def loss_a(
    raw,
    margin=1.0,
    reduction="mean",
    eps_d=1e-6,
    eps_unit=1e-10,
    floor_d=0.008,
    as_printed=False,
    negatives=None,
):
    """L_A = 1/N Σ max(0, m_A + (1 − s(θ⁺)) − d(θ⁻)) (Eq. 9, s read as 1 − s); as_printed: max(0, m_A +
    s⁺ − d⁻)."""
    n = len(raw[0])
    negatives = select_negatives(raw, floor_d, eps_d, eps_unit) if negatives is None else negatives
    scale = _scale(n, reduction)
    value, slopes = 0.0, {}
    for i in range(n):
        p, q = negatives[i]
        if p is None:
            continue
        s_pos, s_neg = pair_cosine(raw, (0, i), (1, i), eps_unit), pair_cosine(raw, p, q, eps_unit)
        hinge = max(0.0, margin + (s_pos if as_printed else 1.0 - s_pos) - d_of_s(s_neg, eps_d))
        value += scale * hinge
        if hinge > 0.0:
            _add(slopes, (0, i), (1, i), scale * (1.0 if as_printed else -1.0))
            _add(slopes, p, q, -scale * dissimilarity_slope(s_neg, "d", eps_d=eps_d))
    return value, slopes, 0.0


def loss_b(
    raw,
    alpha=2.0,
    margin_s=0.9,
    margin_d=1.2,
    reduction="mean",
    eps_d=1e-6,
    eps_unit=1e-10,
    floor_d=0.008,
    as_printed=False,
    negatives=None,
):
    """L_B = α/N Σ max(0, m_B1 + s(θ⁻) − s(θ⁺)) + 1/N Σ max(0, m_B2 + d(θ⁺) − d(θ⁻)) (Eq. 9, s read as
    1 − s).

    as_printed: s⁺ − s⁻ in the first sum.
    """
    n = len(raw[0])
    negatives = select_negatives(raw, floor_d, eps_d, eps_unit) if negatives is None else negatives
    scale, sign = _scale(n, reduction), (1.0 if as_printed else -1.0)
    value, slopes = 0.0, {}
    for i in range(n):
        p, q = negatives[i]
        if p is None:
            continue
        s_pos, s_neg = pair_cosine(raw, (0, i), (1, i), eps_unit), pair_cosine(raw, p, q, eps_unit)
        hinge_s = max(0.0, margin_s + sign * (s_pos - s_neg))
        hinge_d = max(0.0, margin_d + d_of_s(s_pos, eps_d) - d_of_s(s_neg, eps_d))
        value += scale * (alpha * hinge_s + hinge_d)
        if hinge_s > 0.0:
            _add(slopes, (0, i), (1, i), scale * alpha * sign)
            _add(slopes, p, q, -scale * alpha * sign)
        if hinge_d > 0.0:
            _add(slopes, (0, i), (1, i), scale * dissimilarity_slope(s_pos, "d", eps_d=eps_d))
            _add(slopes, p, q, -scale * dissimilarity_slope(s_neg, "d", eps_d=eps_d))
    return value, slopes, 0.0


# ---- second-order similarity (SOSNet)


def nearest(distances, i, k, floor=None):
    """The k columns j ≠ i with the smallest distances[i][j]; below `floor` they come last. Ties: the
    smaller j."""
    candidates = []
    for j in range(len(distances[i])):
        if j != i:
            below = floor is not None and distances[i][j] < floor
            candidates.append((below, float(distances[i][j]), j))
    candidates.sort()
    return [j for _, _, j in candidates[:k]]


def knn_graph(distances, k, floor=None, symmetric=False):
    """graph[i][j]: j in kNN(i); symmetric: or i in kNN(j)."""
    n = len(distances)
    graph = [[False] * n for _ in range(n)]
    for i in range(n):
        for j in nearest(distances, i, k, floor):
            graph[i][j] = True
            if symmetric:
                graph[j][i] = True
    return graph


def sos_neighbours(raw, k=8, symmetric=False, cross=False, floor_d=None, eps_d=0.0, eps_unit=0.0):
    """c_i = {j ≠ i: x_j in kNN(x_i) or x_j⁺ in kNN(x_i⁺)}, each kNN in its own set (SOSNet; union over
    both sets).

    symmetric: each graph is symmetrised before the union (released code). cross: also j with p_j in
    kNN(a_i) among the positives or a_j in kNN(p_i) among the anchors, own partner left out (released
    code). Returns n sorted lists.
    """
    aa, pp, ap = dissimilarity_matrices(raw, "d", eps_d=eps_d, eps_unit=eps_unit)
    n = len(aa)
    tables = [aa, pp]
    if cross:
        pa = [[ap[j][i] for j in range(n)] for i in range(n)]
        tables += [ap, pa]
    graphs = [knn_graph(table, k, floor_d, symmetric) for table in tables]
    return [[j for j in range(n) if j != i and any(graph[i][j] for graph in graphs)] for i in range(n)]


def sosr(
    raw,
    k=8,
    reduction="mean",
    symmetric=False,
    cross=False,
    floor_d=None,
    eps_root=0.0,
    eps_d=1e-6,
    eps_unit=1e-10,
    neighbours=None,
):
    """R_SOS = 1/N Σ_i √(Σ_{j in c_i} (d(x_i, x_j) − d(x_i⁺, x_j⁺))² + eps_root) (SOSNet's second-order
    similarity).

    neighbours: c_i chosen beforehand (None: `sos_neighbours`). Where the root's inside is 0, its slope
    is taken as 0.
    """
    n = len(raw[0])
    if neighbours is None:
        neighbours = sos_neighbours(raw, k, symmetric, cross, floor_d, eps_d, eps_unit)
    scale = _scale(n, reduction)
    value, slopes = 0.0, {}
    for i in range(n):
        inside, terms = 0.0, []
        for j in neighbours[i]:
            s_a, s_p = (
                pair_cosine(raw, (0, i), (0, j), eps_unit),
                pair_cosine(raw, (1, i), (1, j), eps_unit),
            )
            difference = d_of_s(s_a, eps_d) - d_of_s(s_p, eps_d)
            inside += difference**2
            terms.append((j, s_a, s_p, difference))
        root = math.sqrt(inside + eps_root)
        value += scale * root
        if root == 0.0:
            continue
        for j, s_a, s_p, difference in terms:
            _add(
                slopes,
                (0, i),
                (0, j),
                scale * difference / root * dissimilarity_slope(s_a, "d", eps_d=eps_d),
            )
            _add(
                slopes,
                (1, i),
                (1, j),
                -scale * difference / root * dissimilarity_slope(s_p, "d", eps_d=eps_d),
            )
    return value, slopes, 0.0


def squared_hinge(
    raw, margin=1.0, reduction="mean", eps_d=1e-6, eps_unit=1e-10, floor_d=0.008, negatives=None
):
    """SOSNet's first-order loss 1/N Σ max(0, m + d⁺ − d⁻)², d⁻ over four blocks, m = 1."""
    return triplet(raw, "d", 0.0, margin, 1.0, reduction, eps_d, eps_unit, floor_d, 2, negatives)


def sosnet_loss(
    raw,
    margin=1.0,
    k=8,
    weight=1.0,
    reduction="mean",
    symmetric=False,
    cross=False,
    eps_root=0.0,
    eps_d=1e-6,
    eps_unit=1e-10,
    floor_d=0.008,
    neighbour_floor_d=None,
    negatives=None,
    neighbours=None,
):
    """SOSNet: squared hinge + weight · SOSR."""
    return _join(
        (1.0, squared_hinge(raw, margin, reduction, eps_d, eps_unit, floor_d, negatives)),
        (
            weight,
            sosr(
                raw,
                k,
                reduction,
                symmetric,
                cross,
                neighbour_floor_d,
                eps_root,
                eps_d,
                eps_unit,
                neighbours,
            ),
        ),
    )


def hynet_sosr_loss(
    raw,
    alpha=2.0,
    margin=1.2,
    gamma=0.1,
    z=None,
    k=8,
    weight=1.0,
    reduction="mean",
    symmetric=False,
    cross=False,
    eps_root=0.0,
    eps_d=1e-6,
    eps_unit=1e-10,
    eps_norm=1e-6,
    floor_d=0.008,
    neighbour_floor_d=None,
    negatives=None,
    neighbours=None,
):
    """HyNet + SOSR (Sec. 7.2): Eq. 7 + weight · SOSR."""
    first = hynet_loss(
        raw, alpha, margin, gamma, z, "hybrid", reduction, eps_d, eps_unit, eps_norm, floor_d, negatives
    )
    second = sosr(
        raw, k, reduction, symmetric, cross, neighbour_floor_d, eps_root, eps_d, eps_unit, neighbours
    )
    return _join((1.0, first), (weight, second))


# ---- gradients by the raw descriptors


def closed_gradient(loss, raw, **options):
    """∂L/∂raw (2, n, k): Eq. 1's chain, ∂L/∂s of each pair times Eq. 3's ∂s/∂x and ∂s/∂y, plus what
    does not go through s."""
    raw = np.asarray(raw, dtype=np.float64)
    eps_unit = options.get("eps_unit", 1e-10)
    _, slopes, extra = loss(raw, **options)
    gradient = np.zeros_like(raw) + extra
    for (p, q), slope in slopes.items():
        by_x, by_y = cosine_gradients(raw[p], raw[q], eps_unit)
        gradient[p] += slope * by_x
        gradient[q] += slope * by_y
    return gradient


def difference_gradient(loss, raw, step=1e-5, **options):
    """∂L/∂raw (2, n, k) by central differences (4 D(h) − D(2h))/3; chosen negatives and neighbours
    held fixed.

    Knows nothing of slopes. Not to be trusted where a hinge is within `step` of 0.
    """
    raw = np.array(raw, dtype=np.float64)
    eps_d, eps_unit = options.get("eps_d", 1e-6), options.get("eps_unit", 1e-10)
    if loss not in (sosr, norm_regulariser) and options.get("negatives") is None:
        options["negatives"] = select_negatives(raw, options.get("floor_d", 0.008), eps_d, eps_unit)
    if loss in (sosr, sosnet_loss, hynet_sosr_loss) and options.get("neighbours") is None:
        floor = options.get("floor_d" if loss is sosr else "neighbour_floor_d")
        options["neighbours"] = sos_neighbours(
            raw,
            options.get("k", 8),
            options.get("symmetric", False),
            options.get("cross", False),
            floor,
            eps_d,
            eps_unit,
        )
    gradient = np.zeros_like(raw)
    for index in np.ndindex(raw.shape):
        kept = raw[index]
        values = []
        for move in (step, -step, 2 * step, -2 * step):
            raw[index] = kept + move
            values.append(loss(raw, **options)[0])
        raw[index] = kept
        near, far = (values[0] - values[1]) / (2 * step), (values[2] - values[3]) / (4 * step)
        gradient[index] = (4 * near - far) / 3
    return gradient
