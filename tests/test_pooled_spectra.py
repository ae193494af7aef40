"""Outliers by Lanczos iteration against dense eigenvalues, and what counts as separated."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from rederive import pooled_models, pooled_spectra, sign_sequences, spikes, vocabularies


def spiked(seed, d=200, ratio=0.5, strength=6.0, spikes=1):
    """Gaussian data with covariance I plus spikes along the first axes."""
    data = np.random.default_rng(seed).standard_normal((int(d / ratio), d))
    data[:, :spikes] *= np.sqrt(1 + strength * np.arange(spikes, 0, -1))
    return data


class TestTopOutliers:
    @pytest.mark.parametrize("centred", [False, True])
    def test_values_and_vectors_are_those_of_the_dense_matrix(self, centred):
        data = spiked(1, spikes=2) + 0.3
        shown = data - data.mean(axis=0) if centred else data
        values, vectors = np.linalg.eigh(shown.T @ shown / len(data))
        found = pooled_spectra.top_outliers(pooled_spectra.second_moment(data, centred=centred), 2)
        assert np.allclose(found.values, values[::-1][:2], rtol=1e-11)
        cosines = np.abs(np.sum(found.vectors * vectors[:, ::-1][:, :2], axis=0))
        assert np.allclose(cosines, 1, atol=1e-9)
        assert found.separated.all() and found.products < 60

    def test_every_residual_bounds_the_error(self):
        data = spiked(2, strength=0.0)
        values = np.linalg.eigvalsh(data.T @ data / len(data))
        operator = pooled_spectra.second_moment(data)
        for products in (5, 10, 20, 40):
            found = pooled_spectra.top_outliers(operator, 2, max_products=products)
            gaps = np.abs(found.values[:, None] - values).min(axis=1)
            assert np.all(gaps <= found.residuals + 1e-12)

    @pytest.mark.parametrize(("delta", "gamma"), [(0.5, 0.25), (2.0, 0.5)])
    def test_null_spectra_are_not_called_separated(self, delta, gamma):
        passed = []
        for seed in range(24):
            rng = np.random.default_rng([71, seed])
            table = rng.standard_normal((int(200 / delta), 200))
            data = rng.standard_normal((int(200 / gamma), len(table))) @ table / len(table) ** 0.5
            passed.append(
                pooled_spectra.top_outliers(pooled_spectra.second_moment(data)).separated[0]
            )
        assert np.sum(passed) <= 3

    def test_strong_spikes_are_separated(self):
        data = spiked(3, d=400, ratio=0.25)
        found = pooled_spectra.top_outliers(pooled_spectra.second_moment(data))
        assert found.separated[0]
        assert 0 < found.edge < found.values[0] / 2

    def test_the_edge_is_seen_where_the_outlier_is_found_slowly(self):
        edges = []
        for seed in range(12):
            operator = pooled_spectra.second_moment(spiked(30 + seed, d=400, strength=1.6))
            edges.append(pooled_spectra.top_outliers(operator).edge)
        assert abs(np.mean(edges) - (1 + 0.5**0.5) ** 2) < 0.3

    def test_a_given_edge_decides(self):
        operator = pooled_spectra.second_moment(spiked(5))
        assert pooled_spectra.top_outliers(operator, edge=(1 + 0.5**0.5) ** 2).separated[0]
        assert not pooled_spectra.top_outliers(operator, edge=100.0).separated[0]

    def test_an_iteration_that_is_cut_short_says_so(self):
        found = pooled_spectra.top_outliers(
            pooled_spectra.second_moment(spiked(6, strength=1.0)), max_products=4
        )
        assert not found.separated[0] and found.residuals[0] > 1e-3

    def test_small_matrices_end_in_an_invariant_subspace(self):
        matrix = np.diag([5.0, 1.0, 1.0, 1.0])
        found = pooled_spectra.top_outliers(aslinearoperator(matrix), 1)
        assert found.values[0] == pytest.approx(5.0, rel=1e-12)
        assert pooled_spectra.top_outliers(aslinearoperator(np.eye(1)), 1).values[0] == 1.0

    def test_same_start_same_answer(self):
        operator = pooled_spectra.second_moment(spiked(7))
        first, second = (pooled_spectra.top_outliers(operator) for _ in range(2))
        assert np.array_equal(first.vectors, second.vectors)

    def test_bad_input_is_refused(self):
        operator = pooled_spectra.second_moment(spiked(8))
        nothing = LinearOperator((3, 3), matvec=lambda v: v * np.nan, dtype=float)
        for call, words in (
            (lambda: pooled_spectra.top_outliers(np.eye(3)), "operator: expected"),
            (lambda: pooled_spectra.top_outliers(operator, 0), "count: expected"),
            (lambda: pooled_spectra.top_outliers(operator, edge=np.nan), "edge: expected"),
            (lambda: pooled_spectra.top_outliers(operator, tolerance=0.0), "tolerance: expected"),
            (lambda: pooled_spectra.top_outliers(nothing), "finite products"),
            (lambda: pooled_spectra.second_moment([[np.nan]]), "pooled: expected finite"),
        ):
            with pytest.raises(ValueError, match=words):
                call()


class TestOperators:
    def setup_method(self):
        rng = np.random.default_rng(9)
        self.signal = np.full(6, 0.4)
        self.table = vocabularies.draw_vocabulary(self.signal, 10, rng)
        signs = sign_sequences.latent_signs([0.9, 0.5, 0.1], 30, rng).signs
        self.tokens = vocabularies.draw_tokens(signs, 10, rng)
        self.weights = np.array([0.5, 0.3, 0.2])

    def test_pooled_sequences_need_not_be_formed(self):
        pooled = vocabularies.pool(self.weights, self.tokens, self.table.embeddings)
        matrix = vocabularies.pooling_matrix(self.weights, self.tokens, 10)
        operator = pooled_spectra.pooled_operator(matrix, self.table.embeddings)
        assert np.allclose(operator @ np.eye(6), pooled, atol=1e-13)
        assert np.allclose(operator.rmatvec(np.ones(30)), pooled.sum(axis=0), atol=1e-12)
        for centred in (False, True):
            first = pooled_spectra.second_moment(operator, centred=centred) @ np.eye(6)
            second = pooled_spectra.second_moment(pooled, centred=centred) @ np.eye(6)
            assert np.allclose(first, second, atol=1e-13)
            assert np.allclose(first, np.cov(pooled.T, bias=True), atol=1e-12) == centred

    def test_nor_the_covariance(self):
        correlation = sign_sequences.latent_correlation([0.9, 0.5, 0.1])
        for marginals in (None, [0.5, 0.2, 0.0]):
            dense = pooled_models.conditional_covariance(
                self.weights, correlation, self.table, marginals=marginals
            )
            operator = pooled_spectra.covariance_operator(
                self.weights, correlation, self.table, marginals=marginals
            )
            assert np.allclose(operator @ np.eye(6), dense, atol=1e-13)

    def test_sizes_must_fit(self):
        matrix = vocabularies.pooling_matrix(self.weights, self.tokens, 11)
        with pytest.raises(ValueError, match="matrix: expected 10 columns"):
            pooled_spectra.pooled_operator(matrix, self.table.embeddings)


def test_the_outlier_of_pooled_sequences_lies_where_theory_says():
    length, delta, gamma, theta, d = 16, 0.5, 0.25, 3.0, 200
    loadings, flat = sign_sequences.prefix_loadings(length, 4), np.full(length, 1 / length)
    found = []
    for seed in range(24):
        rng = np.random.default_rng([72, seed])
        table = vocabularies.draw_vocabulary(np.sqrt(theta / d) * np.ones(d), 400, rng)
        tokens = vocabularies.draw_tokens(
            sign_sequences.latent_signs(loadings, 800, rng).signs, 400, rng
        )
        c = vocabularies.pool(flat, tokens, table.embeddings)
        top = pooled_spectra.top_outliers(pooled_spectra.second_moment(c, centred=True))
        found.append((length * top.values[0], top.separated[0]))
    values, separated = np.transpose(found)
    y = spikes.spike_parameter(1.75, theta, delta)
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - spikes.outlier(y, delta, gamma).location) < 6 * error
    assert separated.all()
