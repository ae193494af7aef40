"""Pooling weights and what they keep of the signal."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rederive import sequences, sign_sequences

quick = settings(max_examples=60, deadline=None)
lengths = st.integers(2, 40)


def random_correlation(seed, length, rank=None):
    factor = np.random.default_rng(seed).standard_normal((length, rank or length + 2))
    return factor @ factor.T


class TestHarmonicWeights:
    @quick
    @given(lengths)
    def test_they_are_the_mean_of_uniform_rows_without_the_diagonal(self, length):
        rows = [[Fraction(s < t, t) for s in range(length)] for t in range(1, length)]
        exact = [float(sum(column) / (length - 1)) for column in zip(*rows, strict=True)]
        assert np.allclose(sequences.harmonic_weights(length), exact, rtol=1e-14, atol=0)

    @quick
    @given(lengths)
    def test_they_decrease_to_zero_and_sum_to_one(self, length):
        weights = sequences.harmonic_weights(length)
        assert weights[-1] == 0 and np.all(np.diff(weights) < 0)
        assert weights.sum() == pytest.approx(1, abs=1e-14)

    @quick
    @given(lengths)
    def test_squared_norm_in_closed_form(self, length):
        n, weights = length - 1, sequences.harmonic_weights(length)
        harmonic = sum(Fraction(1, k) for k in range(1, n + 1))
        assert weights @ weights == pytest.approx(float((2 * n - harmonic) / n**2), rel=1e-14)

    @pytest.mark.parametrize("length", [1, 0, -2, 2.0, True, "3", None])
    def test_other_lengths_are_refused(self, length):
        with pytest.raises(ValueError, match="length: expected an integer"):
            sequences.harmonic_weights(length)


class TestInclusiveWeights:
    @quick
    @given(st.integers(1, 30), st.floats(-800, 800))
    def test_every_row_is_a_softmax(self, length, score):
        rows = np.zeros((length, length))
        for t in range(length):
            scores = np.zeros(t + 1)
            scores[t] = score
            mass = np.exp(scores - scores.max())
            rows[t, : t + 1] = mass / mass.sum()
        weights = sequences.inclusive_weights(length, score)
        assert np.allclose(weights, rows.mean(axis=0), rtol=1e-12, atol=1e-15)

    def test_equal_scores_give_harmonic_numbers(self):
        exact = [sum(1 / k for k in range(s, 8)) / 7 for s in range(1, 8)]
        assert np.allclose(sequences.inclusive_weights(7), exact, rtol=1e-14)

    def test_a_large_diagonal_gives_the_mean(self):
        assert np.allclose(sequences.inclusive_weights(9, 60.0), 1 / 9, rtol=1e-12)

    def test_a_score_of_minus_infinity_would_be_the_strict_mask(self):
        weights = sequences.inclusive_weights(9, -60.0) * 9
        weights[0] -= 1  # the first row has nothing else to look at
        assert np.allclose(weights, sequences.harmonic_weights(9) * 8, atol=1e-12)

    @pytest.mark.parametrize(("length", "score"), [(0, 0.0), (3, np.nan), (3, np.inf), (2.5, 0)])
    def test_bad_input_is_refused(self, length, score):
        with pytest.raises(ValueError, match="expected"):
            sequences.inclusive_weights(length, score)


class TestOptimalWeights:
    @quick
    @given(st.integers(0, 10**6), st.integers(1, 8))
    def test_no_other_weights_keep_more(self, seed, length):
        correlation = random_correlation(seed, length)
        best = sequences.optimal_weights(correlation)
        others = np.random.default_rng(seed + 1).standard_normal((50, length))
        reached = sequences.signal_to_noise(best, correlation)
        assert np.all(sequences.signal_to_noise(others, correlation) <= reached * (1 + 1e-12))
        assert reached == pytest.approx(np.linalg.eigvalsh(correlation)[-1], rel=1e-12)

    @quick
    @given(st.integers(0, 10**6), st.integers(1, 8))
    def test_they_sum_to_one(self, seed, length):
        total = sequences.optimal_weights(random_correlation(seed, length)).sum()
        assert total == pytest.approx(1, abs=1e-8)

    def test_a_prefix_gets_uniform_weights(self):
        loadings = sign_sequences.prefix_loadings(16, 4)
        best = sequences.optimal_weights(sign_sequences.latent_correlation(loadings))
        assert np.allclose(best, np.where(np.arange(16) < 4, 0.25, 0), atol=1e-14)

    def test_where_the_sum_vanishes_the_norm_is_one(self):
        best = sequences.optimal_weights(sign_sequences.ar1_correlation(6, -0.6))
        assert abs(best.sum()) < 1e-12
        assert np.linalg.norm(best) == pytest.approx(1, abs=1e-14) and best[0] > 0

    @pytest.mark.parametrize("size", [1e-200, 1.0, 1e150])
    def test_the_scale_of_the_matrix_does_not_matter(self, size):
        best = sequences.optimal_weights(size * np.array([[2.0, 1.0], [1.0, 2.0]]))
        assert np.allclose(best, 0.5, atol=1e-14)

    def test_a_multiple_top_eigenvalue_gives_the_projection_of_ones(self):
        assert np.allclose(sequences.optimal_weights(np.eye(5)), 0.2, atol=1e-14)
        blocks = np.kron(np.eye(2), np.ones((2, 2)))
        assert np.allclose(sequences.optimal_weights(blocks), 0.25, atol=1e-14)

    def test_a_multiple_eigenvalue_orthogonal_to_ones_is_settled_too(self):
        centred = np.eye(3) - np.full((3, 3), 1 / 3)
        best = sequences.optimal_weights(centred)
        assert np.allclose(best, np.array([2, -1, -1]) / np.sqrt(6), atol=1e-12)

    @pytest.mark.parametrize(
        ("correlation", "words"),
        [
            ([[1.0, 0.2], [0.3, 1.0]], "symmetric"),
            ([[1.0, 2.0], [2.0, 1.0]], "positive semi-definite"),
            ([[-1.0]], "positive semi-definite"),
            ([[0.0, 0.0], [0.0, 0.0]], "not zero"),
            ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
            ([1.0, 2.0], "shape"),
            (np.ones((2, 3)), "square"),
            (np.empty((0, 0)), "at least one entry"),
        ],
    )
    def test_bad_matrices_are_refused(self, correlation, words):
        with pytest.raises(ValueError, match=f"correlation: expected .*{words}"):
            sequences.optimal_weights(correlation)


class TestSignalToNoise:
    def test_the_mean_of_a_prefix(self):
        loadings = sign_sequences.prefix_loadings(16, 4)
        correlation = sign_sequences.latent_correlation(loadings)
        assert sequences.signal_to_noise(np.ones(16), correlation) == pytest.approx(1.75)
        assert isinstance(sequences.signal_to_noise(np.ones(16), correlation), float)

    @quick
    @given(st.integers(0, 10**6), st.floats(1e-100, 1e100))
    def test_the_scale_of_the_weights_does_not_matter(self, seed, scale):
        correlation = random_correlation(seed, 5)
        weights = np.random.default_rng(seed + 1).standard_normal((3, 5))
        found = sequences.signal_to_noise(scale * weights, correlation)
        direct = np.einsum("ks,st,kt->k", weights, correlation, weights) / (weights**2).sum(1)
        assert np.allclose(found, direct, rtol=1e-11)

    def test_one_position_keeps_its_own_variance(self):
        assert sequences.signal_to_noise([0, 3.0], [[1.0, 0.5], [0.5, 4.0]]) == 4.0

    @pytest.mark.parametrize(
        "weights", [[0.0, 0.0], [1.0], [np.nan, 1.0], [[1.0, 1.0], [0.0, 0.0]]]
    )
    def test_bad_weights_are_refused(self, weights):
        with pytest.raises(ValueError, match="weights: expected"):
            sequences.signal_to_noise(weights, np.eye(2))


class TestEffectiveLength:
    @quick
    @given(st.integers(1, 30), st.floats(1e-90, 1e90))
    def test_equal_weights_use_all_positions(self, length, scale):
        assert sequences.effective_length(np.full(length, scale)) == pytest.approx(length)

    @quick
    @given(st.lists(st.floats(-1, 1), min_size=1, max_size=9).filter(any))
    def test_it_lies_between_one_and_the_length(self, weights):
        found = sequences.effective_length(weights)
        assert 1 - 1e-12 <= found <= len(weights) * (1 + 1e-12)

    def test_harmonic_weights(self):
        weights = sequences.harmonic_weights(16)
        direct = (weights @ weights) ** 2 / (weights**4).sum()
        assert sequences.effective_length(weights) == pytest.approx(direct)
        assert sequences.effective_length(np.stack([weights] * 2)).shape == (2,)
