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

import functools
import math

import numpy as np

# Negatives closer than this are taken for false ones.
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


# ---- functions of the angle


def g_d(theta):
    """g_d(θ) = |d′(θ)| = |sin θ / √(2(1 − cos θ))| (Eq. 4); its limit 1 where the fraction is 0/0.

    It equals |cos(θ/2)|; the fraction is kept, as printed, with 1 − cos θ = 2 sin²(θ/2) so that small
    angles keep their digits.
    """
    d = math.sqrt(2.0 * (2.0 * math.sin(theta / 2.0) ** 2))
    return 1.0 if d < 1e-150 else abs(math.sin(theta) / d)


@functools.cache
def normaliser(alpha):
    """Z(α): the largest |α(1 − s(θ)) + d(θ)|′ = α sin θ + g_d(θ), 0 ≤ θ ≤ π (below Eq. 6), by a dense
    search, then one in the best cells.

    α = ∞ is its own case: s_H = 1 − s, whose slope sin θ is at most 1, so Z = 1.
    """
    if math.isinf(alpha):
        return 1.0
    low, high, points = 0.0, math.pi, 20001
    for _ in range(2):
        step = (high - low) / (points - 1)
        angles = [low + t * step for t in range(points)]
        largest, angle = max((alpha * math.sin(theta) + g_d(theta), theta) for theta in angles)
        low, high = max(0.0, angle - step), min(math.pi, angle + step)
    return largest


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
    all four blocks; d, 1 − s and s_H grow with the angle, so they all choose the same negative.

    Negatives closer than `FLOOR_D` are skipped as false. Returns a list of (node, node); (None, None)
    if none is left. Ties: the first one (j upwards, blocks in the order above).
    """
    aa, pp, ap = distance_matrices(raw, eps_d, eps_unit)
    n = len(aa)
    negatives = []
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
        negatives.append(nodes)
    return negatives


# ---- losses


def triplets(raw, eps_d=1e-6, eps_unit=1e-10):
    """(s of the pair, s of its hardest negative) of each pair that has a negative."""
    cosines = []
    for i, (p, q) in enumerate(select_negatives(raw, eps_d, eps_unit)):
        if p is not None:
            s_pos, s_neg = pair_cosine(raw, (0, i), (1, i), eps_unit), pair_cosine(raw, p, q, eps_unit)
            cosines.append((s_pos, s_neg))
    return cosines


def reduced(losses, n, reduction="mean"):
    """1/N Σ, or Σ."""
    return sum(losses) / {"mean": n, "sum": 1}[reduction]


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
    losses = []
    for s_pos, s_neg in triplets(raw, eps_d, eps_unit):
        positive = dissimilarity(s_pos, kind, alpha, z, eps_d)
        negative = dissimilarity(s_neg, kind, alpha, z, eps_d)
        losses.append(max(0.0, margin + positive - negative) ** power)
    return reduced(losses, len(raw[0]), reduction)


def norm_regulariser(raw, reduction="mean", eps_norm=1e-6):
    """R_L2 = 1/N Σ (‖x_i‖ − ‖x_i⁺‖)² (Eq. 5), of raw descriptors; ‖x‖ = √(Σ x² + eps_norm)."""
    losses = [(length(a, eps_norm) - length(p, eps_norm)) ** 2 for a, p in zip(*raw, strict=True)]
    return reduced(losses, len(raw[0]), reduction)


def hynet_loss(raw, alpha=2.0, z=None, reduction="mean", eps_d=1e-6, eps_unit=1e-10, eps_norm=1e-6):
    """L = L_Triplet + γ R_L2 (Eq. 7), γ = 0.1."""
    triplet_loss = triplet(raw, "hybrid", alpha, 1.2, z, reduction, eps_d, eps_unit)
    return triplet_loss + 0.1 * norm_regulariser(raw, reduction, eps_norm)


def loss_a(raw, eps_d=1e-6, eps_unit=1e-10):
    """L_A = 1/N Σ max(0, m_A + (1 − s(θ⁺)) − d(θ⁻)) (Eq. 9, s read as 1 − s), m_A = 1."""
    cosines = triplets(raw, eps_d, eps_unit)
    losses = [max(0.0, 1.0 + (1.0 - s_pos) - d_of_s(s_neg, eps_d)) for s_pos, s_neg in cosines]
    return reduced(losses, len(raw[0]))


def loss_b(raw, eps_d=1e-6, eps_unit=1e-10):
    """L_B = α/N Σ max(0, m_B1 + s(θ⁻) − s(θ⁺)) + 1/N Σ max(0, m_B2 + d(θ⁺) − d(θ⁻)) (Eq. 9, s read as
    1 − s), α = 2, m_B1 = 0.9, m_B2 = 1.2.
    """
    losses = []
    for s_pos, s_neg in triplets(raw, eps_d, eps_unit):
        by_s = max(0.0, 0.9 + s_neg - s_pos)
        by_d = max(0.0, 1.2 + d_of_s(s_pos, eps_d) - d_of_s(s_neg, eps_d))
        losses.append(2.0 * by_s + by_d)
    return reduced(losses, len(raw[0]))


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

    c_i are `sos_neighbours`.
    """
    roots = []
    for i, neighbours in enumerate(sos_neighbours(raw, k, symmetric, cross, eps_d, eps_unit)):
        inside = eps_root
        for j in neighbours:
            d_a, d_p = (
                d_of_s(pair_cosine(raw, (side, i), (side, j), eps_unit), eps_d) for side in (0, 1)
            )
            inside += (d_a - d_p) ** 2
        roots.append(math.sqrt(inside))
    return reduced(roots, len(raw[0]), reduction)


def squared_hinge(raw, reduction="mean", eps_d=1e-6, eps_unit=1e-10):
    """SOSNet's first-order loss 1/N Σ max(0, m + d⁺ − d⁻)², d⁻ over four blocks, m = 1."""
    return triplet(raw, "d", 0.0, 1.0, 1.0, reduction, eps_d, eps_unit, 2)


def sosnet_loss(raw, reduction="mean", eps_d=1e-6, eps_unit=1e-10, **second_order):
    """SOSNet: squared hinge + SOSR."""
    first = squared_hinge(raw, reduction, eps_d, eps_unit)
    return first + sosr(raw, reduction=reduction, eps_d=eps_d, eps_unit=eps_unit, **second_order)


def hynet_sosr_loss(raw, k=8, eps_root=0.0, eps_d=1e-6, eps_unit=1e-10, eps_norm=1e-6):
    """HyNet + SOSR (Sec. 7.2): Eq. 7 + SOSR."""
    first = hynet_loss(raw, eps_d=eps_d, eps_unit=eps_unit, eps_norm=eps_norm)
    return first + sosr(raw, k, eps_root=eps_root, eps_d=eps_d, eps_unit=eps_unit)


def slope_along(loss, raw, direction, step=1e-6, **options):
    """The derivative of a loss along a direction (2, n, k), by central differences."""
    raw, ahead = np.asarray(raw, dtype=np.float64), step * np.asarray(direction)
    return (loss(raw + ahead, **options) - loss(raw - ahead, **options)) / (2 * step)
