"""What must not matter: axes, the order of heads, tokens and keys, units, δ and γ exchanged."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rederive import diversity, ensembles, flows, sequences, smoothing, sphere, transport
from rederive.free_probability import FreeMPProduct

quick = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)
ratios = st.sampled_from([1e-3, 0.2, 0.5, 1.0, 3.0, 40.0])


def rotation(rng, dim):
    """An orthogonal matrix, a reflection as often as not."""
    return np.linalg.qr(rng.normal(size=(dim, dim)))[0]


@quick
@given(seeds, st.integers(1, 4), st.integers(2, 5), st.integers(1, 9))
def test_flows_see_neither_axes_nor_orders(seed, heads, dim, n):
    rng = np.random.default_rng(seed)
    x = sphere.uniform(rng, n, dim)
    d = rng.normal(size=(heads, dim, dim))
    d = torch.from_numpy(d + d.swapaxes(1, 2))
    turn = torch.from_numpy(rotation(rng, dim))
    order, other = rng.permutation(n), rng.permutation(heads)
    y, e = (x @ turn)[order], (turn.T @ d @ turn)[other]
    for quantity in (
        flows.energy,
        flows.dissipation,
        flows.claimed_dissipation,
        flows.squared_slope,
    ):
        assert quantity(y, e).item() == pytest.approx(quantity(x, d).item(), rel=1e-10, abs=1e-10)
    for flow in flows.FLOWS:
        expected = (flows.velocity(x, d, flow) @ turn)[order]
        assert torch.allclose(flows.velocity(y, e, flow), expected, rtol=1e-10, atol=1e-10)


@quick
@given(seeds, st.integers(2, 4), st.sampled_from(["geodesic", "euclidean"]))
def test_transport_sees_neither_axes_nor_orders_nor_direction(seed, dim, cost):
    rng = np.random.default_rng(seed)
    x, y = sphere.uniform(rng, 7, dim), sphere.uniform(rng, 7, dim)
    turn = torch.from_numpy(rotation(rng, dim))
    expected = float(transport.wasserstein_distance(x, y, cost=cost))
    moved = (x @ turn)[rng.permutation(7)], (y @ turn)[rng.permutation(7)]
    for first, second in (moved, moved[::-1]):
        found = float(transport.wasserstein_distance(first, second, cost=cost))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@quick
@given(seeds, st.integers(2, 5), st.integers(1, 3))
def test_diversity_sees_subspaces_only(seed, heads, k):
    rng = np.random.default_rng(seed)
    p = 6
    frames = rng.normal(size=(heads, p, k))
    turn, mixed = rotation(rng, p), np.eye(k) + 0.3 * rng.normal(size=(heads, k, k))
    expected = diversity.head_diversity_index(frames)
    found = diversity.head_diversity_index((turn @ frames @ mixed)[rng.permutation(heads)])
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@quick
@given(ratios, ratios)
def test_the_free_product_does_not_know_which_factor_came_first(delta, gamma):
    one, other = FreeMPProduct(delta, gamma), FreeMPProduct(gamma, delta)
    for k in range(1, 7):
        assert one.moment(k) == pytest.approx(other.moment(k), rel=1e-12)
    assert one.support() == pytest.approx(other.support(), rel=1e-9, abs=1e-12)
    low, high = one.support()
    x = low + (high - low) * np.linspace(0.02, 0.98, 9)
    assert one.pdf(x) == pytest.approx(other.pdf(x), rel=1e-7)
    assert one.cdf(x) == pytest.approx(other.cdf(x), rel=1e-7)


@quick
@given(seeds, st.floats(0.1, 10.0), st.floats(0.3, 3.0))
def test_a_smoother_sees_distances_in_bandwidths(seed, unit, bandwidth):
    rng = np.random.default_rng(seed)
    queries, keys, values = (rng.normal(size=size) for size in ((5, 3), (12, 3), (12, 1)))
    expected = smoothing.nadaraya_watson(queries, keys, values, bandwidth)
    turn, shift, order = rotation(rng, 3), rng.normal(size=3), rng.permutation(12)
    found = smoothing.nadaraya_watson(
        unit * (queries @ turn + shift),
        unit * (keys @ turn + shift)[order],
        2.0 - 3.0 * values[order],
        unit * bandwidth,
    )
    assert np.asarray(found) == pytest.approx(2.0 - 3.0 * np.asarray(expected), rel=1e-9, abs=1e-9)


@quick
@given(seeds, st.integers(2, 6), st.floats(1e-3, 1e3))
def test_best_weights_follow_the_order_and_forget_the_unit(seed, size, unit):
    rng = np.random.default_rng(seed)
    square = rng.normal(size=(size, size + 2))
    matrix, order = square @ square.T, rng.permutation(size)
    moved = unit * matrix[np.ix_(order, order)]
    mixing = ensembles.optimal_mixing(matrix)
    assert ensembles.optimal_mixing(moved) == pytest.approx(mixing[order], rel=1e-7, abs=1e-9)
    weights = rng.normal(size=size)
    scale = np.sqrt(np.diag(matrix))
    correlation = matrix / np.outer(scale, scale)
    expected = sequences.signal_to_noise(weights, correlation)
    found = sequences.signal_to_noise(unit * weights[order], correlation[np.ix_(order, order)])
    assert found == pytest.approx(expected, rel=1e-9)
    best = [
        sequences.signal_to_noise(sequences.optimal_weights(one), one)
        for one in (correlation, correlation[np.ix_(order, order)])
    ]
    assert best[0] == pytest.approx(best[1], rel=1e-9)
