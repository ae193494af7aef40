"""Bias, variance and covariance add up to the error, and the optimal mixture is optimal."""

import itertools
import math
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st

from rederive import ensembles

EPS = np.finfo(float).eps
GOLDEN = (1 + 5**0.5) / 2


def refused(words):
    return pytest.raises(ValueError, match=re.escape(words))


def softmax_rows(rng, heads, keys, sharpness=1.0):
    weights = np.exp(sharpness * rng.normal(size=(heads, keys)))
    return weights / weights.sum(axis=1, keepdims=True)


def positive_definite(seed, size):
    factor = np.random.default_rng(seed).normal(size=(size, size + 2))
    return factor @ factor.T


# ---------------------------------------------------------------- decomposition


EIGHTHS = st.integers(-16, 16).map(lambda i: Fraction(i, 8))


@given(st.data(), st.integers(1, 3), st.integers(1, 4))
def test_parts_add_up_to_the_error_averaged_over_all_signs_of_the_noise(data, heads, keys):
    """Noise ±σ has 2ⁿ outcomes; the mean over them is exact in fractions."""

    def draw(*shape):
        entries = data.draw(st.lists(EIGHTHS, min_size=math.prod(shape), max_size=math.prod(shape)))
        return np.array(entries, dtype=object).reshape(shape)

    weights, values, mixing = draw(heads, keys), draw(keys), draw(heads)
    target, sigma = draw(1)[0], abs(draw(1)[0])
    error = Fraction(0)
    for signs in itertools.product((-1, 1), repeat=keys):
        error += (mixing @ (weights @ (values + sigma * np.array(signs))) - target) ** 2
    error /= 2**keys
    found = ensembles.mse_decomposition(weights, values, target, sigma**2, mixing)
    own = sum(m**2 * (w @ w) for m, w in zip(mixing, weights, strict=True)) * sigma**2
    # eighths below 2: every product and sum in between is exact in 53 bits
    assert found.total == error
    assert found.bias2 == (mixing @ weights @ values - target) ** 2
    assert found.variance == own
    assert found.covariance == error - own - (mixing @ weights @ values - target) ** 2


@given(st.data())
def test_matrix_parts_add_up_to_the_error_averaged_over_all_signs_of_the_noise(data):
    heads, keys, width, outputs = 2, 2, 2, 2

    def draw(*shape):
        entries = data.draw(st.lists(EIGHTHS, min_size=math.prod(shape), max_size=math.prod(shape)))
        return np.array(entries, dtype=object).reshape(shape)

    weights, values, maps = draw(heads, keys), draw(keys, width), draw(heads, width, outputs)
    target, factor = draw(outputs), draw(width, width)
    error, bias = Fraction(0), -target
    for h in range(heads):
        bias = bias + maps[h].T @ (weights[h] @ values)
    for signs in itertools.product((-1, 1), repeat=keys * width):
        noisy = values + np.array(signs).reshape(keys, width) @ factor.T
        output = sum(maps[h].T @ (weights[h] @ noisy) for h in range(heads))
        error += (output - target) @ (output - target)
    error /= 2 ** (keys * width)
    noise = factor @ factor.T
    found = ensembles.matrix_mse_decomposition(weights, values, maps, target, noise)
    own = sum(
        (w @ w) * sum((a.T @ noise @ a).diagonal()) for w, a in zip(weights, maps, strict=True)
    )
    assert found.total == error
    assert found.bias2 == bias @ bias
    assert found.variance == own
    assert found.covariance == error - own - bias @ bias


def test_simulated_errors_have_the_predicted_mean():
    rng = np.random.default_rng(2026)
    weights = softmax_rows(rng, 3, 30)
    values, mixing, target, sigma = rng.normal(size=30), np.array([0.5, 0.3, 0.4]), 0.0, 0.7
    found = ensembles.mse_decomposition(weights, values, target, sigma**2, mixing)
    noise = sigma * rng.normal(size=(40_000, 30))
    errors = ((values + noise) @ (mixing @ weights) - target) ** 2
    assert abs(errors.mean() - found.total) < 5 * errors.std() / 200
    # without the covariance the prediction lies far outside
    assert abs(errors.mean() - found.bias2 - found.variance) > 10 * errors.std() / 200


def test_matrix_case_with_multiples_of_one_is_the_scalar_case():
    rng = np.random.default_rng(1)
    weights, values, mixing = softmax_rows(rng, 4, 9), rng.normal(size=9), rng.normal(size=4)
    scalar = ensembles.mse_decomposition(weights, values, 0.3, 0.25, mixing)
    matrix = ensembles.matrix_mse_decomposition(
        weights, values[:, None], mixing[:, None, None], [0.3], [[0.25]]
    )
    for part in ("bias2", "variance", "covariance", "total"):
        assert getattr(matrix, part) == pytest.approx(getattr(scalar, part), rel=100 * EPS)


def test_one_head_has_no_covariance():
    found = ensembles.mse_decomposition([[0.25, 0.75]], [1, 2], 1.75, 1, [1])
    assert (found.bias2, found.variance, found.covariance, found.total) == (0, 0.625, 0, 0.625)
    assert all(type(getattr(found, part)) is float for part in ("bias2", "variance", "covariance"))


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 20), st.floats(0, 5))
def test_noise_has_the_floor_of_the_mean(seed, heads, keys, sharpness):
    """σ²|Σα_h w^h|² ≥ σ²(Σα_h)²/n for weights of sum one, whatever the signs of α."""
    rng = np.random.default_rng(seed)
    weights, mixing = softmax_rows(rng, heads, keys, sharpness), rng.normal(size=heads)
    found = ensembles.mse_decomposition(weights, np.zeros(keys), 0, 2.0, mixing)
    noise = found.variance + found.covariance
    scale = 2 * np.abs(mixing).sum() ** 2
    assert noise >= 2 * mixing.sum() ** 2 / keys - (keys + 2 * heads + 6) * EPS * scale


@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(1, 20))
def test_noise_covariance_is_positive_for_positive_weights(seed, heads, keys):
    rng = np.random.default_rng(seed)
    weights, mixing = softmax_rows(rng, heads, keys), rng.uniform(0.1, 1, heads)
    found = ensembles.mse_decomposition(weights, np.zeros(keys), 0, 1.0, mixing)
    assert found.covariance > 0


def test_equal_attention_with_orthogonal_output_maps_has_no_covariance():
    weights = np.full((2, 5), 0.2)
    maps = np.stack([np.eye(4)[:, :2] @ np.eye(2, 4), np.eye(4)[:, 2:] @ np.eye(2, 4, 2)])
    found = ensembles.matrix_mse_decomposition(
        weights, np.ones((5, 4)), maps, np.ones(4), np.eye(4)
    )
    assert found.covariance == 0 and found.bias2 == pytest.approx(0, abs=10 * EPS)
    opposed = ensembles.matrix_mse_decomposition(
        weights, np.ones((5, 4)), np.stack([np.eye(4), -np.eye(4)]), np.zeros(4), np.eye(4)
    )
    assert opposed.covariance == pytest.approx(-opposed.variance, rel=10 * EPS)
    assert opposed.variance > 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": [1, 2]}, "weights: expected shape (H, n), got shape (2,)"),
        ({"weights": np.ones((0, 2))}, "weights: expected at least one entry"),
        ({"weights": [[np.nan, 1]]}, "weights: expected finite entries only"),
        ({"values": [1, 2, 3]}, "values: expected shape (2,), got shape (3,)"),
        ({"target": [1.0, 2.0]}, "target: expected a finite number"),
        ({"target": np.inf}, "target: expected a finite number"),
        ({"noise_variance": -0.1}, "noise_variance: expected a finite number >= 0, got -0.1"),
        ({"mixing": [1, 1]}, "mixing: expected shape (1,), got shape (2,)"),
        ({"mixing": [True]}, "mixing: expected an array of real numbers"),
    ],
)
def test_bad_input_of_the_decomposition_is_refused(change, words):
    good = {"weights": [[0.5, 0.5]], "values": [1, 2], "target": 0, "noise_variance": 1}
    good["mixing"] = [1]
    assert ensembles.mse_decomposition(**good).total == 2.75
    with refused(words):
        ensembles.mse_decomposition(**(good | change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": [1, 2]}, "weights: expected shape (H, n)"),
        ({"values": np.ones(2)}, "values: expected shape (2, v), got shape (2,)"),
        ({"output_maps": np.ones((1, 2, 1))}, "output_maps: expected shape (1, 3, o)"),
        ({"target": np.ones(2)}, "target: expected shape (1,), got shape (2,)"),
        ({"noise_covariance": np.eye(2)}, "noise_covariance: expected shape (3, 3)"),
        ({"noise_covariance": np.triu(np.ones((3, 3)))}, "noise_covariance: expected symmetric"),
        ({"noise_covariance": -np.eye(3)}, "noise_covariance: expected no negative eigenvalue"),
    ],
)
def test_bad_input_of_the_matrix_decomposition_is_refused(change, words):
    good = {"weights": [[0.5, 0.5]], "values": np.ones((2, 3)), "output_maps": np.ones((1, 3, 1))}
    good |= {"target": [3.0], "noise_covariance": np.ones((3, 3))}
    assert ensembles.matrix_mse_decomposition(**good).total == 4.5
    with refused(words):
        ensembles.matrix_mse_decomposition(**(good | change))


# ------------------------------------------------------------------------ mixing


def test_optimal_mixing_of_a_rational_matrix_is_the_exact_solution():
    exact = sympy.Matrix(4, 4, lambda i, j: sympy.Rational(1, 2 + abs(i - j)) + (i == j) * (i + 1))
    solved = exact.LUsolve(sympy.ones(4, 1))
    wanted = np.array([float(x) for x in solved / sum(solved)])
    found = ensembles.optimal_mixing(np.array(exact, dtype=float))
    # condition number 5 after scaling, a dozen operations an entry
    assert np.abs(found - wanted).max() <= 5 * 12 * EPS


@given(st.integers(0, 2**31), st.integers(1, 8))
def test_optimal_mixing_satisfies_its_stationarity(seed, size):
    matrix = positive_definite(seed, size)
    found = ensembles.optimal_mixing(matrix)
    assert found.sum() == pytest.approx(1, abs=size * EPS * np.abs(found).sum())
    gradient = matrix @ found
    spread = np.abs(gradient - gradient.mean()).max()
    assert spread <= 10 * size**2 * EPS * np.abs(matrix).max() * np.abs(found).max()
    least = 1 / np.linalg.solve(matrix, np.ones(size)).sum()
    condition = np.linalg.cond(matrix)
    assert ensembles.mixing_risk(found, matrix) == pytest.approx(least, rel=100 * condition * EPS)


@given(st.integers(0, 2**31), st.integers(1, 8))
def test_no_other_mixture_of_sum_one_does_better(seed, size):
    matrix, rng = positive_definite(seed, size), np.random.default_rng(seed + 1)
    best = ensembles.mixing_risk(ensembles.optimal_mixing(matrix), matrix)
    other = rng.normal(size=size)
    assume(abs(other.sum()) > 0.1)
    other /= other.sum()
    risk = ensembles.mixing_risk(other, matrix)
    assert risk >= best - 100 * EPS * np.abs(other).sum() ** 2 * np.abs(matrix).max()


def test_exchangeable_heads_are_best_mixed_uniformly():
    for rho in (-0.2, 0.0, 0.5, 0.99):
        matrix = 3 * ((1 - rho) * np.eye(5) + rho)
        found = ensembles.optimal_mixing(matrix)
        assert np.abs(found - 0.2).max() <= 100 * 10 * EPS


def test_independent_heads_are_weighted_by_their_inverse_variance_at_any_scale():
    for growth in (1.5, 8.0):
        variances = growth ** np.arange(40)
        found = ensembles.optimal_mixing(np.diag(variances))
        wanted = (1 / variances) / (1 / variances).sum()
        assert np.allclose(found, wanted, rtol=60 * EPS, atol=0)
        geometric = ensembles.geometric_weights(40, 1 / growth)
        assert np.allclose(geometric, wanted, rtol=100 * EPS, atol=0)


def test_strongly_correlated_heads_get_negative_weights():
    deviations = 2.0 ** (np.arange(8) / 2)
    matrix = np.outer(deviations, deviations) * (0.1 * np.eye(8) + 0.9)
    found = ensembles.optimal_mixing(matrix)
    assert found.min() < 0 and ensembles.mixing_risk(found, matrix) < 0.14


def test_a_bias_shared_by_all_heads_does_not_matter():
    """M + c·11ᵀ adds c(Σα)² to every mixture of sum one."""
    matrix = positive_definite(5, 6)
    shifted = ensembles.optimal_mixing(matrix + 3)
    condition = np.linalg.cond(matrix + 3)
    assert np.abs(shifted - ensembles.optimal_mixing(matrix)).max() <= 100 * condition * EPS


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.ones((2, 2)), "a singular one: smallest eigenvalue"),
        (np.zeros((2, 2)), "mse_matrix: expected a positive definite matrix, got diagonal 0"),
        ([[1, 0], [0, -1]], "mse_matrix: expected a positive definite matrix, got diagonal -1"),
        ([[1, 2], [2, 1]], "an indefinite one: smallest eigenvalue -1 after scaling"),
        ([[1, 0.5], [0.1, 1]], "mse_matrix: expected symmetric matrices"),
        (np.ones((2, 3)), "mse_matrix: expected square matrices, got shape (2, 3)"),
        ([1.0, 2.0], "mse_matrix: expected shape (H, H), got shape (2,)"),
        ([[np.inf]], "mse_matrix: expected finite entries only"),
        (np.zeros((0, 0)), "mse_matrix: expected at least one entry"),
    ],
)
def test_matrices_without_a_best_mixture_are_refused(matrix, words):
    with refused(words):
        ensembles.optimal_mixing(matrix)


def test_singular_matrices_are_refused_with_their_condition_number():
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    with pytest.raises(ValueError, match=r"singular one: .* condition number \d.*e\+1[5-9]"):
        ensembles.optimal_mixing(vectors @ vectors.T)


def test_mixing_risk_of_a_known_case():
    assert ensembles.mixing_risk([1, -1], [[2, 0.5], [0.5, 3]]) == 4
    with refused("mixing: expected shape (2,), got shape (3,)"):
        ensembles.mixing_risk([1, 1, 1], np.eye(2))
    with refused("mse_matrix: expected symmetric matrices"):
        ensembles.mixing_risk([1, 1], [[1, 2], [0, 1]])


# ------------------------------------------------------------------ fixed schemes


@given(st.integers(1, 60), st.floats(0.01, 100))
def test_schemes_are_probabilities(count, ratio):
    schemes = [ensembles.uniform_weights(count), ensembles.fibonacci_weights(count)]
    schemes.append(ensembles.geometric_weights(count, ratio))
    for weights in schemes:
        assert weights.shape == (count,)
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1, abs=count * EPS)


def test_geometric_weights_have_their_ratio_and_may_grow():
    assert ensembles.geometric_weights(3, 0.5).tolist() == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert np.array_equal(ensembles.geometric_weights(4, 1), ensembles.uniform_weights(4))
    growing, falling = ensembles.geometric_weights(9, 2), ensembles.geometric_weights(9, 0.5)
    assert np.array_equal(growing, falling[::-1])
    assert np.isfinite(ensembles.geometric_weights(5000, 3.0)).all()


def test_fibonacci_weights_fall_from_the_first_head_on():
    assert ensembles.fibonacci_weights(1).tolist() == [1]
    assert ensembles.fibonacci_weights(2).tolist() == [0.5, 0.5]
    assert ensembles.fibonacci_weights(5).tolist() == [5 / 12, 3 / 12, 2 / 12, 1 / 12, 1 / 12]
    many = ensembles.fibonacci_weights(2000)
    assert many[0] == pytest.approx(1 / GOLDEN**2, rel=10 * EPS)


def test_fibonacci_is_nearly_optimal_exactly_where_variances_grow_by_the_golden_ratio():
    """Each scheme's risk for independent heads of variances 1, g, g², …, by the closed forms."""
    matrix = np.diag(GOLDEN ** np.arange(8))
    best = ensembles.mixing_risk(ensembles.optimal_mixing(matrix), matrix)
    # 1/Σφ^(1−h) = (1 − 1/φ)/(1 − φ^−8)
    assert best == pytest.approx((1 - 1 / GOLDEN) / (1 - GOLDEN**-8), rel=100 * EPS)
    fibonacci = ensembles.mixing_risk(ensembles.fibonacci_weights(8), matrix)
    assert best < fibonacci < 1.003 * best
    steep = np.diag(4.0 ** np.arange(8))
    best = ensembles.mixing_risk(ensembles.optimal_mixing(steep), steep)
    assert ensembles.mixing_risk(ensembles.fibonacci_weights(8), steep) > 2 * best


@pytest.mark.parametrize("heads", [2, 8, 40])
@pytest.mark.parametrize("ratio", [0.3, 0.9])
def test_geometric_sum_of_squares(heads, ratio):
    """Σα² = (1 − q)(1 + q^H)/((1 + q)(1 − q^H)): it does not vanish with many equal heads."""
    found = ensembles.mixing_risk(ensembles.geometric_weights(heads, ratio), np.eye(heads))
    power = ratio**heads
    wanted = (1 - ratio) * (1 + power) / ((1 + ratio) * (1 - power))
    assert found == pytest.approx(wanted, rel=(2 * heads + 10) * EPS / (1 - ratio))


@pytest.mark.parametrize(
    "scheme",
    [
        ensembles.uniform_weights,
        ensembles.fibonacci_weights,
        lambda count: ensembles.geometric_weights(count, 0.5),
    ],
)
@pytest.mark.parametrize("count", [0, -1, 2.0, None, True])
def test_counts_are_positive_integers(scheme, count):
    with refused("count: expected an integer >= 1"):
        scheme(count)


@pytest.mark.parametrize("ratio", [0, -0.5, np.nan, np.inf, "q"])
def test_ratios_are_positive(ratio):
    with refused("ratio: expected a positive finite number"):
        ensembles.geometric_weights(3, ratio)


def test_module_does_not_import_torch():
    code = "import sys, rederive.ensembles; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
