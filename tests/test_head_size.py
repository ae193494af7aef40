"""How wide heads should be: the solvable model, its optimum and its power laws."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rederive.allocation import (
    head_size_law,
    head_size_risk,
    optimal_head_size,
    wrapped_energy,
)

EPS = np.finfo(float).eps
SAMPLES = st.floats(1, 1e12)
BUDGETS = st.floats(1, 1e9)
MODELS = st.fixed_dictionaries(
    {
        "covariate_dim": st.sampled_from([1, 2, 5, None]),
        "shared": st.floats(0, 1),
        "noise_variance": st.floats(0.01, 100),
    }
)


def refused(words):
    return pytest.raises(ValueError, match=re.escape(words))


@given(st.floats(1e-3, 1e3))
def test_energy_is_the_sum_over_all_integers(t):
    orders = np.arange(1, 2 + int(math.sqrt(40 / t)))  # e^{-40} is below rounding
    direct = 1 + 2 * math.fsum(np.exp(-t * orders**2))
    # sums of at most 200 terms below 1, exponents up to 40
    assert math.isclose(wrapped_energy(t), direct, rel_tol=(40 + 10) * EPS)


@given(st.floats(1e-6, 1e6))
def test_energy_is_its_own_poisson_dual(t):
    dual = math.sqrt(math.pi / t) * wrapped_energy(math.pi**2 / t)
    # the exponent π²/t is rounded three times and is below 10 where its exponential counts
    assert math.isclose(wrapped_energy(t), dual, rel_tol=50 * EPS)


def test_energy_tends_to_one_for_wide_kernels_and_to_the_line_for_narrow_ones():
    assert wrapped_energy(50) == 1
    assert math.isclose(wrapped_energy(1e-3), math.sqrt(1000 * math.pi), rel_tol=8 * EPS)


@pytest.mark.parametrize("width", [1, 3, 30])
def test_bias_and_variance_are_those_of_the_wrapped_kernel(width):
    grid = np.arange(4096) * 2 * np.pi / 4096  # the trapezoid rule is exact to rounding here
    turns = np.arange(-8, 9)[:, None] * 2 * np.pi
    kernel = np.exp(-((grid + turns) ** 2) * width / 2).sum(axis=0)
    kernel *= math.sqrt(width / (2 * math.pi))
    step = grid[1]
    shrunk = step * (kernel @ np.cos(grid))  # the kernel turns √2 sin x into shrunk √2 sin x
    bias2, variance = head_size_risk(width, 10, 7, shared=1, noise_variance=3)
    assert math.isclose(bias2, (1 - shrunk) ** 2, rel_tol=1e-10)  # 4096 roundings near 1 − shrunk
    assert math.isclose(variance, 3 / 10 * 2 * math.pi * step * (kernel @ kernel), rel_tol=1e-12)


def test_independent_heads_divide_the_variance():
    _, alone = head_size_risk(4, 100, 32, shared=1)
    _, mixed = head_size_risk(4, 100, 32, shared=0)
    _, partly = head_size_risk(4, 100, 32, shared=0.25)
    assert math.isclose(mixed, alone / 8, rel_tol=4 * EPS)
    assert math.isclose(partly, alone * (0.25 + 0.75 / 8), rel_tol=8 * EPS)


def test_key_space_means_as_many_covariates_as_the_head_is_wide():
    for width in (1, 2, 7):
        keys = head_size_risk(width, 50, 70, covariate_dim=None)
        assert keys == pytest.approx(head_size_risk(width, 50, 70, covariate_dim=width), rel=1e-14)


@given(SAMPLES, BUDGETS, MODELS)
def test_no_other_width_is_better(n, budget, model):
    best = optimal_head_size(n, budget, **model)
    assert 1 <= best <= budget
    others = np.geomspace(1, budget, 300)
    least = sum(head_size_risk(best, n, budget, **model))
    risks = sum(head_size_risk(others, n, budget, **model))
    # near the optimum the log of the variance is a sum of numbers below 100, in ten roundings
    assert (risks >= least * (1 - 1000 * EPS)).all()


@given(st.floats(1e3, 1e10), st.integers(1, 4), st.sampled_from([0.0, 0.3, 1.0]))
def test_exponents_lie_in_their_proved_brackets(n, d, shared):
    budget = 1e30  # far enough for the share of 1/H to be below rounding if ρ > 0
    pair = optimal_head_size([n, 2 * n], budget, covariate_dim=d, shared=shared)
    slope = math.log(pair[1] / pair[0]) / math.log(2)
    base = 2 + d / 2 + (shared == 0)
    # the optimum itself is found to 1e-15 in its logarithm
    assert 1 / base - 1e-12 <= slope <= 1 / (base - 0.75 / pair[0]) + 1e-12


def test_the_optimum_tends_to_its_law():
    for shared, d in ((0, 1), (0.3, 1), (1, 3)):
        model = {"covariate_dim": d, "shared": shared}
        n, budget = np.array([1e6, 1e9, 1e12]), 1e20
        ratio = optimal_head_size(n, budget, **model) / head_size_law(n, budget, **model)
        assert (np.diff(np.abs(np.log(ratio))) < 0).all()
        assert abs(ratio[-1] - 1) < 1e-3  # the next term is 3/(4·base·d_k*), below 3e-4


def test_little_data_asks_for_the_smallest_heads_and_plenty_for_the_whole_budget():
    assert optimal_head_size(1e-3, 64) == 1
    assert optimal_head_size(1e9, 4) == 4


@pytest.mark.filterwarnings("error")
def test_astronomic_sizes_are_fine():
    assert 100 < optimal_head_size(1e300, 1e300, covariate_dim=None, shared=1) < 300
    assert math.isclose(
        optimal_head_size(1e200, 1e300, shared=1), head_size_law(1e200, 1, shared=1)
    )


def test_wider_budgets_mean_wider_heads_only_if_heads_are_independent():
    budgets = np.geomspace(1e6, 1e12, 4)
    common = optimal_head_size(1e5, budgets, shared=1)
    assert np.ptp(np.log(common)) < 1e-12
    assert (np.diff(optimal_head_size(1e5, budgets)) > 0).all()


def test_shapes_are_kept():
    assert isinstance(optimal_head_size(100, 10), float)
    assert isinstance(head_size_law(100, 10), float)
    assert isinstance(wrapped_energy(1), float)
    assert all(isinstance(part, float) for part in head_size_risk(2, 100, 10))
    assert optimal_head_size([[10, 20]], [[10], [20], [30]]).shape == (3, 2)
    assert optimal_head_size([], 10).shape == (0,)
    assert wrapped_energy([0.1, 4]).shape == (2,)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wrapped_energy(0), "square_bandwidth: expected positive finite numbers, got 0.0"),
        (lambda: wrapped_energy(np.nan), "square_bandwidth: expected finite entries only"),
        (lambda: head_size_risk(-1, 10, 10), "head_dim: expected positive finite numbers"),
        (lambda: optimal_head_size(0, 10), "n_samples: expected positive finite numbers"),
        (lambda: optimal_head_size(10, 0.5), "budget: expected numbers >= 1, got 0.5"),
        (lambda: optimal_head_size(10, 10, shared=2), "shared: expected a finite number >= 0"),
        (lambda: head_size_law(10, 10, covariate_dim=0), "covariate_dim: expected an integer >= 1"),
        (lambda: head_size_law(10, 10, covariate_dim=None), "covariate_dim: expected an integer"),
        (lambda: head_size_law(1, 1, noise_variance=0), "noise_variance: expected a positive"),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(words):
        call()
