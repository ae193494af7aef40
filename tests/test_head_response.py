"""Linear response of a settled cloud: against Monte Carlo, autograd and simulations."""

import math

import numpy as np
import pytest
import torch
from scipy import special

from rederive import flows, head_response, head_weights, integrators, relaxation, sphere


def settled(n=12, time=40.0):
    phases = 2 * np.pi * np.arange(6) / 6
    law = head_weights.Oscillating(np.zeros((6, 3, 3)), phases)
    law = head_weights.Oscillating(law.periodic(0.0), phases)
    start = sphere.quasi_uniform(n)
    return integrators.integrate(start, law, time, 0.5, order=2, diagnostics=False).tokens


def single_head(count):
    law = head_weights.Oscillating(np.zeros((1, 3, 3)), [0.0])
    law = head_weights.Oscillating(law.periodic(0.0), [0.0])
    return np.stack([law.at(2 * np.pi * k / count)[0] for k in range(count)])


class TestHeadCountLaw:
    def test_weak_noise_has_the_closed_limit(self):
        i2 = special.spherical_in(2, 1.0) / special.spherical_in(0, 1.0)
        limit = 2 * math.sinh(1) * (1 / math.tanh(1) - 1) ** 2 / (1 + 6 * i2)
        law = head_response.head_count_law(1e-6)
        assert law.constant / 1e-6 == pytest.approx(limit, rel=1e-6)
        assert law.mobility == pytest.approx(math.sinh(1), rel=1e-5)
        assert np.allclose(law.rates, relaxation.uniform_rates(np.arange(7)), atol=1e-5)

    @pytest.mark.parametrize("variance", [0.1, 1.0, 2.0])
    def test_bounds_close_in(self, variance):
        coarse = head_response.head_count_law(variance, max_order=6, max_degree=4)
        fine = head_response.head_count_law(variance, max_order=14, max_degree=8, nodes=60)
        assert coarse.constant <= fine.constant <= fine.upper + 1e-12
        assert fine.upper <= coarse.upper + 1e-12
        assert fine.upper - fine.constant < 2e-6 * fine.constant
        assert fine.constant < fine.without_response
        assert fine.by_degree[1::2] == pytest.approx(0, abs=1e-9)
        assert fine.by_degree.sum() == pytest.approx(fine.constant, rel=1e-12)

    def test_forcing_and_mobility_against_random_heads(self):
        rng = np.random.default_rng(3)
        heads = head_weights.stationary_heads(rng, 200_000, 3, noise_variance=1.0)
        pole = np.array([0.0, 0.0, 1.0])
        seen = heads @ pole
        size = np.linalg.norm(seen, axis=1)
        law = head_response.head_count_law(1.0)
        inverse = size / np.sinh(size)
        assert inverse.mean() == pytest.approx(
            1 / law.mobility, abs=5 * inverse.std() / len(size) ** 0.5
        )
        pull = ((1 / np.tanh(size) - 1 / size) / size)[:, None] * np.einsum(
            "hij,hj->hi", heads, seen
        )
        squares = (pull[:, :2] ** 2).sum(1)
        expected = law.without_response / law.mobility
        assert squares.mean() == pytest.approx(expected, abs=5 * squares.std() / len(size) ** 0.5)

    def test_small_steps_of_euler_tend_to_the_flow(self):
        exact = head_response.head_count_law(2.0).constant
        gaps = [
            head_response.head_count_law(2.0, step=h).constant - exact for h in (0.2, 0.1, 0.05)
        ]
        assert gaps[0] > gaps[1] > gaps[2] > 0
        assert gaps[1] / gaps[2] == pytest.approx(2, rel=0.05)

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"noise_variance": 0}, "noise_variance"),
            ({"noise_variance": 1, "step": -1}, "step"),
            ({"noise_variance": 1, "max_order": 0}, "max_order"),
            ({"noise_variance": 1, "max_degree": 0}, "max_degree"),
            ({"noise_variance": 1, "nodes": 5}, "nodes"),
        ],
    )
    def test_bad_input_is_named(self, arguments, name):
        with pytest.raises(ValueError, match=f"^{name}"):
            head_response.head_count_law(**arguments)


class TestPeriodicResponse:
    def test_derivative_of_the_mean_field_is_that_of_differences(self):
        n, heads = 6, single_head(5)
        tokens = sphere.uniform(np.random.default_rng(1), n)
        masses, _, found = head_response._linearised(tokens.numpy(), heads)
        frames = np.linalg.svd(tokens.numpy()[:, None, :])[2][:, 1:]

        def field(offset):
            moved = tokens + torch.from_numpy(np.einsum("ia,iac->ic", offset, frames))
            moved = sphere.retract(moved)
            return -flows.velocity(moved, torch.from_numpy(heads)).numpy()

        expected = np.empty((n, 2, n, 2))
        for j, b in np.ndindex(n, 2):
            step = np.zeros((n, 2))
            step[j, b] = 1e-5
            change = (field(step) - field(-step)) / 2e-5
            expected[:, :, j, b] = np.einsum("iac,ic->ia", frames, change)
        assert np.allclose(found, expected.reshape(2 * n, 2 * n), atol=1e-8)
        mobility = flows.effective_mobility(tokens, torch.from_numpy(heads)).numpy()
        assert np.allclose(1 / (1 / masses).mean(0), mobility, rtol=1e-13)

    def test_the_floor_of_four_heads_is_the_fourth_mode(self):
        cloud = settled()
        forced, response = head_response.periodic_response(cloud.numpy(), single_head(32))
        phases = np.pi / 2 * np.arange(4)
        law = head_weights.Oscillating(np.zeros((4, 3, 3)), phases)
        law = head_weights.Oscillating(law.periodic(0.0), phases)
        period = 2 * np.pi
        run = integrators.integrate(cloud, law, 2 * period, period / 20, record_every=20)
        floor = float(run.claimed[2] - run.claimed[1]) / period
        assert floor == pytest.approx(response[4::4].sum(), rel=0.05)
        assert (response[1:] <= forced[1:] * 1.01).all()
        assert response[0] == 0

    def test_turning_everything_changes_nothing(self):
        cloud, heads = settled(8, 10.0).numpy(), single_head(12)
        turn = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
        plain = head_response.periodic_response(cloud, heads)
        turned = head_response.periodic_response(cloud @ turn.T, turn @ heads @ turn.T)
        assert np.allclose(plain, turned, rtol=1e-9, atol=1e-15)

    @pytest.mark.parametrize(
        ("tokens", "heads", "name"),
        [
            (np.ones((4, 3)), np.zeros((4, 3, 3)), "tokens"),
            (np.eye(3)[:, :2], np.zeros((4, 3, 3)), "tokens"),
            (np.eye(3), np.zeros((4, 2, 2)), "heads"),
            (np.eye(3), np.full((4, 3, 3), np.nan), "heads"),
        ],
    )
    def test_bad_input_is_named(self, tokens, heads, name):
        with pytest.raises(ValueError, match=f"^{name}"):
            head_response.periodic_response(tokens, heads)
