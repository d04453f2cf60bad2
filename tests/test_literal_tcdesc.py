"""TCDesc's oracle against facts that need no implementation."""

from __future__ import annotations

import math

import literal_tcdesc as literal
import numpy as np
import pytest
from literal_tcdesc import DSM_DISTANCE, Options


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def batch(n=9, dim=6, noise=0.15, seed=0):
    generator = np.random.default_rng(seed)
    anchors = unit(generator.normal(size=(n, dim)))
    return np.stack([anchors, unit(anchors + noise * generator.normal(size=(n, dim)))])


def one_hood(dim=12, k=5, seed=3):
    generator = np.random.default_rng(seed)
    return unit(generator.normal(size=dim)), unit(generator.normal(size=(k, dim))).T


# Neighbours


def test_neighbours_on_a_line_exclude_themselves_and_break_ties_by_index():
    line = np.array([[0.0], [1.0], [2.0], [4.0]])
    assert literal.neighbours(line, 2).tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    gaps = literal.neighbour_gaps(line, 2)
    assert gaps == pytest.approx([2, 2, 0, 1])
    assert np.isinf(literal.neighbour_gaps(line, 3)).all()


def test_a_duplicate_is_a_neighbour_and_the_point_itself_is_not():
    points = np.array([[0.0], [5.0], [0.0], [0.0]])
    assert literal.neighbours(points, 2).tolist() == [[2, 3], [0, 2], [0, 3], [0, 2]]


@pytest.mark.parametrize("k", [0, 4])
def test_more_neighbours_than_others_is_an_error(k):
    with pytest.raises(ValueError, match="neighbours"):
        literal.neighbours(np.eye(4), k)


# Weights


def test_a_descriptor_in_the_span_has_no_residual_and_its_own_coefficients():
    _, hood = one_hood()
    coefficients = np.array([0.5, -1.0, 2.0, 0.0, 0.25])
    centre = hood @ coefficients
    weights = literal.least_squares(centre, hood)
    assert weights == pytest.approx(coefficients, abs=1e-12)
    assert np.linalg.norm(centre - hood @ weights) < 1e-12


def test_lstsq_and_equation_6_as_printed_agree_and_the_residual_is_orthogonal():
    centre, hood = one_hood()
    weights = literal.least_squares(centre, hood)
    assert weights == pytest.approx(literal.normal_equations(centre, hood), abs=1e-12)
    assert hood.T @ (centre - hood @ weights) == pytest.approx(np.zeros(5), abs=1e-12)
    ridged = literal.least_squares(centre, hood, 0.3)
    assert ridged == pytest.approx(literal.normal_equations(centre, hood, 0.3), abs=1e-12)
    assert ridged == pytest.approx(literal.least_squares(centre, hood, 0.3, "trace"), abs=1e-12)


def test_orthonormal_neighbours_give_the_inner_products():
    centre, _ = one_hood(dim=7)
    hood = np.eye(7)[:, [4, 1, 6]]
    assert literal.least_squares(centre, hood) == pytest.approx(centre[[4, 1, 6]], abs=1e-15)
    assert literal.least_squares(centre, hood, 1.0) == pytest.approx(centre[[4, 1, 6]] / 2, abs=1e-15)


def test_ridge_goes_to_the_plain_weights_and_to_zero():
    centre, hood = one_hood()
    small = literal.least_squares(centre, hood, 1e-10)
    assert small == pytest.approx(literal.least_squares(centre, hood), abs=1e-8)
    assert literal.least_squares(centre, hood, 1e8) * 1e8 == pytest.approx(hood.T @ centre, rel=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.4])
def test_sum_to_one_is_the_stationary_point_and_lles_local_gram_form(ridge):
    centre, hood = one_hood()
    weights = literal.sum_to_one(centre, hood, ridge)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    stationary = hood.T @ (hood @ weights - centre) + ridge * weights
    assert stationary == pytest.approx(np.full(5, stationary.mean()), abs=1e-12)
    local = centre[:, None] - hood
    solved = np.linalg.solve(local.T @ local + ridge * np.eye(5), np.ones(5))
    assert weights == pytest.approx(solved / solved.sum(), abs=1e-11)
    trace = np.trace(local.T @ local) / 5
    assert literal.sum_to_one(centre, hood, ridge / trace, "trace") == pytest.approx(weights, abs=1e-12)


def test_sum_to_one_finds_affine_coefficients_and_does_not_move_with_the_origin():
    _, hood = one_hood()
    coefficients = np.array([0.5, -1.0, 2.0, 0.0, -0.5])
    centre = hood @ coefficients
    assert literal.sum_to_one(centre, hood) == pytest.approx(coefficients, abs=1e-12)
    assert literal.sum_to_one(centre + 3, hood + 3) == pytest.approx(coefficients, abs=1e-11)
    assert literal.sum_to_one(centre, hood[:, :1]).tolist() == [1.0]


def test_the_unconstrained_residual_is_the_smallest_of_the_three():
    centre, hood = one_hood()
    residuals = [
        np.linalg.norm(centre - hood @ weights)
        for weights in (
            literal.least_squares(centre, hood),
            literal.least_squares(centre, hood, 0.1),
            literal.sum_to_one(centre, hood),
        )
    ]
    assert residuals[0] < min(residuals[1:])


def test_heat_kernel_at_known_distances():
    centre = np.array([1.0, 0, 0])
    hood = np.array([[0.0, 1, 0], [-1, 0, 0], [1, 0, 0]]).T
    assert literal.heat_kernel(centre, hood, 0.5) == pytest.approx(
        [math.exp(-2 * 2**0.5), math.exp(-4), 1]
    )
    assert literal.heat_kernel(centre, hood, 0.5, "d2") == pytest.approx([math.exp(-4), math.exp(-8), 1])
    assert literal.heat_kernel(centre, hood, 0.5, "d", 1e-6)[2] == pytest.approx(math.exp(-2e-3))


def test_the_hard_weight_is_nearly_constant():
    for seed in range(5):
        centre, hood = one_hood(seed=seed)
        weights = literal.hard_weight(centre, hood)
        assert (weights > math.exp(-2e-3)).all()
        assert (weights <= 1).all()
        assert literal.heat_kernel(centre, hood, 0.1).max() < 0.01


def test_the_hard_weights_topology_distance_counts_the_unmatched():
    """d_T of Eq. 2 is 2 (k − m) / k, and Eq. 12's is that within 0.4 %."""
    x = batch(noise=0.5)
    for k in (2, 4, 7):
        binary = Options(k=k, weights="binary")
        frozen = literal.freeze(x, binary)
        matches = literal.matched_neighbours(x, frozen.neighbours, binary)
        expected = 2 * (k - matches) / k
        assert literal.topology_distances(x, binary, frozen) == pytest.approx(expected)
        stand_in = literal.topology_distances(x, Options(k=k, weights="hard"), frozen)
        assert np.abs(stand_in - expected).max() < 4e-3
        jacobian = literal.jacobian_topology(x, Options(k=k, weights="hard"))
        assert np.abs(jacobian).max() < 1.5e-3


# Topology vectors


def test_the_topology_vector_puts_weights_at_pair_numbers():
    vector = literal.topology_vector(np.array([3, 0]), np.array([0.25, -2.0]), 5)
    assert vector.tolist() == [-2.0, 0, 0, 0.25, 0]


def test_topology_distance_of_vectors_without_a_shared_index_adds_both_norms():
    first = literal.topology_vector(np.array([0, 1]), np.array([1.0, -2.0]), 5)
    second = literal.topology_vector(np.array([3, 4]), np.array([0.5, 0.5]), 5)
    assert literal.topology_distance(first, second, 2) == 2.0


@pytest.mark.parametrize("weights", ["linear", "lle", "hard", "heat", "binary", "none"])
def test_identical_sets_have_no_topology_distance(weights):
    anchors = batch()[0]
    x = np.stack([anchors, anchors])
    options = Options(k=4, weights=weights)
    frozen = literal.freeze(x, options)
    assert literal.topology_distances(x, options, frozen).tolist() == [0.0] * 9
    assert literal.matched_neighbours(x, frozen.neighbours, options).tolist() == [4] * 9
    assert frozen.lam.tolist() == [0.5] * 9
    assert literal.positive_distances(x, options) == pytest.approx([0.5e-3] * 9)


@pytest.mark.parametrize("weights", ["linear", "lle", "hard", "heat"])
def test_a_rotation_of_either_set_and_an_exchange_change_no_topology_distance(weights):
    x = batch()
    options = Options(k=4, weights=weights)
    expected = literal.topology_distances(x, options, literal.freeze(x, options))
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    for other in (np.stack([x[0], x[1] @ rotation]), x[::-1].copy()):
        found = literal.topology_distances(other, options, literal.freeze(other, options))
        assert found == pytest.approx(expected, abs=1e-11)


def test_renumbering_the_pairs_renumbers_everything():
    x = batch(noise=0.4)
    order = np.random.default_rng(5).permutation(9)
    options = Options(k=3)
    expected = literal.positive_distances(x, options)[order]
    assert literal.positive_distances(x[:, order], options) == pytest.approx(expected, abs=1e-11)
    assert literal.loss_hn(x[:, order], options) == pytest.approx(literal.loss_hn(x, options))
    assert literal.loss_dsm(x[:, order], options) == pytest.approx(literal.loss_dsm(x, options))


# λ


def test_matched_neighbours_are_shared_indices():
    assert literal.shared_matches(np.array([4, 1, 2]), np.array([2, 3, 4])) == 2
    assert literal.shared_matches(np.array([0, 1]), np.array([2, 3])) == 0


def test_mutual_matches_need_not_be_true_pairs():
    """On a line, positive 2 lies where anchor 1 does and positive 1 where anchor 2 does."""
    x = np.array([[0.0, 1.0, 1.5, 9.0], [0.0, 1.5, 1.0, 9.0]])[:, :, None]
    hoods = np.array([literal.neighbours(points, 1) for points in x])
    assert hoods[:, 0].tolist() == [[1], [2]]
    assert literal.shared_matches(hoods[0, 0], hoods[1, 0]) == 0
    assert literal.mutual_matches(x, hoods[0, 0], hoods[1, 0]) == 1
    assert literal.mutual_matches(x, hoods[0, 0], hoods[1, 0], "batch") == 1
    far = np.array([[0.0, 1.0, 6.0, 7.0], [0.0, 5.9, 1.4, 1.1]])[:, :, None]
    hoods = np.array([literal.neighbours(points, 1) for points in far])
    assert hoods[:, 0].tolist() == [[1], [3]]
    assert literal.mutual_matches(far, hoods[0, 0], hoods[1, 0]) == 1
    # Within N(p_1) = {0} and N(a_1) = {0} the only two are each other's nearest, in the batch as well.
    assert literal.mutual_matches(far, hoods[0, 1], hoods[1, 1]) == 1
    # Of anchor 3 (N = {2}) and positive 3 (N = {2}): alone they match; in the batch others are nearer.
    assert literal.mutual_matches(far, hoods[0, 3], hoods[1, 3]) == 1
    assert literal.mutual_matches(far, hoods[0, 3], hoods[1, 3], "batch") == 0


@pytest.mark.parametrize(("gamma", "share"), [(0.5, 0.25), (1.0, 0.5), (2.0, 0.5**0.5)])
def test_lambda_saturates_at_the_stated_shares(gamma, share):
    k = 10**6
    assert literal.adaptive_lambda(math.ceil(share * k), k, gamma) == 0.5
    assert literal.adaptive_lambda(math.ceil(share * k) - 1, k, gamma) < 0.5
    assert literal.adaptive_lambda(0, k, gamma) == 0.0
    assert literal.adaptive_lambda(k, k, gamma) == 0.5


def test_the_first_capped_count_of_16():
    for gamma, first in ((0.5, 4), (1.0, 8), (2.0, 12)):
        options = Options(k=16, gamma=gamma)
        values = literal.lambdas(np.arange(17), options)
        assert (values >= 0.5).tolist() == [m >= first for m in range(17)]
        assert (np.diff(values) >= 0).all()
        assert literal.capped_share(np.arange(17), options) == (17 - first) / 17
    assert literal.lambdas(np.array([3]), Options(k=16, gamma=2.0)) == pytest.approx([9 / 256])


def test_batch_means_and_fixed_lambda():
    matches = np.array([0, 1, 4])
    assert literal.lambdas(matches, Options(k=4)).tolist() == [0, 0.25, 0.5]
    assert literal.lambdas(matches, Options(k=4, lam="batch_mean")).tolist() == [0.25] * 3
    assert literal.lambdas(matches, Options(k=4, lam="of_mean")) == pytest.approx([5 / 12] * 3)
    assert literal.lambdas(matches, Options(k=4, lam=0.3)).tolist() == [0.3] * 3


# d⁺ and d⁻


def test_the_forms_of_the_distance_agree_on_the_sphere():
    a, p = batch()[:, 0]
    assert literal.euclidean(a, p) == pytest.approx(literal.euclidean(a, p, form="product"), abs=1e-14)
    s = a @ p
    assert literal.euclidean(a, p, **DSM_DISTANCE) == pytest.approx(math.sqrt(2 * (1 - s + 1e-6)))
    assert literal.euclidean(a, a) == pytest.approx(1e-3)


def test_d_plus_mixes_and_the_control_drops_the_topology():
    x = batch(noise=0.8)
    options = Options(k=4, gamma=2.0)
    frozen = literal.freeze(x, options)
    assert len(set(frozen.lam)) > 1
    topology = literal.topology_distances(x, options, frozen)
    plain = literal.euclidean_positives(x, options)
    lam = frozen.lam
    assert literal.positive_distances(x, options) == pytest.approx(lam * topology + (1 - lam) * plain)
    control = literal.positive_distances(x, Options(k=4, gamma=2.0, weights="none"))
    assert control == pytest.approx((1 - lam) * plain)
    assert literal.positive_distances(x, Options(k=4, lam=0.0)).tolist() == plain.tolist()
    assert literal.positive_distances(x, Options(k=4, lam=1.0)).tolist() == topology.tolist()


def test_hardest_negatives_are_the_least_of_row_and_column():
    x = batch(n=12, noise=0.6, seed=2)
    options = Options(k=4)
    table = np.linalg.norm(x[0][:, None] - x[1][None], axis=-1)
    np.fill_diagonal(table, np.inf)
    expected = np.sqrt(np.minimum(table.min(0), table.min(1)) ** 2 + 1e-6)
    assert literal.negative_distances(x, options) == pytest.approx(expected, abs=1e-12)
    places = literal.hardest_negatives(x, options)
    assert all(i in place and place[0] != place[1] for i, place in enumerate(places))
    assert any(place[0] == i for i, place in enumerate(places))
    assert any(place[1] == i for i, place in enumerate(places))


def test_negatives_below_the_floor_are_skipped():
    x = batch(n=6)
    x[1, 4] = unit(x[0, 2] + 1e-4)
    skipped = literal.hardest_negatives(x, Options(k=3))
    assert skipped[2] != (2, 4)
    assert literal.negative_distances(x, Options(k=3)).min() > 0.008
    assert literal.hardest_negatives(x, Options(k=3, floor=0.0))[2] == (2, 4)
    assert literal.hardest_negatives(x, Options(k=3, floor=0.0))[4] == (2, 4)


def test_ties_of_negatives_go_to_the_row_and_the_smaller_index():
    x = np.stack([np.eye(4), np.eye(4)])
    expected = [(0, 1), (1, 0), (2, 0), (3, 0)]
    assert literal.hardest_negatives(x, Options(k=2)) == expected


def test_without_a_negative_the_hinge_is_zero_and_dsm_an_error():
    x = np.ones((2, 4, 1))
    assert literal.hardest_negatives(x, Options(k=2)) == [None] * 4
    assert literal.loss_hn(x, Options(k=2)) == 0.0
    with pytest.raises(ValueError, match="negative"):
        literal.loss_dsm(x, Options(k=2))


# Losses


def test_hardnets_loss_on_orthogonal_pairs():
    """d⁺ = 0 and d⁻ = √2 but for ε: no loss with margin 1, margin − √2 with a larger one."""
    x = np.stack([np.eye(5), np.eye(5)])
    assert literal.loss_hn(x, Options(k=2, lam=0.0)) == 0.0
    loss = literal.loss_hn(x, Options(k=2, lam=0.0, margin=2.0, eps=0.0))
    assert loss == pytest.approx(2 - 2**0.5)


def test_the_hinge_loss_is_the_mean_of_its_samples():
    x = batch(noise=0.6)
    options = Options(k=4)
    positives = literal.positive_distances(x, options)
    negatives = literal.negative_distances(x, options)
    expected = np.maximum(0, 1 + positives - negatives)
    assert (expected > 0).any()
    assert literal.loss_hn(x, options) == pytest.approx(expected.mean())


def test_dsms_histogram_of_five_nodes_by_hand():
    """Nodes −2, −1, 0, 1, 2; −0.75 gives a quarter to 0; 2.5 is clamped to 2."""
    values = np.array([-0.75, 0.0, 1.5, 2.5])
    histogram = literal.dsm_histogram(values, 5) * 4
    assert histogram.tolist() == [0, 0.75, 1.25, 0.5, 1.5]
    assert (literal.dsm_weights(values, 5) * 4).tolist() == [0.75, 2, 2.5, 4]
    assert literal.clamped_share(values) == 0.25
    assert literal.node_gap(values, 5) == 0.0
    assert literal.node_gap(values[[0, 2, 3]], 5) == 0.25


def test_dsms_weights_rise_and_the_hardest_may_stay_below_one():
    values = np.sort(np.random.default_rng(0).uniform(-1.5, 0.5, size=40))
    weights = literal.dsm_weights(values, 512)
    assert literal.dsm_histogram(values, 512).sum() == pytest.approx(1)
    assert (np.diff(weights) >= 0).all()
    assert 1 - 1 / 40 <= weights[-1] < 1
    # On its own between nodes, the hardest keeps its lower share.
    assert literal.dsm_weights(np.array([-0.75]), 5).tolist() == [0.75]
    ranks = np.arange(1, 41) / 40
    assert np.abs(literal.dsm_weights(values, 100001) - ranks).max() < 1 / 40 + 1e-9


def test_dsms_mean_is_kept_by_the_linear_allocation():
    values = np.random.default_rng(1).uniform(-2, 2, size=30)
    nodes = np.linspace(-2, 2, 16)
    assert literal.dsm_histogram(values, 16) @ nodes == pytest.approx(values.mean())


def test_dsms_loss_weighs_the_mixed_difference():
    x = batch(noise=0.6)
    options = Options(k=4, bins=64, **DSM_DISTANCE)
    plain = literal.euclidean_positives(x, options) - literal.negative_distances(x, options)
    mixed = literal.positive_distances(x, options) - literal.negative_distances(x, options)
    assert np.abs(mixed - plain).max() > 0.05
    assert literal.dsm_hardness(x, options) == pytest.approx(mixed)
    expected = (literal.dsm_weights(mixed, 64) * mixed).mean()
    assert literal.loss_dsm(x, options) == pytest.approx(expected)
    other = Options(k=4, bins=64, cdf_on="euclidean", **DSM_DISTANCE)
    assert literal.loss_dsm(x, other) == pytest.approx((literal.dsm_weights(plain, 64) * mixed).mean())
    with pytest.raises(ValueError, match="without DSM"):
        literal.loss_dsm(x, options, literal.freeze(x, options))


# Gradients

KINDS = [
    {},
    {"detached": True},
    {"ridge": 0.05},
    {"weights": "lle"},
    {"weights": "lle", "ridge": 0.05, "ridge_scale": "trace"},
    {"weights": "heat", "t": 0.5},
    {"weights": "heat", "kernel_on": "d2", "detached": True},
    {"weights": "hard"},
    {"weights": "none"},
    {"lam": "batch_mean", "form": "product"},
    {"lam": 0.3},
]


def test_central_differences_of_a_polynomial():
    x = np.arange(4.0).reshape(2, 1, 2)
    found = literal.central_differences(lambda y: np.array([(y**2).sum(), y[1, 0, 1]]), x)
    assert found[0] == pytest.approx(2 * x, abs=1e-9)
    assert found[1] == pytest.approx(np.array([[[0, 0]], [[0, 1]]]), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_gradients_agree_between_step_sizes(kind):
    x = batch(n=6, dim=4, noise=0.5, seed=4)
    options = Options(k=2, bins=64, **kind)
    assert (literal.sample_losses_hn(x, options) > 1e-2).any()
    for gradient in (literal.jacobian_positive, literal.gradient_hn, literal.gradient_dsm):
        coarse, fine, finest = (gradient(x, options, step) for step in (2e-4, 1e-4, 1e-5))
        scale = np.abs(finest).max()
        assert scale > 1e-3
        assert np.abs(fine - finest).max() < 1e-5 * scale
        # Second order: the coarse step is four times as far off, plus what rounding leaves.
        assert np.abs(coarse - finest).max() < 4.5 * np.abs(fine - finest).max() + 1e-9 * scale


@pytest.mark.parametrize("detached", [False, True])
def test_the_linear_weights_gradient_is_the_differential_of_equation_6(detached):
    """dW = N⁺ da, and with neighbours that move + (NᵀN)⁻¹ dNᵀ (a − N W) − N⁺ dN W."""
    x = batch(n=7, dim=6, noise=0.5, seed=6)
    options = Options(k=3, detached=detached)
    frozen = literal.freeze(x, options)
    vectors = [literal.topology_vectors(x[s], frozen.neighbours[s], options) for s in (0, 1)]
    signs = np.sign(vectors[0] - vectors[1])
    expected = np.zeros((7, 2, 7, 6))
    for s in (0, 1):
        for i in range(7):
            places = frozen.neighbours[s, i]
            hood = x[s, places].T
            outer = signs[i, places] * (1 if s == 0 else -1) / 3
            weights = vectors[s][i, places]
            residual = x[s, i] - hood @ weights
            inverse = np.linalg.inv(hood.T @ hood)
            expected[i, s, i] += hood @ inverse @ outer
            if not detached:
                for j, place in enumerate(places):
                    expected[i, s, place] += (inverse @ outer)[j] * residual
                    expected[i, s, place] -= weights[j] * (hood @ inverse @ outer)
    assert literal.jacobian_topology(x, options) == pytest.approx(expected, abs=1e-8)


def test_linear_weights_do_not_change_when_a_whole_set_is_scaled():
    """Euler: of degree 0 in a set, so no slope along it; detached, of degree 1 in its centre."""
    x = batch(n=7, dim=6, noise=0.5, seed=6)
    along = (literal.jacobian_topology(x, Options(k=3)) * x).sum((2, 3))
    assert np.abs(along).max() < 1e-8
    options = Options(k=3, detached=True)
    along = (literal.jacobian_topology(x, options) * x).sum((1, 2, 3))
    assert along == pytest.approx(
        literal.topology_distances(x, options, literal.freeze(x, options)), abs=1e-8
    )


@pytest.mark.parametrize("weights", ["linear", "heat"])
def test_d_plus_depends_on_the_pair_and_its_neighbours_only(weights):
    x = batch(n=7, dim=5, noise=0.5)
    options = Options(k=3, weights=weights, lam=0.4)
    hoods = literal.freeze(x, options).neighbours
    full = np.abs(literal.jacobian_positive(x, options)).max(-1)
    held = np.abs(
        literal.jacobian_positive(x, Options(k=3, weights=weights, lam=0.4, detached=True))
    ).max(-1)
    for i in range(7):
        for s in (0, 1):
            for j in range(7):
                assert (full[i, s, j] > 0) == (j == i or j in hoods[s, i])
                assert (held[i, s, j] > 0) == (j == i)


def test_summing_to_one_has_no_gradient_where_all_weights_are_positive_and_none_is_shared():
    """‖Tᵃ − Tᵖ‖₁ is Σwᵃ + Σwᵖ = 2 there, whatever the descriptors."""
    generator = np.random.default_rng(0)
    centres = unit(generator.normal(size=(2, 1, 5)))
    # Pair 0's centre lies between its two neighbours: 1 and 2 among anchors, 3 and 4 among positives.
    offset = 0.3 * generator.normal(size=(2, 1, 5))
    near = np.concatenate([centres + offset, centres - 0.8 * offset], axis=1)
    far = -centres + 0.1 * generator.normal(size=(2, 2, 5))
    x = np.stack(
        [np.concatenate([centres[0], near[0], far[0]]), np.concatenate([centres[1], far[1], near[1]])]
    )
    options = Options(k=2, weights="lle")
    hoods = literal.freeze(x, options).neighbours
    assert [sorted(hoods[s, 0]) for s in (0, 1)] == [[1, 2], [3, 4]]
    assert literal.topology_distances(x, options, literal.freeze(x, options))[0] == pytest.approx(1)
    assert np.abs(literal.jacobian_topology(x, options)[0]).max() < 1e-9
    assert np.abs(literal.jacobian_topology(x, Options(k=2))[0]).max() > 0.1


def test_the_forms_gradients_agree_along_the_sphere_only():
    x = batch(n=6, dim=5, noise=0.5)
    first = literal.gradient_hn(x, Options(k=3))
    second = literal.gradient_hn(x, Options(k=3, form="product"))
    assert np.abs(first - second).max() > 1e-2
    assert literal.tangent(first, x) == pytest.approx(literal.tangent(second, x), abs=1e-9)


def test_the_losses_gradients_are_those_of_their_parts():
    x = batch(n=7, dim=5, noise=0.6, seed=8)
    options = Options(k=3, bins=64)
    frozen = literal.freeze(x, options, with_dsm=True)
    positive = literal.jacobian_positive(x, options)
    negative = literal.central_differences(lambda y: literal.negative_distances(y, options, frozen), x)
    active = literal.sample_losses_hn(x, options) > 0
    hinge = np.einsum("i,isjd->sjd", active, positive - negative) / 7
    assert literal.gradient_hn(x, options) == pytest.approx(hinge, abs=1e-9)
    soft = np.einsum("i,isjd->sjd", frozen.weights, positive - negative) / 7
    assert literal.gradient_dsm(x, options) == pytest.approx(soft, abs=1e-9)


def test_lambda_zero_is_hardnet_whatever_the_weights():
    x = batch(noise=0.6)
    losses = {
        literal.loss_hn(x, Options(k=4, lam=0.0, weights=weights))
        for weights in ("linear", "lle", "heat")
    }
    assert len(losses) == 1
    gradient = literal.gradient_hn(x, Options(k=4, lam=0.0))
    assert gradient == pytest.approx(literal.gradient_hn(x, Options(k=4, lam=0.0, weights="none")))
