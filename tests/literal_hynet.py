"""The formulas of HyNet (Tian et al., NeurIPS 2020) and SOSNet's loss, transcribed literally: an
oracle for tests.

Slow on purpose: float64, plain loops over pairs. Written from the paper's text and the list of open
choices (CHOICES), without sight of the implementation.

Conventions
- Descriptors of pairs have shape (2, n, k): [0] anchors, [1] positives; `raw` before, `unit` after
  normalisation.
- A node is (which set, index), e.g. (1, 3) = p_3.
- All similarities in losses are dissimilarities (small = alike) of kind "d" or "hybrid" (s_H, which at
  α = ∞ is 1 − s).
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
- Eq. 9: s must be read as 1 − s (as printed, positives are pulled apart).
"""

import math

import numpy as np

# Closer negatives are taken for false ones.
FLOOR_D = 0.008

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


def cosine(x, y, eps_unit=0.0):
    """s = xᵀy / (‖x‖ ‖y‖) (Eq. 2)."""
    return dot(x, y) / (length(x, eps_unit) * length(y, eps_unit))


def cosine_gradients(x, y, eps_unit=0.0):
    """∂s/∂x = (y − xᵀy/‖x‖² x)/(‖x‖‖y‖) and with x, y exchanged (Eq. 3).

    Exact for eps_unit > 0 too, with ‖·‖ read as √(‖·‖² + eps_unit).
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    lx, ly, xy = length(x, eps_unit), length(y, eps_unit), dot(x, y)
    return (y - xy / lx**2 * x) / (lx * ly), (x - xy / ly**2 * y) / (lx * ly)


# ---- functions of the angle


def d_of_angle(theta):
    """d(θ) = √(2(1 − cos θ)) (Eq. 4), with 1 − cos θ = 2 sin²(θ/2) so that small angles keep their
    digits."""
    return math.sqrt(2.0 * (2.0 * math.sin(theta / 2.0) ** 2))


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


def normaliser(alpha):
    """Z(α): the largest |α(1 − s(θ)) + d(θ)|′ over 0 ≤ θ ≤ π (below Eq. 6), by a dense search, then
    one in the best cells.

    α = ∞ is its own case: s_H = 1 − s, whose slope sin θ is at most 1, so Z = 1.
    """
    if math.isinf(alpha):
        return 1.0
    if alpha not in _Z:
        points = 20001
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
        _Z[alpha] = best
    return _Z[alpha]


# ---- dissimilarities in losses


def d_of_s(s, eps_d=0.0):
    """d = √(|2(1 − s)| + eps_d) (Eq. 4; eps_d = 1e-6 in HyNet's code)."""
    return math.sqrt(abs(2.0 * (1.0 - s)) + eps_d)


def dissimilarity(s, kind="hybrid", alpha=2.0, z=None, eps_d=0.0):
    """The pair's d or s_H (Eq. 6) from its cosine s. z=None: Z(α); z=1: undivided. α = ∞: 1 − s."""
    if kind == "d":
        return d_of_s(s, eps_d)
    assert kind == "hybrid", kind
    if math.isinf(alpha):
        return 1.0 - s
    z = normaliser(alpha) if z is None else z
    return (alpha * (1.0 - s) + d_of_s(s, eps_d)) / z


def dissimilarity_slope(s, kind="hybrid", alpha=2.0, z=None, eps_d=0.0):
    """Its derivative by s: d: −1/d (s ≤ 1; −∞ at d = 0), s_H: (−α − 1/d)/Z, at α = ∞: −1."""
    if kind == "hybrid" and math.isinf(alpha):
        return -1.0
    d = d_of_s(s, eps_d)
    slope_d = -math.inf if d == 0.0 else (-1.0 if s <= 1.0 else 1.0) / d
    if kind == "d":
        return slope_d
    z = normaliser(alpha) if z is None else z
    return (-alpha + slope_d) / z


def pair_cosine(raw, p, q, eps_unit=0.0):
    """s of two nodes (set, index) of raw descriptors (2, n, k)."""
    return cosine(raw[p[0]][p[1]], raw[q[0]][q[1]], eps_unit)


def distance_matrices(raw, eps_d=0.0, eps_unit=0.0):
    """(aa, pp, ap): three (n, n) matrices of d, ap[i, j] of (a_i, p_j)."""
    n = len(raw[0])
    blocks = []
    for left, right in ((0, 0), (1, 1), (0, 1)):
        block = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                block[i, j] = d_of_s(pair_cosine(raw, (left, i), (right, j), eps_unit), eps_d)
        blocks.append(block)
    return blocks


# ---- hardest negatives


def select_negatives(raw, eps_d=1e-6, eps_unit=1e-10):
    """For each i the nodes of the nearest of (a_i, a_j), (p_i, p_j), (a_i, p_j), (p_i, a_j), j ≠ i, over
    all four blocks; d, 1 − s and s_H grow with the angle, so they all choose alike.

    Those closer than `FLOOR_D` are passed over as false negatives. Returns a list of (node, node);
    (None, None) if none is left. Ties: the first found (j upwards, blocks in the order above).
    """
    aa, pp, ap = distance_matrices(raw, eps_d, eps_unit)
    n = len(aa)
    found = []
    for i in range(n):
        smallest, nodes = math.inf, (None, None)
        for j in range(n):
            if j == i:
                continue
            for d, p, q in (
                (aa[i][j], (0, i), (0, j)),
                (pp[i][j], (1, i), (1, j)),
                (ap[i][j], (0, i), (1, j)),
                (ap[j][i], (1, i), (0, j)),
            ):
                if FLOOR_D <= d < smallest:
                    smallest, nodes = d, (p, q)
        found.append(nodes)
    return found


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
    power=1,
):
    """L_Triplet = 1/N Σ max(0, m + s_H(θ⁺) − s_H(θ⁻)) (Eq. 6); power 2 squares the hinge.

    A pair without a negative adds 0.
    """
    n = len(raw[0])
    negatives = select_negatives(raw, eps_d, eps_unit)
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
    z=None,
    reduction="mean",
    eps_d=1e-6,
    eps_unit=1e-10,
    eps_norm=1e-6,
):
    """L = L_Triplet + γ R_L2 (Eq. 7), γ = 0.1."""
    first = triplet(raw, "hybrid", alpha, 1.2, z, reduction, eps_d, eps_unit)
    return _join((1.0, first), (0.1, norm_regulariser(raw, reduction, eps_norm)))


def loss_a(raw, eps_d=1e-6, eps_unit=1e-10):
    """L_A = 1/N Σ max(0, m_A + (1 − s(θ⁺)) − d(θ⁻)) (Eq. 9, s read as 1 − s), m_A = 1."""
    n = len(raw[0])
    negatives = select_negatives(raw, eps_d, eps_unit)
    scale = 1.0 / n
    value, slopes = 0.0, {}
    for i in range(n):
        p, q = negatives[i]
        if p is None:
            continue
        s_pos, s_neg = pair_cosine(raw, (0, i), (1, i), eps_unit), pair_cosine(raw, p, q, eps_unit)
        hinge = max(0.0, 1.0 + (1.0 - s_pos) - d_of_s(s_neg, eps_d))
        value += scale * hinge
        if hinge > 0.0:
            _add(slopes, (0, i), (1, i), -scale)
            _add(slopes, p, q, -scale * dissimilarity_slope(s_neg, "d", eps_d=eps_d))
    return value, slopes, 0.0


def loss_b(raw, eps_d=1e-6, eps_unit=1e-10):
    """L_B = α/N Σ max(0, m_B1 + s(θ⁻) − s(θ⁺)) + 1/N Σ max(0, m_B2 + d(θ⁺) − d(θ⁻)) (Eq. 9, s read as
    1 − s), α = 2, m_B1 = 0.9, m_B2 = 1.2.
    """
    n = len(raw[0])
    negatives = select_negatives(raw, eps_d, eps_unit)
    scale = 1.0 / n
    value, slopes = 0.0, {}
    for i in range(n):
        p, q = negatives[i]
        if p is None:
            continue
        s_pos, s_neg = pair_cosine(raw, (0, i), (1, i), eps_unit), pair_cosine(raw, p, q, eps_unit)
        hinge_s = max(0.0, 0.9 + s_neg - s_pos)
        hinge_d = max(0.0, 1.2 + d_of_s(s_pos, eps_d) - d_of_s(s_neg, eps_d))
        value += scale * (2.0 * hinge_s + hinge_d)
        if hinge_s > 0.0:
            _add(slopes, (0, i), (1, i), -2.0 * scale)
            _add(slopes, p, q, 2.0 * scale)
        if hinge_d > 0.0:
            _add(slopes, (0, i), (1, i), scale * dissimilarity_slope(s_pos, "d", eps_d=eps_d))
            _add(slopes, p, q, -scale * dissimilarity_slope(s_neg, "d", eps_d=eps_d))
    return value, slopes, 0.0


# ---- second-order similarity (SOSNet)


def nearest(distances, i, k):
    """The k columns j ≠ i with the smallest distances[i][j]. Ties: the smaller j."""
    candidates = sorted((float(distances[i][j]), j) for j in range(len(distances[i])) if j != i)
    return [j for _, j in candidates[:k]]


def knn_graph(distances, k, symmetric):
    """graph[i][j]: j in kNN(i); symmetric: or i in kNN(j)."""
    n = len(distances)
    graph = [[False] * n for _ in range(n)]
    for i in range(n):
        for j in nearest(distances, i, k):
            graph[i][j] = True
            if symmetric:
                graph[j][i] = True
    return graph


def sos_neighbours(raw, k=8, symmetric=False, cross=False, eps_d=0.0, eps_unit=0.0):
    """c_i = {j ≠ i: x_j in kNN(x_i) or x_j⁺ in kNN(x_i⁺)}, each kNN in its own set (SOSNet; union over
    both sets).

    symmetric: each graph is symmetrised before the union (released code). cross: also j with p_j in
    kNN(a_i) among the positives or a_j in kNN(p_i) among the anchors, own partner left out (released
    code). Returns n sorted lists.
    """
    aa, pp, ap = distance_matrices(raw, eps_d, eps_unit)
    n = len(aa)
    tables = [aa, pp]
    if cross:
        pa = [[ap[j][i] for j in range(n)] for i in range(n)]
        tables += [ap, pa]
    graphs = [knn_graph(table, k, symmetric) for table in tables]
    return [[j for j in range(n) if j != i and any(graph[i][j] for graph in graphs)] for i in range(n)]


def sosr(
    raw,
    k=8,
    reduction="mean",
    symmetric=False,
    cross=False,
    eps_root=0.0,
    eps_d=1e-6,
    eps_unit=1e-10,
):
    """R_SOS = 1/N Σ_i √(Σ_{j in c_i} (d(x_i, x_j) − d(x_i⁺, x_j⁺))² + eps_root) (SOSNet's second-order
    similarity).

    c_i are `sos_neighbours`. Where the root's inside is 0, its slope is taken as 0.
    """
    n = len(raw[0])
    neighbours = sos_neighbours(raw, k, symmetric, cross, eps_d, eps_unit)
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


def squared_hinge(raw, reduction="mean", eps_d=1e-6, eps_unit=1e-10):
    """SOSNet's first-order loss 1/N Σ max(0, m + d⁺ − d⁻)², d⁻ over four blocks, m = 1."""
    return triplet(raw, "d", 0.0, 1.0, 1.0, reduction, eps_d, eps_unit, 2)


def sosnet_loss(
    raw,
    k=8,
    reduction="mean",
    symmetric=False,
    cross=False,
    eps_root=0.0,
    eps_d=1e-6,
    eps_unit=1e-10,
):
    """SOSNet: squared hinge + SOSR."""
    first = squared_hinge(raw, reduction, eps_d, eps_unit)
    second = sosr(raw, k, reduction, symmetric, cross, eps_root, eps_d, eps_unit)
    return _join((1.0, first), (1.0, second))


def hynet_sosr_loss(
    raw,
    k=8,
    eps_root=0.0,
    eps_d=1e-6,
    eps_unit=1e-10,
    eps_norm=1e-6,
):
    """HyNet + SOSR (Sec. 7.2): Eq. 7 + SOSR."""
    first = hynet_loss(raw, eps_d=eps_d, eps_unit=eps_unit, eps_norm=eps_norm)
    second = sosr(raw, k, eps_root=eps_root, eps_d=eps_d, eps_unit=eps_unit)
    return _join((1.0, first), (1.0, second))


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
