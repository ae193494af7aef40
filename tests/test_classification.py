"""Classification of pooled sequences: laws of the exact accuracies, the ridge fit and its limit."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import ndtr

from rederive import finite_tables, ridge_limits, sequences, sign_sequences, vocabularies
from rederive.classification import (
    agreement,
    discriminant_accuracy,
    label_index,
    label_weights,
    ridge_fit,
    separation,
)
from rederive.finite_tables import finite_discriminant_accuracy
from rederive.replicates import mean_and_error, replicate
from rederive.ridge_limits import ridge_limit

quick = settings(max_examples=40, deadline=None)
lengths = st.integers(1, 7)
prefix = sign_sequences.prefix_loadings


def some_weights(seed, length):
    return np.random.default_rng(seed).standard_normal(length)


def some_loadings(seed, length):
    return np.random.default_rng(seed + 1).uniform(-1, 1, length)


class TestAgreement:
    @quick
    @given(st.integers(0, 10**6), lengths)
    def test_against_enumeration(self, seed, length):
        w, b = some_weights(seed, length), some_loadings(seed, length)
        signs = np.array(list(itertools.product((1, -1), repeat=length)))
        chances = np.prod((1 + signs * b) / 2, axis=1)
        law = agreement(w, b)
        assert law.probabilities.sum() == pytest.approx(1, abs=1e-13)
        for power in (1, 2, 3):
            expected = chances @ (signs @ w) ** power
            assert law.values**power @ law.probabilities == pytest.approx(expected, abs=1e-11)

    @quick
    @given(st.integers(0, 10**6), lengths)
    def test_mean_and_power_are_the_chapters_a_and_alpha(self, seed, length):
        w, b = some_weights(seed, length), some_loadings(seed, length)
        law = agreement(w, b)
        assert law.mean == pytest.approx(w @ b, abs=1e-12)
        assert law.power == pytest.approx(w @ sign_sequences.latent_correlation(b) @ w, abs=1e-11)

    def test_equal_weights_have_few_values(self):
        assert len(agreement(np.full(40, 1 / 40), np.full(40, 0.3)).values) == 41

    def test_a_certain_label_has_one_value(self):
        law = agreement([0.5, 0.25, 0.25], [1, 1, -1])
        assert (law.values, law.probabilities) == (pytest.approx([0.5]), pytest.approx([1.0]))

    def test_too_many_values_are_refused(self):
        with pytest.raises(ValueError, match=r"^weights: expected at most"):
            agreement(2.0 ** -np.arange(20), np.zeros(20))


class TestKnownTable:
    def test_separation_is_the_limit_of_its_quotient(self):
        d, size, theta = 2000, 5000, 0.7
        roots, masses = finite_tables._root_separations(d, size, theta)
        # E h = (d + Vθ)/(V − d − 3)
        mean = masses @ roots**2
        assert mean == pytest.approx((d + size * theta) / (size - d - 3), rel=1e-9)
        assert mean == pytest.approx(separation(theta, d / size), rel=2e-3)

    def test_separation_of_a_drawn_table(self):
        d, size = 300, 600
        table = vocabularies.draw_vocabulary(np.eye(d)[0], size, np.random.default_rng(3))
        noise = table.embeddings - table.mean - np.outer(table.classes, table.direction)
        h = table.direction @ np.linalg.solve(noise.T @ noise / size, table.direction)
        assert h == pytest.approx(separation(1.0, 0.5), rel=0.5)

    @quick
    @given(st.integers(0, 10**6), lengths, st.floats(0, 20))
    def test_accuracy_is_a_probability_that_reverses_with_the_weights(self, seed, length, h):
        w, b = some_weights(seed, length), some_loadings(seed, length)
        found = discriminant_accuracy(w, b, h)
        assert 0 <= found <= 1
        assert discriminant_accuracy(-3 * w, b, h) == pytest.approx(1 - found, abs=1e-12)

    def test_accuracy_grows_with_the_separation_on_a_prefix(self):
        w, b = np.full(6, 1 / 6), prefix(6, 4)
        found = [discriminant_accuracy(w, b, h) for h in (0, 0.1, 1, 4, 100)]
        assert found[0] == pytest.approx(0.5, abs=1e-15)
        assert (np.diff(found) > 0).all()

    def test_constant_agreement_has_the_textbook_accuracy(self):
        w = np.array([0.5, 0.3, 0.2, 0.0])
        snr2 = label_index(w, prefix(4, 3), 2.5)
        assert discriminant_accuracy(w, prefix(4, 3), 2.5) == pytest.approx(ndtr(math.sqrt(snr2)))
        assert snr2 == pytest.approx(2.5 * sequences.signal_to_noise(w, np.ones((4, 4))))

    def test_the_order_of_the_gain_is_not_that_of_the_accuracy(self):
        b, R = prefix(4, 3), sign_sequences.latent_correlation(prefix(4, 3))
        pair = np.full(4, 0.25), sequences.harmonic_weights(4)
        gains = [sequences.signal_to_noise(w, R) for w in pair]
        accuracies = [discriminant_accuracy(w, b, 3.0) for w in pair]
        assert gains == pytest.approx([2.5, 2.16])
        assert accuracies == pytest.approx([0.97905087, 0.99454525], abs=1e-8)

    @quick
    @given(st.integers(0, 10**6), lengths, st.floats(0, 50))
    def test_no_weights_beat_the_label_weights(self, seed, length, h):
        w, b = some_weights(seed, length), some_loadings(seed, length)
        best = label_weights(b, h)
        assert np.abs(best).sum() == pytest.approx(1)
        assert label_index(w, b, h) <= label_index(best, b, h) * (1 + 1e-12)

    def test_finite_accuracy_tends_to_the_limit(self):
        b, w = prefix(4, 3), sequences.harmonic_weights(4)
        limit = discriminant_accuracy(w, b, separation(0.4, 0.25))
        gaps = [finite_discriminant_accuracy(w, b, 0.4, d, 4 * d) - limit for d in (25, 100, 400)]
        assert (np.abs(np.diff(gaps)) > 0).all()
        assert gaps[1] / gaps[2] == pytest.approx(4, rel=0.1)  # an error of order 1/V

    @pytest.mark.parametrize("loadings", [prefix(3, 2), np.array([0.7, -0.2, 0.4])])
    def test_finite_accuracy_against_tables(self, loadings):
        d, size, theta = 5, 14, 0.8
        w, signs_of = np.array([0.6, 0.5, -0.2]), np.repeat([1.0, -1.0], size // 2)

        def batch(rng):
            items = rng.standard_normal((400, size, d))
            items[:, :, 0] += signs_of * math.sqrt(theta)
            middle = items.mean(axis=1, keepdims=True)
            half = (items * signs_of[:, None]).mean(axis=1, keepdims=True)
            noise = items - middle - signs_of[:, None] * half
            within = noise.swapaxes(1, 2) @ noise / size
            beta = np.linalg.solve(within, half.swapaxes(1, 2))
            scores = ((items - middle) @ beta)[..., 0]
            signs, labels = sign_sequences.latent_signs(loadings, 400 * 50, rng)
            tokens = vocabularies.draw_tokens(signs, size, rng).reshape(400, -1)
            pooled = np.take_along_axis(scores, tokens, axis=1).reshape(-1, 3) @ w
            return (labels * pooled > 0).mean()

        mean, error, _ = mean_and_error(replicate(batch, 40, 5))
        assert abs(mean - finite_discriminant_accuracy(w, loadings, theta, d, size)) < 5 * error
        assert error < 2e-3

    @pytest.mark.parametrize("theta", [0.0, 0.5, 3.0])
    def test_two_tokens_of_four_items_err_half_as_often_as_one(self, theta):
        # the same item half of the time; else both items of the class, whose mean is never wrong
        one, two = (finite_discriminant_accuracy([1.0] * t, [1.0] * t, theta, 2, 4) for t in (1, 2))
        assert two == pytest.approx((1 + one) / 2, abs=1e-9)  # what the quadrature promises

    def test_finite_accuracy_without_signal_or_dimension_to_spare(self):
        found = finite_discriminant_accuracy([1.0], [1.0], 0.0, 1, 4)
        assert 0.5 < found < 1


def noisy_features(rng, count=60, d=8):
    labels = np.resize([1.0, -1.0], count)
    return rng.standard_normal((count, d)) + 0.3 * labels[:, None], labels


class TestRidgeFit:
    @pytest.mark.parametrize("penalty", [1e-3, 0.5, 30.0])
    @pytest.mark.parametrize("shape", [(60, 8), (12, 30)])
    def test_normal_equations(self, penalty, shape):
        c, y = noisy_features(np.random.default_rng(1), *shape)
        y = np.where(np.arange(len(y)) < 5, 1, y)  # not balanced
        fit = ridge_fit(c, y, [penalty])
        missed = y - c @ fit.coefficients - fit.intercept
        assert missed.mean() == pytest.approx(0, abs=1e-12)
        assert c.T @ missed / len(y) == pytest.approx(penalty * fit.coefficients, abs=1e-11)
        assert fit.penalty == penalty

    def test_the_score_is_that_of_the_definition(self):
        c, y = noisy_features(np.random.default_rng(2))
        centred, n = c - c.mean(axis=0), len(y)
        for penalty in (0.01, 1.0):
            fit = ridge_fit(c, y, [penalty])
            gram = centred.T @ centred
            hat = centred @ np.linalg.solve(gram + n * penalty * np.eye(8), centred.T) + 1 / n
            missed = y - hat @ y
            expected = missed @ missed / n / (1 - np.trace(hat) / n) ** 2
            assert fit.score == pytest.approx(expected, rel=1e-12)

    def test_the_chosen_penalty_has_the_least_score(self):
        c, y = noisy_features(np.random.default_rng(3))
        grid = np.geomspace(1e-4, 1e3, 40)
        singles = [ridge_fit(c, y, [penalty]).score for penalty in grid]
        assert ridge_fit(c, y, grid).penalty == grid[np.argmin(singles)]

    def test_shift_scale_and_rotation(self):
        rng = np.random.default_rng(4)
        c, y = noisy_features(rng)
        rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        plain, moved = ridge_fit(c, y), ridge_fit(10 * c @ rotation + 5, y)
        assert moved.penalty == pytest.approx(100 * plain.penalty, rel=1e-10)
        assert moved.coefficients == pytest.approx(rotation.T @ plain.coefficients / 10, abs=1e-11)
        assert (moved.decide(10 * c @ rotation + 5) == plain.decide(c)).all()

    def test_dependent_columns_do_not_hurt(self):
        c, y = noisy_features(np.random.default_rng(5))
        single, double = ridge_fit(c, y, [0.2]), ridge_fit(np.hstack([c, c]), y, [0.4])
        assert double.coefficients[:8] == pytest.approx(single.coefficients / 2, abs=1e-11)

    def test_two_points(self):
        fit = ridge_fit([[0.0], [2.0]], [-1, 1], [1.0])
        assert fit.decide([[0.0], [2.0]]).tolist() == [-1, 1]


class TestRidgeLimit:
    @pytest.mark.parametrize("delta", [0.0, 1e-9, 0.3, 1.0, 2.5])
    @pytest.mark.parametrize("tau", [1e-3, 0.4, 50.0])
    def test_integrals_against_the_marchenko_pastur_density(self, tau, delta):
        found = ridge_limits._integrals(tau, delta)
        root = math.sqrt(delta)
        atom = max(0.0, 1 - 1 / delta) if delta else 0.0

        def over(f):
            if delta < 1e-6:
                return f(1.0)
            centre, reach = 1 + delta, 2 * root

            def at(angle):  # x = centre + reach·cos(angle)
                x = centre + reach * math.cos(angle)
                return f(x) * (reach * math.sin(angle)) ** 2 / (2 * math.pi * delta * x)

            return atom * f(0.0) + integrate.quad(at, 0, math.pi, epsrel=1e-11, limit=400)[0]

        kernels = (
            lambda x: 1 / (x + tau),
            lambda x: 1 / (x + tau) ** 2,
            lambda x: x / (x + tau) ** 2,
            lambda x: x / (x + tau),
            lambda x: (x / (x + tau)) ** 2,
        )
        assert found == pytest.approx([over(f) for f in kernels], rel=1e-6)

    def test_unlimited_data_give_the_discriminant(self):
        w, b = np.full(5, 0.2), prefix(5, 4)
        h = separation(0.6, 0.4)
        found = ridge_limit(w, b, 0.6, 0.4, 1e-9)
        assert found.usable == pytest.approx(h, rel=1e-4)
        assert found.accuracy == pytest.approx(discriminant_accuracy(w, b, h), abs=1e-6)
        assert found.usable_new == pytest.approx(0.6**2 * 0.6 / 1.0, rel=1e-4)

    def test_without_penalty_the_usable_separation_is_rational(self):
        w, b, gamma, h = np.full(5, 0.2), prefix(5, 4), 0.3, separation(0.6, 0.4)
        kappa, a, alpha = 0.2, 0.8, 0.68
        a2, qh = a * a * h / kappa, alpha * h / kappa
        share = a2 * (1 - gamma) / (a2 * (1 - gamma) + gamma * (1 + qh) * (1 + qh - a2))
        found = ridge_limit(w, b, 0.6, 0.4, gamma, penalty=1e-10)
        assert found.usable == pytest.approx(share * h, rel=1e-6)

    @quick
    @given(st.floats(0.05, 3), st.floats(0.05, 4), st.floats(0, 3), st.floats(0.01, 5))
    def test_gain_orders_weights_that_see_the_label_only(self, delta, gamma, theta, ratio):
        b = np.ones(6)
        pair = [np.array([3.0, 2, 1, 0, 0, 0]), np.full(6, 1 / 6)]  # q = 36/14 < 6
        found = [ridge_limit(w, b, theta, delta, gamma, ratio * (w @ w)) for w in pair]
        assert found[0].usable <= found[1].usable * (1 + 1e-12)
        assert 0.5 < found[0].accuracy <= found[1].accuracy

    @quick
    @given(st.integers(0, 10**6), st.floats(0.05, 3), st.floats(0.05, 4), st.floats(0.1, 3))
    def test_units_of_the_weights_do_not_matter(self, seed, delta, gamma, theta):
        w, b = np.abs(some_weights(seed, 5)), np.abs(some_loadings(seed, 5))
        one, ten = (
            ridge_limit(w, b, theta, delta, gamma),
            ridge_limit(10 * w, b, theta, delta, gamma),
        )
        assert ten.penalty == pytest.approx(100 * one.penalty, rel=1e-3)
        assert ten.accuracy == pytest.approx(one.accuracy, abs=1e-7)

    def test_the_default_penalty_has_the_least_error(self):
        case = (sequences.harmonic_weights(6), prefix(6, 4), 0.5, 0.7, 0.8)
        best = ridge_limit(*case)
        for factor in (0.5, 0.9, 1.1, 2.0):
            assert ridge_limit(*case, penalty=factor * best.penalty).error > best.error
        again = ridge_limit(*case, penalty=best.penalty)
        assert again == pytest.approx(best, rel=1e-9)

    def test_no_signal_is_chance_on_new_words(self):
        found = ridge_limit(np.full(4, 0.25), prefix(4, 2), 0.0, 0.5, 0.5)
        assert found.new_vocabulary == pytest.approx(0.5, abs=1e-15)
        assert found.accuracy > 0.6

    def test_weights_against_the_label_keep_the_accuracy(self):
        b = prefix(4, 2)
        one, other = (ridge_limit(s * np.full(4, 0.25), b, 1.0, 0.5, 0.5) for s in (1, -1))
        assert one.accuracy == pytest.approx(other.accuracy, abs=1e-14)

    def test_against_gaussian_noise_at_a_fixed_penalty(self):
        d, size, count, theta, penalty = 300, 600, 500, 0.5, 0.02
        w, b = np.full(4, 0.25), prefix(4, 3)

        def measure(rng):
            table = vocabularies.draw_vocabulary(math.sqrt(theta) * np.eye(d)[0], size, rng)
            noise = table.embeddings - table.mean - np.outer(table.classes, table.direction)
            within = noise.T @ noise / size
            signs, labels = sign_sequences.latent_signs(
                b, count, rng, labels=np.resize([1, -1], count)
            )
            x = rng.standard_normal((count, d)) @ (np.linalg.norm(w) * np.linalg.cholesky(within)).T
            fit = ridge_fit(np.outer(signs @ w, table.direction) + x, labels, [penalty])
            beta = fit.coefficients
            p = beta @ table.direction
            return p**2 / (beta @ within @ beta), (beta @ table.signal) ** 2 / (beta @ beta)

        mean, error, _ = mean_and_error(replicate(measure, 8, 21))
        found = ridge_limit(w, b, theta, d / size, d / count, penalty)
        assert abs(mean[0] / found.usable - 1) < 6 * error[0] / found.usable + 5 / d
        assert abs(mean[1] / found.usable_new - 1) < 6 * error[1] / found.usable_new + 5 / d
        assert (error < [0.05 * found.usable, 0.1 * found.usable_new]).all()

    def test_cross_validation_finds_the_penalty_and_the_error(self):
        d, size, count, theta = 200, 400, 600, 1.0
        w, b = np.full(16, 1 / 16), prefix(16, 8)

        def measure(rng):
            table = vocabularies.draw_vocabulary(math.sqrt(theta) * np.eye(d)[0], size, rng)
            signs, labels = sign_sequences.latent_signs(b, count, rng)
            tokens = vocabularies.draw_tokens(signs, size, rng)
            return ridge_fit(vocabularies.pool(w, tokens, table.embeddings), labels).score

        mean, error, _ = mean_and_error(replicate(measure, 8, 22))
        assert mean == pytest.approx(ridge_limit(w, b, theta, 0.5, d / count).error, rel=0.06)
        assert error < 0.03 * mean


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: agreement([1.0, 2.0], [0.5]), "loadings"),
        (lambda: agreement([1.0], [1.5]), "loadings"),
        (lambda: agreement([0.0, 0.0], [0.5, 0.5]), "weights"),
        (lambda: agreement([[1.0]], [0.5]), "weights"),
        (lambda: separation(-1, 0.5), "signal_norm2"),
        (lambda: separation(1, 1.0), "delta"),
        (lambda: discriminant_accuracy([1.0], [1.0], -1), "separation"),
        (lambda: finite_discriminant_accuracy([1.0], [1.0], 1.0, 5, 6), "size"),
        (lambda: finite_discriminant_accuracy([1.0], [1.0], 1.0, 5, 9), "size"),
        (lambda: finite_discriminant_accuracy(np.ones(7), np.ones(7), 1.0, 5, 10), "weights"),
        (lambda: label_weights([0.0, 0.0], 1.0), "loadings"),
        (lambda: label_index([1.0], [1.0], np.nan), "separation"),
        (lambda: ridge_fit(np.eye(3), [1, -1]), "labels"),
        (lambda: ridge_fit(np.eye(3), [1, 1, 1]), "labels"),
        (lambda: ridge_fit(np.eye(3), [1, -1, 0]), "labels"),
        (lambda: ridge_fit(np.ones((3, 2)), [1, -1, 1]), "features"),
        (lambda: ridge_fit(np.eye(3), [1, -1, 1], [0.0]), "penalties"),
        (lambda: ridge_fit(np.eye(3), [1, -1, 1]).decide(np.eye(2)), "features"),
        (lambda: ridge_limit([1.0], [1.0], 0.0, 0.0, 1.0), "signal_norm2"),
        (lambda: ridge_limit([1.0], [0.0], 1.0, 0.5, 1.0), "weights"),
        (lambda: ridge_limit([1.0], [1.0], 1.0, 0.5, 0.0), "gamma"),
        (lambda: ridge_limit([1.0], [1.0], 1.0, -0.5, 1.0), "delta"),
        (lambda: ridge_limit([1.0], [1.0], 1.0, 0.5, 1.0, -1.0), "penalty"),
    ],
)
def test_bad_arguments_are_named(call, word):
    with pytest.raises(ValueError, match=f"^{word}: expected"):
        call()
