"""Tables, tokens, pooling and the exact covariance of a pooled sequence."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rederive import pooled_models, sequences, sign_sequences, vocabularies
from rederive.replicates import mean_and_error, replicate

quick = settings(max_examples=40, deadline=None)


def draw(seed=0, d=5, size=12, theta=1.0, **options):
    signal = np.sqrt(theta / d) * np.ones(d)
    return vocabularies.draw_vocabulary(signal, size, np.random.default_rng(seed), **options)


class TestVocabulary:
    def test_classes_noise_and_means(self):
        table = draw()
        assert np.allclose(table.embeddings, table.classes[:, None] * table.signal + table.noise)
        assert np.allclose(table.mean, table.noise.mean(axis=0), atol=1e-15)
        shared = table.signal + table.classes @ table.noise / 12
        assert np.allclose(table.direction, shared, atol=1e-15)

    def test_class_centred_noise_has_no_mean_in_either_class(self):
        noise = draw(noise="class-centred").noise
        assert np.allclose(noise[:6].sum(axis=0), 0, atol=1e-14)
        assert np.allclose(noise[6:].sum(axis=0), 0, atol=1e-14)

    def test_an_antithetic_table_is_symmetric(self):
        embeddings = draw(noise="antithetic").embeddings
        assert np.array_equal(embeddings[6:], -embeddings[:6])

    def test_the_noise_is_standard_normal(self):
        noise = draw(d=200, size=500).noise
        assert abs((noise**2).mean() - 1) < 6 * np.sqrt(2 / noise.size)

    @pytest.mark.parametrize("size", [3, 1, 0, -2, 4.0, True])
    def test_odd_and_small_vocabularies_are_refused(self, size):
        with pytest.raises(ValueError, match="size: expected an"):
            draw(size=size)
        with pytest.raises(ValueError, match="size: expected an"):
            vocabularies.draw_tokens([[1]], size, np.random.default_rng(0))

    def test_other_bad_input_is_refused(self):
        with pytest.raises(ValueError, match="signal: expected finite"):
            vocabularies.draw_vocabulary([np.nan], 4, np.random.default_rng(0))
        with pytest.raises(ValueError, match="noise: expected one of"):
            draw(noise="white")
        with pytest.raises(ValueError, match="size: expected an integer >= 4"):
            draw(size=2, noise="class-centred")


class TestPooling:
    @quick
    @given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
    def test_it_is_gather_and_sum(self, seed, count, length):
        rng = np.random.default_rng(seed)
        table, tokens = rng.standard_normal((7, 3)), rng.integers(0, 7, (count, length))
        weights, factors = rng.standard_normal((2, length)), rng.standard_normal((count, length))
        direct = np.einsum("kt,ntd->knd", weights, table[tokens])
        assert np.allclose(vocabularies.pool(weights, tokens, table), direct, atol=1e-12)
        assert np.allclose(vocabularies.pool(weights[0], tokens, table), direct[0], atol=1e-12)
        scaled = np.einsum("t,nt,ntd->nd", weights[0], factors, table[tokens])
        found = vocabularies.pool(weights[0], tokens, table, factors=factors)
        assert np.allclose(found, scaled, atol=1e-12)

    def test_tokens_have_the_class_of_their_sign(self):
        rng = np.random.default_rng(3)
        signs = rng.choice([-1, 1], (50, 4))
        tokens = vocabularies.draw_tokens(signs, 10, rng)
        assert np.array_equal(np.where(tokens < 5, 1, -1), signs)
        assert set(np.unique(tokens)) == set(range(10))

    def test_memory_does_not_hold_every_token(self):
        rng = np.random.default_rng(4)
        table, tokens = rng.standard_normal((500, 200)), rng.integers(0, 500, (1000, 32))
        tracemalloc.start()
        vocabularies.pool(np.full(32, 1 / 32), tokens, table)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1000 * 200 * 8 + 10 * tokens.size * 8  # against 51 MB for gather

    @pytest.mark.parametrize(
        ("weights", "tokens"),
        [
            ([0.5, 0.5], [[0, 3]]),
            ([0.5, 0.5], [[0, -1]]),
            ([0.5, 0.5], [[0, 1, 2]]),
            ([0.5, np.nan], [[0, 1]]),
            ([], np.empty((2, 0), dtype=int)),
            ([1.0], [[0.5]]),
            ([[[1.0]]], [[0]]),
        ],
    )
    def test_bad_input_is_refused(self, weights, tokens):
        with pytest.raises(ValueError, match=r"^(weights|tokens): expected "):
            vocabularies.pool(weights, tokens, np.ones((3, 2)))

    def test_no_positions_and_no_sequences_are_refused(self):
        for shape in ((0, 3), (3, 0)):
            with pytest.raises(ValueError, match="signs: expected at least one entry"):
                vocabularies.draw_tokens(np.ones(shape), 4, np.random.default_rng(0))


class TestCausalAttention:
    @pytest.mark.parametrize("strict", [True, False])
    def test_it_agrees_with_softmax_row_by_row(self, strict):
        rng = np.random.default_rng(5)
        table, tokens = rng.standard_normal((9, 4)), rng.integers(0, 9, (6, 5))
        found = vocabularies.causal_attention(tokens, table, 0.7, strict=strict)
        for sequence, weights in zip(tokens, found, strict=True):
            x, rows = table[sequence], []
            for t in range(1 if strict else 0, 5):
                seen = t if strict else t + 1
                mass = np.exp(0.7 * x[:seen] @ x[t])
                rows.append(np.append(mass / mass.sum(), np.zeros(5 - seen)))
            assert np.allclose(weights, np.mean(rows, axis=0), atol=1e-14)

    def test_without_scores_the_weights_are_harmonic(self):
        tokens = np.arange(8).reshape(2, 4)
        found = vocabularies.causal_attention(tokens, np.ones((8, 3)), 0.0)
        assert np.allclose(found, sequences.harmonic_weights(4), atol=1e-15)

    def test_blocks_do_not_show(self):
        rng = np.random.default_rng(6)
        table, tokens = rng.standard_normal((50, 4000)), rng.integers(0, 50, (300, 4))
        found = vocabularies.causal_attention(tokens, table, 1e-3)
        alone = vocabularies.causal_attention(tokens[137:138], table, 1e-3)
        assert np.allclose(found[137], alone[0], atol=1e-14)

    def test_large_scores_do_not_overflow(self):
        table = np.array([[100.0], [90.0]])
        found = vocabularies.causal_attention([[0, 1, 0]], table, 10.0)
        assert np.allclose(found, [[1.0, 0.0, 0.0]], atol=1e-12)

    def test_one_position_has_nothing_before_it(self):
        with pytest.raises(ValueError, match="tokens: expected at least two positions"):
            vocabularies.causal_attention([[0]], np.ones((1, 1)), 1.0)


def enumerate_covariance(table, law, weights):
    half, total = len(table) // 2, 0
    for signs, chance in law.items():
        classes = [range(half) if sign > 0 else range(half, 2 * half) for sign in signs]
        for tokens in itertools.product(*classes):
            c = weights @ table[list(tokens)]
            total = total + chance * np.outer(c, c) / half ** len(signs)
    return total


class TestConditionalCovariance:
    @quick
    @given(st.integers(0, 10**6))
    def test_it_is_the_mean_over_all_sequences(self, seed):
        rng = np.random.default_rng(seed)
        table = vocabularies.draw_vocabulary(rng.standard_normal(3), 4, rng)
        chances = rng.dirichlet(np.ones(8))
        law = dict(zip(itertools.product((1, -1), repeat=3), chances, strict=True))
        weights = rng.standard_normal(3)
        correlation = sum(p * np.outer(x, x) for x, p in law.items())
        marginals = sum(p * np.array(x) for x, p in law.items())
        found = pooled_models.conditional_covariance(
            weights, correlation, table, marginals=marginals
        )
        exact = enumerate_covariance(table.embeddings, law, weights)
        assert np.allclose(found, exact, atol=1e-12)

    def test_balanced_signs_give_three_terms(self):
        table, weights = draw(seed=7), np.array([0.5, 0.3, 0.2])
        correlation = sign_sequences.ar1_correlation(3, 0.4)
        within = sum(np.cov(half.T, bias=True) for half in np.split(table.embeddings, 2)) / 2
        expected = (
            weights @ weights * within
            + weights @ correlation @ weights * np.outer(table.direction, table.direction)
            + np.outer(table.mean, table.mean)
        )
        found = pooled_models.conditional_covariance(weights, correlation, table)
        assert np.allclose(found, expected, atol=1e-14)

    @pytest.mark.parametrize(
        ("correlation", "marginals", "words"),
        [
            (2 * np.eye(2), None, "ones on the diagonal"),
            ([[1.0, 0.5], [0.2, 1.0]], None, "symmetric"),
            (np.eye(2), [0.9, 0.9], "positive semi-definite"),
            (np.eye(3), None, "shape"),
        ],
    )
    def test_bad_input_is_refused(self, correlation, marginals, words):
        with pytest.raises(ValueError, match=words):
            pooled_models.conditional_covariance(
                [0.5, 0.5], correlation, draw(), marginals=marginals
            )


class TestVariants:
    def expected(self, variant, weights, correlation, signal, size):
        """E ccᵀ over table, signs and tokens, by hand."""
        d, kappa, total = len(signal), weights @ weights, weights.sum()
        alpha, square = weights @ correlation @ weights, np.outer(signal, signal)
        plain = kappa * (size - 2) / size + (alpha + total**2) / size
        noise = {
            "plain": plain,
            "class-centred": kappa * (size - 2) / size,
            "flipped": kappa * (size - 1) / size + alpha / size,
            "free": kappa * (size - 1) / size + total**2 / size,
            "fresh": kappa,
            "antithetic": kappa * (size - 2) / size + 2 * alpha / size,
        }[variant]
        return noise * np.eye(d) + alpha * square

    @pytest.mark.parametrize("variant", pooled_models.VARIANTS)
    def test_second_moments_over_tables(self, variant):
        weights, signal, size = np.array([0.6, 0.4, 0.3]), np.array([1.0, 0.5]), 6
        loadings = [0.9, 0.8, 0.0]
        correlation = sign_sequences.latent_correlation(loadings)

        def sample(rng):
            found = 0
            for _ in range(40):
                signs = sign_sequences.latent_signs(loadings, 8, rng).signs
                c = pooled_models.draw_pooled(variant, weights, signs, signal, size, rng)
                found = found + c.T @ c / 8
            return found / 40

        estimate = mean_and_error(replicate(sample, 40, 11))
        expected = self.expected(variant, weights, correlation, signal, size)
        assert np.abs((estimate.mean - expected) / estimate.standard_error).max() < 6

    def test_unknown_variants_are_refused(self):
        with pytest.raises(ValueError, match="variant: expected one of"):
            pooled_models.draw_pooled("other", [1.0], [[1]], [1.0], 4, np.random.default_rng(0))
