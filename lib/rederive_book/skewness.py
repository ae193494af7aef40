"""When a t interval may be trusted although the replicates are skewed.

The t statistic T of n replicates with skewness γ satisfies, to first order in n^{-1/2},

    P(T ≤ −t) ≈ Φ(−t) + φ(t)·γ(2t² + 1)/(6√n),    P(T ≥ t) ≈ Φ(−t) − φ(t)·γ(2t² + 1)/(6√n).

With Φ(−t) ≈ φ(t)/t the two tails are off by the factors 1 ± a, a = γ·t(2t² + 1)/(6√n). At level
10⁻⁶ (t = 4.9, a = 40 γ/√n) that is no small correction, but the leading term t³γ/(3√n) is also
the exponent of the large deviations of a self-normalised sum, P(T ≤ −t) ≈ Φ(−t)·exp(+a) and
P(T ≥ t) ≈ Φ(−t)·exp(−a). Two-sided the level is multiplied by cosh a, which stays within a factor
of two as long as a ≤ arcosh 2 = 1.317, that is

    n ≥ (γ · t(2t² + 1) / (6 · arcosh 2))²    (914 γ² at level 10⁻⁶, one entry).

The factor was measured at this n. At level 10⁻⁶: 1.8–2.0 for gamma laws with γ = ½, 1, 2 and 4
(by importance sampling), 2.0–2.1 for two-point laws with γ = 0.9, 1.5, 2.7 and 4.1 (summed
exactly, averaged over neighbouring n). At half that n it is 2.5–4, at twice that n 1.2–1.7.
Kurtosis κ enters as −κt⁴/(12n): heavy tails make the test cautious; the lightest, two equally
likely values (κ = −2), cost a factor between 1 and 3 from n = 60 on.

What is known of γ is the sample skewness, which for n normal replicates scatters with variance
about 6/n. So that normal replicates are refused about once in 10⁶, the limit is the tolerable
γ plus the 10⁻⁶ point of the sample skewness of a normal sample (D'Agostino's transformation to a
normal variable; simulated at 10⁻⁵ it is exceeded 1.3 times too often at n = 50 and 100, less than
nominally at n ≤ 20). The other side of the coin: with few replicates even strong skewness escapes
notice. There the interval rests on the replicates being normal, which is the author's to see to:
hand over replicates that are themselves averages (their skewness falls as one over the root of
the number averaged), or many of them. Uniform replicates, for one, raise the level 10⁻⁴ by a
factor of 5 for n = 8 and of 1.9 for n = 30.
"""

import functools
import math

import numpy as np

from rederive_book.statistics import LEVEL, quantile

INFLATION = 2.0
"""Factor by which skewness may raise the level of a t interval."""


def skewness(replicates):
    """Sample skewness over axis −2 of (…, R, K); 0 where nothing varies."""
    centred = replicates - replicates.mean(axis=-2, keepdims=True)
    second = (centred**2).mean(axis=-2)
    third = (centred**3).mean(axis=-2)
    varies = second > 0
    return np.where(varies, third / np.where(varies, second, 1.0) ** 1.5, 0.0)


@functools.lru_cache(maxsize=4096)
def skewness_limit(count, tests, level):
    """Largest sample skewness with which `count` replicates, of `tests` entries, are accepted."""
    tolerable = math.acosh(INFLATION) * math.sqrt(count) / _exponent(level, tests, count - 1)
    return tolerable + _normal_quantile(count)


def replicates_needed(skew, tests, level):
    """Number of replicates from which a population of this skewness is harmless."""
    return math.ceil((abs(skew) * _exponent(level, tests, math.inf) / math.acosh(INFLATION)) ** 2)


def refuse_skewed(columns, argument, level):
    """Raise `ValueError` if replicates (R, K) are too skewed for their number."""
    count, entries = columns.shape
    worst = float(np.max(np.abs(skewness(columns))))
    if worst > skewness_limit(count, entries, level):
        needed = replicates_needed(worst, entries, level)
        raise ValueError(
            f"{argument} have skewness {worst:.3g}, too much for {count} of them: about {needed} "
            "are needed for the t interval to keep its level (or average within replicates)"
        )


def _exponent(level, tests, dof):
    """The factor of γ/√n in a."""
    t = quantile(level, tests, dof)
    return t * (2 * t * t + 1) / 6.0


def _normal_quantile(count):
    """The point that the sample skewness of a normal sample exceeds in modulus with LEVEL."""
    if count < 8:
        return math.inf
    n = float(count)
    kurtosis = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3)
    kurtosis /= (n - 2) * (n + 5) * (n + 7) * (n + 9)
    squared = math.sqrt(2 * (kurtosis - 1)) - 1
    slope, scale = 1 / math.sqrt(0.5 * math.log(squared)), math.sqrt(2 / (squared - 1))
    standardised = scale * math.sinh(quantile(LEVEL, 1, math.inf) / slope)
    return standardised * math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
