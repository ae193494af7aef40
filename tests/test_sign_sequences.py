"""Sign sequences have the correlations that they claim."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rederive import sign_sequences
from rederive.replicates import mean_and_error, replicate

quick = settings(max_examples=40, deadline=None)


def in_the_mean(sample, expected, seed=0, count=40, reach=6.0):
    """Check a mean over replicates entry by entry, at six standard errors."""
    estimate = mean_and_error(replicate(sample, count, seed))
    spread = np.maximum(estimate.standard_error, 1e-12)
    assert np.abs((estimate.mean - expected) / spread).max() < reach


def test_latent_signs_have_the_correlation_of_their_loadings():
    loadings = np.array([1.0, 0.8, 0.3, 0.0, -0.5])

    def sample(rng):
        signs = sign_sequences.latent_signs(loadings, 400, rng).signs.astype(float)
        return signs.T @ signs / 400

    in_the_mean(sample, sign_sequences.latent_correlation(loadings))


def test_chains_have_powers_as_correlations():
    def sample(rng):
        signs = sign_sequences.ar1_signs(5, -0.6, 400, rng).astype(float)
        return np.vstack([signs.T @ signs / 400, signs.mean(axis=0)])

    expected = np.vstack([sign_sequences.ar1_correlation(5, -0.6), np.zeros(5)])
    in_the_mean(sample, expected)


def test_fixed_labels_set_the_marginals():
    loadings = [0.9, 0.2, -0.4]
    in_the_mean(
        lambda rng: sign_sequences.latent_signs(loadings, 400, rng, labels=np.ones(400)).signs.mean(
            axis=0
        ),
        loadings,
    )


def test_labels_come_back_and_are_balanced():
    drawn = sign_sequences.latent_signs([1.0], 10_000, np.random.default_rng(1))
    assert np.array_equal(drawn.signs[:, 0], drawn.labels)
    assert abs(drawn.labels.mean()) < 0.06


@quick
@given(st.integers(1, 12), st.floats(0, 1), st.integers(0, 10**6))
def test_a_prefix_shares_its_signs_at_full_strength(length, strength, seed):
    prefix = 1 + seed % length
    loadings = sign_sequences.prefix_loadings(length, prefix, strength)
    correlation = sign_sequences.latent_correlation(loadings)
    inside = np.arange(length) < prefix
    expected = np.where(np.outer(inside, inside), strength, 0.0)
    np.fill_diagonal(expected, 1.0)
    assert np.allclose(correlation, expected, atol=1e-12)
    rng = np.random.default_rng(seed)
    drawn = sign_sequences.latent_signs(sign_sequences.prefix_loadings(length, prefix), 20, rng)
    assert np.all(drawn.signs[:, :prefix] == drawn.labels[:, None])
    assert set(np.unique(drawn.signs)) <= {-1, 1}


@quick
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=4))
def test_the_latent_correlation_by_enumeration(loadings):
    total = 0
    for copies in itertools.product((1, -1), repeat=len(loadings)):
        chance = np.prod([(1 + e * b) / 2 for e, b in zip(copies, loadings, strict=True)])
        total = total + chance * np.outer(copies, copies)
    assert np.allclose(sign_sequences.latent_correlation(loadings), total, atol=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda rng: sign_sequences.latent_signs([1.2], 3, rng),
        lambda rng: sign_sequences.latent_signs([np.nan], 3, rng),
        lambda rng: sign_sequences.latent_signs([], 3, rng),
        lambda rng: sign_sequences.latent_signs([1.0], 0, rng),
        lambda rng: sign_sequences.latent_signs([1.0], 2, rng, labels=[1, 0]),
        lambda rng: sign_sequences.latent_signs([1.0], 2, rng, labels=[1]),
        lambda rng: sign_sequences.ar1_signs(0, 0.5, 3, rng),
        lambda rng: sign_sequences.ar1_signs(3, 1.5, 3, rng),
        lambda rng: sign_sequences.prefix_loadings(4, 5),
        lambda rng: sign_sequences.prefix_loadings(4, 2, -0.1),
        lambda rng: sign_sequences.check_signs([1, 2], "signs", shape=("T",)),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError, match=r"^\w+: expected "):
        call(np.random.default_rng(0))
