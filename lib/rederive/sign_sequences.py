r"""Sequences of signs ξ_t = ±1 with a given correlation R = E ξξᵀ.

Three families: noisy copies of one hidden sign (the label), whose special case is the prefix model,
in which only the first positions carry signal; and stationary chains. Arrays in, NumPy arrays out.
"""

from typing import NamedTuple

import numpy as np

from rederive import validation

__all__ = [
    "Signs",
    "ar1_correlation",
    "ar1_signs",
    "check_signs",
    "latent_correlation",
    "latent_signs",
    "prefix_loadings",
]


class Signs(NamedTuple):
    """Sign sequences and the hidden sign (the label) behind each."""

    signs: np.ndarray  # (N, T), ±1
    labels: np.ndarray  # (N,), ±1


def prefix_loadings(length, prefix, strength=1.0):
    r"""Loadings of the prefix model, in which only the first positions carry signal.

    Parameters
    ----------
    length : int
        T ≥ 1.
    prefix : int
        L, 1 ≤ L ≤ T.
    strength : float, optional
        Correlation r in [0, 1] of two signs of the prefix; at 1 they are equal.

    Returns
    -------
    numpy.ndarray, shape (T,)
        √r on the prefix, 0 behind it; for :func:`latent_signs` and :func:`latent_correlation`.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826.
    """
    length = validation.integer(length, "length", minimum=1)
    prefix = validation.integer(prefix, "prefix", minimum=1, maximum=length)
    strength = validation.number(strength, "strength", minimum=0, maximum=1)
    return np.where(np.arange(length) < prefix, np.sqrt(strength), 0.0)


def latent_correlation(loadings):
    r"""Correlation of signs that are noisy copies of one hidden sign.

    Parameters
    ----------
    loadings : array_like, shape (T,)
        b_t in [−1, 1], the mean of the sign at position t when the hidden sign is +1.

    Returns
    -------
    numpy.ndarray, shape (T, T)
        R = bbᵀ + diag(1 − b²).

    Raises
    ------
    ValueError
        If a loading lies outside [−1, 1].

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    loadings = _loadings(loadings)
    correlation = np.outer(loadings, loadings)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def latent_signs(loadings, count, rng, *, labels=None):
    r"""Draw signs that are noisy copies of one hidden sign a sequence.

    Parameters
    ----------
    loadings : array_like, shape (T,)
        b_t in [−1, 1].
    count : int
        N ≥ 1 sequences.
    rng : numpy.random.Generator
        Source of randomness.
    labels : array_like, shape (N,), optional
        The hidden signs; by default balanced coin flips. Fixed labels give unbalanced marginals.

    Returns
    -------
    Signs
        `signs` (N, T) with P(ξ_t = y) = (1 + b_t)/2, independent given y, and `labels` (N,).

    Raises
    ------
    ValueError
        If a loading lies outside [−1, 1] or a label is not ±1.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    validation.generator(rng)
    loadings = _loadings(loadings)
    count = validation.integer(count, "count", minimum=1)
    if labels is None:
        labels = _coins(rng, count)
    else:
        labels = check_signs(labels, "labels", shape=(count,))
    copies = np.where(rng.random((count, len(loadings))) < (1 + loadings) / 2, 1, -1)
    return Signs((copies * labels[:, None]).astype(np.int8), labels.astype(np.int8))


@validation.representable
def ar1_correlation(length, coefficient):
    r"""Correlation of a stationary chain of signs.

    Parameters
    ----------
    length : int
        T ≥ 1.
    coefficient : float
        φ in [−1, 1], the correlation of neighbours.

    Returns
    -------
    numpy.ndarray, shape (T, T)
        R with entries φ^|s−t|.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    length = validation.integer(length, "length", minimum=1)
    coefficient = validation.number(coefficient, "coefficient", minimum=-1, maximum=1)
    positions = np.arange(length)
    return coefficient ** np.abs(positions[:, None] - positions)


def ar1_signs(length, coefficient, count, rng):
    r"""Draw stationary chains of signs.

    Parameters
    ----------
    length : int
        T ≥ 1.
    coefficient : float
        φ in [−1, 1]; a sign is kept from one position to the next with probability (1 + φ)/2.
    count : int
        N ≥ 1 sequences.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray, shape (N, T)
        Signs with E ξ_sξ_t = φ^|s−t| and balanced marginals.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    length = validation.integer(length, "length", minimum=1)
    coefficient = validation.number(coefficient, "coefficient", minimum=-1, maximum=1)
    count = validation.integer(count, "count", minimum=1)
    validation.generator(rng)
    steps = np.where(rng.random((count, length)) < (1 + coefficient) / 2, 1, -1)
    steps[:, 0] = _coins(rng, count)
    return np.cumprod(steps, axis=1).astype(np.int8)


def check_signs(signs, name, *, shape):
    """Check an array of ±1 and return it as integers."""
    signs = validation.array(signs, name, shape=shape, dtype=int)
    if (np.abs(signs) != 1).any():
        validation.fail(name, "entries ±1", str(signs[np.abs(signs) != 1].flat[0]))
    return signs


def _loadings(loadings):
    loadings = validation.array(loadings, "loadings", shape=("T",))
    if np.abs(loadings).max() > 1:
        outside = float(loadings[np.abs(loadings) > 1][0])
        validation.fail("loadings", "numbers in [−1, 1]", outside)
    return loadings


def _coins(rng, count):
    return 2 * rng.integers(0, 2, size=count) - 1
