"""Thresholds, outliers and their fluctuations: algebra, limits, textbook cases, simulation."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from rederive import fluctuations, spikes
from rederive.free_probability import FreeMPProduct
from rederive.replicates import mean_and_error, replicate

ratios = st.floats(-4, 3).map(lambda e: 10.0**e)
gammas = st.one_of(st.just(0.0), ratios)
quick = settings(max_examples=80, deadline=None)


class TestStrength:
    def test_formulas(self):
        assert spikes.spike_parameter(1.75, 2, 0.5) == 1.75 * 2.5 - 0.5
        assert spikes.spike_parameter_as_stated(1.75, 2, 0.5) == 3.0
        assert spikes.spike_parameter(0, 1, 0.5) == -0.5

    def test_at_gain_one_the_vocabulary_does_not_matter(self):
        assert np.allclose(spikes.spike_parameter(1, 0.7, [0.1, 1, 10]), 0.7)

    def test_shapes_are_kept(self):
        assert isinstance(spikes.spike_parameter(1, 1, 1), float)
        assert spikes.spike_parameter(np.ones((2, 3)), 1, 0.5).shape == (2, 3)
        found = spikes.outlier(np.ones((2, 3)), 0.5, 0.25)
        assert found.location.shape == found.overlap.shape == (2, 3)
        assert isinstance(spikes.outlier(1, 0.5, 0.25).location, float)
        assert isinstance(spikes.critical_spike(0.5, 0), float)


class TestCriticalSpike:
    @quick
    @given(ratios, gammas)
    def test_it_is_where_the_curve_is_flat(self, delta, gamma):
        y = spikes.critical_spike(delta, gamma)
        size = (delta + gamma + delta * gamma) / y**2
        assert spikes.slope_of_level(y, delta, gamma) == pytest.approx(0, abs=1e-12 * (1 + size))
        assert y**2 >= delta * (1 - 1e-12)

    @quick
    @given(ratios, ratios)
    def test_it_lies_above_the_population_and_grows_with_either_ratio(self, delta, gamma):
        y = spikes.critical_spike(delta, gamma)
        assert y > math.sqrt(delta)
        assert spikes.critical_spike(delta, 2 * gamma) > y
        assert y == pytest.approx(spikes.critical_spike(gamma, delta), rel=1e-14)

    @quick
    @given(ratios, ratios)
    def test_it_carries_the_edge_of_the_law(self, delta, gamma):
        y = spikes.critical_spike(delta, gamma)
        edge = FreeMPProduct(delta, gamma).support()[1]
        assert spikes.level(y, delta, gamma) == pytest.approx(edge, rel=1e-13)

    def test_round_values(self):
        assert spikes.critical_spike(1, 0.5) == pytest.approx((1 + 5**0.5) / 2, rel=1e-15)
        assert spikes.critical_spike(1, 1) == pytest.approx(2, rel=1e-15)
        assert spikes.critical_spike(1, 6) == pytest.approx(4, rel=1e-15)
        assert spikes.critical_spike(0.25, 0) == 0.5

    def test_no_samples_are_missed_as_gamma_vanishes(self):
        assert spikes.critical_spike(0.5, 1e-12) == pytest.approx(0.5**0.5, rel=1e-11)


class TestOutlier:
    @quick
    @given(ratios, gammas, st.floats(-6, 4))
    def test_location_is_continuous_and_overlap_a_fraction(self, delta, gamma, power):
        least = spikes.critical_spike(delta, gamma)
        y = least * (1 + 10.0**power)
        found, edge = spikes.outlier(y, delta, gamma), spikes.outlier(least, delta, gamma)
        assert found.location >= edge.location * (1 - 1e-14)
        assert 0 <= found.overlap <= 1
        assert edge.overlap == 0

    @quick
    @given(ratios, gammas, st.floats(0.01, 100))
    def test_overlap_is_y_times_the_slope_over_y_plus_gamma(self, delta, gamma, excess):
        y = spikes.critical_spike(delta, gamma) * (1 + excess)
        slope = spikes.slope_of_level(y, delta, gamma)
        assert spikes.outlier(y, delta, gamma).overlap == pytest.approx(
            y * slope / (y + gamma), rel=1e-9
        )

    @quick
    @given(ratios, ratios, st.floats(0.05, 50))
    def test_the_law_returns_the_strength(self, delta, gamma, excess):
        y = spikes.critical_spike(delta, gamma) * (1 + excess)
        location = spikes.level(y, delta, gamma)
        assume(location > FreeMPProduct(delta, gamma).support()[1] * (1 + 1e-9))
        assert FreeMPProduct(delta, gamma).strength(location) == pytest.approx(y, rel=1e-6)

    @pytest.mark.parametrize("y", [-3.0, 0.0, 0.2, 1.0])
    def test_weak_spikes_leave_the_edge(self, y):
        found = spikes.outlier(y, 0.5, 0.25)
        assert found == (pytest.approx(FreeMPProduct(0.5, 0.25).support()[1], rel=1e-14), 0)

    def test_population_values(self):
        found = spikes.outlier(2.0, 0.5, 0)
        assert found == (pytest.approx(3 * 1.25), pytest.approx(1 - 0.5 / 4))

    def test_the_textbook_spike_at_gain_one(self):
        # V draws of N(0, I + μμᵀ): overlap (1 − δ/θ²)/(1 + δ/θ), location (1 + θ)(1 + δ/θ)
        theta, delta = 1.1, 0.5
        found = spikes.outlier(spikes.spike_parameter(1, theta, delta), delta, 0)
        textbook = (1 - delta / theta**2) / (1 + delta / theta)
        assert found.location == pytest.approx((1 + theta) * (1 + delta / theta))
        assert found.overlap * theta / (theta + delta) == pytest.approx(textbook)

    def test_a_spiked_gaussian_sample(self):
        d, delta, gamma, y = 120, 0.5, 0.25, 3.0

        def top(rng):
            table = rng.standard_normal((d, 240)) / 240**0.5
            spike = np.sqrt(y + delta) * np.eye(d)[0]
            factors = np.column_stack([table, spike])
            pooled = factors @ rng.standard_normal((241, 480))
            values, vectors = np.linalg.eigh(pooled @ pooled.T / 480)
            return values[-1], vectors[0, -1] ** 2

        found = mean_and_error(replicate(top, 24, 3))
        expected = np.array(spikes.outlier(y, delta, gamma))
        assert np.all(np.abs(found.mean - expected) < 5 * found.standard_error + 3 / d)


class TestThresholds:
    @quick
    @given(st.floats(0.1, 20), ratios, gammas)
    def test_an_outlier_appears_exactly_there(self, snr, delta, gamma):
        theta = spikes.critical_signal(snr, delta, gamma)
        y = spikes.spike_parameter(snr, theta, delta)
        least = spikes.critical_spike(delta, gamma)
        if theta > 0:
            assert y == pytest.approx(least, rel=1e-9, abs=1e-9 * (1 + snr) * (theta + delta))
        else:
            assert y >= least * (1 - 1e-12)

    def test_as_stated(self):
        assert spikes.critical_signal_as_stated(2, 1, 0) == 1.0
        assert spikes.critical_signal(2, 1, 0) == 0.0

    def test_the_largest_threshold_over_vocabularies(self):
        q = 1.5
        found = optimize.minimize_scalar(
            lambda delta: -spikes.critical_signal(q, delta, 0), bounds=(0.01, 4), method="bounded"
        )
        assert -found.fun == pytest.approx(1 / (4 * q * (q - 1)), rel=1e-8)
        assert found.x == pytest.approx(1 / (2 * (q - 1)) ** 2, rel=1e-3)


class TestFluctuations:
    def test_tracy_widom_constants(self):
        s = np.linspace(-9, 9, 181)
        cdf = fluctuations.tracy_widom_cdf(s)
        negative, positive = s <= 0, s >= 0
        mean = integrate.simpson(1 - cdf[positive], x=s[positive])
        mean -= integrate.simpson(cdf[negative], x=s[negative])
        second = integrate.simpson((s * (1 - cdf))[positive], x=s[positive])
        second -= integrate.simpson((s * cdf)[negative], x=s[negative])
        assert mean == pytest.approx(fluctuations.TRACY_WIDOM_MEAN, abs=1e-6)
        variance = 2 * second - mean**2
        assert variance == pytest.approx(fluctuations.TRACY_WIDOM_SD**2, abs=1e-6)

    def test_tracy_widom_distribution(self):
        found = fluctuations.tracy_widom_cdf([-np.inf, -3.8954, -1.2685, 0.9793, np.inf])
        # 0.01, 0.5 and 0.95 quantiles as printed in tables
        assert np.allclose(found, [0, 0.01, 0.5, 0.95, 1], atol=2e-4)

    @pytest.mark.parametrize("ratio", [0.1, 1.0, 4.0])
    def test_scale_of_a_single_layer(self, ratio):
        textbook = (1 + ratio**0.5) ** (4 / 3) * ratio**0.5
        assert fluctuations.edge_scale(ratio, 0) == pytest.approx(textbook, rel=1e-12)

    def test_scale_from_the_density_at_the_edge(self):
        law, gap = FreeMPProduct(0.5, 0.25), 1e-6
        steepness = math.pi * law.pdf(law.support()[1] - gap) / gap**0.5
        assert fluctuations.edge_scale(0.5, 0.25) == pytest.approx(steepness ** (-2 / 3), rel=1e-5)

    def test_finite_edge_tends_to_the_edge(self):
        near = fluctuations.finite_edge(10**6, 2 * 10**6, 4 * 10**6)
        edge = FreeMPProduct(0.5, 0.25).support()[1]
        assert near < edge and near == pytest.approx(edge, rel=1e-5)

    def test_largest_eigenvalue_without_a_spike(self):
        d = 60

        def largest(rng):
            pooled = rng.standard_normal((d, 120)) @ rng.standard_normal((120, 240))
            return np.linalg.eigvalsh(pooled @ pooled.T / (120 * 240))[-1]

        scale = fluctuations.edge_scale(0.5, 0.25) * d ** (-2 / 3)
        drawn = replicate(largest, 400, 5)
        units = (drawn - fluctuations.finite_edge(d, 120, 240)) / scale
        assert abs(units.mean() - fluctuations.TRACY_WIDOM_MEAN) < 0.4
        assert units.std() == pytest.approx(fluctuations.TRACY_WIDOM_SD, rel=0.2)

    @pytest.mark.parametrize("excess", [-2.0, -1.5, 0.0, 1.0])
    def test_a_strong_spike_varies_like_a_mean_of_squares(self, excess):
        # λ ≈ Σ (v·c_n)²/N with v·c_n = √y f: the variance is y²(E f⁴ − 1)/N, E f⁴ = 3 + excess
        y, samples = 1e5, 200
        found = fluctuations.outlier_sd(y, 1.0, 1e-9, 100 / samples, 100, excess)
        assert found**2 * samples / y**2 == pytest.approx(2 + excess, abs=1e-4)

    def test_textbook_variance_of_a_sample_outlier(self):
        # a vast vocabulary, far spike: Var λ → (2/N) ℓ² ψ′ with ℓ = 1 + θ
        theta, gamma, d = 3.0, 0.5, 100
        expected = 2 * gamma / d * (1 + theta) ** 2 * (1 - gamma / theta**2)
        found = fluctuations.outlier_sd(1, theta, 1e-9, gamma, d)
        assert found**2 == pytest.approx(expected, rel=1e-6)

    def test_variance_of_a_spiked_gaussian_population(self):
        d, delta, q, theta = 100, 0.5, 2.0, 1.0

        def top(rng):
            table = rng.standard_normal((d, 200)) / 200**0.5
            direction = np.eye(d)[0] * theta**0.5 + rng.standard_normal(d) / 200**0.5
            matrix = table @ table.T + q * np.outer(direction, direction)
            return np.linalg.eigvalsh(matrix)[-1]

        found = replicate(top, 300, 6)
        predicted = fluctuations.outlier_sd(q, theta, delta, 0, d)
        low, high = stats.chi2.ppf([1e-5, 1 - 1e-5], 299) / 299
        assert low * 0.97 < found.var(ddof=1) / predicted**2 < high * 1.03


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: spikes.spike_parameter(-1, 1, 1), "snr"),
        (lambda: spikes.spike_parameter(1, -1, 1), "signal_norm2"),
        (lambda: spikes.spike_parameter(1, 1, 0), "delta"),
        (lambda: spikes.spike_parameter(np.ones(2), np.ones(3), 1), "snr"),
        (lambda: spikes.spike_parameter_as_stated(np.nan, 1, 1), "snr"),
        (lambda: spikes.outlier(np.nan, 1, 1), "y"),
        (lambda: spikes.outlier(1, 0, 1), "delta"),
        (lambda: spikes.outlier(1, 1, -1), "gamma"),
        (lambda: spikes.level(0, 1, 1), "y"),
        (lambda: spikes.slope_of_level(0.0, 1, 1), "y"),
        (lambda: spikes.critical_spike(np.inf, 1), "delta"),
        (lambda: spikes.critical_signal(0, 1, 1), "snr"),
        (lambda: spikes.critical_signal_as_stated(1, 1, np.nan), "gamma"),
        (lambda: fluctuations.outlier_sd(1, 0.1, 1, 1, 100), "snr"),
        (lambda: fluctuations.outlier_sd(1, 9, 1, 1, 100, -3), "excess_kurtosis"),
        (lambda: fluctuations.outlier_sd(1, 9, 1, 1, 0.5), "dimension"),
        (lambda: fluctuations.edge_scale(0, 1), "delta"),
        (lambda: fluctuations.finite_edge(0, 1, 1), "dimension"),
        (lambda: fluctuations.tracy_widom_cdf(np.nan), "s"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        call()
