"""The decisions of the stochastic checks, as pure functions of arrays.

Leading axes are batches: the checks call these functions on one data set, the calibration tests
on 10⁵ simulated ones. Verdicts are +1 (shown, or not rejected where the kind says so), −1
(refuted) and 0 (undecided). Nothing here knows of claims or pages.
"""

import contextlib
import functools
import math

import numpy as np
from scipy import special

LEVEL = 1e-6
"""Two-sided level of every stochastic test of the book."""

STANDARD_ERRORS = 10.0
"""Least distance of a stochastic control, in standard errors."""

POWER = 0.999
"""Probability with which a control at its least distance is to be caught."""

_level = LEVEL


def current_level():
    """The level at which checks decide: `LEVEL`, save inside `_at_level`."""
    return _level


@contextlib.contextmanager
def _at_level(level):
    """Decide at another level inside the ``with`` block: for the calibration tests alone."""
    global _level
    before, _level = _level, level
    try:
        yield
    finally:
        _level = before


@functools.lru_cache(maxsize=4096)
def quantile(level, tests, dof):
    """Half-width, in standard errors, of a two-sided t interval shared by `tests` entries."""
    tail = level / (2.0 * tests)
    return -float(special.ndtri(tail) if math.isinf(dof) else special.stdtrit(dof, tail))


def summarise(replicates):
    """Mean, standard error and degrees of freedom over the replicates, axis −2 of (…, R, K)."""
    count = replicates.shape[-2]
    mean = replicates.mean(axis=-2)
    standard_error = replicates.std(axis=-2, ddof=1) / math.sqrt(count)
    return mean, standard_error, count - 1


def decide_mean(mean, standard_error, dof, predicted, bias_bound, margin, level):
    """Decide whether means (…, K) agree with predictions.

    Without a margin: +1 unless some |mean − predicted| exceeds bias_bound + t·SE, then −1.
    With one: +1 if every interval mean ± (bias_bound + t·SE) lies inside predicted ± margin,
    −1 if one of them lies outside, 0 otherwise.
    """
    deviation = np.abs(mean - predicted)
    reach = bias_bound + quantile(level, mean.shape[-1], dof) * standard_error
    if margin is None:
        return np.where((deviation <= reach).all(axis=-1), 1, -1)
    inside = (deviation + reach <= margin).all(axis=-1)
    outside = (deviation - reach > margin).any(axis=-1)
    return inside.astype(int) - outside.astype(int)


def decide_order(mean, standard_error, dof, level):
    """Decide whether mean differences (…, K) are positive: +1 all shown, −1 one refuted, else 0.

    The limits are the ends of the two-sided interval, so each direction errs with level/2.
    """
    reach = quantile(level, mean.shape[-1], dof) * standard_error
    above = (mean - reach > 0).all(axis=-1)
    below = (mean + reach < 0).any(axis=-1)
    return above.astype(int) - below.astype(int)


def kolmogorov_distance(cdf_values):
    """Largest gap D between the empirical law and F, from F at the sorted sample (…, n)."""
    count = cdf_values.shape[-1]
    steps = np.arange(count + 1) / count
    above = (steps[1:] - cdf_values).max(axis=-1)
    below = (cdf_values - steps[:-1]).max(axis=-1)
    return np.maximum(above, below)


@functools.lru_cache(maxsize=4096)
def kolmogorov_quantile(level, count):
    """Upper quantile of D for `count` independent draws from a continuous law (exact)."""
    from scipy import stats

    return float(stats.kstwo.isf(level, count))


def decide_distribution(distance, count, bias_bound, level):
    """+1 unless D exceeds its exact quantile and the bound on the error of the law, then −1."""
    return np.where(distance <= kolmogorov_quantile(level, count) + bias_bound, 1, -1)


def counting_functions(spectra, grid):
    """Numbers of entries of spectra (…, R, n) at or below each grid point, (…, R, K)."""
    return np.stack([(spectra <= point).sum(axis=-1) for point in grid], axis=-1).astype(float)


def least_count_variance(predicted, bias_bound):
    """Least variance of a whole-number variable whose mean lies within predicted ± bias_bound.

    Notes
    -----
    A whole-number variable with mean m + f, m whole, 0 ≤ f < 1, has variance at least f(1 − f),
    reached on {m, m + 1}. If the interval holds a whole number the least variance is 0,
    otherwise it is reached at an end of the interval.
    """
    lower, upper = predicted - bias_bound, predicted + bias_bound
    ends = [end - np.floor(end) for end in (lower, upper)]
    least = np.minimum(*(fraction * (1 - fraction) for fraction in ends))
    return np.where(np.floor(upper) >= np.ceil(lower), 0.0, least)


def decide_counts(counts, predicted, bias_bound, level):
    """Decide whether mean counts agree with predicted ones; also give means and standard errors.

    The variance is not taken below the least one which whole numbers allow under the prediction:
    a counting function that never moved in R spectra is judged by that and by the bias bound.
    """
    mean, standard_error, dof = summarise(counts)
    floor = np.sqrt(least_count_variance(predicted, bias_bound) / counts.shape[-2])
    standard_error = np.maximum(standard_error, floor)
    verdict = decide_mean(mean, standard_error, dof, predicted, bias_bound, None, level)
    return verdict, mean, standard_error, dof


def slope_weights(x):
    """Weights w with Σw = 0 and Σ w log x = 1: the least-squares slope of log y is Σ w log y."""
    centred = np.log(x) - np.log(x).mean()
    return centred / (centred @ centred)


def log_slopes(x, y):
    """Least-squares slope of log y on log x along the last axis, (…, K) to (…)."""
    return np.log(y) @ slope_weights(x)


@functools.lru_cache(maxsize=4096)
def noticed_distance(dof, tests, level, power):
    """Distance, in standard errors, at which a lie is noticed with probability `power`.

    Notes
    -----
    The statistic of a lie at distance δ is (Z + δ)/S with Z normal and νS² chi-square. It exceeds
    t with probability E Φ(δ − tS), an integral over the quantiles of S.
    """
    t = quantile(level, tests, dof)
    if math.isinf(dof):
        return t + float(special.ndtri(power))
    shares = (np.arange(20_000) + 0.5) / 20_000
    spread = np.sqrt(2.0 * special.gammaincinv(dof / 2.0, shares) / dof)
    low, high = 0.0, t * float(spread[-1]) + 10.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2.0
        caught = float(special.ndtr(middle - t * spread).mean()) >= power
        low, high = (low, middle) if caught else (middle, high)
    return high


def required_distance(dof, tests, level):
    """Distance, in standard errors, that a control must have: noticed with POWER; ≥ 10.

    For ν → ∞ and one entry t = 4.9 and δ = 8.0 suffice, so that 10 rules; few degrees of freedom
    need more (ν = 7: 29).
    """
    return max(STANDARD_ERRORS, noticed_distance(dof, tests, level, POWER))
