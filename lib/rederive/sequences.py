r"""The weights that pool a sequence, and how much of its signal they keep.

A sequence has T positions with signs ξ_t = ±1 of correlation R = E ξξᵀ. Pooling with weights w
keeps of the signal α = wᵀRw and of the noise κ = ‖w‖²; q = α/κ is the signal-to-noise ratio. Signs
are drawn in :mod:`rederive.sign_sequences`, tokens and tables in :mod:`rederive.vocabularies`.
Arrays in, NumPy arrays or floats out.
"""

import numpy as np
import scipy.special

from rederive import validation

__all__ = [
    "check_correlation",
    "effective_length",
    "harmonic_weights",
    "inclusive_weights",
    "optimal_weights",
    "signal_to_noise",
]


def harmonic_weights(length):
    r"""Weights of uniform causal attention without the diagonal, averaged over rows.

    Parameters
    ----------
    length : int
        T ≥ 2.

    Returns
    -------
    numpy.ndarray, shape (T,)
        Decreasing, of sum 1; the last weight is 0.

    Raises
    ------
    ValueError
        If the length is not an integer of at least 2.

    Notes
    -----
    Row t = 2, …, T attends to 1, …, t − 1 with weights 1/(t − 1). The mean over these rows is

    .. math:: w_s = \frac{H_{T-1} - H_{s-1}}{T-1}, \qquad
        \lVert w\rVert^2 = \frac{2(T-1) - H_{T-1}}{(T-1)^2}.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826.
    """
    length = validation.integer(length, "length", minimum=2)
    tails = np.cumsum(1 / np.arange(length - 1, 0, -1))[::-1]  # Σ_{t=s}^{T−1} 1/t
    return np.append(tails, 0.0) / (length - 1)


@validation.representable
def inclusive_weights(length, diagonal_score=0.0):
    r"""Weights of causal attention in which a token also attends to itself.

    Parameters
    ----------
    length : int
        T ≥ 1.
    diagonal_score : float, optional
        τ, the score of a token with itself; all other scores are 0.

    Returns
    -------
    numpy.ndarray, shape (T,)
        Of sum 1; the mean of the weights tends to 1/T everywhere as τ → ∞.

    Raises
    ------
    ValueError
        If the length is not a positive integer or the score is not finite.

    Notes
    -----
    .. math:: w_s = \frac1T\Bigl[\frac{e^\tau}{e^\tau + s - 1}
        + \sum_{t>s} \frac{1}{e^\tau + t - 1}\Bigr].

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    length = validation.integer(length, "length", minimum=1)
    score = validation.number(diagonal_score, "diagonal_score")
    others = np.arange(1, length)  # in rows 2, …, T; row 1 holds its own token only
    own = np.append(1.0, scipy.special.expit(score - np.log(others)))
    other = scipy.special.expit(np.log(others) - score) / others
    later = np.append(np.cumsum(other[::-1])[::-1], 0.0)
    return (own + later) / length


@validation.representable
def optimal_weights(correlation):
    r"""Weights that maximise the signal-to-noise ratio of the pooled sequence.

    Parameters
    ----------
    correlation : array_like, shape (T, T)
        R, symmetric and positive semi-definite.

    Returns
    -------
    numpy.ndarray, shape (T,)
        Top eigenvector of R with sum 1. If its sum vanishes: with norm 1 and its first non-zero
        entry positive.

    Raises
    ------
    ValueError
        If R is not square, symmetric and positive semi-definite, or vanishes.

    Notes
    -----
    :math:`\max_w w^\top Rw/\lVert w\rVert^2 = \lambda_{\max}(R)` (Rayleigh). If the top eigenvalue
    is multiple, the maximiser is not unique; then the projection of the vector of ones (or, where
    that vanishes, of the first unit vector whose projection does not) onto the top eigenspace is
    returned, which does not depend on the basis that the eigensolver happens to find.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826, Theorem 5.
    """
    correlation = check_correlation(correlation)
    values, vectors = np.linalg.eigh(correlation)
    if not values[-1] > 0:
        validation.fail("correlation", "a matrix that is not zero", f"shape {correlation.shape}")
    length = len(values)
    rounding = 10 * length * np.finfo(float).eps
    top = values >= values[-1] * (1 - rounding)
    gap = (values[-1] - values[~top].max()) / values[-1] if not top.all() else 1.0
    space = vectors[:, top]
    level = np.sqrt(length) * rounding / gap  # what rounding leaves of a zero
    for start in (np.ones(length), *np.eye(length)):
        weights = space @ (start @ space)
        if np.linalg.norm(weights) > level * np.linalg.norm(start):
            break
    total, norm = weights.sum(), np.linalg.norm(weights)
    if abs(total) > level * norm:
        return weights / total
    first = weights[np.abs(weights) > level * norm][0]
    return weights * (np.sign(first) / norm)


@validation.representable
def signal_to_noise(weights, correlation):
    r"""Signal kept by the pooling relative to the noise that it keeps.

    Parameters
    ----------
    weights : array_like, shape (…, T)
        Pooling weights, not all zero.
    correlation : array_like, shape (T, T)
        R, symmetric and positive semi-definite.

    Returns
    -------
    float or numpy.ndarray, shape (…)
        q = wᵀRw/‖w‖².

    Raises
    ------
    ValueError
        If the weights vanish, the sizes differ, or R is not symmetric and positive semi-definite.

    References
    ----------
    M. E. A. Seddik, arXiv:2605.06826.
    """
    correlation = check_correlation(correlation)
    unit = _directions(weights, len(correlation))
    return np.maximum(np.einsum("...s,st,...t->...", unit, correlation, unit), 0.0)[()]


@validation.representable
def effective_length(weights):
    r"""Number of positions that the weights effectively use.

    Parameters
    ----------
    weights : array_like, shape (…, T)
        Pooling weights, not all zero.

    Returns
    -------
    float or numpy.ndarray, shape (…)
        T_eff = (Σw²)²/Σw⁴, between 1 and T; T for the mean.

    Raises
    ------
    ValueError
        If the weights vanish or are not finite.

    References
    ----------
    Derived in the chapter *pooling*, after M. E. A. Seddik, arXiv:2605.06826.
    """
    return (1 / (_directions(weights, "T") ** 4).sum(axis=-1))[()]


def check_correlation(correlation):
    """Check a correlation (T, T), symmetric and positive semi-definite, and return it."""
    correlation = validation.array(correlation, "correlation", shape=("T", "T"))
    correlation = validation.symmetric(correlation, "correlation")
    correlation = (correlation + correlation.T) / 2
    lowest = float(np.linalg.eigvalsh(correlation)[0])
    if lowest < -validation.slack(correlation) * max(np.abs(correlation).max(), 1e-300):
        got = f"an eigenvalue {lowest:.3g}"
        validation.fail("correlation", "a positive semi-definite matrix", got)
    return correlation


def _directions(weights, length):
    weights = validation.array(weights, "weights", shape=(..., length))
    largest = np.abs(weights).max(axis=-1, keepdims=True)
    if not (largest > 0).all():
        validation.fail("weights", "weights that are not all zero", "zeros")
    scaled = weights / largest
    return scaled / np.linalg.norm(scaled, axis=-1, keepdims=True)
