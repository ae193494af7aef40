"""Exact Wasserstein distances, and minimising movements of tokens."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rederive import flows, head_weights, sphere, transport

quick = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 10**6)


def cloud(seed, n, dim=3):
    return sphere.uniform(np.random.default_rng(seed), n, dim)


def gaussian(seed, n_heads, scale=0.5, dim=3):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(head_weights.gaussian_heads(rng, n_heads, dim, scale=scale))


def circle(angles):
    angles = torch.as_tensor(angles, dtype=torch.float64)
    return torch.stack([angles.cos(), angles.sin()], -1)


class TestDistance:
    @quick
    @given(seeds, st.sampled_from(["geodesic", "euclidean"]))
    def test_equal_masses_are_permuted(self, seed, cost):
        first, second = cloud(seed, 5), cloud(seed + 1, 5)
        if cost == "geodesic":
            lengths = sphere.distance(first[:, None], second[None])
        else:
            lengths = torch.cdist(first, second)
        best = min(
            sum(float(lengths[i, j]) ** 2 for i, j in enumerate(order)) / 5
            for order in itertools.permutations(range(5))
        )
        found = transport.wasserstein_distance(first, second, cost=cost)
        assert float(found) == pytest.approx(math.sqrt(best), rel=1e-12)

    @quick
    @given(seeds)
    def test_a_metric(self, seed):
        a, b, c = (cloud(seed + i, 4 + i) for i in range(3))
        ab, bc, ac = (
            float(transport.wasserstein_distance(*pair)) for pair in ((a, b), (b, c), (a, c))
        )
        assert ab == pytest.approx(float(transport.wasserstein_distance(b, a)), rel=1e-12)
        assert ac <= ab + bc + 1e-12
        assert float(transport.wasserstein_distance(a, a.flip(0))) <= 1e-12

    def test_the_geodesic_distance_is_the_longer_one(self):
        first, second = cloud(1, 20), cloud(2, 20)
        chord = transport.wasserstein_distance(first, second, cost="euclidean")
        arc = transport.wasserstein_distance(first, second)
        assert chord < arc < math.pi / 2 * chord

    def test_points_of_the_line_are_matched_in_order(self):
        rng = np.random.default_rng(3)
        a, b = torch.from_numpy(rng.normal(size=(2, 30, 1)))
        found = transport.wasserstein_distance(a, b, cost="euclidean")
        paired = (a.sort(0).values - b.sort(0).values).square().mean().sqrt()
        assert float(found) == pytest.approx(float(paired), rel=1e-12)

    def test_masses_of_two_points(self):
        # ¼ of the mass has to go a quarter of the way round
        points = circle([0, math.pi / 2])
        masses = torch.tensor([[0.5, 0.5], [0.25, 0.75]], dtype=torch.float64)
        found = transport.wasserstein_distance(
            points, points, first_weights=masses[0], second_weights=masses[1]
        )
        assert float(found) == pytest.approx(math.pi / 4, rel=1e-14)

    @quick
    @given(seeds, st.integers(1, 6), st.integers(1, 6))
    def test_the_plan_has_the_masses_as_margins(self, seed, n, m):
        plan = transport.optimal_plan(cloud(seed, n), cloud(seed + 1, m))
        assert plan.shape == (n, m) and (plan >= 0).all()
        assert torch.allclose(plan.sum(1), torch.full((n,), 1 / n).double(), atol=1e-14)
        assert torch.allclose(plan.sum(0), torch.full((m,), 1 / m).double(), atol=1e-14)

    @quick
    @given(seeds)
    def test_paired_tokens_are_no_nearer_than_the_best_pairs(self, seed):
        first, second = cloud(seed, 8), cloud(seed + 1, 8)
        best = float(transport.wasserstein_distance(first, second))
        assert best <= float(transport.paired_distance(first, second)) + 1e-12

    def test_small_moves_are_paired_best(self):
        first = sphere.quasi_uniform(30)
        second = sphere.retract(first + 1e-3 * cloud(5, 30))
        best = float(transport.wasserstein_distance(first, second))
        assert best == pytest.approx(float(transport.paired_distance(first, second)), rel=1e-12)


class TestMinimisingMovements:
    @quick
    @given(seeds, st.sampled_from(["gradient", "plain", "joint"]))
    def test_a_step_is_an_implicit_euler_step(self, seed, flow):
        start, heads, tau = cloud(seed, 6), gaussian(seed, 3), 0.05
        end = transport.minimising_movements(start, heads, tau, flow=flow)[1]
        logs = flows.log_potentials(start, heads)
        weight = {
            "gradient": flows.effective_mobility(start, heads),
            "plain": torch.ones(6).double(),
            "joint": logs.exp().mean(-2),
        }[flow]
        back = tau * flows.energy_gradient(end, heads) / weight[:, None]
        assert torch.allclose(sphere.exponential(end, back), start, atol=1e-11)

    @quick
    @given(seeds, st.floats(0.01, 1.0))
    def test_the_energy_pays_for_the_move(self, seed, tau):
        start, heads = cloud(seed, 6), gaussian(seed, 2)
        end = transport.minimising_movements(start, heads, tau)[1]
        cost = flows.effective_mobility(start, heads) * sphere.distance(start, end).square()
        gained = flows.energy(start, heads) - flows.energy(end, heads)
        assert gained >= cost.mean() / (2 * tau) - 1e-12

    def test_no_other_cloud_does_better(self):
        start, heads, tau = circle([0.1, 0.9, 2.5, 4.0]), gaussian(7, 2, dim=2), 0.1
        weight = flows.effective_mobility(start, heads)
        angles = torch.tensor([0.1, 0.9, 2.5, 4.0]).double()

        def objective(moved):
            move = torch.as_tensor(moved).double() - angles
            energy = flows.energy(circle(moved), heads)
            return float(energy + (weight * move.square()).mean() / (2 * tau))

        best = minimize(objective, angles.numpy(), method="BFGS", options={"gtol": 1e-9})
        end = transport.minimising_movements(start, heads, tau)[1]
        assert torch.allclose(circle(best.x), end, atol=1e-6)

    @pytest.mark.parametrize("flow", ["gradient", "plain", "joint"])
    def test_first_order_to_its_flow(self, flow):
        start, heads = cloud(8, 8), gaussian(9, 3)
        reference = start
        for _ in range(400):  # Heun's method
            v = flows.velocity(reference, heads, flow)
            ahead = sphere.retract(reference + v / 400)
            u = flows.velocity(ahead, heads, flow)
            reference = sphere.retract(reference + (v + u) / 800)
        errors = []
        for count in (20, 40):
            end = transport.minimising_movements(start, heads, 1 / count, count, flow=flow)[-1]
            errors.append(float(transport.paired_distance(end, reference)))
        assert 1.8 < errors[0] / errors[1] < 2.2

    def test_heads_are_taken_at_the_end_of_a_step(self):
        start, heads = cloud(10, 5), gaussian(11, 2)
        law = head_weights.Relaxing(heads.numpy())
        path = transport.minimising_movements(start, law.at, 0.1, 2)
        first = transport.minimising_movements(start, law.at(0.1), 0.1)[1]
        second = transport.minimising_movements(first, law.at(0.2), 0.1)[1]
        assert path.shape == (3, 5, 3)
        assert torch.equal(path[0], start)
        assert torch.allclose(path[2], second, atol=1e-11)

    def test_tokens_at_rest_stay(self):
        start = torch.eye(3).double()
        heads = torch.diag(torch.tensor([1.0, 2.0, 3.0])).double()[None]
        ends = torch.cat([start, -start])
        assert torch.allclose(transport.minimising_movements(ends, heads, 0.5)[1], ends, atol=1e-12)

    def test_single_precision_is_kept(self):
        start, heads = cloud(12, 5), gaussian(13, 2)
        end = transport.minimising_movements(start, heads, 0.1)[1]
        single = transport.minimising_movements(start.float(), heads.float(), 0.1)[1]
        assert single.dtype == torch.float32
        assert torch.allclose(single.double(), end, atol=3e-5)

    def test_a_tolerance_below_rounding_is_given_up(self):
        with pytest.raises(RuntimeError, match="tolerance"):
            transport.minimising_movements(cloud(1, 4), gaussian(1, 2), 0.1, tolerance=1e-300)


x, y = cloud(20, 4), cloud(21, 4)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: transport.wasserstein_distance(x, y[:, :2]), "second"),
        (lambda: transport.wasserstein_distance(x, y.float()), "second"),
        (lambda: transport.wasserstein_distance(2 * x, y), "first"),
        (lambda: transport.wasserstein_distance(x, 2 * y), "second"),
        (lambda: transport.wasserstein_distance(x[None], y), "first"),
        (lambda: transport.wasserstein_distance(x, y, cost="chord"), "cost"),
        (lambda: transport.wasserstein_distance(x, y, first_weights=[0.5, 0.5]), "first_weights"),
        (lambda: transport.wasserstein_distance(x, y, second_weights=[1.0] * 4), "second_weights"),
        (
            lambda: transport.optimal_plan(x, y, first_weights=[2.0, -1.0, 0.0, 0.0]),
            "first_weights",
        ),
        (lambda: transport.paired_distance(x, y[:2]), "second"),
        (lambda: transport.minimising_movements(2 * x, torch.eye(3)[None], 0.1), "tokens"),
        (lambda: transport.minimising_movements(x, torch.eye(3).double(), 0.1), "heads"),
        (lambda: transport.minimising_movements(x, torch.ones(1, 3, 3).triu(), 0.1), "heads"),
        (lambda: transport.minimising_movements(x, np.triu(np.ones((1, 3, 3))), 0.1), "heads"),
        (lambda: transport.minimising_movements(x, np.eye(3)[None], 0.0), "step"),
        (lambda: transport.minimising_movements(x, np.eye(3)[None], 0.1, 0), "count"),
        (lambda: transport.minimising_movements(x, np.eye(3)[None], 0.1, flow="attention"), "flow"),
        (lambda: transport.minimising_movements(x, np.eye(3)[None], 0.1, tolerance=0), "tolerance"),
        (lambda: transport.minimising_movements(x, lambda t: np.eye(2)[None], 0.1), "heads"),
    ],
)
def test_bad_arguments_are_named(call, word):
    with pytest.raises(ValueError, match=f"^{word}"):
        call()
