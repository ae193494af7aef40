r"""Accuracy of the linear discriminant for a known table, exact at finite dimension and vocabulary.

The limits are in :mod:`rederive.classification`. Arrays in, floats out.
"""

import functools
import itertools
import math

import numpy as np
from scipy import special, stats

from rederive import classification, validation

__all__ = ["finite_discriminant_accuracy"]

_MOST_POSITIONS = 6
_LARGEST_SIGNAL = 1e6  # the non-central χ² takes ever longer, and no mistake is left to be made


@validation.representable
def finite_discriminant_accuracy(weights, loadings, signal_norm2, dimension, size):
    r"""Accuracy of the discriminant at finite d and V, averaged over tables.

    Parameters
    ----------
    weights, loadings
        As for :func:`rederive.classification.agreement`, for at most 6 positions with a weight
        other than 0.
    signal_norm2 : float
        θ ≥ 0, at most 10⁶/V.
    dimension, size : int
        d ≥ 1, and V ≥ max(d + 2, 4), even.

    Returns
    -------
    float
        The probability that the sign of (c − (w·1)m₁)ᵀW⁻¹μ̃ is the label of a new sequence.

    Raises
    ------
    ValueError
        If an argument is out of its range, or there are more positions.

    Notes
    -----
    Given h, which tokens of a sequence coincide and the agreement f, the probability is that of
    :math:`f\sqrt h > \sqrt V\lVert p\rVert U`, with U one coordinate of a uniform point on the
    sphere of :math:`\mathbb R^{V-2}` and :math:`\lVert p\rVert^2=\sum_v(\sum_{t:v_t=v}w_t)^2
    -((w^\top1)^2+f^2)/V`. Coincidences are summed over; the mean over h is a quadrature with an
    error below 10⁻⁹.

    References
    ----------
    Derived in the chapter *pooling*.
    """
    weights, loadings = classification.check_pair(weights, loadings)
    theta = validation.number(signal_norm2, "signal_norm2", minimum=0)
    d = validation.integer(dimension, "dimension", minimum=1)
    size = validation.integer(size, "size", minimum=max(d + 2, 4))
    if size % 2:
        validation.fail("size", "an even number of items, for balanced classes", size)
    if theta * size > _LARGEST_SIGNAL:
        validation.fail("signal_norm2", f"at most {_LARGEST_SIGNAL:.0e} / size", theta)
    weights, loadings = weights[weights != 0], loadings[weights != 0]
    if len(weights) > _MOST_POSITIONS:
        validation.fail("weights", f"at most {_MOST_POSITIONS} positions", len(weights))
    weights = weights / np.linalg.norm(weights)
    roots, masses = _root_separations(d, size, theta)
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(weights)):
        chance = math.prod((1 + s * b) / 2 for s, b in zip(signs, loadings, strict=True))
        if chance == 0:
            continue
        f, sides = weights @ signs, []
        for side in (1, -1):
            inside = [w for w, s in zip(weights, signs, strict=True) if s == side]
            sides.append(_coincidences(inside, size // 2))
        for (first, p), (second, q) in itertools.product(*sides):
            spread = first + second - (weights.sum() ** 2 + f * f) / size
            u = np.clip(f * roots / math.sqrt(size * max(spread, 1e-300)), -1, 1)
            t = u * math.sqrt(size - 3) / np.sqrt(np.maximum(1 - u * u, 1e-300))
            total += chance * p * q * (masses @ special.stdtr(size - 3, t))
    return float(total)


@functools.lru_cache(maxsize=16)
def _root_separations(d, size, theta):
    """Quadrature nodes and masses for the square root of h at finite d and V."""
    nodes, masses = np.polynomial.legendre.leggauss(64)
    # x = Φ⁻¹(u) on [−7, 7]: smooth, and what is cut off has mass 3e-12
    points = 7 * nodes
    normal = 7 * masses * np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    tails = special.ndtr(points)
    below = stats.chi2.ppf(tails, size - d - 1)
    above = stats.ncx2.ppf(tails, d, size * theta) if theta > 0 else stats.chi2.ppf(tails, d)
    return np.sqrt(np.divide.outer(above, below)).ravel(), np.outer(normal, normal).ravel()


def _coincidences(weights, items):
    """All (Σ_v (Σ_{v_t=v} w_t)², probability) for tokens uniform among `items` items."""
    states = [((), 1.0)]
    for weight in weights:
        grown = []
        for sums, p in states:
            for i in range(len(sums)):
                grown.append(((*sums[:i], sums[i] + weight, *sums[i + 1 :]), p / items))
            if len(sums) < items:
                grown.append(((*sums, weight), p * (items - len(sums)) / items))
        states = grown
    return [(sum(s * s for s in sums), p) for sums, p in states]
