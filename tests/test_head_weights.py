"""The laws of moving heads: closed forms, exact transitions, stationary laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from rederive import head_weights

quick = settings(max_examples=25, deadline=None)


def heads(seed, count=3, dim=3, scale=1.0):
    return head_weights.gaussian_heads(np.random.default_rng(seed), count, dim, scale=scale)


def laws(seed):
    start = heads(seed)
    phases = np.random.default_rng(seed).uniform(0, 7, 3)
    return [
        head_weights.Frozen(start),
        head_weights.Relaxing(start),
        head_weights.Relaxing(start, limit=heads(seed + 1), rate=0.3),
        head_weights.Oscillating(start),
        head_weights.Oscillating(start, phases),
    ]


@quick
@given(st.integers(0, 10**6), st.integers(0, 4))
def test_closed_forms_solve_their_equations(seed, which):
    law = laws(seed)[which]
    shape = law.start.shape
    found = solve_ivp(
        lambda t, y: law.drift(y.reshape(shape), t).ravel(),
        (0, 3), law.start.ravel(), rtol=1e-10, atol=1e-10, method="DOP853",
    )  # fmt: skip
    assert np.allclose(found.y[:, -1].reshape(shape), law.at(3.0), atol=1e-8)
    assert np.array_equal(law.at(0.0), law.start) or np.allclose(law.at(0.0), law.start, atol=1e-15)


@pytest.mark.parametrize("which", range(5))
def test_steps_are_exact_or_eulers(which):
    law = laws(1)[which]
    exact, noise = law.step(law.at(0.7), 0.7, 0.2)
    assert noise is None and np.allclose(exact, law.at(0.9), atol=1e-14)
    euler, _ = law.step(law.at(0.7), 0.7, 0.2, exact=False)
    assert np.allclose(euler, law.at(0.7) + 0.2 * law.drift(law.at(0.7), 0.7), atol=1e-15)


@quick
@given(st.floats(-50, 50))
def test_the_target_is_symmetric_periodic_and_as_stated(time):
    f = head_weights.oscillating_target(time)
    c, s = math.cos, math.sin
    diagonal = [2 + 1.5 * c(time), 2 + 1.5 * s(time), 2 + 1.5 * c(time + math.pi / 4)]
    assert np.allclose(np.diag(f), diagonal, atol=1e-12)
    assert np.allclose([f[0, 1], f[0, 2], f[1, 2]], [s(2 * time), s(time), c(2 * time)], atol=1e-12)
    assert np.array_equal(f, f.T)
    assert np.allclose(f, head_weights.oscillating_target(time + 2 * math.pi), atol=1e-11)


def test_phases_are_spread_evenly_unless_given():
    law = head_weights.Oscillating(heads(2, 4))
    assert np.allclose(law.phases, [0, math.pi / 2, math.pi, 1.5 * math.pi])
    equal = head_weights.Oscillating(np.stack([heads(2)[0]] * 3), np.zeros(3)).at(4.0)
    assert np.array_equal(equal[0], equal[1])


def test_the_mean_over_even_phases_keeps_only_multiples_of_the_head_count():
    mean = head_weights.Oscillating(heads(3, 3)).periodic(np.pi / 7).mean(axis=0)
    constant = np.diag([2.0, 2.0, 2.0])
    assert np.allclose(mean, constant, atol=1e-15)
    assert not np.allclose(head_weights.Oscillating(heads(3, 2)).periodic(0.4).mean(0), constant)


def test_two_exact_transitions_make_one():
    law = head_weights.OrnsteinUhlenbeck(heads(4), noise_variance=1.3)
    rng = np.random.default_rng(5)
    zero = np.zeros((3, 3, 3))
    twice, _ = law.step(law.step(law.start, 0, 0.3, zero)[0], 0.3, 0.5, zero)
    once, _ = law.step(law.start, 0, 0.8, zero)
    assert np.allclose(twice, once, atol=1e-14)

    def share(dt):
        """Variance of the noise over that of the symmetric normals."""
        normals = rng.standard_normal((3, 3, 3))
        noise = law.step(law.start, 0, dt, normals)[1]
        return (noise[0, 0, 0] / head_weights.symmetric_part(normals)[0, 0, 0]) ** 2

    assert share(0.3) * math.exp(-2 * 0.5) + share(0.5) == pytest.approx(share(0.8), rel=1e-12)
    assert share(40.0) == pytest.approx(1.3 / 2, rel=1e-12)
    assert share(1e-9) == pytest.approx(1.3e-9, rel=1e-8)


def test_the_stationary_law_has_its_moments_and_is_kept():
    rng = np.random.default_rng(6)
    start = head_weights.stationary_heads(rng, 4, 3, noise_variance=0.5, paths=20_000)
    law = head_weights.OrnsteinUhlenbeck(start, noise_variance=0.5)
    after, _ = law.step(start, 0, 0.4, rng.standard_normal(start.shape))
    for found in (start, after):
        flat = found.reshape(-1, 3, 3)
        assert np.allclose(flat.mean(0), np.eye(3), atol=6 * 0.5 / math.sqrt(80_000))
        wanted = 0.25 * (np.eye(3) + 1) / 2  # σ²/2, halved off the diagonal
        assert np.allclose(flat.var(0), wanted, rtol=6 * math.sqrt(2 / 80_000))
        assert np.array_equal(found, found.swapaxes(-1, -2))
    both = np.corrcoef(start[..., 0, 1].ravel(), after[..., 0, 1].ravel())[0, 1]
    assert both == pytest.approx(math.exp(-0.4), abs=0.02)


def test_eulers_step_agrees_to_second_order_without_noise():
    law = head_weights.OrnsteinUhlenbeck(heads(7), mean=heads(8)[0])
    zero = np.zeros((3, 3, 3))
    gaps = [
        np.abs(law.step(law.start, 0, h, zero)[0] - law.step(law.start, 0, h, zero, False)[0]).max()
        for h in (1e-2, 5e-3)
    ]
    assert math.log2(gaps[0] / gaps[1]) == pytest.approx(2, abs=0.01)


def test_gaussian_heads_have_the_variance_that_is_said():
    found = heads(9, 40_000, 2, scale=0.5)
    assert np.array_equal(found, found.swapaxes(-1, -2))
    assert found[:, 0, 0].var() == pytest.approx(1.0, rel=0.05)
    assert found[:, 0, 1].var() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: head_weights.Frozen(np.ones((2, 3, 2))), "start"),
        (lambda: head_weights.Frozen(np.ones((0, 3, 3))), "start"),
        (lambda: head_weights.Frozen(np.ones((3, 3))), "start"),
        (lambda: head_weights.Frozen([[[np.nan]]]), "start"),
        (lambda: head_weights.Relaxing(heads(0), rate=0), "rate"),
        (lambda: head_weights.Relaxing(heads(0), limit=np.eye(2)), "limit"),
        (lambda: head_weights.Oscillating(heads(0, 2, 2)), "start"),
        (lambda: head_weights.Oscillating(heads(0), [0.0, 1.0]), "phases"),
        (lambda: head_weights.OrnsteinUhlenbeck(heads(0), -1), "noise_variance"),
        (lambda: head_weights.OrnsteinUhlenbeck(heads(0), mean=np.eye(2)), "mean"),
        (lambda: head_weights.gaussian_heads(0, 1, 2), "rng"),
        (lambda: head_weights.gaussian_heads(np.random.default_rng(0), 0, 2), "n_heads"),
        (lambda: head_weights.gaussian_heads(np.random.default_rng(0), 1, 2, scale=0), "scale"),
        (lambda: head_weights.symmetric_part(np.ones((2, 3))), "matrices"),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(ValueError, match=f"^{word}:"):
        call()
